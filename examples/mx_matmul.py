"""A block-scaled (MX) matmul by stages: fp8 with a scale for every 32 elements of K, as channels of their own.

A compute has four operands: the fragments of A and B, and the scales of their rows.  A and B are channels 0 and 1; the
scales are channels 2 and 3, which the pipeline config declares.  A load brings the scales of a whole K-tile, since they
are few; a fragment reads those of its rows.

`rota check examples/mx_matmul.py:MxMatmul` proves it from the command line.
"""

from __future__ import annotations

from enum import IntEnum

from rota import (
    ChannelSpec,
    CompiledSchedule,
    KernelGeometry,
    KOffsetKind,
    OpCost,
    OpDesc,
    OpRole,
    PipelineBody,
    PipelineConfig,
    PipelineSchedule,
    ResourceKind,
    TargetCostModel,
    WarpStaggerRule,
    annotate_ops,
    compile_schedule,
    mi355x_target,
)

WAVES = 4
GEOMETRY = KernelGeometry(BM=128, BN=128, BK=128, MMA_M=16, MMA_N=16, MMA_K=128, elem_bytes=1, is_fp8=True)
INSTRUCTION = "v_mfma_scale_f32_16x16x128_f8f6f4"
A, B, A_SCALE, B_SCALE = range(4)


class Tag(IntEnum):
    """The ops of this kernel; their numbers are its own business."""

    LOAD_A = 0
    LOAD_B = 1
    LOAD_SCALES_A = 2
    LOAD_SCALES_B = 3
    READ_A = 4
    READ_B = 5
    READ_SCALES_A = 6
    READ_SCALES_B = 7
    MMA = 8


LOADS = (Tag.LOAD_A, Tag.LOAD_B, Tag.LOAD_SCALES_A, Tag.LOAD_SCALES_B)  # by channel
READS = (Tag.READ_A, Tag.READ_B, Tag.READ_SCALES_A, Tag.READ_SCALES_B)

COSTS = TargetCostModel(
    {
        **dict.fromkeys(LOADS, OpCost(resource=ResourceKind.GLOBAL_MEM, latency=200, role=OpRole.GLOBAL_LOAD)),
        **dict.fromkeys(READS, OpCost(resource=ResourceKind.LDS, latency=20, role=OpRole.FRAGMENT_LOAD)),
        Tag.MMA: OpCost(resource=ResourceKind.MMA_UNIT, latency=32, role=OpRole.COMPUTE),
    }
)


class MxMatmul(PipelineSchedule):
    """A 2x2 grid over two stages: all fragments, then the computes, with the loads that refill the stage among them."""

    def config(self) -> PipelineConfig:
        """What four waves need to load and to read each operand, scales included."""
        loads, reads = GEOMETRY.dma_loads(WAVES), GEOMETRY.fragment_reads(WAVES)
        parts = GEOMETRY.BM // 2 // 2 // GEOMETRY.MMA_M  # of a row of the grid, in one wave's half: one read each
        return mi355x_target(*loads, max_globals=0).pipeline.but(
            warp_stagger=WarpStaggerRule.none(),
            lgkm_per_load_a=reads[0],
            lgkm_per_load_b=reads[1],
            further_channels=(
                ChannelSpec(name="A_scale", match_field=0, vm_per_load=1, lgkm_per_load=parts, whole_tile=True),
                ChannelSpec(name="B_scale", match_field=1, vm_per_load=1, lgkm_per_load=parts, whole_tile=True),
            ),
        )

    def build_body(self) -> tuple[OpDesc, ...]:
        """Both K-tiles of a trip, in the order of issue."""
        body = PipelineBody()
        for stage, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
            for tile in (0, 1):
                for channel in (A, B, A_SCALE, B_SCALE):
                    body.frag(READS[channel], channel=channel, stage=stage, subtile=tile)
            body.compute(Tag.MMA, row=0, column=0)
            for channel in (A_SCALE, B_SCALE):  # all of a K-tile's scales
                body.load(LOADS[channel], channel=channel, stage=stage, k_offset=k)
            body.compute(Tag.MMA, row=0, column=1)
            body.load(Tag.LOAD_A, channel=A, stage=stage, subtile=0, k_offset=k)
            body.compute(Tag.MMA, row=1, column=0)
            body.load(Tag.LOAD_B, channel=B, stage=stage, subtile=0, k_offset=k)
            body.load(Tag.LOAD_B, channel=B, stage=stage, subtile=1, k_offset=k)
            body.load(Tag.LOAD_A, channel=A, stage=stage, subtile=1, k_offset=k)
            body.compute(Tag.MMA, row=1, column=1)
        return annotate_ops(body.build(), COSTS)


def compiled() -> CompiledSchedule:
    """The schedule, repaired where the derived waits don't suffice, and proved."""
    return compile_schedule(MxMatmul())


def main() -> None:
    """Print what rota made of it."""
    from rota.cycles.predict import predict
    from rota.execute.executor import execute
    from rota.pipeline.geometry import TileShape

    made = compiled()
    print(repr(made))
    print("repairs:", *made.repairs, sep="\n  ")
    print(str(made.certificate).splitlines()[0])
    print("right on real matrices:", all(execute(made, trips).right for trips in range(4)))
    shape = TileShape(geometry=GEOMETRY, waves=WAVES, instruction=INSTRUCTION)
    print(str(predict(made, shape, band=False)).splitlines()[0])


if __name__ == "__main__":
    main()
