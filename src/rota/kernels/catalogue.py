"""The shipped kernels by name: takes nothing, gives a `Kernel` for each short name; full names are found too."""

from __future__ import annotations

from collections.abc import Iterator

from rota.compiler.schedule import PipelineSchedule
from rota.declare.geometry import KernelGeometry
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.kernel import Kernel
from rota.kernels.ping_pong import DeclarativeSchedule
from rota.kernels.single_buffer import SchedGroupHints, SingleBufferSchedule
from rota.program.config import ScheduleConfig
from rota.targets.amd import mi355x_target
from rota.targets.machine import GFX942
from rota.targets.profile import TargetProfile


def _four_wave(
    geometry: KernelGeometry = KernelGeometry(),
    config: ScheduleConfig | None = None,
    target: TargetProfile | None = None,
) -> PipelineSchedule:
    """Four waves read half of a 256x256x64 tile with eight LDS reads each."""
    return Pipeline4Wave(geometry, config, target)


def _ping_pong(
    config: ScheduleConfig | None = None,
    target: TargetProfile = mi355x_target(2, 2, 1),
) -> PipelineSchedule:
    """Eight waves move half of a 256x256x64 tile with two DMAs each."""
    return DeclarativeSchedule(config, target)


def _single_buffer(
    num_k_tiles: int = 2, hints: SchedGroupHints | None = None, target: TargetProfile | None = None
) -> PipelineSchedule:
    return SingleBufferSchedule(num_k_tiles, hints, target)


def shipped_kernels() -> dict[str, Kernel]:
    """Every shipped kernel by its short name, in the order in which they are listed."""
    return {kernel.name: kernel for kernel in (*_by_stages(), *_by_values())}


def full_names() -> dict[str, str]:
    """The short name behind each full one."""
    return {
        full: name
        for name, kernel in shipped_kernels().items()
        if isinstance(full := getattr(kernel.source, "name", None), str)
    }


def _by_stages() -> Iterator[Kernel]:
    yield Kernel(
        name="four_wave", source=_four_wave, waves=4, about="GEMM by stages, four waves, registers rotate across stages"
    )
    yield Kernel(
        name="ping_pong", source=_ping_pong, waves=8, about="GEMM by stages, two staggered groups of four waves"
    )
    yield Kernel(
        name="single_buffer",
        source=_single_buffer,
        waves=4,
        about="GEMM by stages, one tile in LDS, the next in registers",
    )


def _by_values() -> Iterator[Kernel]:
    from rota.kernels.attention import ATTENTION, MI300X_ATTENTION
    from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES

    eight, four, small, fp8 = GEMM_SHAPES
    yield Kernel(name="gemm_8wave", source=eight, about="bf16 GEMM by values, 256x256x64, eight waves")
    yield Kernel(name="gemm_4wave", source=four, about="bf16 GEMM by values, 256x256x64, four waves")
    yield Kernel(name="gemm_small", source=small, about="bf16 GEMM by values, 128x128x64, four waves")
    yield Kernel(name="gemm_fp8", source=fp8, about="fp8 GEMM by values, 256x256x128, eight waves")
    yield Kernel(
        name="attention", source=ATTENTION, about="bf16 attention forward by values, head size 128, four waves"
    )
    eight, four, small = MI300X_GEMM_SHAPES
    for name, shape, about in (
        ("gemm_8wave_mi300x", eight, "bf16 GEMM by values, 256x256x64, eight waves"),
        ("gemm_4wave_mi300x", four, "bf16 GEMM by values, 256x256x64, four waves"),
        ("gemm_small_mi300x", small, "bf16 GEMM by values, 128x128x64, four waves"),
        ("attention_mi300x", MI300X_ATTENTION, "bf16 attention forward by values, head size 128, four waves"),
    ):
        yield Kernel(name=name, source=shape, machine=GFX942, about=about)
