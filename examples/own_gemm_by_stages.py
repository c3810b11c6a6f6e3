"""A GEMM loop of your own by stages: takes your order, gives a schedule that is repaired, proved, run and predicted.

`rota check examples/own_gemm_by_stages.py:LateRefill` proves it from the command line.
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

TARGET = mi355x_target(vm_per_load_a=4, vm_per_load_b=4, max_globals=0).with_pipeline(
    warp_stagger=WarpStaggerRule.none()
)
GEOMETRY = KernelGeometry(lgkm_per_load_a=8, lgkm_per_load_b=8)  # a wave reads half a tile with eight instructions


class LateRefill(PipelineSchedule):
    """A 2x2 grid over two stages: a tile is refilled as soon as the last MMA that needs it has been issued."""

    def config(self) -> PipelineConfig:
        """Two stages, two partitions, a 2x2 grid."""
        return TARGET.pipeline

    def schedule_config(self) -> ScheduleConfig:
        """My order, and the tokens of an LDS read."""
        return ScheduleConfig(scheduling="IDENTITY", lgkm_per_load_a=8, lgkm_per_load_b=8)

    def build_body(self) -> tuple[OpDesc, ...]:
        """Both K-tiles of a trip, in the order of issue."""
        tags, body = DoubleBufferTag, PipelineBody()
        for stage, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
            for tile in (0, 1):
                body.frag(tags.MMA_LOAD_A, channel=0, stage=stage, subtile=tile)
                body.frag(tags.MMA_LOAD_B, channel=1, stage=stage, subtile=tile)
            for row in (0, 1):
                for column in (0, 1):
                    body.compute(tags.MMA, row=row, column=column)
                    if row == 1:  # the last use of a column of B
                        body.load(tags.LOAD_B, channel=1, stage=stage, subtile=column, k_offset=k)
                body.load(tags.LOAD_A, channel=0, stage=stage, subtile=row, k_offset=k)
        return annotate_ops(body.build(), TARGET.cost_model)


def compiled() -> CompiledSchedule:
    """The schedule, repaired where the derived waits don't suffice, and proved."""
    return compile_schedule(LateRefill())


def main() -> None:
    """Print what rota made of it."""
    from rota.cycles.predict import predict
    from rota.execute.executor import execute
    from rota.pipeline.geometry import TileShape

    made = compiled()
    print(repr(made))
    print("repairs:", *made.repairs, sep="\n  ")
    print(str(made.certificate).splitlines()[0])
    print("right on real matrices, 3 trips:", execute(made, 3).right)
    shape = TileShape(geometry=GEOMETRY, waves=4, instruction="v_mfma_f32_16x16x32_bf16")
    print(str(predict(made, shape, band=False)).splitlines()[0])


if __name__ == "__main__":
    main()
