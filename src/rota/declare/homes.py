"""Where an op may read and write: takes a loop's values and ops, gives an error where work and homes don't fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rota.declare.values import Home, LoopOp, LoopSpec, Work
from rota.errors import Concern, DeclarationError, Finding


class Homes(NamedTuple):
    """Homes that one kind of work may read and write, and what it is for, in words."""

    reads: tuple[Home, ...]
    writes: tuple[Home, ...]
    does: str


HOMES = {
    Work.LOAD: Homes((Home.REGISTERS,), (Home.LDS, Home.REGISTERS), "fills an LDS tile or registers from memory"),
    Work.FRAGMENT: Homes((Home.LDS, Home.REGISTERS), (Home.REGISTERS,), "fills registers from an LDS tile"),
    Work.STORE: Homes((Home.REGISTERS,), (Home.LDS,), "fills an LDS tile from registers"),
    Work.MMA: Homes((Home.REGISTERS,), (Home.REGISTERS, Home.ACCUMULATOR), "computes on registers"),
    Work.VALU: Homes((Home.REGISTERS,), (Home.REGISTERS, Home.ACCUMULATOR), "computes on registers"),
}
"""Registers that a load or a fragment reads hold its addresses.  Inputs may be read by every kind of work."""


def check_homes(spec: LoopSpec) -> None:
    """Every op of the loop reads and writes where its kind of work can."""
    for op in spec.ops:
        for finding in _misplaced(spec, op):
            raise DeclarationError(finding)


def _misplaced(spec: LoopSpec, op: LoopOp) -> Iterator[Finding]:
    home = {value.name: value.home for value in spec.values}
    allowed = HOMES[op.work]
    for name in (read.value for read in op.reads):
        if home[name] not in allowed.reads:
            yield _wrong(op, "reads", name, home[name], allowed=allowed.reads, fixes=_instead(spec, name))
    for name in op.inputs:
        if home[name] is not Home.INPUT:
            yield _wrong(op, "takes as input", name, home[name], allowed=(Home.INPUT,))
    for name in op.writes:
        if home[name] not in allowed.writes:
            yield _wrong(op, "writes", name, home[name], allowed=allowed.writes)
    if op.work is Work.FRAGMENT and Home.LDS not in (home[read.value] for read in op.reads):
        yield _lacks(op, "reads no LDS tile")
    if not op.writes:
        yield _lacks(op, "writes nothing")
    if len({home[name] for name in op.writes} - {Home.ACCUMULATOR}) > 1:
        yield _lacks(op, "writes LDS and registers at once")


def _instead(spec: LoopSpec, name: str) -> tuple[str, ...]:
    """For a tile where registers are due: what is read from it, or how to."""
    if spec.value(name).home is not Home.LDS:
        return ()
    read = [op.writes[0] for op in spec.ops if op.work is Work.FRAGMENT and name in (r.value for r in op.reads)]
    if read:
        return (f"did you mean {read[0]!r}, which is read from {name}?",)
    return (f"did you mean loop.fragment(..., {name!r}, registers=...)? It reads the tile into registers",)


def _wrong(
    op: LoopOp, does: str, name: str, home: Home, *, allowed: tuple[Home, ...], fixes: tuple[str, ...] = ()
) -> Finding:
    expected = " or ".join(each.value for each in allowed)
    return Finding(
        code="D111",
        message=f"{op.name} {does} {name}, which lives in {_place(home)}; {op.work.value} work {does} {expected}",
        concerns=(Concern(label=op.name, role=HOMES[op.work].does, source=op.source),),
        evidence=((f"home of {name}", home.value), ("expected", expected)),
        fixes=fixes,
    )


def _place(home: Home) -> str:
    return {Home.ACCUMULATOR: "an accumulator", Home.INPUT: "the loop's inputs"}.get(home, home.value)


def _lacks(op: LoopOp, what: str) -> Finding:
    return Finding(
        code="D111",
        message=f"{op.name} {what}; {op.work.value} work {HOMES[op.work].does}",
        concerns=(Concern(label=op.name, source=op.source),),
        evidence=(("reads", ", ".join(read.value for read in op.reads) or "nothing"), ("writes", ", ".join(op.writes))),
    )
