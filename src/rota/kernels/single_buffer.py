"""`SingleBufferSchedule`, the single-buffer GEMM loop, and its target profile.

The profile's latencies are the reference's planning numbers, in cycles, not measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rota.check import bad_field, check_ints, is_int
from rota.pipeline.body import PipelineBody, optimize_within_barriers, single_buffer_reorder
from rota.pipeline.compiler import PipelineSchedule
from rota.pipeline.config import (
    LoopCarriedSpec,
    OpCost,
    PipelineConfig,
    TargetCostModel,
    TargetProfile,
    WarpStaggerRule,
    annotate_ops,
)
from rota.pipeline.op import InstructionGroup, OpDesc, ScheduleEntry, SingleBufferTag
from rota.pipeline.rules import derive_edges_from_ops
from rota.printing import Pasted
from rota.program.kinds import OpRole, Phase, ResourceKind
from rota.program.machine import Machine

_WIDE_MMA = 32


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SchedGroupHints(Pasted):
    """Instruction counts from which the sched_group_barrier hints are made; `k_mmas` covers the whole K extent."""

    m_mmas: int
    n_mmas: int
    k_mmas: int
    mma_m: int = 16
    mma_n: int = 16
    a_loads_per_thread: int = 1
    b_loads_per_thread: int = 1

    def __post_init__(self) -> None:
        check_ints(self, ("m_mmas", "n_mmas", "k_mmas", "a_loads_per_thread", "b_loads_per_thread"))
        check_ints(self, ("mma_m", "mma_n"), least=1)


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


class SingleBufferSchedule(PipelineSchedule):
    """One tile in LDS, the next one in registers: load, store, barrier, T fragments, T computes."""

    def __init__(
        self, num_k_tiles: int, hints: SchedGroupHints | None = None, target: TargetProfile | None = None
    ) -> None:
        """Without `hints` the kernel is left to the compiler's own scheduler."""
        if not is_int(num_k_tiles) or num_k_tiles < 1:
            raise bad_field(self, "num_k_tiles", num_k_tiles, "an integer, at least 1")
        if not isinstance(hints, SchedGroupHints | None):
            raise bad_field(self, "hints", hints, "SchedGroupHints")
        if not isinstance(target, TargetProfile | None):
            raise bad_field(self, "target", target, "TargetProfile")
        self.num_k_tiles = num_k_tiles
        self.hints = hints
        self.target = target or mi355x_single_buffer_target()

    def config(self) -> PipelineConfig:
        """The target's pipeline config."""
        return self.target.pipeline

    def machine(self) -> Machine:
        """The target's machine."""
        return self.target.machine

    def declare_ops(self) -> tuple[OpDesc, ...]:
        tags = SingleBufferTag
        body = PipelineBody().load(tags.LOAD_DRAM).store(tags.STORE_SMEM).barrier()
        body.fan(self.num_k_tiles, lambda b, tile: b.frag(tags.LOAD_FRAG, subtile=tile))
        body.fan(self.num_k_tiles, lambda b, tile: b.compute(tags.COMPUTE, column=tile))
        return body.build()

    def build_body(self) -> tuple[OpDesc, ...]:
        """Costs attached, placed around two barriers, each segment between them ordered optimally."""
        config = self.config()
        ops = single_buffer_reorder(annotate_ops(self.declare_ops(), self.target.cost_model), config)
        return optimize_within_barriers(ops, derive_edges_from_ops(ops, config))

    def transform_kernel(self, ker: Sequence[ScheduleEntry], body: Sequence[OpDesc]) -> tuple[ScheduleEntry, ...]:
        """Append the compiler hints, if any were asked for."""
        hints = () if self.hints is None else tuple(_group_hints(self.hints, self.num_k_tiles))
        return (
            *ker,
            *(ScheduleEntry(op=op, time_slot=len(ker) + index, phase=Phase.KERNEL) for index, op in enumerate(hints)),
        )


def _group_hints(hints: SchedGroupHints, num_k_tiles: int) -> Iterator[OpDesc]:
    """Reads of this tile, stores with the loads that follow them, reads of the carried tile, MFMAs spread between."""
    reads_per_tile = hints.m_mmas + hints.n_mmas
    reads = num_k_tiles * reads_per_tile
    stores = hints.a_loads_per_thread + hints.b_loads_per_thread
    mfmas = hints.m_mmas * hints.n_mmas * hints.k_mmas
    widest = 1 if hints.mma_m == _WIDE_MMA and hints.mma_n == _WIDE_MMA else 2
    per_read = min(widest, mfmas // reads) if reads else 0
    rest = mfmas - per_read * reads
    group = InstructionGroup
    for _ in range(reads - reads_per_tile):
        yield OpDesc.sched_group_barrier(group.DS_READ, 1)
        yield OpDesc.sched_group_barrier(group.MFMA, per_read)
    for index in range(stores):
        share = rest // stores + (index < rest % stores)
        yield OpDesc.sched_group_barrier(group.DS_WRITE, 1)
        yield OpDesc.sched_group_barrier(group.MFMA, share // 2)
        yield OpDesc.sched_group_barrier(group.VMEM_READ, 1)
        yield OpDesc.sched_group_barrier(group.MFMA, share - share // 2)
    for _ in range(reads_per_tile):
        yield OpDesc.sched_group_barrier(group.DS_READ, 1)
        yield OpDesc.sched_group_barrier(group.MFMA, per_read)
