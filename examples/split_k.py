"""The 4-wave rotation for split-K by stages: few trips for each workgroup, and LDS that a reduction takes afterwards.

Each workgroup sums a share of K, so its loop makes few trips: none and one are the usual cases, not corner cases.  And
the loop isn't the end: the reduction writes partial sums into the LDS that the loop used.  A wave may reach it while
another wave still reads its last fragments, or while a load is in flight; both must be over, in every wave.

That obligation is `reentrant=True`: the loop may be followed at once by its own prologue.  This prologue issues the
loads of both stages before its first barrier (`partial_prologue_drain`), so it writes every tile as early as a
reduction could.  Compiled without it, the schedule is proved as a loop that ends there, and owes the reduction nothing.

`rota check examples/split_k.py:SplitK --set reentrant=true` proves it from the command line.
"""

from __future__ import annotations

from collections.abc import Sequence

from rota import (
    BarrierStrategy,
    CompiledSchedule,
    DepEdge,
    DoubleBufferTag,
    KernelGeometry,
    KOffsetKind,
    OpDesc,
    OpRole,
    PipelineBody,
    PipelineConfig,
    PipelineProgram,
    PipelineSchedule,
    ScheduleConfig,
    WaitStrategy,
    WarpStaggerRule,
    annotate_ops,
    compile_schedule,
    derive_cross_stage_rotation_edges,
    derive_edges_from_ops,
    emit_minimal_barrier_block,
    filter_spurious_cross_stage_flow,
    mi355x_target,
)

A, B = 0, 1
WAVES = 4
GEOMETRY = KernelGeometry(BM=128, BN=128, BK=64)
INSTRUCTION = "v_mfma_f32_16x16x32_bf16"
TARGET = mi355x_target(*GEOMETRY.dma_loads(WAVES))


class SplitK(PipelineSchedule):
    """Per partition four steps of (load, fragment, MMA); the last two read the next partition's first fragments."""

    def config(self) -> PipelineConfig:
        """Two stages; fragments of subtile 0 rotate."""
        reads_a, reads_b = GEOMETRY.fragment_reads(WAVES)
        return TARGET.pipeline.but(
            lgkm_per_load_a=reads_a,
            lgkm_per_load_b=reads_b,
            warp_stagger=WarpStaggerRule.none(),
            cross_stage_rotation=True,
        )

    def schedule_config(self) -> ScheduleConfig:
        """Barriers at a partition's top and where reads change stage; the prologue's loads stay in flight."""
        return ScheduleConfig.from_strategies(
            **BarrierStrategy.minimal_no_set_prio(),
            **WaitStrategy.auto_with_inter_block_drain(partial_prologue_drain=True),
        )

    def build_body(self) -> tuple[OpDesc, ...]:
        """The 24 ops of both partitions."""
        tags, body = DoubleBufferTag, PipelineBody()
        for own, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
            other = 1 - own
            body.load(tags.LOAD_A, channel=A, stage=own, subtile=0, k_offset=k)
            body.frag(tags.MMA_LOAD_B, channel=B, stage=own, subtile=1)
            body.compute(tags.MMA, row=0, column=0)

            body.load(tags.LOAD_B, channel=B, stage=own, subtile=0, k_offset=k)
            body.frag(tags.MMA_LOAD_A, channel=A, stage=own, subtile=1)
            body.compute(tags.MMA, row=0, column=1)

            body.load(tags.LOAD_B, channel=B, stage=own, subtile=1, k_offset=k)
            body.frag(tags.MMA_LOAD_A, channel=A, stage=other, subtile=0)
            body.compute(tags.MMA, row=1, column=0)

            body.load(tags.LOAD_A, channel=A, stage=own, subtile=1, k_offset=k)
            body.frag(tags.MMA_LOAD_B, channel=B, stage=other, subtile=0)
            body.compute(tags.MMA, row=1, column=1)
        return annotate_ops(body.build(), TARGET.cost_model)

    def bootstrap_frags(self) -> tuple[OpDesc, ...]:
        """What the first partition starts with, which no partition before it has read."""
        return (
            OpDesc(tag=DoubleBufferTag.MMA_LOAD_A, channel=A, role=OpRole.FRAGMENT_LOAD),
            OpDesc(tag=DoubleBufferTag.MMA_LOAD_B, channel=B, role=OpRole.FRAGMENT_LOAD),
        )

    def derive_edges(self, body: Sequence[OpDesc]) -> tuple[DepEdge, ...]:
        """The default edges, with those of rotating fragments led to the partition they feed."""
        config = self.config()
        kept = filter_spurious_cross_stage_flow(derive_edges_from_ops(body, config), body, config)
        return (*kept, *derive_cross_stage_rotation_edges(body, config))

    def build_explicit_blocks(self, body: Sequence[OpDesc], program: PipelineProgram) -> tuple[tuple[OpDesc, ...], ...]:
        """Every block without barriers of its own."""
        return tuple(emit_minimal_barrier_block(block, wrap_waits=False) for block in program.blocks)


def compiled(*, drained: bool = True) -> CompiledSchedule:
    """The schedule, repaired and proved; `drained` for a reduction that takes the LDS."""
    return compile_schedule(SplitK(), reentrant=drained)


def main() -> None:
    """Print what rota made of it, and what the drain adds."""
    from rota.cycles.predict import predict
    from rota.execute.executor import execute
    from rota.pipeline.geometry import TileShape

    alone, made = compiled(drained=False), compiled()
    print(repr(made))
    print("repairs of the loop:", *alone.repairs, sep="\n  ")
    kept = {str(repair) for repair in alone.repairs}
    print("and for its LDS:", *(repair for repair in made.repairs if str(repair) not in kept), sep="\n  ")
    print(str(made.certificate).splitlines()[0])
    print("right on real matrices, 0 and 1 trips first:", all(execute(made, trips).right for trips in range(4)))
    shape = TileShape(geometry=GEOMETRY, waves=WAVES, instruction=INSTRUCTION)
    print(str(predict(made, shape, band=False)).splitlines()[0])


if __name__ == "__main__":
    main()
