"""A convolution as an implicit GEMM by stages: the rows of A are gathered from an image, tap by tap.

C has a row for every output pixel and a column for every filter.  K runs over the taps of the filter and the channels
of the image, so a K-tile of A is, for each pixel, a run of channels of the pixel that the tap meets: rows that lie
apart, and whose start is known to 4 bytes only.  Three things differ from a GEMM:

- A load of A moves 4 bytes a lane instead of 16.  That is four times the instructions, which the op states itself
  (`vm_cost`); the filters are loaded as in a GEMM, with the numbers of the pipeline config.
- Before a load of A, a vector op makes the addresses of its rows.  It is an op of the body with a role of its own.
- That a load needs those addresses is no rule of the framework: the author's `derive_edges` says it.

The prologue's loads take addresses that are made before the loop: the framework derives loads there and nothing else.

`rota check examples/convolution.py:Convolution` proves it from the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from rota import (
    CompiledSchedule,
    DepEdge,
    DepKind,
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
    derive_edges_from_ops,
    mi355x_target,
)

A, B = 0, 1
WAVES = 4
GEOMETRY = KernelGeometry(BM=128, BN=128, BK=64)  # pixels, filters, channels of one tap
INSTRUCTION = "v_mfma_f32_16x16x32_bf16"
WIDE_LOADS = GEOMETRY.dma_loads(WAVES)
GATHERS = 4 * WIDE_LOADS[A]  # instructions of one load of A: 4 bytes a lane instead of 16


class Tag(IntEnum):
    """The ops of this kernel."""

    ADDRESS = 0
    GATHER_PIXELS = 1
    LOAD_FILTERS = 2
    READ_PIXELS = 3
    READ_FILTERS = 4
    MMA = 5


COSTS = TargetCostModel(
    {
        Tag.ADDRESS: OpCost(resource=ResourceKind.VALU, latency=8, role=OpRole.VALU_COMPUTE),
        Tag.GATHER_PIXELS: OpCost(resource=ResourceKind.GLOBAL_MEM, latency=300, role=OpRole.GLOBAL_LOAD),
        Tag.LOAD_FILTERS: OpCost(resource=ResourceKind.GLOBAL_MEM, latency=200, role=OpRole.GLOBAL_LOAD),
        Tag.READ_PIXELS: OpCost(resource=ResourceKind.LDS, latency=20, role=OpRole.FRAGMENT_LOAD),
        Tag.READ_FILTERS: OpCost(resource=ResourceKind.LDS, latency=20, role=OpRole.FRAGMENT_LOAD),
        Tag.MMA: OpCost(resource=ResourceKind.MMA_UNIT, latency=16, role=OpRole.COMPUTE),
    }
)


class Convolution(PipelineSchedule):
    """A 2x2 grid over two stages; a stage is refilled with the next tap's pixels once it has been read."""

    def __init__(self, gathers: int = GATHERS) -> None:
        """`gathers` are the instructions of one load of A."""
        self.gathers = gathers

    def config(self) -> PipelineConfig:
        """The filters' loads, and the reads of both: those of a GEMM."""
        reads_a, reads_b = GEOMETRY.fragment_reads(WAVES)
        return mi355x_target(*WIDE_LOADS, max_globals=0).pipeline.but(
            lgkm_per_load_a=reads_a, lgkm_per_load_b=reads_b, warp_stagger=WarpStaggerRule.none()
        )

    def build_body(self) -> tuple[OpDesc, ...]:
        """Both K-tiles of a trip, in the order of issue."""
        body = PipelineBody()
        for stage, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
            for tile in (0, 1):
                body.frag(Tag.READ_PIXELS, channel=A, stage=stage, subtile=tile)
                body.frag(Tag.READ_FILTERS, channel=B, stage=stage, subtile=tile)
            body.compute(Tag.MMA, row=0, column=0)
            body.compute(Tag.ADDRESS, row=stage, column=0)
            body.load(Tag.GATHER_PIXELS, channel=A, stage=stage, subtile=0, k_offset=k)
            body.compute(Tag.MMA, row=0, column=1)
            body.load(Tag.LOAD_FILTERS, channel=B, stage=stage, subtile=0, k_offset=k)
            body.load(Tag.LOAD_FILTERS, channel=B, stage=stage, subtile=1, k_offset=k)
            body.compute(Tag.MMA, row=1, column=0)
            body.compute(Tag.ADDRESS, row=stage, column=1)
            body.load(Tag.GATHER_PIXELS, channel=A, stage=stage, subtile=1, k_offset=k)
            body.compute(Tag.MMA, row=1, column=1)
        return tuple(
            op.but(vm_cost=self.gathers) if op.tag == Tag.GATHER_PIXELS else op
            for op in annotate_ops(body.build(), COSTS)
        )

    def derive_edges(self, body: Sequence[OpDesc]) -> tuple[DepEdge, ...]:
        """The default edges, and from each address op to the load of the same stage and subtile."""
        made = {(op.stage, op.subtile): index for index, op in enumerate(body) if op.tag == Tag.ADDRESS}
        return (
            *derive_edges_from_ops(body, self.config()),
            *(
                DepEdge(made[op.stage, op.subtile], index, DepKind.FLOW, 0)
                for index, op in enumerate(body)
                if op.tag == Tag.GATHER_PIXELS
            ),
        )


def compiled() -> CompiledSchedule:
    """The schedule, repaired where the derived waits don't suffice, and proved."""
    return compile_schedule(Convolution())


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
