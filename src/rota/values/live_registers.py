"""Registers that are live at once: takes a loop by values and its placement, gives their number and who holds them.

A value is live from the issue of its writer, since what a read of LDS brings may land at any time from then on, to the
end of its last reader.  Values that share registers count once.  Inputs and accumulators are live throughout.

The most that are live at once is the least that any allocation of registers needs.  One that never moves a value may
need more, since lives go round with the loop; one register for every copy is always enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rota.errors import Concern, Finding
from rota.program.kinds import Home
from rota.program.loop_spec import LoopOp, LoopSpec
from rota.values.op_times import LoopTimes
from rota.values.unroll import Placement

_MOST_NAMED = 6
_THROUGHOUT = (Home.ACCUMULATOR, Home.INPUT)


class Holder(NamedTuple):
    """A value that has `registers` per lane, all its live copies together."""

    value: str
    registers: int


class Live(NamedTuple):
    """The most registers that are live at once, and who holds them then, the largest first."""

    registers: int
    holders: tuple[Holder, ...]


class _Held(NamedTuple):
    """A copy in use: by which value, whose registers it is in, and which of them."""

    value: str
    first: str
    copy: int


class _Life(NamedTuple):
    """Of one version: whose registers it is in, and from when to when, in slots of the schedule of its iteration."""

    value: str
    first: str
    begins: int
    ends: int


def most_live(loop: LoopSpec, placement: Placement, times: LoopTimes) -> Live:
    """Where the steady loop holds the most registers."""
    copies, lives = dict(placement.copies), tuple(_lives(loop, placement, times))
    # The most is live just when something begins, and one interval is like the next.
    moments = sorted({life.begins % placement.interval for life in lives})
    each = [(), *(tuple(_holding(lives, copies, moment, placement)) for moment in moments)]
    fullest = max(each, key=lambda holding: _held(loop, holding))
    return Live(_held(loop, fullest), _holders(loop, fullest))


def least_live(loop: LoopSpec) -> Live:
    """What is live at once in every schedule: all that stays, and what one op reads and makes."""
    each = [(), *(_in_hand(loop, op) for op in loop.ops)]
    fullest = max(each, key=lambda holding: _held(loop, holding))
    return Live(_held(loop, fullest), _holders(loop, fullest))


def too_many(loop: LoopSpec, live: Live, limit: int, message: str) -> Finding:
    """L104 with the largest holders and where they are made."""
    made_by = {name: op for op in reversed(loop.ops) for name in op.writes}
    concerns = []
    for value, registers in live.holders[:_MOST_NAMED]:
        maker = made_by.get(value)
        role = f"holds {registers} registers" + ("" if maker is None else f", made by {maker.name}")
        concerns.append(Concern(label=value, role=role, source=None if maker is None else maker.source))
    rest = live.holders[_MOST_NAMED:]
    others = ((f"{len(rest)} smaller holders", sum(each.registers for each in rest)),) if rest else ()
    return Finding(
        code="L104",
        message=message,
        concerns=tuple(concerns),
        evidence=(("registers live at once", live.registers), ("limit", limit), *others),
        fixes=("a smaller tile per wave", "into=... lets a value take over registers that are no longer needed"),
    )


def _in_hand(loop: LoopSpec, op: LoopOp) -> tuple[_Held, ...]:
    """What an op reads and makes; an older version of what it makes may have the registers into which it writes."""
    made = {loop.registers_of(name)[0] for name in op.writes}
    held: dict[tuple[str, int], str] = {}
    for name, distance in (*((read.value, read.distance) for read in op.reads), *((name, 0) for name in op.writes)):
        if loop.value(name).home is Home.REGISTERS:
            first = loop.registers_of(name)[0]
            held[first, 0 if first in made else distance] = name
    return tuple(_Held(name, first, version) for (first, version), name in held.items())


def _lives(loop: LoopSpec, placement: Placement, times: LoopTimes) -> Iterator[_Life]:
    """The life of each register value of iteration 0."""
    begins: dict[str, int] = {}
    ends: dict[str, int] = {}
    for start, op, timing in zip(placement.starts, loop.ops, times.timings, strict=True):
        begins |= dict.fromkeys(op.writes, start)
        uses = [(name, start + max(timing.latency, 1)) for name in op.writes]
        held = start + max(timing.occupancy, 1)
        uses += [(read.value, held + read.distance * placement.interval) for read in op.reads]
        for name, over in uses:
            ends[name] = max(ends.get(name, over), over)
    for value in loop.values:
        if value.home is Home.REGISTERS:
            yield _Life(value.name, loop.registers_of(value.name)[0], begins[value.name], ends[value.name])


def _holding(lives: Sequence[_Life], copies: Mapping[str, int], moment: int, placement: Placement) -> Iterator[_Held]:
    """The copies in use at a moment, each once."""
    interval = placement.interval
    taken: set[tuple[str, int]] = set()
    for value, first, begins, ends in lives:
        # Iterations k with begins <= moment - k x interval < ends.
        last, before = (moment - begins) // interval, (moment - ends) // interval
        for iteration in range(before + 1, last + 1):
            copy = iteration % copies.get(first, 1)
            if (first, copy) not in taken:
                taken.add((first, copy))
                yield _Held(value, first, copy)


def _held(loop: LoopSpec, holding: Sequence[_Held]) -> int:
    sizes = {value.name: value.size for value in loop.values}
    always = sum(value.size for value in loop.values if value.home in _THROUGHOUT)
    return always + sum(sizes[first] for _, first, _ in holding)


def _holders(loop: LoopSpec, holding: Sequence[_Held]) -> tuple[Holder, ...]:
    sizes = {value.name: value.size for value in loop.values}
    held = {value.name: value.size for value in loop.values if value.home in _THROUGHOUT}
    for value, first, _ in holding:
        held[value] = held.get(value, 0) + sizes[first]
    return tuple(sorted((Holder(*each) for each in held.items()), key=lambda each: (-each.registers, each.value)))
