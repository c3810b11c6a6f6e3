"""Kernels by name, those that rota ships and those that installed packages register.

A package registers a `Kernel`, or anything that can be the source of one.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from rota.kernels.attention import ATTENTION, MI300X_ATTENTION
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES
from rota.kernels.kernel import Kernel
from rota.kernels.ping_pong import DeclarativeSchedule, mi355x_target
from rota.kernels.single_buffer import SchedGroupHints, SingleBufferSchedule
from rota.pipeline.compiler import PipelineSchedule
from rota.pipeline.config import TargetProfile
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.schedule_config import ScheduleConfig
from rota.registry import Registry
from rota.targets.cdna3 import MI300X


def _four_wave(
    geometry: KernelGeometry = KernelGeometry(),
    config: ScheduleConfig | None = None,
    target: TargetProfile | None = None,
) -> PipelineSchedule:
    """Four waves read half of a 256x256x64 tile with eight LDS reads each."""
    return Pipeline4Wave(geometry, config, target)


def _ping_pong(
    config: ScheduleConfig | None = None, target: TargetProfile = mi355x_target(2, 2, 1)
) -> PipelineSchedule:
    """Eight waves move half of a 256x256x64 tile with two DMAs each."""
    return DeclarativeSchedule(config, target)


def _single_buffer(
    num_k_tiles: int = 2, hints: SchedGroupHints | None = None, target: TargetProfile | None = None
) -> PipelineSchedule:
    return SingleBufferSchedule(num_k_tiles, hints, target)


FOUR_WAVE = Kernel(
    name="four_wave", source=_four_wave, waves=4, about="GEMM by stages, four waves, registers rotate across stages"
)
PING_PONG = Kernel(
    name="ping_pong", source=_ping_pong, waves=8, about="GEMM by stages, two staggered groups of four waves"
)
SINGLE_BUFFER = Kernel(
    name="single_buffer", source=_single_buffer, waves=4, about="GEMM by stages, one tile in LDS, the next in registers"
)


_EIGHT, _FOUR, _SMALL, _FP8 = GEMM_SHAPES
_EIGHT_942, _FOUR_942, _SMALL_942 = MI300X_GEMM_SHAPES

GEMM_8WAVE = Kernel(name="gemm_8wave", source=_EIGHT, about="bf16 GEMM by values, 256x256x64, eight waves")
GEMM_4WAVE = Kernel(name="gemm_4wave", source=_FOUR, about="bf16 GEMM by values, 256x256x64, four waves")
GEMM_SMALL = Kernel(name="gemm_small", source=_SMALL, about="bf16 GEMM by values, 128x128x64, four waves")
GEMM_FP8 = Kernel(name="gemm_fp8", source=_FP8, about="fp8 GEMM by values, 256x256x128, eight waves")
ATTENTION_128 = Kernel(
    name="attention", source=ATTENTION, about="bf16 attention forward by values, head size 128, four waves"
)
GEMM_8WAVE_MI300X = replace(GEMM_8WAVE, name="gemm_8wave_mi300x", source=_EIGHT_942, machine=MI300X)
GEMM_4WAVE_MI300X = replace(GEMM_4WAVE, name="gemm_4wave_mi300x", source=_FOUR_942, machine=MI300X)
GEMM_SMALL_MI300X = replace(GEMM_SMALL, name="gemm_small_mi300x", source=_SMALL_942, machine=MI300X)
ATTENTION_MI300X = replace(ATTENTION_128, name="attention_mi300x", source=MI300X_ATTENTION, machine=MI300X)


_HERE = "rota.kernels.catalogue"

KERNELS: Registry[object] = Registry(
    what="kernel",
    group="rota.kernels",
    own=MappingProxyType(
        {
            "four_wave": f"{_HERE}:FOUR_WAVE",
            "ping_pong": f"{_HERE}:PING_PONG",
            "single_buffer": f"{_HERE}:SINGLE_BUFFER",
            "gemm_8wave": f"{_HERE}:GEMM_8WAVE",
            "gemm_4wave": f"{_HERE}:GEMM_4WAVE",
            "gemm_small": f"{_HERE}:GEMM_SMALL",
            "gemm_fp8": f"{_HERE}:GEMM_FP8",
            "attention": f"{_HERE}:ATTENTION_128",
            "gemm_8wave_mi300x": f"{_HERE}:GEMM_8WAVE_MI300X",
            "gemm_4wave_mi300x": f"{_HERE}:GEMM_4WAVE_MI300X",
            "gemm_small_mi300x": f"{_HERE}:GEMM_SMALL_MI300X",
            "attention_mi300x": f"{_HERE}:ATTENTION_MI300X",
        }
    ),
    expected="a Kernel, or anything that can be compiled as one",
    lacks=lambda _: None,
)
"""All of them, in the order in which they are listed."""


def kernel_named(name: str) -> Kernel:
    """The kernel of that name; the full name of a shipped one serves as well."""
    short = name if KERNELS.knows(name) else full_names().get(name, name)
    found = KERNELS.named(short)
    return replace(found, name=short) if isinstance(found, Kernel) else Kernel(name=short, source=found)


def shipped_kernels() -> dict[str, Kernel]:
    """Every shipped kernel by its short name, in the order in which they are listed."""
    return {name: kernel_named(name) for name in KERNELS.own}


def full_names() -> dict[str, str]:
    """The short name after each full one."""
    return {
        full: name
        for name, kernel in shipped_kernels().items()
        if isinstance(full := getattr(kernel.source, "name", None), str)
    }
