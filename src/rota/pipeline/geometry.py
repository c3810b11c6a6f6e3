"""The kernel's shape in elements: takes tile and instruction sizes, gives a frozen `KernelGeometry`."""

from __future__ import annotations

from dataclasses import dataclass

from rota.check import bad_field, check_ints, check_types
from rota.printing import Pasted
from rota.program.machine import LANES

_WIDEST = 16  # bytes that one lane moves with one instruction: ds_read_b128, and a DMA of CDNA4
_SCALE_WIDTH = 4  # bytes of scales that one lane moves with one instruction
SCALED_BLOCK = 32
"""Elements of K that share a scale (OCP microscaling formats)."""
FLOAT_BLOCK = 128
"""Elements of K that share a scale in fp32."""
WAVE_GRIDS = {4: (2, 2), 8: (2, 4)}
"""How the waves of a workgroup share its tile, down and across."""


def check_waves(owner: object, waves: int) -> None:
    """So many waves have a grid."""
    if waves not in WAVE_GRIDS:
        raise bad_field(owner, "waves", waves, " or ".join(f"{n} ({a}x{b})" for n, (a, b) in WAVE_GRIDS.items()))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KernelGeometry(Pasted):
    """Workgroup tile (BM x BN x BK), MMA instruction shape, element size and counter costs per load.

    The upper-case names are the usual ones of kernel authors.  A cost of 0 tokens means "not counted": waits
    that would be derived from it become full drains, which is the safe reading.  None leaves a fragment's cost to the
    kernel, which knows how many waves share the tile.  `packed` elements share the `elem_bytes`: two of fp4 a byte.
    """

    BM: int = 256
    BN: int = 256
    BK: int = 64
    MMA_M: int = 16
    MMA_N: int = 16
    MMA_K: int = 32
    elem_bytes: int = 2
    simd_width: int = 8
    is_fp8: bool = False
    vm_per_load_a: int = 4
    vm_per_load_b: int = 4
    lgkm_per_load_a: int | None = None
    lgkm_per_load_b: int | None = None
    packed: int = 1

    def __post_init__(self) -> None:
        check_ints(self, ("BM", "BN", "BK", "MMA_M", "MMA_N", "MMA_K", "elem_bytes", "simd_width", "packed"), least=1)
        check_ints(self, ("vm_per_load_a", "vm_per_load_b"))
        stated = [name for name in ("lgkm_per_load_a", "lgkm_per_load_b") if getattr(self, name) is not None]
        check_ints(self, stated)
        check_types(self, {"is_fp8": bool})

    @property
    def line_bytes(self) -> int:
        """One row of a K-tile."""
        return self.BK * self.elem_bytes // self.packed

    @property
    def scale_line(self) -> int:
        """Bytes of scales of one row of a K-tile, one for each block of it."""
        return self.BK // SCALED_BLOCK

    def scale_loads(self, rows: int, waves: int) -> int:
        """Instructions with which each wave loads its share of the scales of so many rows, four bytes a lane."""
        return _whole(rows * self.scale_line, _SCALE_WIDTH * LANES * waves)

    def fragment_reads(self, waves: int, m_mmas: int = 2, n_mmas: int = 2) -> tuple[int, int]:
        """Instructions with which one wave reads its fragment of A, and of B: what each costs on lgkmcnt."""
        check_waves(self, waves)
        down, across = WAVE_GRIDS[waves]
        operand = (
            self.MMA_M * self.MMA_K * self.elem_bytes // self.packed // LANES
        )  # bytes that a lane gives to one instruction
        width = min(_WIDEST, max(operand, 1)) * LANES
        line = self.line_bytes
        return _whole(self.BM // (down * m_mmas) * line, width), _whole(self.BN // (across * n_mmas) * line, width)

    def dma_loads(self, waves: int, m_mmas: int = 2, n_mmas: int = 2) -> tuple[int, int]:
        """Instructions with which one wave loads its part of a tile of A, and of B: what each costs on vmcnt."""
        check_waves(self, waves)
        width = _WIDEST * LANES * waves
        line = self.line_bytes
        return _whole(self.BM // m_mmas * line, width), _whole(self.BN // n_mmas * line, width)


def _whole(size: int, width: int) -> int:
    """Instructions of `width` bytes that move `size` bytes."""
    return max(-(-size // width), 1)
