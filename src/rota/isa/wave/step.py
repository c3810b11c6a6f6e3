"""A decoded instruction: what it does to a wave, and which registers it may not touch too early."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rota.isa.hazards.spacing import NOTHING, Spacing
from rota.isa.wave.operand import Operand

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

Act = Callable[["Wave"], int | None]  # gives the next instruction's number, if it isn't the one that follows
AT_BARRIER, AT_END = -1, -2  # instead of a number


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One instruction, ready to run.

    `sources` and `results` are all rows that it reads and writes, SCC included, but not the EXEC that every vector
    instruction obeys.  `touches` are those of them that may not belong to a memory op under way: both, except the
    results of a load, which may belong to an earlier load that comes back before it (`Wave.launch` looks at those).
    `spacing` says which wait states it has to keep; decoding adds it.  Where a wave indexes registers, `indexed` gives
    the step with those it means.
    """

    instruction: Instruction
    act: Act
    sources: frozenset[int]
    results: frozenset[int]
    touches: frozenset[int]
    states: int = 1  # wait states that pass
    spacing: Spacing = NOTHING
    indexed: Callable[[Wave], Step] | None = None


def make_step(
    instruction: Instruction,
    act: Act,
    *,
    reads: tuple[Operand, ...] = (),
    writes: tuple[Operand, ...] = (),
    states: int = 1,
) -> Step:
    """A step whose rows are those of its operands."""
    read = tuple(row for operand in reads for row in operand.rows)
    written = tuple(row for operand in writes for row in operand.rows)
    return Step(
        instruction=instruction,
        act=act,
        sources=frozenset(read),
        results=frozenset(written),
        touches=frozenset(read + written),
        states=states,
    )
