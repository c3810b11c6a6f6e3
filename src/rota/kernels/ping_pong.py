"""`DeclarativeSchedule`, the ping-pong GEMM loop for two staggered wave groups, and the profile of double buffers.

The profile's latencies are the reference's planning numbers, in cycles, not measurements.
"""

from __future__ import annotations

from rota.check import bad_field, is_int
from rota.errors import DeclarationError
from rota.order.acyclic.problem import SchedulingStrategy
from rota.pipeline.body import PipelineBody, double_buffer_reorder
from rota.pipeline.compiler import PipelineSchedule
from rota.pipeline.config import (
    BlockSizing,
    FragOrder,
    OpCost,
    PipelineConfig,
    TargetCostModel,
    TargetProfile,
    WarpStaggerRule,
    annotate_ops,
)
from rota.pipeline.op import CHANNEL_A, CHANNEL_B, DoubleBufferTag, KOffsetKind, OpDesc
from rota.pipeline.schedule_config import ScheduleConfig
from rota.program.kinds import OpRole, ResourceKind
from rota.program.machine import Machine

_PARTITION_OFFSETS = (KOffsetKind.K0, KOffsetKind.K1)
_COMPLETION_OFFSETS = (KOffsetKind.K_PREV, KOffsetKind.K0)


def mi355x_target(vm_per_load_a: int = 4, vm_per_load_b: int = 4, max_globals: int = 1) -> TargetProfile:
    """MI355X (gfx950), double buffer: loads go to LDS by DMA, a 2x2 MMA grid, two partitions."""
    load = OpCost(resource=ResourceKind.GLOBAL_MEM, latency=200, role=OpRole.GLOBAL_LOAD)
    fragment = OpCost(resource=ResourceKind.LDS, latency=20, role=OpRole.FRAGMENT_LOAD, vgpr_def=8)
    mma = OpCost(resource=ResourceKind.MMA_UNIT, latency=16, role=OpRole.COMPUTE, vgpr_def=4)
    return TargetProfile(
        name="mi355x",
        cost_model=TargetCostModel(
            {
                DoubleBufferTag.LOAD_A: load,
                DoubleBufferTag.LOAD_B: load,
                DoubleBufferTag.MMA_LOAD_A: fragment,
                DoubleBufferTag.MMA_LOAD_B: fragment,
                DoubleBufferTag.COMPUTE: mma,
                DoubleBufferTag.MMA: mma,
            }
        ),
        pipeline=PipelineConfig(
            depth=2,
            prefetch=1,
            drain_passes=2,
            prologue_fill=1,
            block_sizing=BlockSizing(heavy=4, light=2, max_globals=max_globals),
            frag_order=FragOrder.b_first(),
            m_mmas=2,
            n_mmas=2,
            num_partitions=2,
            mma_serial=True,
            mma_latency=16,
            vm_per_load_a=vm_per_load_a,
            vm_per_load_b=vm_per_load_b,
            warp_stagger=WarpStaggerRule.auto(),
        ),
    )


def derive_safe_max_globals(num_k_mmas: int, model: TargetCostModel | None = None) -> int:
    """A `max_globals` by the latencies: 1, a load for every block, if a block's MMAs outlast an LDS access; else 0.

    A block multiplies `num_k_mmas` times along K.  If that takes at least as long as the cost model's longest LDS
    access, what a load writes to LDS lands beside the MMAs, and one load in each block delays none.  If not, 0 leaves
    the loads where the order put them.  `model` is by default that of `mi355x_target`.

    This is a rule of thumb about time, as the reference's function of this name is.  The proof relies on no latency:
    with either value, repair adds what the loop needs.

    >>> [derive_safe_max_globals(count) for count in (1, 2, 4)]
    [0, 1, 1]
    """
    if not is_int(num_k_mmas) or num_k_mmas < 1:
        raise DeclarationError.of(
            "D102",
            f"num_k_mmas is {num_k_mmas!r}; expected an integer, at least 1",
            evidence=(("got", repr(num_k_mmas)), ("expected", "an integer, at least 1")),
        )
    costs = [cost for _, cost in (model or mi355x_target().cost_model).costs]
    computes = min((cost.latency for cost in costs if cost.role is OpRole.COMPUTE), default=0)
    accesses = max((cost.latency for cost in costs if cost.resource is ResourceKind.LDS), default=0)
    return int(num_k_mmas * computes >= accesses)


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
