"""Rates of a compute unit: takes facts, gives what instructions cost and how fast its memories move, with sources.

Times are in slots, the turns in which a SIMD issues for one wave; LLVM counts the passes of an MFMA in the same unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rota.check import check_elements, check_types, known
from rota.errors import DeclarationError, Finding
from rota.program.kinds import OpKind
from rota.program.machine import Fact
from rota.targets.estimate import Estimate

_NARROW_BITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRate:
    """How long one matrix instruction holds its SIMD's MMA unit.

    `narrow` is for instructions that take several formats: the passes where neither factor is wider than 6 bits.
    """

    instruction: str
    passes: Fact
    narrow: Fact | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Passes per matrix instruction, bytes per clock and planning latencies of one compute unit.

    `name` is whose they are, for messages.  `transcendental` is how many slots v_exp_f32 and its like hold the VALU,
    where other instructions hold it for one.  Without `lds_read_transposed` the unit has no such read.
    """

    name: str
    matrix: tuple[MatrixRate, ...]
    lds_read: Fact
    lds_read_transposed: Estimate | None = None
    lds_write: Fact
    dma: Fact
    dma_latency: Fact
    lds_latency: Fact
    transcendental: Fact
    simds: Fact
    clocks_per_slot: Fact

    def __post_init__(self) -> None:
        check_types(self, {"name": str})
        check_elements("matrix", self.matrix, MatrixRate)

    @property
    def mfma_passes(self) -> Mapping[str, Fact]:
        """Passes by instruction, of the widest formats that it takes."""
        return {each.instruction: each.passes for each in self.matrix}

    def passes(self, instruction: str, bits: int = 8) -> int:
        """Slots that one matrix instruction holds its SIMD's MMA unit, where the wider factor has so many bits."""
        rates = {each.instruction: each for each in self.matrix}
        rate = known(instruction, rates, f"{self.name} has no matrix instruction {instruction!r} that rota knows")
        return (rate.narrow if rate.narrow is not None and bits <= _NARROW_BITS else rate.passes).value

    def lds_rate(self, kind: OpKind) -> Fact:
        """Bytes per clock that an op of a kind moves through the LDS port."""
        if kind is OpKind.LDS_WRITE:
            return self.lds_write
        if kind is not OpKind.LDS_READ_TRANSPOSED:
            return self.lds_read
        if self.lds_read_transposed is None:
            raise _no_rate(self.name, kind)
        return self.lds_read_transposed.fact

    def slots(self, clocks: int) -> int:
        """Clocks in whole slots, rounded up."""
        return -(-clocks // self.clocks_per_slot.value)

    def waves_per_simd(self, waves: int) -> int:
        """The most waves, of so many, that share a SIMD."""
        return -(-waves // self.simds.value)


def _no_rate(name: str, kind: OpKind) -> DeclarationError:
    return DeclarationError(
        Finding(
            code="D114",
            message=f"{name} doesn't state how fast it moves {kind.does}; no other device's number is taken for it",
            evidence=(("machine", name), ("lacks", f"the rate of an op of kind {kind.word}")),
        )
    )
