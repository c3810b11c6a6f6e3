"""What machine code should hold with what its compiler adds: takes expected events and additions, gives both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from rota.audit.compare import SYNC
from rota.audit.expected import Expected, ExpectedEvent
from rota.emit.addition import Addition
from rota.program.entry import Entry, wait_effect, wait_op
from rota.program.kinds import OpKind
from rota.program.phase import Phase


def with_additions(expected: Expected, additions: Sequence[Addition]) -> Expected:
    """Each addition right before its data instruction or barrier, as if the schedule had it."""
    due: defaultdict[tuple[Phase, int, bool], list[Addition]] = defaultdict(list)
    for each in additions:
        due[each.phase, each.before, each.at_barrier].append(each)
    return {phase: tuple(_with(phase, events, due)) for phase, events in expected.items()}


def _with(
    phase: Phase, events: Sequence[ExpectedEvent], due: dict[tuple[Phase, int, bool], list[Addition]]
) -> Iterator[ExpectedEvent]:
    number = 0
    for event in events:
        is_data = event.kind not in SYNC
        if is_data or event.kind is OpKind.BARRIER:
            yield from (_wait(each, event) for each in due.pop((phase, number, not is_data), ()))
        number += is_data
        yield event
    yield from (_wait(each, events[-1]) for each in due.pop((phase, number, False), ()))


def _wait(addition: Addition, event: ExpectedEvent) -> ExpectedEvent:
    op, effect = wait_op(addition.counter, addition.count), wait_effect(addition.counter, addition.count)
    entry = Entry(op=op, effect=effect, time_slot=event.entry.time_slot, phase=addition.phase)
    return ExpectedEvent(kind=OpKind.WAIT, entry=entry)
