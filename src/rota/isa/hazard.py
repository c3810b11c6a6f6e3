"""Wait states that software has to keep: takes what a wave issues, gives faults where it is too early.

gfx9 interlocks most dependencies, not these.  The numbers are the architecture's (`Hazards`).  A compiler that sees the
instructions inserts `s_nop` for them, but it doesn't look into inline assembly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rota.isa.wave import POISON, Wave

if TYPE_CHECKING:
    from rota.isa.disassembly import Instruction
    from rota.targets.architecture import Hazards


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixTiming:
    """Wait states behind one MFMA, by its passes."""

    result: int  # until another instruction may use the result
    accumulator: int  # until an MFMA may add to an overlapping range that is not the very same
    overwrite: int  # until srcC may be overwritten


def matrix_timing(passes: int, hazards: Hazards, *, single: bool = False) -> MatrixTiming:
    """Products of float32, here `single`, need fewer states."""
    return MatrixTiming(
        result=passes + (hazards.single_result if single else hazards.result).value,
        accumulator=passes + (hazards.single_overlap if single else hazards.overlap).value,
        overwrite=passes + hazards.overwrite.value,
    )


def check_rows(wave: Wave, instruction: Instruction, reads: Iterable[int], writes: Iterable[int]) -> None:
    """No MFMA result is used, and no srcC overwritten, before its time; what is taken too early becomes poison."""
    for row in reads:
        if wave.read_from[row] > wave.now:
            _early(wave, instruction, row, wave.read_from[row], "reads")
    for row in writes:
        if wave.write_from[row] > wave.now:
            _early(wave, instruction, row, wave.write_from[row], "overwrites")


def check_matrix(
    wave: Wave, instruction: Instruction, factors: tuple[int, ...], addends: tuple[int, ...], first: int
) -> None:
    """The factors of an MFMA are ready, and its srcC is either ready or the very result of the MFMA before it."""
    check_rows(wave, instruction, factors, ())
    for row in addends:
        if wave.add_from[row] > wave.now and wave.written_as[row] != first:
            _early(wave, instruction, row, wave.add_from[row], "adds to")
    behind = 1 + wave.architecture.hazards.operand.value
    for row in (*factors, *addends):
        if wave.by_valu[row] + behind > wave.now:
            _early(wave, instruction, row, wave.by_valu[row] + behind, "reads")


def note_matrix(
    wave: Wave, timing: MatrixTiming, results: tuple[int, ...], addends: tuple[int, ...], first: int
) -> None:
    """Remembers from when the rows of an MFMA may be used."""
    start = wave.now + 1
    for row in addends:
        wave.write_from[row] = start + timing.overwrite
    for row in results:
        wave.read_from[row] = wave.write_from[row] = start + timing.result
        wave.add_from[row] = start + timing.accumulator
        wave.written_as[row] = first
    wave.hot_until = start + timing.result


def check_dma(wave: Wave, instruction: Instruction) -> None:
    """M0 was set as many wait states as are due before a load to LDS uses it."""
    short = wave.m0_at + 1 + wave.architecture.hazards.m0.value - wave.now
    if short > 0:
        wave.faults.add(
            "I104",
            instruction,
            f"{instruction.opcode} uses m0 {short} wait state too early after it was set",
            ("wave", wave.number),
        )


def check_scalar_operands(wave: Wave, instruction: Instruction, rows: Iterable[int]) -> None:
    """A scalar register that a VALU instruction wrote is read by a vector memory op only so many wait states later."""
    for row in rows:
        short = wave.by_valu[row] + 1 + wave.architecture.hazards.scalar.value - wave.now
        if short > 0:
            wave.faults.add(
                "I104",
                instruction,
                f"{instruction.opcode} reads a scalar register {short} wait states too early after a VALU wrote it",
                ("wave", wave.number),
            )


def _early(wave: Wave, instruction: Instruction, row: int, ready: int, verb: str) -> None:
    name = f"v{row}" if row < 256 else f"a{row - 256}"
    wave.faults.add(
        "I104",
        instruction,
        f"{instruction.opcode} {verb} {name} {ready - wave.now} wait states too early",
        ("wave", wave.number),
        ("fix", f"s_nop {ready - wave.now - 1} before it, or other instructions"),
    )
    wave.v[row] = POISON
