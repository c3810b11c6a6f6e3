"""Waits, barriers and hints as source: takes a step that rota itself added, gives its statement.

Every statement ends in a fence that keeps the compiler from moving anything over it.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.declare.op import OpDesc
from rota.declare.vocabulary import FrameworkTag
from rota.program.loop import Step

_GROUP_MASKS = (0x100, 0x200, 0x020, 0x008)  # by InstructionGroup: LLVM, SchedGroupMask in AMDGPUIGroupLP


def sync_words() -> Iterator[str]:
    """The macros; on gfx9 the field of vmcnt is split, and all ones in a field is no wait for its counter."""
    yield "#define ROTA_FENCE __builtin_amdgcn_sched_barrier(0);"
    yield (
        "#define ROTA_WAIT_VM(n) "
        "__builtin_amdgcn_s_waitcnt(((n) & 15) | 0xf70 | ((n) >> 4 << 14)); ROTA_FENCE  // at most n loads under way"
    )
    yield (
        "#define ROTA_WAIT_LGKM(n) "
        "__builtin_amdgcn_s_waitcnt(0xc07f | ((n) << 8)); ROTA_FENCE  // at most n LDS reads under way"
    )
    yield "#define ROTA_BARRIER __builtin_amdgcn_s_barrier(); ROTA_FENCE"
    yield "#define ROTA_PRIORITY(n) __builtin_amdgcn_s_setprio(n); ROTA_FENCE"


def sync_text(step: Step) -> str:
    """The statement; a barrier of one wave group alone asks the variable `wave_group`."""
    op = step.entry.op
    statements = {
        FrameworkTag.WAIT_VM: f"ROTA_WAIT_VM({op.wait_value})",
        FrameworkTag.WAIT_LGKM: f"ROTA_WAIT_LGKM({op.wait_value})",
        FrameworkTag.SET_PRIO: f"ROTA_PRIORITY({op.wait_value})",
        FrameworkTag.SCHEDULE_BARRIER: "ROTA_FENCE",
        FrameworkTag.BARRIER: "ROTA_BARRIER" if step.group is None else _of_one_group(step.group),
        FrameworkTag.SCHED_GROUP_BARRIER: f"{_hint(op)} ROTA_FENCE",
    }
    return statements[FrameworkTag(op.tag)]


def _hint(op: OpDesc) -> str:
    mask = _GROUP_MASKS[op.subtile % len(_GROUP_MASKS)]
    return f"__builtin_amdgcn_sched_group_barrier({mask:#x}, {op.wait_value}, 0);"


def _of_one_group(group: int) -> str:
    return f"if (wave_group == {group}) {{ ROTA_BARRIER }}"
