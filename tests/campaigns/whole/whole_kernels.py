"""The loops around which whole kernels are tried: takes a name and settings, gives the kernel's code and its loads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_tile import BLayout, GemmTile, gemm_tile
from rota.emit.whole.whole_kernel import emit_whole, whole_name
from rota.emit.whole.whole_options import WholeGemm
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.loaded_kernel import LoadedKernel
from rota.kernels.gemm import (
    BLOCK_FP8_LARGE,
    BLOCK_FP8_SMALL,
    FP4_LARGE,
    FP4_SMALL,
    GEMM_SHAPES,
    MI300X_GEMM_SHAPES,
    MXFP4_LARGE,
    MXFP4_SMALL,
    MXFP8_LARGE,
    MXFP8_SMALL,
    GemmShape,
)
from rota.program.machine import Machine
from rota.targets.devices import GFX942, GFX950
from rota.values.compile_loop import compile_loop

_EIGHT, _, _SMALL, _FP8 = GEMM_SHAPES
_SMALL_942 = MI300X_GEMM_SHAPES[-1]
_FP8_942 = GemmShape(
    name="gemm_fp8_128x128x128_4wave_mi300x",
    instruction="v_mfma_f32_16x16x32_fp8_fp8",
    mma=(16, 32),
    rows=128,
    columns=128,
    depth=128,
    waves=4,
    element_bytes=1,
    dma_bytes=4,
    read_bytes=8,
)
_FP4_LOW = replace(FP4_SMALL, name="gemm_fp4_64x128x256_4wave", rows=64)


def _fp16(shape: GemmShape, name: str, **fields: Any) -> GemmShape:
    return replace(shape, name=name, instruction=shape.instruction.replace("_bf16", "_f16"), **fields)


LOOPS: dict[str, tuple[GemmShape, Machine]] = {
    "small": (_SMALL, GFX950),
    "low": (_fp16(_SMALL, "gemm_f16_64x128x64_4wave", rows=64), GFX950),
    "wide": (replace(_SMALL, name="gemm_bf16_128x256x64_8wave", columns=256, waves=8), GFX950),
    "large": (_EIGHT, GFX950),
    "small_mi300x": (_SMALL_942, GFX942),
    "low_mi300x": (_fp16(_SMALL_942, "gemm_f16_64x128x64_4wave_mi300x", rows=64), GFX942),
    "wide_mi300x": (
        replace(_SMALL_942, name="gemm_bf16_128x256x64_8wave_mi300x", columns=256, waves=8, depth=32),
        GFX942,
    ),
    "fp8": (_FP8, GFX950),
    "fp8_mi300x": (_FP8_942, GFX942),
    "small_kn": (replace(_SMALL, name="gemm_bf16_128x128x64_4wave_kn", b_layout=BLayout.KN), GFX950),
    "low_kn": (_fp16(_SMALL, "gemm_f16_64x128x64_4wave_kn", rows=64, b_layout=BLayout.KN), GFX950),
    "fp8_kn": (replace(_FP8, name="gemm_fp8_256x256x128_8wave_kn", b_layout=BLayout.KN), GFX950),
    "large_kn": (replace(_EIGHT, name="gemm_bf16_256x256x64_8wave_kn", b_layout=BLayout.KN), GFX950),
    "fp4": (FP4_LARGE, GFX950),
    "fp4_small": (FP4_SMALL, GFX950),
    "fp4_low": (_FP4_LOW, GFX950),
    "mxfp4": (MXFP4_LARGE, GFX950),
    "mxfp4_low": (replace(MXFP4_SMALL, name="gemm_mxfp4_64x128x256_4wave", rows=64), GFX950),
    "mxfp8": (MXFP8_LARGE, GFX950),
    "mxfp8_small": (MXFP8_SMALL, GFX950),
    "mxfp8_deep": (replace(MXFP8_SMALL, name="gemm_mxfp8_64x128x256_4wave", rows=64, depth=256), GFX950),
    "block_fp8": (BLOCK_FP8_LARGE, GFX950),
    "block_fp8_small": (BLOCK_FP8_SMALL, GFX950),
    "block_fp8_low": (replace(BLOCK_FP8_SMALL, name="gemm_block_fp8_64x128x128_4wave", rows=64), GFX950),
    "block_fp8_mi300x": (replace(_FP8_942, name="gemm_block_fp8_128x128x128_4wave_mi300x", block_scales=True), GFX942),
    "small_mi300x_kn": (replace(_SMALL_942, name="gemm_bf16_128x128x64_4wave_mi300x_kn", b_layout=BLayout.KN), GFX942),
    "low_mi300x_kn": (_fp16(_SMALL_942, "gemm_f16_64x128x64_4wave_mi300x_kn", rows=64, b_layout=BLayout.KN), GFX942),
    "wide_mi300x_kn": (
        replace(
            _SMALL_942, name="gemm_bf16_128x256x32_8wave_mi300x_kn", columns=256, waves=8, depth=32, b_layout=BLayout.KN
        ),
        GFX942,
    ),
    "ragged_low": (_fp16(_SMALL, "gemm_f16_96x160x32_4wave", rows=96, columns=160, depth=32), GFX950),
    "ragged": (replace(_EIGHT, name="gemm_bf16_224x256x64_8wave", rows=224), GFX950),
}
"""Tiles of four and eight waves for both machines; the rows of `ragged` ones end within a DMA."""
FINE = ", by instruction"
"""Ends the name of a loop that is scheduled by instruction, as it ships; the others are scheduled by quadrants."""


def shape_of(name: str) -> tuple[GemmShape, Machine]:
    """The shape and the machine of a loop, however fine."""
    return LOOPS[name.removesuffix(FINE)]


@cache
def loop_of(name: str) -> CompiledSchedule:
    """The schedule of one of them."""
    shape, machine = shape_of(name)
    return compile_loop(shape.loop(instructions=name.endswith(FINE)), machine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A whole kernel, compiled and decoded; `reduce` adds splits."""

    asked: WholeGemm
    tile: GemmTile
    code: CodeObject
    name: str
    kernel: LoadedKernel
    reduce: LoadedKernel


@cache
def source_of(name: str, asked: WholeGemm) -> str:
    """The source of a whole kernel."""
    return emit_whole(loop_of(name), shape_of(name)[0].geometry, asked)


@cache
def built(name: str, asked: WholeGemm) -> Built:
    """A whole kernel around one of the loops."""
    return built_of(name, asked, source_of(name, asked))


def built_of(name: str, asked: WholeGemm, source: str) -> Built:
    """The same of another source, such as a damaged one."""
    code = find_toolchain().compile(source, shape_of(name)[1].arch)
    return loaded(name, asked, code)


def loaded(name: str, asked: WholeGemm, code: CodeObject) -> Built:
    """The same of machine code."""
    compiled, geometry = loop_of(name), shape_of(name)[0].geometry
    symbol = whole_name(compiled, asked)
    kernel, reduction = (
        LoadedKernel(program=load_program(code.kernel(each), tuple(code.instructions(each))))
        for each in (symbol, f"{symbol}_reduce")
    )
    tile = gemm_tile(compiled, geometry)
    return Built(asked=asked, tile=tile, code=code, name=symbol, kernel=kernel, reduce=reduction)
