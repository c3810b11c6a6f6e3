"""Processor time of a proof for all trip counts, on an idle machine: takes nothing, prints medians and growth.

python -m benchmarks.proof
"""

from __future__ import annotations

import statistics
import time

from rota import (
    CompiledSchedule,
    DeclarativeSchedule,
    DoubleBufferTag,
    KernelGeometry,
    KOffsetKind,
    OpDesc,
    Pipeline4Wave,
    PipelineBody,
    PipelineConfig,
    PipelineSchedule,
    SingleBufferSchedule,
    WarpStaggerRule,
    annotate_ops,
    compile_schedule,
    mi355x_target,
    verify,
)
from tests.campaigns.undisturbed import slowdown

GRIDS = ((2, 2), (4, 4), (8, 4), (8, 8), (16, 8), (16, 14))


class WideGrid(PipelineSchedule):
    """A double buffer of any MMA grid: all fragments before the first MMA, then one load in front of each."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.target = mi355x_target(1, 1, 0)

    def config(self) -> PipelineConfig:
        """The grid in two partitions, all waves in step."""
        return self.target.pipeline.but(m_mmas=self.rows, n_mmas=self.columns, warp_stagger=WarpStaggerRule.none())

    def build_body(self) -> tuple[OpDesc, ...]:
        """Reads first, then a load per MMA."""
        tags, body = DoubleBufferTag, PipelineBody()
        operands = [(0, tile) for tile in range(self.rows)] + [(1, tile) for tile in range(self.columns)]
        for stage, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
            for channel, tile in operands:
                body.frag((tags.MMA_LOAD_A, tags.MMA_LOAD_B)[channel], channel=channel, stage=stage, subtile=tile)
            waiting = list(operands)
            for cell in range(self.rows * self.columns):
                take = 2 if self.rows * self.columns < 2 * len(operands) else 1
                for channel, tile in waiting[: take if cell else 0]:
                    load = (tags.LOAD_A, tags.LOAD_B)[channel]
                    body.load(load, channel=channel, stage=stage, subtile=tile, k_offset=k)
                waiting = waiting[take if cell else 0 :]
                body.compute(tags.MMA, row=cell // self.columns, column=cell % self.columns)
        return annotate_ops(body.build(), self.target.cost_model)


def milliseconds(compiled: CompiledSchedule, calls: int) -> float:
    """The median of `calls` proofs as it would be on an idle machine, best of three rounds."""
    return min(statistics.median(_once(compiled) for _ in range(calls)) / slowdown() for _ in range(3))


def _once(compiled: CompiledSchedule) -> float:
    start = time.process_time()
    verify(compiled)
    return (time.process_time() - start) * 1e3


def main() -> None:
    """Print both tables."""
    print("schedule              entries       ms")
    for schedule in (Pipeline4Wave(KernelGeometry()), DeclarativeSchedule(), SingleBufferSchedule(4)):
        compiled = compile_schedule(schedule)
        print(f"{compiled.name:20}  {_entries(compiled):7}  {milliseconds(compiled, 30):7.2f}")
    print("\ngrid     kernel  entries       ms  us per entry  proved")
    for rows, columns in GRIDS:
        compiled = compile_schedule(WideGrid(rows, columns), sync="as_written")
        took = milliseconds(compiled, 5)
        print(
            f"{rows:2}x{columns:<3}  {len(compiled.kernel):7}  {_entries(compiled):7}  {took:7.2f}  "
            f"{took * 1e3 / _entries(compiled):12.2f}  {verify(compiled).clean}"
        )


def _entries(compiled: CompiledSchedule) -> int:
    return len(compiled.prologue) + len(compiled.kernel) + len(compiled.epilogue)


if __name__ == "__main__":
    main()
