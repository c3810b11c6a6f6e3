"""`Pipeline4Wave`, the 4-wave GEMM loop with cross-stage register rotation."""

from __future__ import annotations

from collections.abc import Sequence

from rota.check import bad_field
from rota.kernels.ping_pong import mi355x_target
from rota.order.acyclic.problem import DepEdge, SchedulingStrategy
from rota.pipeline.block import PipelineProgram, emit_minimal_barrier_block
from rota.pipeline.body import PipelineBody
from rota.pipeline.compiler import PipelineSchedule
from rota.pipeline.config import PipelineConfig, TargetProfile, WarpStaggerRule, annotate_ops
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.op import CHANNEL_A, CHANNEL_B, DoubleBufferTag, KOffsetKind, OpDesc
from rota.pipeline.phases import derive_cross_stage_rotation_edges, filter_spurious_cross_stage_flow
from rota.pipeline.rules import derive_edges_from_ops
from rota.pipeline.schedule_config import BarrierStrategy, ScheduleConfig, WaitStrategy
from rota.printing import WrappedTuple
from rota.program.kinds import OpRole
from rota.program.machine import Machine

_WAVES = 4
_PARTITION_OFFSETS = (KOffsetKind.K0, KOffsetKind.K1)


class Pipeline4Wave(PipelineSchedule):
    """Four mini-iterations of (load, fragment, MMA) per K-partition, in the order a kernel author would type them.

    The leading fragments of the next partition are read from the other stage while this one still computes, so the
    loop needs a barrier only at a partition's top and where reads change stage.
    """

    def __init__(
        self, geometry: KernelGeometry, config: ScheduleConfig | None = None, target: TargetProfile | None = None
    ) -> None:
        """What the rotation depends on is set again, whatever `config` says.

        A fragment's cost on lgkmcnt, where the geometry doesn't state it, is what four waves need to read it.
        """
        for name, value, kind in (
            ("geometry", geometry, KernelGeometry),
            ("config", config, ScheduleConfig),
            ("target", target, TargetProfile),
        ):
            if not isinstance(value, kind) and not (value is None and name != "geometry"):
                raise bad_field(self, name, value, kind.__name__)
        self.geometry = geometry
        made = target or mi355x_target(geometry.vm_per_load_a, geometry.vm_per_load_b, 1)
        reads_a, reads_b = geometry.fragment_reads(_WAVES, made.pipeline.m_mmas, made.pipeline.n_mmas)
        stated_a, stated_b = geometry.lgkm_per_load_a, geometry.lgkm_per_load_b
        self.target = made.with_pipeline(
            warp_stagger=WarpStaggerRule.none(),
            lgkm_per_load_a=reads_a if stated_a is None else stated_a,
            lgkm_per_load_b=reads_b if stated_b is None else stated_b,
            cross_stage_rotation=True,
        )
        self.asked = config
        """The knobs as they were given; a note says which of them the rotation replaces."""
        self._sched = (config or self._default_schedule_config()).but(
            scheduling=SchedulingStrategy.IDENTITY,
            minimal_barriers=True,
            omit_mma_set_prio=True,
            inter_block_lgkm_drain=True,
            partial_prologue_drain=True,
        )

    @staticmethod
    def _default_schedule_config() -> ScheduleConfig:
        return ScheduleConfig.from_strategies(
            **BarrierStrategy.minimal_no_set_prio(),
            **WaitStrategy.auto_with_inter_block_drain(partial_prologue_drain=True),
        )

    def config(self) -> PipelineConfig:
        return self.target.pipeline

    def machine(self) -> Machine:
        return self.target.machine

    def lds_bytes(self) -> int:
        """Every stage holds one K-tile of A and B."""
        geometry = self.geometry
        return self.config().depth * (geometry.BM + geometry.BN) * geometry.BK * geometry.elem_bytes

    def schedule_config(self) -> ScheduleConfig:
        return self._sched

    def declare_ops(self) -> tuple[OpDesc, ...]:
        """The 24 logical ops of both partitions, mini-iteration by mini-iteration."""
        tags = DoubleBufferTag
        body = PipelineBody()
        for own, k in enumerate(_PARTITION_OFFSETS):
            other = 1 - own
            body.load(tags.LOAD_A, channel=CHANNEL_A, stage=own, subtile=0, k_offset=k)
            body.frag(tags.MMA_LOAD_B, channel=CHANNEL_B, stage=own, subtile=1)
            body.compute(tags.MMA, row=0, column=0)

            body.load(tags.LOAD_B, channel=CHANNEL_B, stage=own, subtile=0, k_offset=k)
            body.frag(tags.MMA_LOAD_A, channel=CHANNEL_A, stage=own, subtile=1)
            body.compute(tags.MMA, row=0, column=1)

            body.load(tags.LOAD_B, channel=CHANNEL_B, stage=own, subtile=1, k_offset=k)
            body.frag(tags.MMA_LOAD_A, channel=CHANNEL_A, stage=other, subtile=0)
            body.compute(tags.MMA, row=1, column=0)

            body.load(tags.LOAD_A, channel=CHANNEL_A, stage=own, subtile=1, k_offset=k)
            body.frag(tags.MMA_LOAD_B, channel=CHANNEL_B, stage=other, subtile=0)
            body.compute(tags.MMA, row=1, column=1)
        return body.build()

    def build_body(self) -> tuple[OpDesc, ...]:
        """Costs attached; no reorder, which would match rotating fragments with the wrong partition's MMAs."""
        return annotate_ops(self.declare_ops(), self.target.cost_model)

    def bootstrap_frags(self) -> tuple[OpDesc, ...]:
        """The leading A and B fragments of stage 0, which no partition before the first one has read."""
        return (
            OpDesc(tag=DoubleBufferTag.MMA_LOAD_A, channel=CHANNEL_A, role=OpRole.FRAGMENT_LOAD),
            OpDesc(tag=DoubleBufferTag.MMA_LOAD_B, channel=CHANNEL_B, role=OpRole.FRAGMENT_LOAD),
        )

    def derive_edges(self, body: Sequence[OpDesc]) -> tuple[DepEdge, ...]:
        """The default edges, with those of rotating fragments led to the partition they feed."""
        config = self.config()
        kept = filter_spurious_cross_stage_flow(derive_edges_from_ops(body, config), body, config)
        return WrappedTuple((*kept, *derive_cross_stage_rotation_edges(body, config)))

    def build_explicit_blocks(self, body: Sequence[OpDesc], program: PipelineProgram) -> tuple[tuple[OpDesc, ...], ...]:
        """Every block in the minimal-barrier shape; its ops and waits are the program's."""
        wrap = self._sched.wrap_waits_with_sched_barrier
        return tuple(emit_minimal_barrier_block(block, wrap) for block in program.blocks)
