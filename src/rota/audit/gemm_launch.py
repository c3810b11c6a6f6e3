"""A GEMM's machine code, launched on the CPU, with C compared to NumPy's.

C = A x B^T: A is M x K, B is N x K, or K x N in memory, C is M x N in fp32. Integers from -4 to 4 make every product
and sum exact in fp32, so C has one right value in any order of summation; numbers that use all bits of an element make
C right within the rounding of that many sums.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.audit.audit import misfits
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_tile import Element, Factor, gemm_tile
from rota.errors import Finding, IsaError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.kernel_facts import LANES
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.launch.interleaving import LATEST, Interleaving, interleavings
from rota.isa.launch.run import run_kernel
from rota.pipeline.geometry import KernelGeometry

Floats = NDArray[np.float64]

_LARGEST = 4
_PARAMETERS = 5  # A, B, C, N, K
_SIGNIFICANT_BITS = {"bf16": 8, "f16": 11, "f8f6f4": 4, "fp8_fp8": 4, "fp4": 2}
_SMALLER = 4  # powers of two between the largest number of full precision and the smallest
_UNIT_ROUNDOFF = 2.0**-24  # of fp32
FP4_VALUES = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
"""What e2m1 has, by its code; a bit above is the sign."""
SEVERAL = (2, 3)
"""Workgroups: several rows and columns of them, and not as many of each, or ids that are exchanged wouldn't show."""


class Numbers(enum.Enum):
    WHOLE = "integers"
    FULL = "numbers of full precision"


class Launched(NamedTuple):
    """C as it was computed and as it should be, how far they may differ, and what went wrong."""

    got: NDArray[np.float32]
    due: Floats
    bound: Floats
    findings: tuple[Finding, ...]

    @property
    def right(self) -> bool:
        """True if C is right, and nothing on the way could have made it wrong."""
        return not self.findings


@dataclass(frozen=True, slots=True, kw_only=True)
class TripRuns:
    """All runs with one number of trips: how many there were, how many right, and the first findings."""

    trips: int
    depth: int
    runs: int
    right: int
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        verdict = "C is right in all of them" if self.right == self.runs else f"C is right in {self.right} of them"
        return f"{self.trips} trip{'s' * (self.trips != 1)}, K = {self.depth}: {self.runs} runs, {verdict}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmProgram:
    """One kernel, decoded once and run as often as wanted."""

    program: KernelProgram
    geometry: KernelGeometry
    element: str  # how matrix instructions spell A's and B's
    waves: int
    tiles_outside: int
    tiles_per_trip: int
    dynamic_lds: int = 0  # that the launch asks for
    nulls: int = 0  # pointers after the five parameters of a GEMM, for memory of the compiler's own
    b_by_columns: bool = False  # B is K x N

    def depth(self, trips: int) -> int:
        return self.geometry.BK * (self.tiles_outside + trips * self.tiles_per_trip)

    def launch(
        self,
        trips: int,
        interleaving: Interleaving = LATEST,
        *,
        grid: tuple[int, int] = (1, 1),
        numbers: Numbers = Numbers.WHOLE,
    ) -> Launched:
        """One run; the numbers in A and B depend on the trips alone."""
        depth, rows, columns = self.depth(trips), self.geometry.BM * grid[0], self.geometry.BN * grid[1]
        random = np.random.default_rng(trips)
        a, b = (_draw(random, (size, depth), numbers, self.element) for size in (rows, columns))
        outcome = run_kernel(
            self.program,
            args=[
                pack(a, self.element),
                pack(np.ascontiguousarray(b.T) if self.b_by_columns else b, self.element),
                np.full((rows, columns), np.nan, np.float32),
                columns,
                depth,
                *[None] * self.nulls,
            ],
            grid=(*grid, 1),
            block=(LANES * self.waves, 1, 1),
            dynamic_lds=self.dynamic_lds,
            interleaving=interleaving,
        )
        got = outcome.buffers[2].view(np.float32).reshape(rows, columns)
        due, bound = a @ b.T, np.zeros((rows, columns))
        if numbers is Numbers.FULL:
            # What sums of so many terms may lose, in any order, of the sum of their sizes: N. J. Higham, Accuracy and
            # Stability of Numerical Algorithms, 3.1. Products of two elements are exact in fp32.
            lost = depth * _UNIT_ROUNDOFF
            bound = lost / (1 - lost) * (np.abs(a) @ np.abs(b.T))
        findings = [*outcome.findings]
        wrong = np.argwhere(~(np.abs(got - due) <= bound))  # NaN is wrong too
        if len(wrong):
            row, column = at = int(wrong[0][0]), int(wrong[0][1])
            message = f"{len(wrong)} of {got.size} elements of C are wrong, the first in row {row}, column {column}"
            values = ("got", f"{got[at]:g}"), ("due", f"{due[at]:g}, off by at most {bound[at]:.2g}")
            run = ("trips", trips), ("K", depth), ("interleaving", interleaving.label)
            findings.append(Finding("I110", message, evidence=(*values, *run)))
        return Launched(got, due, bound, tuple(findings))

    def run_trips(self, trips: int, seeds: int) -> TripRuns:
        """Integers under every adversarial and this many drawn interleavings, and once numbers of full precision."""
        runs = [self.launch(trips, order) for order in interleavings(self.waves, seeds)]
        # In several workgroups: one that takes another's tile is wrong only among others.
        runs.append(self.launch(trips, grid=SEVERAL, numbers=Numbers.FULL))
        findings = {finding.code: finding for run in reversed(runs) for finding in reversed(run.findings)}
        return TripRuns(
            trips=trips,
            depth=self.depth(trips),
            runs=len(runs),
            right=sum(run.right for run in runs),
            findings=tuple(findings[code] for code in sorted(findings)),
        )


def pack(matrix: Floats, element: str) -> NDArray[np.generic]:
    """Numbers as the element holds them: bf16, fp16, OCP's e4m3 (gfx950) or FNUZ's (gfx942), two fp4 (e2m1) a byte."""
    if element == "f16":
        return matrix.astype(np.float16)
    if element == "bf16":
        return (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    size = np.abs(matrix)
    if element == "fp4":
        codes = np.searchsorted(FP4_VALUES, size).astype(np.uint8) | np.where(matrix < 0, 8, 0).astype(np.uint8)
        pairs = codes.reshape(*codes.shape[:-1], -1, 2)
        return pairs[..., 0] | pairs[..., 1] << 4
    fraction, power = np.frexp(size)  # in [0.5, 1); e4m3 counts powers from -7 on, FNUZ from -8, for [1, 2)
    more = int(element == "fp8_fp8")
    field = power + 6 + more
    normal = (field >= 1) & (size > 0)
    code = np.where(normal, field * 8 + fraction * 16 - 8, np.ldexp(size, 9 + more))
    return (code.astype(np.uint8) | np.where(matrix < 0, 0x80, 0)).astype(np.uint8)


def codes_of_integers(element: str) -> tuple[bytes, ...]:
    """The integers from -4 to 4 as an element holds them; two of them where two share a byte."""
    integers = np.arange(-_LARGEST, _LARGEST + 1).astype(np.float64)
    pairs = np.stack([each.ravel() for each in np.meshgrid(integers, integers)], axis=1)
    packed = pack(pairs, element)
    return tuple(dict.fromkeys(each.tobytes() for each in packed.ravel()))


def _draw(random: np.random.Generator, shape: tuple[int, int], numbers: Numbers, element: str) -> Floats:
    if numbers is Numbers.WHOLE:
        return random.integers(-_LARGEST, _LARGEST, shape, endpoint=True).astype(np.float64)
    if element == "fp4":
        return random.choice([*FP4_VALUES, *(-each for each in FP4_VALUES)], shape)
    bits = _SIGNIFICANT_BITS[element]
    significands = random.integers(-(2**bits), 2**bits, shape, endpoint=True).astype(np.float64)
    drawn: Floats = np.ldexp(significands, random.integers(-bits - _SMALLER, -bits, shape, endpoint=True))
    return drawn


def load_emitted(
    compiled: CompiledSchedule,
    geometry: KernelGeometry,
    code: CodeObject,
    *,
    element: Element | None = None,
    waves: int | None = None,
    kernel: str | None = None,
    dynamic_lds: int = 0,
) -> GemmProgram:
    """The emitted GEMM, or the one of that name where there are several; it must fit its descriptor and machine."""
    tile = gemm_tile(compiled, geometry, element=element, waves=waves)
    facts, instructions = code.kernel(kernel), code.instructions(kernel)
    if wrong := misfits(facts, instructions, compiled.machine):
        raise IsaError(*wrong)
    taken = sum(not each.hidden for each in facts.arguments)
    return GemmProgram(
        program=load_program(facts, tuple(instructions)),
        geometry=geometry,
        element=tile.element.value,
        waves=tile.waves,
        tiles_outside=compiled.lowered.tiles_outside,
        tiles_per_trip=compiled.lowered.tiles_per_trip,
        dynamic_lds=dynamic_lds,
        nulls=max(0, taken - _PARAMETERS),
        b_by_columns=tile.by_columns(Factor.B),
    )
