"""An emitted GEMM on the CPU: takes its code object, a trip count and an interleaving, gives C beside the right one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota import CompiledSchedule, Finding, KernelGeometry
from rota.audit.code_object import CodeObject
from rota.emit.gemm_tile import Element, GemmTile, gemm_tile
from rota.program.loop import steps_of
from rota.simulate.isa.interleaving import Interleaving
from rota.simulate.isa.program import KernelProgram, load_program
from rota.simulate.isa.run import run_kernel

Matrix = NDArray[np.float32]
_FP8 = np.array([0x00, 0x38, 0x40, 0x44, 0x48], np.uint8)  # 0, 1, 2, 3 and 4 as OCP E4M3
_LARGEST = 4


class Result(NamedTuple):
    """C as computed and as it should be, and what the interpreter found wrong on the way."""

    got: Matrix
    due: Matrix
    findings: tuple[Finding, ...]

    @property
    def right(self) -> bool:
        return not self.findings and np.array_equal(self.got, self.due)


class GemmRun:
    """One kernel, decoded once and run as often as wanted.

    A and B hold whole numbers from -4 to 4: every product and sum is exact in fp32, so C has one right value in any
    order of summation.
    """

    def __init__(
        self, compiled: CompiledSchedule, geometry: KernelGeometry, code: CodeObject, kernel: str | None = None
    ) -> None:
        self.compiled = compiled
        self.geometry = geometry
        self.tile: GemmTile = gemm_tile(compiled, geometry)
        self.program: KernelProgram = load_program(code.kernel(kernel), code.instructions(kernel))

    def run(self, trips: int, interleaving: Interleaving, *, grid: tuple[int, int] = (1, 1)) -> Result:
        geometry = self.geometry
        rows, columns = geometry.BM * grid[0], geometry.BN * grid[1]
        depth = geometry.BK * steps_of(self.compiled).total_tiles(trips)
        random = np.random.default_rng(trips)
        a, b = (random.integers(-_LARGEST, _LARGEST + 1, (size, depth)).astype(np.float32) for size in (rows, columns))
        c = np.full((rows, columns), np.nan, np.float32)
        outcome = run_kernel(
            self.program,
            args=[self._packed(a), self._packed(b), c, columns, depth],
            grid=(*grid, 1),
            block=(64 * self.tile.waves, 1, 1),
            interleaving=interleaving,
        )
        return Result(outcome.buffers[2].view(np.float32).reshape(rows, columns), a @ b.T, outcome.findings)

    def _packed(self, matrix: Matrix) -> NDArray[np.generic]:
        if self.tile.element is Element.FP16:
            return matrix.astype(np.float16)
        if self.tile.element is Element.BF16:
            return (matrix.view(np.uint32) >> 16).astype(np.uint16)
        signs = np.where(matrix < 0, np.uint8(0x80), np.uint8(0))
        return _FP8[np.abs(matrix).astype(np.uint8)] | signs
