"""Where an op may read and write: takes a loop's values and ops, gives an error where kinds and operands don't fit."""

from __future__ import annotations

from collections.abc import Iterator

from rota.errors import Concern, DeclarationError, Finding
from rota.program.element import takes_formats, takes_scales
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec

_FACTORS = ("A", "B")
_LDS_READS = (OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED)


def check_homes(spec: LoopSpec) -> None:
    """Every op of the loop reads and writes where its kind can."""
    for op in spec.ops:
        for finding in _misplaced(spec, op):
            raise DeclarationError(finding)


def _misplaced(spec: LoopSpec, op: LoopOp) -> Iterator[Finding]:
    home = {value.name: value.home for value in spec.values}
    for name in (read.value for read in op.reads):
        if home[name] not in op.kind.reads:
            yield _wrong(op, "reads", name, home[name], allowed=op.kind.reads, fixes=_instead(spec, name))
    for name in op.inputs:
        if home[name] is not Home.INPUT:
            yield _wrong(op, "takes as input", name, home[name], allowed=(Home.INPUT,))
    for name in op.writes:
        if home[name] not in op.kind.writes:
            yield _wrong(op, "writes", name, home[name], allowed=op.kind.writes)
    if op.kind in _LDS_READS and Home.LDS not in (home[read.value] for read in op.reads):
        yield _lacks(op, "reads no LDS tile")
    if not op.writes:
        yield _lacks(op, "writes nothing")
    yield from _no_parts(spec, op)
    yield from _no_factors(op)


def _no_parts(spec: LoopSpec, op: LoopOp) -> Iterator[Finding]:
    """Parts that a value doesn't have."""
    for read in op.reads:
        has = len(spec.writers(read.value)) if spec.value(read.value).home is Home.LDS else 0
        if read.parts and read.parts[-1] >= has:
            which = f"is in {has} parts, one for each op that fills it" if has else "is no LDS tile, and in no parts"
            yield Finding(
                code="D111",
                message=f"{op.name} reads part {read.parts[-1]} of {read.value}, which {which}",
                concerns=(Concern(label=op.name, role=op.kind.does, source=op.source),),
                evidence=((f"parts of {read.value}", has), ("read", ", ".join(map(str, read.parts)))),
            )


def _no_factors(op: LoopOp) -> Iterator[Finding]:
    """Scales and formats that the op's instruction doesn't take."""
    operands = {*(read.value for read in op.reads), *op.inputs}
    for name in op.scales:
        if not takes_scales(op.instruction):
            yield _lacks(op, f"is scaled by {name}; {op.instruction or 'its instruction'} takes no scales")
        if name not in operands:
            yield _lacks(op, f"is scaled by {name}, which it doesn't read")
    if len(op.formats) > len(_FACTORS):
        yield _lacks(op, f"has elements of {len(op.formats)} formats for {len(_FACTORS)} factors")
    if op.formats and not takes_formats(op.instruction):
        said = ", ".join(op.formats)
        yield _lacks(op, f"has elements of {said}; {op.instruction or 'its instruction'} doesn't leave that open")


def _instead(spec: LoopSpec, name: str) -> tuple[str, ...]:
    """For a tile where registers are due: what is read from it, or how to."""
    if spec.value(name).home is not Home.LDS:
        return ()
    read = [op.writes[0] for op in spec.ops if op.kind in _LDS_READS and name in (r.value for r in op.reads)]
    if read:
        return (f"did you mean {read[0]!r}, which is read from {name}?",)
    return (f"did you mean loop.fragment(..., {name!r}, registers=...)? It reads the tile into registers",)


def _wrong(
    op: LoopOp, does: str, name: str, home: Home, *, allowed: tuple[Home, ...], fixes: tuple[str, ...] = ()
) -> Finding:
    expected = " or ".join(each.value for each in allowed) or "nothing"
    rule = f"an op of kind {op.kind.word} {does} {expected}"
    return Finding(
        code="D111",
        message=f"{op.name} {does} {name}, which lives in {_place(home)}; {rule}",
        concerns=(Concern(label=op.name, role=op.kind.does, source=op.source),),
        evidence=((f"home of {name}", home.value), ("expected", expected)),
        fixes=fixes,
    )


def _place(home: Home) -> str:
    return {Home.ACCUMULATOR: "an accumulator", Home.INPUT: "the loop's inputs"}.get(home, home.value)


def _lacks(op: LoopOp, what: str) -> Finding:
    return Finding(
        code="D111",
        message=f"{op.name} {what}; an op of kind {op.kind.word} is {op.kind.does}",
        concerns=(Concern(label=op.name, source=op.source),),
        evidence=(("reads", ", ".join(read.value for read in op.reads) or "nothing"), ("writes", ", ".join(op.writes))),
    )
