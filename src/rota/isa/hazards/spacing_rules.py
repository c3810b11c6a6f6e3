"""Wait states between two instructions: takes the `Spacing` of each and the `Hazards`, gives what is due and why.

The rules are those of AMD's manual and those that LLVM keeps for gfx940 and later; each says whose it is.  Where the
two differ, the one that asks for more stands here.
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
    scalar_rows,
    vector_rows,
)
from rota.targets.matrix_forms import Pipe

if TYPE_CHECKING:
    from rota.program.machine import Fact
    from rota.targets.wait_states import Hazards

SHORT = 2
"""Passes of the shortest MFMAs, which have numbers of their own."""
_VECTORS = frozenset({Kind.VECTOR, Kind.MATRIX, Kind.MEMORY, Kind.LDS})


def needs(first: Spacing, then: Spacing, hazards: Hazards) -> tuple[Need, ...]:
    """All that `then` has to keep behind `first`; remembered, since loops come back to the same pairs."""
    known = first.known.get(then)
    if known is None:
        due = _Rules(hazards).between(first, then)
        known = first.known[then] = tuple(need for need in due if need.states > 0)
    return known


def left_of(need: Need, multiplied: Rows, ended: Rows) -> bool:
    """Does a need still hold, where later MFMAs and later scalar instructions wrote those rows?

    What a later MFMA writes has the wait states of that one.  A scalar register that was written again holds what the
    later instruction wrote, which the hardware waits for, or which has wait states of its own.
    """
    if not need.rows:
        return True
    return not (need.rows <= multiplied if need.matrix else need.rows <= ended)


class _Rules:
    """The rules, by the numbers of one architecture."""

    def __init__(self, hazards: Hazards) -> None:
        self._hazards = hazards

    def _need(
        self, rule: str, rows: Rows, why: str, passes: int = 0, *, more: int = 0, reads: bool = False,
        matrix: bool = False,
    ) -> Iterator[Need]:  # fmt: skip
        """A rule by its name, where instructions share rows; some are counted behind the last of so many passes."""
        fact: Fact | None = getattr(self._hazards, rule)
        if fact is not None and rows:
            states = passes + fact.value + more
            yield Need(states=states, rows=rows, why=why, rule=rule, fact=fact, reads=reads, matrix=matrix)

    def _always(self, rule: str, why: str) -> Iterator[Need]:
        """A rule that isn't about registers."""
        fact: Fact = getattr(self._hazards, rule)
        yield Need(states=fact.value, rows=NO_ROWS, why=why, rule=rule, fact=fact)

    def between(self, first: Spacing, then: Spacing) -> Iterator[Need]:
        if first.kind is Kind.VECTOR:
            yield from self._behind_vector(first, then)
        if first.kind is Kind.MATRIX:
            yield from self._behind_matrix(first, then)
        if first.held:
            yield from self._behind_store(first, then)
        if Trait.DPP in then.traits:
            yield from self._to_dpp(first, then)
        if Trait.USES_M0 in then.traits and first.kind is Kind.SCALAR:
            rule = "m0_other" if Trait.NOT_NAMED in then.traits else "m0"
            yield from self._need(rule, first.writes & M0_ROWS, "uses m0", reads=True)
        if first.traits & (Trait.SETS_MODE | Trait.SKIPS):
            yield from self._behind_mode(first, then)

    def _behind_mode(self, first: Spacing, then: Spacing) -> Iterator[Need]:
        if Trait.SETS_MODE in first.traits:
            if Trait.READS_MODE in then.traits and first.hwreg == then.hwreg:
                yield from self._always("mode", f"accesses {then.hwreg} behind s_setreg")
            if Trait.RETURNS in then.traits and first.hwreg == "HW_REG_TRAPSTS":
                yield from self._always("trap", "returns behind s_setreg")
            if Trait.SETS_VSKIP in first.traits and then.kind in _VECTORS:
                yield from self._always("vskip", "follows s_setreg of MODE.vskip")
        reads = Trait.READS_MODE in then.traits and Trait.SETS_MODE not in then.traits
        if Trait.SKIPS in first.traits and reads and then.hwreg == "HW_REG_MODE":
            yield from self._always("vskip_read", "reads MODE behind s_setvskip")

    def _behind_store(self, first: Spacing, then: Spacing) -> Iterator[Need]:
        rows = first.held & then.writes
        if Trait.BY_OFFSET in first.traits:
            if then.valu:
                yield from self._need("store_by_offset", rows, "overwrites the data of a store")
        else:
            yield from self._need("store" if then.valu else "store_load", rows, "overwrites the data of a store")

    def _to_dpp(self, first: Spacing, then: Spacing) -> Iterator[Need]:
        written = vector_rows(first.writes)
        if first.kind in {Kind.VECTOR, Kind.MATRIX}:
            yield from self._need("dpp", written & then.exchanged, "reads by DPP", reads=True)
            others = written & (then.all_reads - then.exchanged - then.kept)
            yield from self._need("dpp_second", others, "reads, not to exchange it, by DPP", reads=True)
            yield from self._need("dpp_other", written & then.kept, "keeps lanes of", reads=True)
        else:
            yield from self._need("dpp_other", written & then.all_reads, "reads by DPP", reads=True)

    # Behind a VALU instruction.

    def _behind_vector(self, first: Spacing, then: Spacing) -> Iterator[Need]:
        scalars = scalar_rows(first.writes)
        read = vector_rows(first.writes & then.all_reads)
        if scalars:
            yield from self._scalar_results(scalars, then)
        if then.valu:
            yield from self._forwarded(first, then)
        if Trait.READS_LANE in then.traits:
            rule = "first_lane" if "firstlane" in then.opcode else "lane"
            yield from self._need(rule, read, "reads a lane", reads=True)
        if Trait.DOT in first.traits:
            if then.kind in _VECTORS:
                same = first.opcode == then.opcode
                used = vector_rows(first.writes & then.reads) if same else read
                yield from self._need("dot", used, "reads a dot product", reads=True)
                over = NO_ROWS if same else vector_rows(first.writes & then.writes)
                yield from self._need("dot", over, "overwrites a dot product")
        elif then.kind is Kind.MATRIX:
            yield from self._need("operand", read, "reads", reads=True)
        if Trait.PERMLANE in then.traits:
            yield from self._need("permlane", read, "exchanges lanes of", reads=True)
            if Trait.COMPARES_EXEC in first.traits:
                yield from self._need("exec_permlane", EXEC_ROWS, "exchanges lanes behind v_cmpx")

    def _forwarded(self, first: Spacing, then: Spacing) -> Iterator[Need]:
        """Results that the next VALU instruction can't have at once."""
        read = first.writes & then.all_reads
        if Trait.TRANSCENDENTAL in first.traits and Trait.TRANSCENDENTAL not in then.traits:
            yield from self._need("transcendental", read, "reads a transcendental's result", reads=True)
        written = vector_rows(first.writes & then.writes)
        if Trait.PARTIAL in first.traits:
            yield from self._need("partial", vector_rows(read), "uses, written in part,", reads=True)
            yield from self._need("partial_over", written, "overwrites, written in part,")
        if Trait.PACKED in first.traits:
            named = vector_rows(read) | written
            yield from self._need("packed", named, "uses, made by a packed instruction,", reads=bool(read))

    def _scalar_results(self, scalars: Rows, then: Spacing) -> Iterator[Need]:
        """A VALU instruction wrote scalar registers."""
        if then.kind is Kind.MEMORY:
            implied = scalars & (EXEC_ROWS | M0_ROWS)
            yield from self._need("scalar", (scalars - implied) & then.reads, "reads for memory", reads=True)
            yield from self._need("exec_memory", implied & then.reads, "obeys, for memory,", reads=True)
        if then.valu:
            constants = then.all_reads - then.masks
            if then.kind is Kind.MEMORY:
                constants -= EXEC_ROWS | M0_ROWS
            if Trait.DIVISION in then.traits:
                constants -= VCC_ROWS
            yield from self._need("scalar_vector", scalars & constants, "reads", reads=True)
            yield from self._need("mask", scalars & then.masks, "reads as a mask", reads=True)
            yield from self._need("zero", scalars & then.zeros, "reads the zero flag of", reads=True)
        if Trait.DIVISION in then.traits:
            yield from self._need("division", scalars & VCC_ROWS, "reads for v_div_fmas", reads=True)
        yield from self._need("lane_select", scalars & then.select, "selects a lane by", reads=True)
        if scalars & EXEC_ROWS:
            if Trait.LANE in then.traits:
                yield from self._need("exec_lane", EXEC_ROWS, "accesses a lane behind")
            if Trait.DPP in then.traits:
                yield from self._need("exec_dpp", EXEC_ROWS, "obeys, by DPP,")
            if then.kind is Kind.MATRIX:
                yield from self._need("exec_matrix", EXEC_ROWS, "multiplies behind")

    # Behind an MFMA.

    def _behind_matrix(self, first: Spacing, then: Spacing) -> Iterator[Need]:
        if then.kind is Kind.MATRIX:
            yield from self._result(first, first.writes & then.reads, memory=False)
            yield from self._sum(first, then, first.writes & then.sums)
            return
        if then.kind in _VECTORS:
            yield from self._result(first, first.writes & then.all_reads, memory=then.kind is not Kind.VECTOR)
            yield from self._overwritten(first, then)
        if first.pipe is Pipe.DOUBLE and Trait.DOUBLE_FMA in then.traits:
            yield from self._always("double_fma", "multiplies float64 behind an MFMA of float64")
        if Trait.PERMLANE in then.traits:
            yield from self._need("permlane", first.writes & then.reads, "exchanges lanes of", reads=True)

    def _result(self, first: Spacing, rows: Rows, *, memory: bool) -> Iterator[Need]:
        """Until the result of an MFMA may be read, as a factor if by another MFMA."""
        rule, passes = self._ends(first)
        if first.pipe is Pipe.DOUBLE and memory:
            rule = "double_large_memory" if first.large else "double_small_memory"
        yield from self._need(rule, rows, "reads", passes, reads=True, matrix=True)

    @staticmethod
    def _ends(first: Spacing) -> tuple[str, int]:
        """The rule until the result of an MFMA is there, and the passes behind which it counts."""
        if first.pipe is Pipe.DOUBLE:
            return ("double_large" if first.large else "double_small"), 0
        if first.pipe is Pipe.SINGLE:
            return "single_result", first.passes
        return ("short_result" if first.passes == SHORT else "result"), first.passes

    def _overwritten(self, first: Spacing, then: Spacing) -> Iterator[Need]:
        """Until another may overwrite what an MFMA makes, or what it adds to."""
        rows, hazards = first.writes & then.writes, self._hazards
        rule, passes = self._ends(first)
        large = first.pipe is Pipe.DOUBLE and first.large
        if then.kind is Kind.VECTOR:
            yield from self._need("double_overwrite" if large else rule, rows, "overwrites", passes, matrix=True)
        elif large:
            yield from self._need("double_load_over", rows, "overwrites", matrix=True)
        else:
            fact: Fact = getattr(hazards, rule)
            yield from self._need("load_over", rows, "overwrites", passes, more=fact.value, matrix=True)
        if first.pipe is Pipe.XDL:
            rows, why = first.sums & then.writes, "overwrites what is added to,"
            if then.kind is Kind.VECTOR:
                yield from self._need("overwrite", rows, why, first.passes)
            else:
                yield from self._need("load_over", rows, why, first.passes, more=hazards.overwrite.value)

    def _sum(self, first: Spacing, then: Spacing, rows: Rows) -> Iterator[Need]:
        """Until an MFMA may add to the result of another: at once, mostly, where ranges and passes are the same."""
        rule = self._sum_rule(first, then, same=first.write_range == then.sum_range)
        if rule:
            behind = rule in {"single_overlap", "short_overlap", "unequal", "different", "overlap"}
            yield from self._need(rule, rows, "adds to", first.passes * behind, reads=True, matrix=True)

    @staticmethod
    def _sum_rule(first: Spacing, then: Spacing, *, same: bool) -> str:
        short, product = first.passes == SHORT, then.pipe is Pipe.XDL
        if first.pipe is Pipe.DOUBLE:
            done = product or (same and first.large and then.large)
            return "" if done else "double_large_sum" if first.large else "double_small_sum"
        if same and first.pipe is then.pipe and first.passes == then.passes:
            if short:
                return "forwarded"
            return "different" if product and first.opcode != then.opcode else ""
        if first.pipe is Pipe.SINGLE:
            return "single_overlap" if not product else "single_forwarded" if same and short else ""
        if short and not product:
            return "short_overlap"
        return "unequal" if same and product else "overlap"
