"""Bodies whose loads stand where a block, or `max_globals`, won't leave them: takes their order, gives a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rota import (
    KOffsetKind,
    OpDesc,
    PipelineBody,
    PipelineConfig,
    PipelineSchedule,
    ScheduleConfig,
    WarpStaggerRule,
    annotate_ops,
    mi355x_target,
)
from tests.findings.smallest import TAGS


@dataclass
class LoadsLast(PipelineSchedule):
    """A 1x2 grid whose last block of a partition reads a B tile and then refills all three."""

    max_globals: int = 0
    knobs: ScheduleConfig = ScheduleConfig()

    def config(self) -> PipelineConfig:
        target = mi355x_target(max_globals=self.max_globals)
        return target.with_pipeline(m_mmas=1, n_mmas=2, warp_stagger=WarpStaggerRule.none()).pipeline

    def schedule_config(self) -> ScheduleConfig:
        return self.knobs

    def build_body(self) -> Sequence[OpDesc]:
        body = PipelineBody()
        for stage, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
            body.frag(TAGS.MMA_LOAD_A, channel=0, stage=stage)
            body.frag(TAGS.MMA_LOAD_B, channel=1, stage=stage)
            body.compute(TAGS.MMA, column=0)
            body.frag(TAGS.MMA_LOAD_B, channel=1, stage=stage, subtile=1)
            body.load(TAGS.LOAD_A, channel=0, stage=stage, k_offset=k)
            for column in (0, 1):
                body.load(TAGS.LOAD_B, channel=1, stage=stage, subtile=column, k_offset=k)
            body.compute(TAGS.MMA, column=1)
        return annotate_ops(body.build(), mi355x_target().cost_model)


@dataclass
class LoadsFirst(LoadsLast):
    """The same with a deliberate race: each tile is refilled in front of its own read."""

    def build_body(self) -> Sequence[OpDesc]:
        body = PipelineBody()
        for stage, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
            body.load(TAGS.LOAD_A, channel=0, stage=stage, k_offset=k)
            body.load(TAGS.LOAD_B, channel=1, stage=stage, k_offset=k)
            body.frag(TAGS.MMA_LOAD_A, channel=0, stage=stage)
            body.frag(TAGS.MMA_LOAD_B, channel=1, stage=stage)
            body.compute(TAGS.MMA, column=0)
            body.load(TAGS.LOAD_B, channel=1, stage=stage, subtile=1, k_offset=k)
            body.frag(TAGS.MMA_LOAD_B, channel=1, stage=stage, subtile=1)
            body.compute(TAGS.MMA, column=1)
        return annotate_ops(body.build(), mi355x_target().cost_model)
