"""Which waves stay behind: takes the barriers of one wave group alone, gives a finding where other waves execute them.

Staggered groups run the same instructions; only the branches around three barriers tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.audit.expected import Expected
from rota.audit.machine_loop import MachineEvent, MachineLoop
from rota.errors import Concern, Finding
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.machine import Machine
from rota.program.phase import Phase
from rota.targets.architecture import architecture_of

_GROUPS = 2  # that staggering knows
_Pair = tuple[Entry, MachineEvent]


def wrong_groups(
    expected: Expected, loop: MachineLoop, machine: Machine, waves: int, *, as_emitted: bool
) -> list[Finding]:
    """As emitted, the first half of the waves is group 0; elsewhere any two groups will do that leave no wave out.

    Where the machine code hasn't as many such barriers as the schedule, the comparison has said so.
    """
    pairs = [pair for phase in Phase for pair in _alone(expected, loop, phase)]
    if not pairs:
        return []
    from rota.isa.reach import waves_at

    numbers = [event.number for _, event in pairs]
    reached = waves_at(loop.instructions, architecture_of(machine), waves, numbers, reached=loop.marked)
    found = [reached[event.number] for _, event in pairs]
    due = [_group(entry, waves) for entry, _ in pairs]
    if not as_emitted and found[0]:
        first, everyone = pairs[0][0].roles, frozenset(range(waves))
        due = [found[0] if entry.roles == first else everyone - found[0] for entry, _ in pairs]
    return [*_wrong(pairs, due, found)]


def _alone(expected: Expected, loop: MachineLoop, phase: Phase) -> list[_Pair]:
    """Barriers of one group, as planned and as found."""
    planned = [event.entry for event in expected[phase] if event.kind is OpKind.BARRIER and event.alone]
    found = [event for event in loop.phase(phase) if event.kind is OpKind.BARRIER and event.conditional]
    return list(zip(planned, found, strict=True)) if len(planned) == len(found) else []


def _group(entry: Entry, waves: int) -> frozenset[int]:
    return frozenset(wave for wave in range(waves) if entry.executed_by(wave // (waves // _GROUPS)))


def _wrong(
    pairs: Sequence[_Pair], due: Sequence[frozenset[int]], found: Sequence[frozenset[int] | None]
) -> Iterator[Finding]:
    for (entry, event), planned, have in zip(pairs, due, found, strict=True):
        if have == planned and have:
            continue
        other = "other waves than the schedule's" if have is not None else "waves that can't be told from their number"
        group = ", ".join(map(str, entry.roles or ()))
        where = f"the {entry.phase.value.lower()}'s barrier of group {group} alone"
        yield Finding(
            code="I210",
            message=f"{where} is executed by {other}",
            concerns=(
                entry.concern(),
                Concern(label=event.instruction.text, index=event.number, role="in machine code"),
            ),
            evidence=(("due", _shown(planned)), ("found", "not known" if have is None else _shown(have))),
        )


def _shown(waves: frozenset[int]) -> str:
    return "waves " + ", ".join(map(str, sorted(waves))) if waves else "no wave"
