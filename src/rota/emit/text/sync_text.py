"""Waits, barriers and hints as source: takes an entry that synchronises, gives its statement.

Every statement ends in a fence that keeps the compiler from moving anything over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rota.emit.refusal import no_word
from rota.program.effects import WORKGROUP, Effect
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.program.machine import Machine
from rota.targets.architecture import Architecture, WaitEncoding

_GROUP_MASKS = (0x100, 0x200, 0x020, 0x008)  # by InstructionGroup: LLVM, SchedGroupMask in AMDGPUIGroupLP


class _Field(NamedTuple):
    """A counter's field of s_waitcnt: the macro that waits, and the count that means no wait."""

    macro: str
    no_wait: int


_COUNTERS: Mapping[WaitEncoding, Mapping[str, _Field]] = {
    WaitEncoding.SPLIT_VMCNT: {"vmcnt": _Field("ROTA_WAIT_VM", 63), "lgkmcnt": _Field("ROTA_WAIT_LGKM", 15)}
}
"""What source has words for."""


def check_words(program: LoweredProgram) -> None:
    """A machine, counter, barrier or role for which there are no words is refused."""
    machine = program.machine
    fields = _fields(machine)
    for counter in machine.counters:
        if counter.name not in fields:
            raise no_word(
                f"{machine.name} counts on {counter.name}, for which source has no wait",
                evidence=(("known counters", ", ".join(fields)),),
            )
    for entry in program.entries:
        _check_kind(entry)
        _check_meeting(entry)
        _check_role(program, entry)


def _fields(machine: Machine) -> Mapping[str, _Field]:
    """The counters' fields of s_waitcnt, where the machine says how it is encoded."""
    encoding = machine.wait_encoding if isinstance(machine, Architecture) else None
    if encoding is None:
        raise no_word(
            f"no source is written for {machine.name} ({machine.arch}), which doesn't state how its waits are encoded",
            evidence=(("architecture", machine.arch), ("known", "; ".join(each.value for each in _COUNTERS))),
        )
    return _COUNTERS[encoding]


def is_alone(program: LoweredProgram, entry: Entry) -> bool:
    """Is there a role that doesn't execute it?"""
    return not all(entry.executed_by(role) for role in range(len(program.roles)))


def _check_kind(entry: Entry) -> None:
    """What was proved is the effect; what is written is the op."""
    if entry.op.kind is not entry.effect.kind:
        raise no_word(
            f"{entry.op} is written as one kind of op and does another",
            concerns=(entry.concern(),),
            evidence=(("written as", entry.op.kind.does), ("does", entry.effect.kind.does)),
        )


def _check_meeting(entry: Entry) -> None:
    """Only the barrier at which all waves arrive and wait at once has a word."""
    arrives, awaits = entry.effect.arrives, entry.effect.awaits
    if entry.op.kind is OpKind.BARRIER and not arrives == awaits == WORKGROUP:
        split = "arrives at" if awaits is None else "waits at" if arrives is None else "meets at"
        raise no_word(
            f"{entry.op} {split} the barrier {arrives or awaits!r}; source has a word only for the barrier at which "
            "all waves of a workgroup arrive and wait at once",
            concerns=(entry.concern(),),
            evidence=(("arrives", arrives or "nowhere"), ("waits", awaits or "nowhere")),
        )


def _check_role(program: LoweredProgram, entry: Entry) -> None:
    """Two groups of as many waves each may differ in barriers of their own, as staggering has them."""
    if not is_alone(program, entry) or entry.roles is None:
        return
    sizes = {role.waves for role in program.roles}
    if entry.op.kind is not OpKind.BARRIER or len(program.roles) != 2 or len(sizes) > 1 or not entry.roles:
        names = ", ".join(program.roles[role].name for role in entry.roles) or "no role"
        raise no_word(
            f"{entry.op} is executed by {names} alone; source is written for waves that all do the same, or for two "
            "groups of equal size, one a barrier behind the other",
            concerns=(entry.concern(),),
            evidence=tuple(
                (role.name, "waves not stated" if role.waves is None else f"{role.waves} waves")
                for role in program.roles
            ),
        )


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


def apart_words() -> Iterator[str]:
    """What `apart_text` takes, for kernels with vector instructions that the compiler doesn't look into."""
    yield '#define ROTA_APART(n) asm volatile("s_nop %0" :: "i"((n) - 1)); ROTA_FENCE  // wait states'


def apart_text(states: int) -> str:
    """So many wait states."""
    return f"ROTA_APART({states})"


def sync_text(program: LoweredProgram, entry: Entry) -> str:
    """The statement; a barrier of one wave group alone asks the variable `wave_group`."""
    if entry.op.kind is OpKind.WAIT:
        return _wait(program, entry)
    if entry.op.kind is OpKind.BARRIER and entry.roles and is_alone(program, entry):
        return f"if (wave_group == {entry.roles[0]}) {{ ROTA_BARRIER }}"
    return _STATEMENTS[entry.op.kind](entry.effect)


def _wait(program: LoweredProgram, entry: Entry) -> str:
    counter, count = entry.effect.counter or "", entry.effect.wait_value
    field = _fields(program.machine)[counter]
    if count >= field.no_wait:
        raise no_word(
            f"{entry.op} can't be written: from {field.no_wait} on, the field of {counter} doesn't wait",
            concerns=(entry.concern(),),
            evidence=(("count", count), ("largest that waits", field.no_wait - 1)),
        )
    return f"{field.macro}({count})"


def _hint(effect: Effect) -> str:
    mask = _GROUP_MASKS[effect.tokens % len(_GROUP_MASKS)]
    return f"__builtin_amdgcn_sched_group_barrier({mask:#x}, {effect.wait_value}, 0); ROTA_FENCE"


_STATEMENTS: Mapping[OpKind, Callable[[Effect], str]] = {
    OpKind.BARRIER: lambda _: "ROTA_BARRIER",
    OpKind.PRIORITY: lambda effect: f"ROTA_PRIORITY({effect.wait_value})",
    OpKind.FENCE: lambda _: "ROTA_FENCE",
    OpKind.HINT: _hint,
}
