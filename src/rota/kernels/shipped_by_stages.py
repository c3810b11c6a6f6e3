"""The shipped kernels by stages: takes nothing, gives a `Kernel` for each."""

from __future__ import annotations

from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.kernel import Kernel
from rota.kernels.ping_pong import DeclarativeSchedule
from rota.kernels.single_buffer import SchedGroupHints, SingleBufferSchedule
from rota.kernels.target_profiles import mi355x_target
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.profile import TargetProfile
from rota.pipeline.schedule import PipelineSchedule
from rota.pipeline.schedule_config import ScheduleConfig


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


FOUR_WAVE = Kernel(
    name="four_wave", source=_four_wave, waves=4, about="GEMM by stages, four waves, registers rotate across stages"
)
PING_PONG = Kernel(
    name="ping_pong", source=_ping_pong, waves=8, about="GEMM by stages, two staggered groups of four waves"
)
SINGLE_BUFFER = Kernel(
    name="single_buffer", source=_single_buffer, waves=4, about="GEMM by stages, one tile in LDS, the next in registers"
)
