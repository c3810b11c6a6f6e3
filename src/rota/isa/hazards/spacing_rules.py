"""Wait states between two instructions: takes the `Spacing` of each and the `Hazards`, gives what is due and why.

The rules are those that LLVM keeps for gfx940 and later.  Where it is more careful than the ISA manual, so are they:
any instruction's result counts for DPP, and packed instructions are kept apart from what uses their results.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rota.isa.hazards.spacing import (
    EXEC_ROWS,
    M0_ROWS,
    NO_ROWS,
    VCC_ROWS,
    Kind,
    Need,
    Rows,
    Spacing,
    Trait,
    vector_rows,
)
from rota.isa.wave.operand import SCALAR
from rota.targets.matrix_forms import Pipe

if TYPE_CHECKING:
    from rota.targets.wait_states import Hazards

SHORT = 2
"""Passes of the shortest MFMAs, which have numbers of their own."""


def needs(first: Spacing, then: Spacing, hazards: Hazards) -> tuple[Need, ...]:
    """All that `then` has to keep behind `first`; remembered, since loops come back to the same pairs."""
    known = first.known.get(then)
    if known is None:
        known = tuple(need for need in _needs(first, then, hazards) if need.states > 0)
        first.known[then] = known
    return known


def _needs(first: Spacing, then: Spacing, hazards: Hazards) -> Iterator[Need]:
    if first.kind is Kind.VECTOR:
        yield from _behind_vector(first, then, hazards)
        if then.kind is Kind.MATRIX:
            yield from _vector_to_matrix(first, then, hazards)
    if first.kind is Kind.MATRIX:
        yield from _behind_matrix(first, then, hazards)
    if then.valu and first.held & then.writes:
        yield Need(states=hazards.store.value, rows=first.held & then.writes, why="overwrites the data of a store")
    if Trait.DPP in then.traits:
        rows = frozenset(row for row in first.writes & (then.reads | then.writes) if row < SCALAR)
        yield _need(hazards.dpp.value, rows, "reads by DPP", reads=True)
    if Trait.USES_M0 in then.traits and first.kind is Kind.SCALAR:
        yield _need(hazards.m0.value, first.writes & M0_ROWS, "uses m0", reads=True)
    if Trait.SETS_MODE in first.traits:
        if Trait.READS_MODE in then.traits and first.hwreg == then.hwreg:
            yield Need(states=hazards.mode.value, rows=NO_ROWS, why=f"accesses {then.hwreg} behind s_setreg")
        if Trait.RETURNS in then.traits and first.hwreg == "HW_REG_TRAPSTS":
            yield Need(states=hazards.trap.value, rows=NO_ROWS, why="returns behind s_setreg")


def _need(states: int, rows: Rows, why: str, *, reads: bool = False, matrix: bool = False) -> Need:
    return Need(states=states if rows else 0, rows=rows, why=why, reads=reads, matrix=matrix)


def _behind_vector(first: Spacing, then: Spacing, hazards: Hazards) -> Iterator[Need]:
    scalars = frozenset(row for row in first.writes if row >= SCALAR)
    read = first.writes & then.all_reads
    if scalars:
        yield from _scalar_results(scalars, then, hazards)
    if then.valu:
        yield from _forwarded(first, then, hazards)
    if Trait.READS_LANE in then.traits:
        yield _need(hazards.lane.value, vector_rows(read), "reads a lane", reads=True)
    if Trait.DOT in first.traits and then.kind in {Kind.VECTOR, Kind.MEMORY, Kind.LDS}:
        same = first.opcode == then.opcode
        yield _need(
            hazards.dot.value, vector_rows(first.writes & (then.reads if same else then.all_reads)),
            "reads a dot product", reads=True,
        )  # fmt: skip
        if not same:
            yield _need(hazards.dot.value, vector_rows(first.writes & then.writes), "overwrites a dot product")
    if Trait.PERMLANE in then.traits and hazards.permlane is not None:
        yield _need(hazards.permlane.value, vector_rows(read), "exchanges lanes of", reads=True)
        if hazards.exec_permlane is not None and Trait.COMPARES_EXEC in first.traits:
            yield Need(states=hazards.exec_permlane.value, rows=EXEC_ROWS, why="exchanges lanes behind v_cmpx")


def _forwarded(first: Spacing, then: Spacing, hazards: Hazards) -> Iterator[Need]:
    """Results that the next VALU instruction can't have at once."""
    read = first.writes & then.all_reads
    if Trait.TRANSCENDENTAL in first.traits and Trait.TRANSCENDENTAL not in then.traits:
        yield _need(hazards.transcendental.value, read, "reads a transcendental's result", reads=True)
    named = vector_rows(first.writes & (then.all_reads | then.writes))
    if Trait.PARTIAL in first.traits:
        yield _need(hazards.partial.value, named, "uses, written in part,", reads=bool(read))
    if Trait.PACKED in first.traits:
        yield _need(hazards.packed.value, named, "uses, made by a packed instruction,", reads=bool(read))


def _scalar_results(scalars: Rows, then: Spacing, hazards: Hazards) -> Iterator[Need]:
    """A VALU instruction wrote scalar registers."""
    if then.kind is Kind.MEMORY:
        yield _need(hazards.scalar.value, scalars & then.reads, "reads for memory", reads=True)
    if then.valu:
        yield _need(hazards.scalar_vector.value, scalars & then.all_reads, "reads", reads=True)
    if Trait.DIVISION in then.traits:
        yield _need(hazards.division.value, scalars & VCC_ROWS, "reads for v_div_fmas", reads=True)
    yield _need(hazards.lane_select.value, scalars & then.select, "selects a lane by", reads=True)
    if scalars & EXEC_ROWS:
        if Trait.LANE in then.traits:
            yield Need(states=hazards.exec_lane.value, rows=EXEC_ROWS, why="accesses a lane behind")
        if Trait.DPP in then.traits:
            yield Need(states=hazards.exec_dpp.value, rows=EXEC_ROWS, why="obeys, by DPP,")
        if then.kind is Kind.MATRIX:
            yield Need(states=hazards.exec_matrix.value, rows=EXEC_ROWS, why="multiplies behind")


def _vector_to_matrix(first: Spacing, then: Spacing, hazards: Hazards) -> Iterator[Need]:
    if Trait.DOT not in first.traits:
        yield _need(hazards.operand.value, vector_rows(first.writes & then.all_reads), "reads", reads=True)


def _behind_matrix(first: Spacing, then: Spacing, hazards: Hazards) -> Iterator[Need]:
    if then.kind is Kind.MATRIX:
        factors = _result(first, hazards, memory=False)
        yield _need(factors, first.writes & then.reads, "reads", reads=True, matrix=True)
        if first.writes & then.sums:
            states = _sum(first, then, hazards)
            yield _need(states, first.writes & then.sums, "adds to", reads=True, matrix=True)
        return
    if then.kind in {Kind.VECTOR, Kind.MEMORY, Kind.LDS}:
        read = _result(first, hazards, memory=then.kind is not Kind.VECTOR)
        yield _need(read, first.writes & then.all_reads, "reads", reads=True, matrix=True)
        over = hazards.double_overwrite.value if first.pipe is Pipe.DOUBLE and first.large else None
        over = _result(first, hazards, memory=False) if over is None else over
        yield _need(over, first.writes & then.writes, "overwrites", matrix=True)
        if first.pipe is Pipe.XDL:
            states = first.passes + hazards.overwrite.value
            yield _need(states, first.sums & then.writes, "overwrites what is added to,")
    if first.pipe is Pipe.DOUBLE and Trait.DOUBLE_FMA in then.traits:
        yield Need(states=hazards.double_fma.value, rows=NO_ROWS, why="multiplies float64 behind an MFMA of float64")
    if Trait.PERMLANE in then.traits and hazards.permlane is not None:
        yield _need(hazards.permlane.value, first.writes & then.reads, "exchanges lanes of", reads=True)


def _result(first: Spacing, hazards: Hazards, *, memory: bool) -> int:
    """Until the result of an MFMA may be read, as a factor if by another MFMA."""
    if first.pipe is Pipe.DOUBLE and memory:
        return (hazards.double_large_memory if first.large else hazards.double_small_memory).value
    if first.pipe is Pipe.DOUBLE:
        return (hazards.double_large if first.large else hazards.double_small).value
    if first.pipe is Pipe.SINGLE:
        return first.passes + hazards.single_result.value
    return first.passes + (hazards.short_result if first.passes == SHORT else hazards.result).value


def _sum(first: Spacing, then: Spacing, hazards: Hazards) -> int:
    """Until an MFMA may add to the result of another: at once, mostly, where the ranges are the same."""
    if first.write_range == then.sum_range:
        if first.pipe is then.pipe is Pipe.DOUBLE and not first.large and not then.large:
            return hazards.double_small_sum.value
        return hazards.forwarded.value if first.passes == SHORT else 0
    if first.pipe is Pipe.DOUBLE:
        states = hazards.double_large_sum if first.large else hazards.double_small_sum
        return 0 if then.pipe is Pipe.XDL else states.value
    if first.pipe is Pipe.SINGLE:
        return 0 if then.pipe is Pipe.XDL else first.passes + hazards.single_overlap.value
    if then.pipe is not Pipe.XDL and first.passes == SHORT:
        return first.passes + hazards.short_overlap.value
    return first.passes + hazards.overlap.value
