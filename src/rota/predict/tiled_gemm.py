"""A GEMM kernel as its time depends on it: takes a compiled loop and its tile, gives a `TiledGemm`, or M101."""

from __future__ import annotations

from dataclasses import dataclass

from rota.check import bad_field, check_ints, check_types
from rota.cycles.predict import predict
from rota.cycles.work import WorkSource, program_of
from rota.errors import Finding, MeasureError
from rota.program.element import takes_formats
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable, LoweredProgram
from rota.targets.device import Device, device_of

_NAMED = (("_bf16", "bf16"), ("_f16", "fp16"), ("_i8", "int8"), ("_fp8_fp8", "fp8"), ("_bf8_bf8", "bf8"))
_NARROW = {8: "fp8", 6: "fp6", 4: "fp4"}
_BITS = {"bf16": 16, "fp16": 16, "int8": 8, "fp8": 8, "bf8": 8, "fp6": 6, "fp4": 4}
_SCALED_BLOCK = 32
"""Elements that share a scale of one byte, of the narrow formats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledGemm:
    """A workgroup's tile, its elements, and the clocks of a K-tile: of the loop as predicted, of its matrix units."""

    name: str
    device: Device
    tile: tuple[int, int, int]
    element: str
    loop_clocks: float
    matrix_clocks: float

    def __post_init__(self) -> None:
        check_types(self, {"name": str, "device": Device, "tile": tuple, "element": str})
        if self.element not in _BITS:
            raise bad_field(self, "element", self.element, ", ".join(_BITS))
        _Tile(*self.tile)

    @property
    def element_bytes(self) -> float:
        """Of A and B, with the scales that the narrowest formats can't do without."""
        bits = _BITS[self.element]
        return bits / 8 + (1 / _SCALED_BLOCK if bits < 8 else 0)


@dataclass(frozen=True, slots=True)
class _Tile:
    m: int
    n: int
    k: int

    def __post_init__(self) -> None:
        check_ints(self, ("m", "n", "k"), least=1)


def tiled_gemm(schedule: Lowerable, tile: tuple[int, int, int], shape: WorkSource | None = None) -> TiledGemm:
    """The kernel of a compiled loop; its products have to be those of the tile."""
    program = program_of(schedule, shape)
    loop = predict(program, band=False)
    m, n, k = tile
    if loop.flops != 2 * m * n * k:
        raise MeasureError(
            Finding(
                code="M101",
                message=f"{program.name} is not a GEMM of {m}x{n}x{k}: whole problems are predicted for GEMMs alone",
                evidence=(
                    ("operations per iteration", f"{loop.flops:,.0f}"),
                    ("of a GEMM with that tile", f"{2 * m * n * k:,}"),
                    ("measured runs of other kernels, attention among them", "none"),
                ),
                fixes=(
                    "`rota show` has the loop's clocks, which need no measurements",
                    "state the tile of a GEMM: --set geometry.BM=..., BN, BK",
                ),
            )
        )
    return TiledGemm(
        name=program.name,
        device=device_of(program.machine),
        tile=tile,
        element=element_of(program),
        loop_clocks=loop.cycles,
        matrix_clocks=loop.mma_clocks,
    )


def element_of(program: LoweredProgram) -> str:
    """The type of the elements that a program multiplies, from the names of its matrix instructions."""
    works = (entry.op.work for entry in program.kernel if entry.op.kind is OpKind.MMA)
    found = {_element(work.instruction, work.bits) for work in works if work is not None and work.instruction}
    if len(found) == 1:
        return found.pop()
    raise MeasureError(
        Finding(
            code="M102",
            message=f"{program.name} multiplies elements of {len(found)} types; whole problems have one",
            evidence=(("types", ", ".join(sorted(found)) or "none that rota knows"),),
        )
    )


def _element(instruction: str, bits: int) -> str:
    if takes_formats(instruction):
        return _NARROW[bits]
    return next((element for ending, element in _NAMED if instruction.endswith(ending)), instruction)
