"""Compilation: takes a `PipelineSchedule` and how to treat missing synchronisation, gives a `CompiledSchedule`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rota.compiler.build import build_ordered_program
from rota.compiler.compiled import CompiledSchedule
from rota.compiler.hooks import dropped_hooks
from rota.compiler.proved import proved, repaired
from rota.compiler.schedule import PipelineSchedule
from rota.declare.check import check_elements, expect
from rota.declare.config import PipelineConfig
from rota.declare.limits import MOST_OPS, check_count
from rota.declare.op import OpDesc
from rota.errors import DeclarationError, Finding, did_you_mean
from rota.graph.edge import DepEdge
from rota.graph.loop_body import LoopBody
from rota.program.checks import check_explicit_blocks, check_nothing_lost, verify_schedule
from rota.program.config import ScheduleConfig
from rota.program.entry import ScheduleEntry
from rota.program.kernel_deps import derive_kernel_deps, partition_entry_bounds
from rota.program.phases import derive_epilogue_from_program, derive_prologue_from_program, stagger_index
from rota.program.single_buffer import derive_single_buffer_phases

SYNC_MODES = ("as_written", "repair", "strict")


def compile_schedule(schedule: PipelineSchedule, sync: str = "repair") -> CompiledSchedule:
    """Compile a schedule.

    `repair` adds the fewest barriers and waits that make the proof hold and lists them; `strict` raises instead;
    `as_written` gives exactly what the rules derive, unproved.
    """
    return ScheduleCompiler(sync=sync).compile(schedule)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleCompiler:
    """A configured compiler; one value serves any number of schedules."""

    sync: str = "repair"

    def __post_init__(self) -> None:
        if self.sync not in SYNC_MODES:
            raise DeclarationError(
                Finding(
                    code="D105",
                    message=f"sync={self.sync!r} is not a way to treat synchronisation",
                    fixes=did_you_mean(str(self.sync), SYNC_MODES),
                )
            )

    def compile(self, schedule: PipelineSchedule) -> CompiledSchedule:
        """All phases of the schedule, proved unless they are wanted as written."""
        written = self._as_written(schedule)
        if self.sync == "as_written":
            return written
        return proved(written) if self.sync == "strict" else repaired(written)

    def _as_written(self, schedule: PipelineSchedule) -> CompiledSchedule:
        expect("the schedule", schedule, PipelineSchedule)  # type: ignore[type-abstract]
        config = expect("config()", schedule.config(), PipelineConfig)
        sched = expect("schedule_config()", schedule.schedule_config(), ScheduleConfig)
        body = check_elements("build_body()", schedule.build_body(), OpDesc)
        check_count("build_body()", "ops", len(body), MOST_OPS)
        edges = check_elements("derive_edges()", schedule.derive_edges(body), DepEdge)
        if config.depth >= 2:
            return self._double_buffer(schedule, config, sched, body, edges)
        return self._single_buffer(schedule, config, sched, body, edges)

    def _double_buffer(
        self,
        schedule: PipelineSchedule,
        config: PipelineConfig,
        sched: ScheduleConfig,
        body: tuple[OpDesc, ...],
        edges: tuple[DepEdge, ...],
    ) -> CompiledSchedule:
        program, ordering = build_ordered_program(body, config, sched, edges)
        explicit = schedule.build_explicit_blocks(body, program)
        program = program.with_explicit_blocks(check_explicit_blocks(explicit, program))
        prologue = derive_prologue_from_program(program, config, sched, schedule.bootstrap_frags())
        expanded = program.expand_to_list()
        kernel = _transformed(schedule, expanded, body)
        bounds = partition_entry_bounds(program)
        if len(kernel) != len(expanded):  # the author added or removed entries behind which no partition can be told
            bounds = (0, len(kernel))
        return CompiledSchedule(
            name=type(schedule).__name__,
            config=config,
            schedule_config=sched,
            body=body,
            edges=edges,
            prologue=prologue,
            kernel=kernel,
            epilogue=derive_epilogue_from_program(program, config),
            kernel_deps=derive_kernel_deps(kernel, bounds),
            warp_stagger_index=stagger_index(body, len(prologue), config),
            machine=schedule.machine(),
            lds_bytes=schedule.lds_bytes(),
            program=program,
            ordering=ordering,
            findings=(
                *check_nothing_lost(body, kernel),
                *verify_schedule(program, sched),
                *dropped_hooks(schedule, config, sched, program),
            ),
        )

    def _single_buffer(
        self,
        schedule: PipelineSchedule,
        config: PipelineConfig,
        sched: ScheduleConfig,
        body: tuple[OpDesc, ...],
        edges: tuple[DepEdge, ...],
    ) -> CompiledSchedule:
        LoopBody(body, edges)  # refuses malformed graphs
        phases = derive_single_buffer_phases(body, config)
        kernel = _transformed(schedule, phases.kernel, body)
        return CompiledSchedule(
            name=type(schedule).__name__,
            config=config,
            schedule_config=sched,
            body=body,
            edges=edges,
            prologue=phases.prologue,
            kernel=kernel,
            epilogue=phases.epilogue,
            kernel_deps=edges,
            warp_stagger_index=stagger_index(body, len(phases.prologue), config),
            machine=schedule.machine(),
            lds_bytes=schedule.lds_bytes(),
            findings=(*check_nothing_lost(body, kernel), *dropped_hooks(schedule, config, sched, None)),
        )


def _transformed(
    schedule: PipelineSchedule, kernel: tuple[ScheduleEntry, ...], body: Sequence[OpDesc]
) -> tuple[ScheduleEntry, ...]:
    return check_elements("transform_kernel()", schedule.transform_kernel(kernel, body), ScheduleEntry)
