"""Which waves stay behind: takes the barriers of one wave group alone, gives a finding where other waves execute them.

Staggered groups run the same instructions; only the branches around three barriers tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.audit.expected import Expected
from rota.audit.machine_loop import Kind, MachineEvent, MachineLoop
from rota.declare.vocabulary import Phase
from rota.errors import Concern, Finding
from rota.program.loop import Step

_GROUPS = 2  # that staggering knows
_Pair = tuple[Step, MachineEvent]


def wrong_groups(expected: Expected, loop: MachineLoop, arch: str, waves: int, *, as_emitted: bool) -> list[Finding]:
    """As emitted, the first half of the waves is group 0; elsewhere any two groups will do that leave no wave out.

    Where the machine code hasn't as many such barriers as the schedule, the comparison has said so.
    """
    pairs = [pair for phase in Phase for pair in _alone(expected, loop, phase)]
    if not pairs:
        return []
    from rota.simulate.isa.reach import waves_at

    reached = waves_at(loop.instructions, arch, waves, [event.number for _, event in pairs])
    found = [reached[event.number] for _, event in pairs]
    due = [_group(step, waves) for step, _ in pairs]
    if not as_emitted and found[0]:
        first, everyone = pairs[0][0].group, frozenset(range(waves))
        due = [found[0] if step.group == first else everyone - found[0] for step, _ in pairs]
    return [*_wrong(pairs, due, found)]


def _alone(expected: Expected, loop: MachineLoop, phase: Phase) -> list[_Pair]:
    """Barriers of one group, as planned and as found."""
    planned = [event.step for event in expected[phase] if event.kind is Kind.BARRIER and event.step.group is not None]
    found = [event for event in loop.phase(phase) if event.kind is Kind.BARRIER and event.conditional]
    return list(zip(planned, found, strict=True)) if len(planned) == len(found) else []


def _group(step: Step, waves: int) -> frozenset[int]:
    return frozenset(wave for wave in range(waves) if wave // (waves // _GROUPS) == step.group)


def _wrong(
    pairs: Sequence[_Pair], due: Sequence[frozenset[int]], found: Sequence[frozenset[int] | None]
) -> Iterator[Finding]:
    for (step, event), planned, have in zip(pairs, due, found, strict=True):
        if have == planned and have:
            continue
        other = "other waves than the schedule's" if have is not None else "waves that can't be told from their number"
        where = f"the {step.entry.phase.value.lower()}'s barrier of group {step.group} alone"
        yield Finding(
            code="I210",
            message=f"{where} is executed by {other}",
            concerns=(
                step.concern(),
                Concern(label=event.instruction.text, index=event.number, role="in machine code"),
            ),
            evidence=(("due", _shown(planned)), ("found", "not known" if have is None else _shown(have))),
        )


def _shown(waves: frozenset[int]) -> str:
    return "waves " + ", ".join(map(str, sorted(waves))) if waves else "no wave"
