"""The schedules that are emitted, each with the geometry it is for: those of a test, and the whole zoo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

from rota import CompiledSchedule, KernelGeometry, Pipeline4Wave, compile_schedule, mi355x_target
from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES, GemmShape
from rota.kernels.ping_pong import DeclarativeSchedule
from rota.targets.devices import GFX942, GFX950
from rota.values.compile_loop import compile_loop
from rota.values.compiled_loop import CompiledLoop

Emitted = tuple[CompiledSchedule, KernelGeometry]

SMALL = "gemm_bf16_128x128x64_4wave"
SMALL_MI300X = "gemm_bf16_128x128x64_4wave_mi300x"
FP8 = "gemm_fp8_256x256x128_8wave"


def _in_fp16(shape: GemmShape) -> GemmShape:
    instruction = shape.instruction.replace("_bf16", "_f16")
    return replace(shape, name=shape.name.replace("bf16", "fp16"), instruction=instruction)


SHAPES = {shape.name: shape for shape in (*GEMM_SHAPES, *MI300X_GEMM_SHAPES)}
SHAPES |= {shape.name: shape for shape in (_in_fp16(SHAPES[SMALL]), _in_fp16(SHAPES[SMALL_MI300X]))}
SHAPES["gemm_bf16_32x32_mma"] = replace(
    SHAPES[SMALL], name="gemm_bf16_32x32_mma", instruction="v_mfma_f32_32x32x16_bf16", mma=(32, 16)
)


@cache
def by_values(name: str, *, instructions: bool = False, remainder: int = 0) -> tuple[CompiledLoop, KernelGeometry]:
    shape = SHAPES[name]
    machine = GFX942 if name.endswith("mi300x") else GFX950
    return compile_loop(shape.loop(instructions=instructions), machine, remainder=remainder), shape.geometry


@cache
def staggered(name: str) -> tuple[CompiledLoop, KernelGeometry]:
    """Two groups of four waves take turns at the matrix unit."""
    shape = SHAPES[name]
    return compile_loop(shape.loop(instructions=True), GFX950, stagger=True), shape.geometry


@cache
def ping_pong() -> Emitted:
    """Eight waves move half a tile with two DMAs each, and read it with eight (A) or four (B) LDS reads."""
    schedule = DeclarativeSchedule(target=mi355x_target(2, 2, 1))
    return compile_schedule(schedule), KernelGeometry(vm_per_load_a=2, vm_per_load_b=2)


@cache
def four_wave() -> Emitted:
    geometry = KernelGeometry(lgkm_per_load_a=8, lgkm_per_load_b=8)
    return compile_schedule(Pipeline4Wave(geometry)), geometry


ZOO: dict[str, Callable[[], Emitted]] = {"ping-pong": ping_pong, "four-wave": four_wave}
"""Everything that must come out of the compilers as it went in."""

ZOO |= {
    f"{name}, by {granularity}": partial(by_values, name, instructions=granularity == "instruction")
    for name in SHAPES
    for granularity in ("tile", "instruction")
}
ZOO |= {f"{name}, staggered": partial(staggered, name) for name in ("gemm_bf16_256x256x64_8wave", FP8)}
