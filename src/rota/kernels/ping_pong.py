"""`DeclarativeSchedule`, the ping-pong GEMM loop for two staggered wave groups."""

from __future__ import annotations

from rota.check import bad_field
from rota.kernels.target_profiles import mi355x_target
from rota.order.acyclic.problem import SchedulingStrategy
from rota.pipeline.body import PipelineBody, double_buffer_reorder
from rota.pipeline.config import PipelineConfig, TargetProfile, annotate_ops
from rota.pipeline.op import CHANNEL_A, CHANNEL_B, DoubleBufferTag, KOffsetKind, OpDesc
from rota.pipeline.schedule import PipelineSchedule
from rota.pipeline.schedule_config import ScheduleConfig
from rota.program.machine import Machine

_PARTITION_OFFSETS = (KOffsetKind.K0, KOffsetKind.K1)
_COMPLETION_OFFSETS = (KOffsetKind.K_PREV, KOffsetKind.K0)


class DeclarativeSchedule(PipelineSchedule):
    """Per half: three prefetches of its own stage, one load that completes the other, four fragments, a 2x2 grid."""

    def __init__(self, config: ScheduleConfig | None = None, target: TargetProfile | None = None) -> None:
        """By default the order is searched (CSP) with lgkm costs of 8 tokens for A and 4 for B."""
        if not isinstance(config, ScheduleConfig | None):
            raise bad_field(self, "config", config, "ScheduleConfig")
        if not isinstance(target, TargetProfile | None):
            raise bad_field(self, "target", target, "TargetProfile")
        self.target = target or mi355x_target()
        self._sched = config or ScheduleConfig(scheduling=SchedulingStrategy.CSP, lgkm_per_load_a=8, lgkm_per_load_b=4)

    def config(self) -> PipelineConfig:
        return self.target.pipeline

    def machine(self) -> Machine:
        return self.target.machine

    def schedule_config(self) -> ScheduleConfig:
        return self._sched

    def declare_ops(self) -> tuple[OpDesc, ...]:
        tags = DoubleBufferTag
        body = PipelineBody()
        for own, (k, k_completion) in enumerate(zip(_PARTITION_OFFSETS, _COMPLETION_OFFSETS, strict=True)):
            body.load(tags.LOAD_A, channel=CHANNEL_A, stage=1 - own, subtile=1, k_offset=k_completion)
            body.load(tags.LOAD_A, channel=CHANNEL_A, stage=own, subtile=0, k_offset=k)
            body.load(tags.LOAD_B, channel=CHANNEL_B, stage=own, subtile=0, k_offset=k)
            body.load(tags.LOAD_B, channel=CHANNEL_B, stage=own, subtile=1, k_offset=k)
            for tag, channel in ((tags.MMA_LOAD_A, CHANNEL_A), (tags.MMA_LOAD_B, CHANNEL_B)):
                for subtile in range(2):
                    body.frag(tag, channel=channel, stage=own, subtile=subtile)
            body.grid(tags.MMA, 2, 2)
        return body.build()

    def build_body(self) -> tuple[OpDesc, ...]:
        """Costs attached, fragments and loads interleaved with the MMAs."""
        return double_buffer_reorder(annotate_ops(self.declare_ops(), self.target.cost_model), self.config())
