"""Target profiles of AMD CDNA devices.

The latencies are the reference's planning numbers, in cycles, not measurements.
"""

from __future__ import annotations

from rota.check import is_int
from rota.errors import DeclarationError
from rota.pipeline.config import (
    BlockSizing,
    FragOrder,
    LoopCarriedSpec,
    OpCost,
    PipelineConfig,
    TargetCostModel,
    TargetProfile,
    WarpStaggerRule,
)
from rota.pipeline.op import DoubleBufferTag, SingleBufferTag
from rota.program.kinds import OpRole, ResourceKind


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


def mi355x_single_buffer_target() -> TargetProfile:
    """MI355X (gfx950), single buffer: loads go to registers, a store moves them to LDS."""
    return TargetProfile(
        name="mi355x_single_buffer",
        cost_model=TargetCostModel(
            {
                SingleBufferTag.LOAD_DRAM: OpCost(
                    resource=ResourceKind.GLOBAL_MEM, latency=200, role=OpRole.GLOBAL_LOAD
                ),
                SingleBufferTag.STORE_SMEM: OpCost(resource=ResourceKind.LDS, latency=20, role=OpRole.SHARED_STORE),
                SingleBufferTag.LOAD_FRAG: OpCost(
                    resource=ResourceKind.LDS, latency=20, role=OpRole.FRAGMENT_LOAD, vgpr_def=4
                ),
                SingleBufferTag.COMPUTE: OpCost(
                    resource=ResourceKind.MMA_UNIT, latency=64, role=OpRole.COMPUTE, vgpr_def=16
                ),
            }
        ),
        pipeline=PipelineConfig(
            depth=1,
            prologue_fill=0,
            loop_carried=LoopCarriedSpec.fragment_zero(),
            num_partitions=1,
            warp_stagger=WarpStaggerRule.none(),
        ),
    )
