"""A grouped matmul by stages: one workgroup runs the K loop of one group after another, each with its own trip count.

The experts of a mixture have few rows each, so a kernel that is launched once per expert spends its time on launches.
A grouped kernel takes them in turn: the prologue of the next group follows the epilogue of this one at once.  Nothing
separates them, so the next group's loads may overwrite LDS that a slower wave still reads for this one, and the loop
must be right after any trip count of the group before.

`reentrant=True` makes the compiler owe that: the proof enters the loop again in every state in which it can have ended.
Here the barrier that ends the epilogue is what it rests on: a single group is proved without it, the next one isn't.

`rota check examples/grouped_matmul.py:GroupedMatmul --set reentrant=true` proves it from the command line.
"""

from __future__ import annotations

from dataclasses import replace

from rota import (
    CompiledPipeline,
    DoubleBufferTag,
    KernelGeometry,
    KOffsetKind,
    OpDesc,
    PipelineBody,
    PipelineConfig,
    PipelineSchedule,
    ScheduleConfig,
    Severity,
    WarpStaggerRule,
    annotate_ops,
    compile_schedule,
    mi355x_target,
    verify,
)

WAVES = 4
GEOMETRY = KernelGeometry(BM=64, BN=128, BK=64)  # few rows: an expert rarely has more
INSTRUCTION = "v_mfma_f32_16x16x32_bf16"
GRID = (1, 2)
TARGET = mi355x_target(*GEOMETRY.dma_loads(WAVES, *GRID), max_globals=0)


class GroupedMatmul(PipelineSchedule):
    """A 1x2 grid over two stages: A is read once for both columns, B column by column, late."""

    def config(self) -> PipelineConfig:
        """Two stages, one row of A, two columns of B."""
        reads_a, reads_b = GEOMETRY.fragment_reads(WAVES, *GRID)
        return TARGET.pipeline.but(
            m_mmas=GRID[0],
            n_mmas=GRID[1],
            lgkm_per_load_a=reads_a,
            lgkm_per_load_b=reads_b,
            warp_stagger=WarpStaggerRule.none(),
        )

    def schedule_config(self) -> ScheduleConfig:
        """My order; few barriers; a group's first loads all at once, since its loop is too short to hide them."""
        return ScheduleConfig(minimal_barriers=True, omit_mma_set_prio=True, partial_prologue_drain=True)

    def build_body(self) -> tuple[OpDesc, ...]:
        """Both K-tiles of a trip, in the order of issue."""
        tags, body = DoubleBufferTag, PipelineBody()
        for stage, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
            body.frag(tags.MMA_LOAD_A, channel=0, stage=stage)
            body.frag(tags.MMA_LOAD_B, channel=1, stage=stage, subtile=0)
            body.compute(tags.MMA, row=0, column=0)
            body.frag(tags.MMA_LOAD_B, channel=1, stage=stage, subtile=1)
            body.load(tags.LOAD_A, channel=0, stage=stage, k_offset=k)
            body.load(tags.LOAD_B, channel=1, stage=stage, subtile=0, k_offset=k)
            body.load(tags.LOAD_B, channel=1, stage=stage, subtile=1, k_offset=k)
            body.compute(tags.MMA, row=0, column=1)
        return annotate_ops(body.build(), TARGET.cost_model)


def compiled(*, reentrant: bool = True) -> CompiledPipeline:
    """The schedule, repaired and proved: for one group after another, or for a single one."""
    return compile_schedule(GroupedMatmul(), reentrant=reentrant)


def without_last_barrier(*, reentrant: bool) -> CompiledPipeline:
    """The same, but a wave leaves the loop without waiting for the others."""
    made = compiled(reentrant=reentrant)
    return replace(made, epilogue=made.epilogue[:-1])


def main() -> None:
    """Print what rota made of it, and what the next group adds."""
    from rota.cycles.predict import predict
    from rota.execute.executor import execute
    from rota.pipeline.geometry import TileShape

    made = compiled()
    print(repr(made))
    print("repairs:", *made.repairs, sep="\n  ")
    lines = str(made.certificate).splitlines()
    print(lines[0], *(line for line in lines if "re-entry" in line), sep="\n")
    for reentrant in (False, True):
        report = verify(without_last_barrier(reentrant=reentrant))
        errors = {finding.code for finding in report.findings if finding.severity is Severity.ERROR}
        groups = "one group after another" if reentrant else "a single group"
        print(f"without the last barrier, {groups}: {', '.join(errors) or 'proved'}")
    print("right on real matrices:", all(execute(made, trips).right for trips in range(4)))
    shape = TileShape(geometry=GEOMETRY, waves=WAVES, instruction=INSTRUCTION)
    print(str(predict(made, shape, band=False)).splitlines()[0])


if __name__ == "__main__":
    main()
