"""A GEMM with three LDS stages by stages: two K-tiles are in flight or landed while a third is computed.

With two stages, the load that refills a stage has one partition to land.  With three it has two, for half as much LDS
again.  Partition p computes from stage p mod 3, so a trip has three partitions, and stage s is filled with the K-tile
at offset s: K0, K1, K_NEXT.

`rota check examples/depth_three.py:DepthThree` proves it from the command line.
"""

from __future__ import annotations

from rota import (
    CompiledSchedule,
    DoubleBufferTag,
    KernelGeometry,
    KOffsetKind,
    OpDesc,
    PipelineBody,
    PipelineConfig,
    PipelineSchedule,
    ScheduleConfig,
    WarpStaggerRule,
    annotate_ops,
    compile_schedule,
    mi355x_target,
)

DEPTH = 3
OFFSETS = (KOffsetKind.K0, KOffsetKind.K1, KOffsetKind.K_NEXT)
WAVES = 4
GEOMETRY = KernelGeometry(BM=128, BN=128, BK=64)
INSTRUCTION = "v_mfma_f32_16x16x32_bf16"
TARGET = mi355x_target(*GEOMETRY.dma_loads(WAVES), max_globals=0)


class DepthThree(PipelineSchedule):
    """A 2x2 grid over three stages: each partition reads its stage, computes, and refills it for the next trip."""

    def __init__(self, depth: int = DEPTH) -> None:
        """With `depth` 2 the same body has two stages, for comparison."""
        self.depth = depth

    def config(self) -> PipelineConfig:
        """As many partitions as stages."""
        reads_a, reads_b = GEOMETRY.fragment_reads(WAVES)
        return TARGET.pipeline.but(
            depth=self.depth,
            num_partitions=self.depth,
            lgkm_per_load_a=reads_a,
            lgkm_per_load_b=reads_b,
            warp_stagger=WarpStaggerRule.none(),
        )

    def schedule_config(self) -> ScheduleConfig:
        """My order; barriers where a partition begins, and where the proof asks for more."""
        return ScheduleConfig(scheduling="IDENTITY", minimal_barriers=True, omit_mma_set_prio=True)

    def lds_bytes(self) -> int:
        """Every stage holds one K-tile of A and B."""
        return self.depth * (GEOMETRY.BM + GEOMETRY.BN) * GEOMETRY.line_bytes

    def build_body(self) -> tuple[OpDesc, ...]:
        """The K-tiles of a trip, in the order of issue."""
        tags, body = DoubleBufferTag, PipelineBody()
        for stage, k in enumerate(OFFSETS[: self.depth]):
            for tile in (0, 1):
                body.frag(tags.MMA_LOAD_A, channel=0, stage=stage, subtile=tile)
                body.frag(tags.MMA_LOAD_B, channel=1, stage=stage, subtile=tile)
            body.compute(tags.MMA, row=0, column=0)
            body.load(tags.LOAD_A, channel=0, stage=stage, subtile=0, k_offset=k)
            body.compute(tags.MMA, row=0, column=1)
            body.load(tags.LOAD_B, channel=1, stage=stage, subtile=0, k_offset=k)
            body.compute(tags.MMA, row=1, column=0)
            body.load(tags.LOAD_A, channel=0, stage=stage, subtile=1, k_offset=k)
            body.load(tags.LOAD_B, channel=1, stage=stage, subtile=1, k_offset=k)
            body.compute(tags.MMA, row=1, column=1)
        return annotate_ops(body.build(), TARGET.cost_model)


def compiled(depth: int = DEPTH) -> CompiledSchedule:
    """The schedule, repaired where the derived waits don't suffice, and proved."""
    return compile_schedule(DepthThree(depth))


def main() -> None:
    """Print what rota made of it, beside two stages."""
    from rota.cycles.predict import predict
    from rota.execute.executor import execute
    from rota.pipeline.geometry import TileShape

    shape = TileShape(geometry=GEOMETRY, waves=WAVES, instruction=INSTRUCTION)
    for depth in (2, DEPTH):
        made = compiled(depth)
        print(f"{depth} stages, {made.lds_bytes} bytes of LDS: {made!r}")
        print("repairs:", *made.repairs, sep="\n  ")
        print(str(made.certificate).splitlines()[0])
        print("right on real matrices:", all(execute(made, trips).right for trips in range(4)))
        print(str(predict(made, shape, band=False)).splitlines()[0])


if __name__ == "__main__":
    main()
