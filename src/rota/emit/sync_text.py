"""Waits, barriers and hints as source: takes a step that rota itself added, gives its statement.

Every statement ends in a fence that keeps the compiler from moving anything over it.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.declare.op import OpDesc
from rota.declare.vocabulary import FrameworkTag
from rota.program.loop import Step

_GROUP_MASKS = (0x100, 0x200, 0x020, 0x008)  # by InstructionGroup: LLVM, SchedGroupMask in AMDGPUIGroupLP
_WORDS = ("FENCE", "WAIT_VM", "WAIT_LGKM", "BARRIER", "PRIORITY")


def sync_words(prefix: str = "") -> Iterator[str]:
    """The macros; on gfx9 the field of vmcnt is split, and all ones in a field is no wait for its counter."""
    fence = f"{prefix}FENCE"
    yield f"#define {fence} __builtin_amdgcn_sched_barrier(0);"
    yield (
        f"#define {prefix}WAIT_VM(n) "
        f"__builtin_amdgcn_s_waitcnt(((n) & 15) | 0xf70 | ((n) >> 4 << 14)); {fence}  // at most n loads under way"
    )
    yield (
        f"#define {prefix}WAIT_LGKM(n) "
        f"__builtin_amdgcn_s_waitcnt(0xc07f | ((n) << 8)); {fence}  // at most n LDS reads under way"
    )
    yield f"#define {prefix}BARRIER __builtin_amdgcn_s_barrier(); {fence}"
    yield f"#define {prefix}PRIORITY(n) __builtin_amdgcn_s_setprio(n); {fence}"


def sync_words_end(prefix: str) -> Iterator[str]:
    """What takes the macros back."""
    return (f"#undef {prefix}{word}" for word in _WORDS)


def sync_text(step: Step, prefix: str = "") -> str:
    """The statement; a barrier of one wave group alone asks the variable `wave_group`."""
    op = step.entry.op
    statements = {
        FrameworkTag.WAIT_VM: f"{prefix}WAIT_VM({op.wait_value})",
        FrameworkTag.WAIT_LGKM: f"{prefix}WAIT_LGKM({op.wait_value})",
        FrameworkTag.SET_PRIO: f"{prefix}PRIORITY({op.wait_value})",
        FrameworkTag.SCHEDULE_BARRIER: f"{prefix}FENCE",
        FrameworkTag.BARRIER: _barrier(step.group, f"{prefix}BARRIER"),
        FrameworkTag.SCHED_GROUP_BARRIER: f"{_hint(op)} {prefix}FENCE",
    }
    return statements[FrameworkTag(op.tag)]


def _hint(op: OpDesc) -> str:
    mask = _GROUP_MASKS[op.subtile % len(_GROUP_MASKS)]
    return f"__builtin_amdgcn_sched_group_barrier({mask:#x}, {op.wait_value}, 0);"


def _barrier(group: int | None, barrier: str) -> str:
    return barrier if group is None else f"if (wave_group == {group}) {{ {barrier} }}"
