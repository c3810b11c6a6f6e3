"""A 4-wave double buffer as somebody ports it from the reference's pages: tags, costs, edges and blocks of its own."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from rota.pipeline import (
    BarrierStrategy,
    DepEdge,
    KOffsetKind,
    OpCost,
    OpDesc,
    OpRole,
    PipelineBody,
    PipelineConfig,
    PipelineProgram,
    PipelineSchedule,
    ResourceKind,
    ScheduleConfig,
    TargetCostModel,
    WaitStrategy,
    annotate_ops,
    derive_cross_stage_rotation_edges,
    derive_edges_from_ops,
    emit_minimal_barrier_block,
    filter_spurious_cross_stage_flow,
)


class Tag(IntEnum):
    """The port's own op tags."""

    COPY_A = 10
    COPY_B = 11
    FRAG_A = 12
    FRAG_B = 13
    MFMA = 14


_COPY = OpCost(resource=ResourceKind.GLOBAL_MEM, latency=300, role=OpRole.GLOBAL_LOAD)
_FRAG = OpCost(resource=ResourceKind.LDS, latency=24, role=OpRole.FRAGMENT_LOAD, vgpr_def=16)
COSTS = TargetCostModel(
    {
        Tag.COPY_A: _COPY,
        Tag.COPY_B: _COPY,
        Tag.FRAG_A: _FRAG,
        Tag.FRAG_B: _FRAG,
        Tag.MFMA: OpCost(resource=ResourceKind.MMA_UNIT, latency=32, role=OpRole.COMPUTE),
    }
)


class Plain(PipelineSchedule):
    """Each partition reads its own stage, in the framework's template."""

    def __init__(self, **knobs: Any) -> None:
        self.pipeline = PipelineConfig(vm_per_load_a=4, vm_per_load_b=2)
        self.knobs = ScheduleConfig(lgkm_per_load_a=8, lgkm_per_load_b=4).but(**knobs)

    def config(self) -> PipelineConfig:
        return self.pipeline

    def schedule_config(self) -> ScheduleConfig:
        return self.knobs

    def build_body(self) -> Sequence[OpDesc]:
        body = PipelineBody()
        for own, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
            body.frag(Tag.FRAG_A, channel=0, stage=own, subtile=0)
            body.frag(Tag.FRAG_B, channel=1, stage=own, subtile=0)
            body.compute(Tag.MFMA, row=0, column=0)
            body.frag(Tag.FRAG_B, channel=1, stage=own, subtile=1)
            body.load(Tag.COPY_A, channel=0, stage=own, subtile=0, k_offset=k)
            body.compute(Tag.MFMA, row=0, column=1)
            body.frag(Tag.FRAG_A, channel=0, stage=own, subtile=1)
            body.load(Tag.COPY_B, channel=1, stage=own, subtile=0, k_offset=k)
            body.compute(Tag.MFMA, row=1, column=0)
            body.load(Tag.COPY_B, channel=1, stage=own, subtile=1, k_offset=k)
            body.load(Tag.COPY_A, channel=0, stage=own, subtile=1, k_offset=k)
            body.compute(Tag.MFMA, row=1, column=1)
        return annotate_ops(body.build(), COSTS)


class Rotating(Plain):
    """The first fragments of the next partition are read from the other stage, as the 4-wave kernel does."""

    def __init__(self, **knobs: Any) -> None:
        super().__init__()
        self.pipeline = PipelineConfig(
            vm_per_load_a=4, vm_per_load_b=2, lgkm_per_load_a=8, lgkm_per_load_b=4, cross_stage_rotation=True
        )
        self.knobs = ScheduleConfig.from_strategies(
            **BarrierStrategy.minimal_no_set_prio(),
            **WaitStrategy.auto_with_inter_block_drain(partial_prologue_drain=True),
        ).but(**knobs)

    def build_body(self) -> Sequence[OpDesc]:
        body = PipelineBody()
        for own, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
            other = 1 - own
            body.frag(Tag.FRAG_B, channel=1, stage=own, subtile=1)
            body.load(Tag.COPY_A, channel=0, stage=own, subtile=0, k_offset=k)
            body.compute(Tag.MFMA, row=0, column=0)
            body.frag(Tag.FRAG_A, channel=0, stage=own, subtile=1)
            body.load(Tag.COPY_B, channel=1, stage=own, subtile=0, k_offset=k)
            body.compute(Tag.MFMA, row=0, column=1)
            body.frag(Tag.FRAG_A, channel=0, stage=other, subtile=0)
            body.load(Tag.COPY_B, channel=1, stage=own, subtile=1, k_offset=k)
            body.compute(Tag.MFMA, row=1, column=0)
            body.frag(Tag.FRAG_B, channel=1, stage=other, subtile=0)
            body.load(Tag.COPY_A, channel=0, stage=own, subtile=1, k_offset=k)
            body.compute(Tag.MFMA, row=1, column=1)
        return annotate_ops(body.build(), COSTS)

    def derive_edges(self, body: Sequence[OpDesc]) -> Sequence[DepEdge]:
        own = filter_spurious_cross_stage_flow(derive_edges_from_ops(body, self.pipeline), body, self.pipeline)
        return (*own, *derive_cross_stage_rotation_edges(body, self.pipeline))

    def bootstrap_frags(self) -> Sequence[OpDesc]:
        body = PipelineBody().frag(Tag.FRAG_A, channel=0).frag(Tag.FRAG_B, channel=1)
        return annotate_ops(body.build(), COSTS)

    def build_explicit_blocks(self, body: Sequence[OpDesc], program: PipelineProgram) -> Sequence[Sequence[OpDesc]]:
        return [emit_minimal_barrier_block(block, wrap_waits=False) for block in program.blocks]
