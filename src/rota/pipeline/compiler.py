"""Compilation: takes a `PipelineSchedule` and how to treat missing synchronisation, gives a `CompiledSchedule`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rota.check import bad_field, check_elements, check_types, expect, is_int
from rota.compiled.proved import proved, repaired
from rota.errors import DeclarationError, Finding, did_you_mean
from rota.order.acyclic.edge import DepEdge
from rota.order.acyclic.loop_body import LoopBody
from rota.pipeline.build import OrderedProgram, build_ordered_program
from rota.pipeline.checks import (
    check_bootstrap,
    check_described,
    check_explicit_blocks,
    check_nothing_lost,
    check_silent_ops,
    verify_schedule,
)
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.pipeline.config import PipelineConfig
from rota.pipeline.hooks import dropped_hooks
from rota.pipeline.moves import moved_by_hand, moved_ops
from rota.pipeline.op import OpDesc, numbered_ops
from rota.pipeline.op_effects import EffectTerms
from rota.pipeline.phase_derivation import derive_kernel_deps, partition_entry_bounds
from rota.pipeline.phases import derive_epilogue_from_program, derive_prologue_from_program, stagger_index
from rota.pipeline.schedule import PipelineSchedule
from rota.pipeline.schedule_config import ScheduleConfig
from rota.pipeline.schedule_entry import ScheduleEntry
from rota.pipeline.single_buffer_phases import derive_single_buffer_phases
from rota.printing import Pasted
from rota.program.limits import MOST_OPS, check_count
from rota.program.machine import Machine
from rota.program.phase import Phase


class _Given(NamedTuple):
    """What the author's methods gave, each checked."""

    schedule: PipelineSchedule
    config: PipelineConfig
    knobs: ScheduleConfig
    body: tuple[OpDesc, ...]
    edges: tuple[DepEdge, ...]
    bootstrap: tuple[OpDesc, ...]


SYNC_MODES = ("as_written", "repair", "strict")


def compile_schedule(
    schedule: PipelineSchedule, sync: str = "repair", *, reentrant: bool = False, vmcnt_in_order: bool = True
) -> CompiledPipeline:
    """Compile a schedule.

    `repair` adds the fewest barriers, then the fewest waits, that make the proof hold and lists them (W102 if they were
    not shown to be the fewest); `strict` raises instead; `as_written` gives exactly what the rules derive, unproved.

    A `reentrant` schedule may run again immediately after itself, as a persistent kernel does.  Without
    `vmcnt_in_order` the proof trusts no wait that leaves some of vmcnt's tokens pending.
    """
    return ScheduleCompiler(sync=sync, reentrant=reentrant, vmcnt_in_order=vmcnt_in_order).compile(schedule)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleCompiler(Pasted):
    """A configured compiler; one value serves any number of schedules."""

    sync: str = "repair"
    reentrant: bool = False
    vmcnt_in_order: bool = True

    def __post_init__(self) -> None:
        check_types(self, {"reentrant": bool, "vmcnt_in_order": bool})
        if self.sync not in SYNC_MODES:
            raise DeclarationError(
                Finding(
                    code="D105",
                    message=f"sync={self.sync!r} is not a way to treat synchronisation",
                    fixes=did_you_mean(str(self.sync), SYNC_MODES),
                )
            )

    def compile(self, schedule: PipelineSchedule) -> CompiledPipeline:
        """All phases of the schedule, proved unless they are wanted as written."""
        written = self._as_written(schedule)
        if self.reentrant:
            written = replace(written, reentrant=True)
        if not self.vmcnt_in_order:  # the author's own machine may doubt it already
            written = replace(
                written, machine=written.machine.doubting(EffectTerms(written.config, written.machine).vm)
            )
        if self.sync == "as_written":
            return written
        if uncounted := tuple(written.uncounted()):
            raise DeclarationError(*uncounted)
        return proved(written) if self.sync == "strict" else repaired(written)

    def _as_written(self, schedule: PipelineSchedule) -> CompiledPipeline:
        if isinstance(schedule, type) and issubclass(schedule, PipelineSchedule):
            name = schedule.__name__
            raise DeclarationError(
                Finding(
                    code="D104",
                    message=f"the schedule is the class {name}; expected an instance of it",
                    evidence=(("got", f"class {name}"), ("expected", f"{name}(...)")),
                    fixes=(f"make one: {name}({_required(schedule)})",),
                )
            )
        expect("the schedule", schedule, PipelineSchedule)  # type: ignore[type-abstract]
        config = expect("config()", schedule.config(), PipelineConfig)
        sched = expect("schedule_config()", schedule.schedule_config(), ScheduleConfig)
        body = check_elements("build_body()", schedule.build_body(), OpDesc)
        check_count("build_body()", "ops", len(body), MOST_OPS)
        check_described("build_body()", body)
        body = numbered_ops(body)
        edges = check_elements("derive_edges()", schedule.derive_edges(body), DepEdge)
        bootstrap = check_elements("bootstrap_frags()", schedule.bootstrap_frags(), OpDesc)
        check_bootstrap(bootstrap)
        given = _Given(schedule, config, sched, body, edges, bootstrap)
        return self._double_buffer(given) if config.depth >= 2 else self._single_buffer(given)

    def _double_buffer(self, given: _Given) -> CompiledPipeline:
        schedule, config, sched, body, edges, bootstrap = given
        program, ordering = build_ordered_program(body, config, sched, edges)
        explicit = schedule.build_explicit_blocks(body, program)
        listings = check_explicit_blocks(explicit, program)
        program = program.with_explicit_blocks(
            tuple(_given_by("build_explicit_blocks", listing, body) for listing in listings)
        )
        prologue = derive_prologue_from_program(program, config, sched, bootstrap)
        expanded = program.expand_to_list()
        kernel = _transformed(schedule, expanded, body)
        bounds = partition_entry_bounds(program)
        if len(kernel) != len(expanded):  # the author added or removed entries behind which no partition can be told
            bounds = (0, len(kernel))
        return CompiledPipeline(
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
            machine=expect("machine()", schedule.machine(), Machine),
            lds_bytes=_stated_bytes(schedule),
            program=program,
            ordering=ordering,
            findings=(
                *check_nothing_lost(body, kernel),
                *check_silent_ops(body, edges, kernel),
                *verify_schedule(program, sched),
                *moved_ops(body, ordering, program, kernel),
                *dropped_hooks(schedule, config, sched, body, bootstrap, built=OrderedProgram(program, ordering)),
            ),
        )

    def _single_buffer(self, given: _Given) -> CompiledPipeline:
        schedule, config, sched, body, edges, bootstrap = given
        LoopBody(body, edges)  # refuses malformed graphs
        phases = derive_single_buffer_phases(body, config)
        kernel = _transformed(schedule, phases.kernel, body)
        return CompiledPipeline(
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
            machine=expect("machine()", schedule.machine(), Machine),
            lds_bytes=_stated_bytes(schedule),
            findings=(
                *check_nothing_lost(body, kernel),
                *moved_by_hand(body, kernel),
                *dropped_hooks(schedule, config, sched, body, bootstrap, built=None),
            ),
        )


def _required(schedule: type[PipelineSchedule]) -> str:
    """The arguments that making a schedule needs, by name."""
    parameters = inspect.signature(schedule).parameters.values()
    return ", ".join(each.name for each in parameters if each.default is each.empty)


def _transformed(
    schedule: PipelineSchedule, kernel: tuple[ScheduleEntry, ...], body: Sequence[OpDesc]
) -> tuple[ScheduleEntry, ...]:
    """The kernel as the author's hook gives it, renumbered: a wrong number would stand for another entry."""
    given = check_elements("transform_kernel()", schedule.transform_kernel(kernel, body), ScheduleEntry)
    for entry in given:
        if entry.phase is not Phase.KERNEL:
            wanted = "Phase.KERNEL in what transform_kernel() gives"
            raise bad_field(entry, "phase", entry.phase, wanted, entry.op.source)
    ops = _given_by("transform_kernel", [entry.op for entry in given], body)
    return tuple(
        entry if entry.time_slot == slot and entry.op is op else replace(entry, time_slot=slot, op=op)
        for slot, (entry, op) in enumerate(zip(given, ops, strict=True))
    )


def _given_by(hook: str, ops: Sequence[OpDesc], body: Sequence[OpDesc]) -> tuple[OpDesc, ...]:
    """What an author's hook returned; an op without an origin is one of the body's, or the hook's own."""
    if all(op.origin for op in ops):
        return tuple(ops)
    known = {op: op for op in reversed(body) if not op.is_framework}
    return tuple(
        op if op.origin else known[op] if op in known else op.made_by(f"issued by {hook}()", hook=hook) for op in ops
    )


def _stated_bytes(schedule: PipelineSchedule) -> int | None:
    stated = schedule.lds_bytes()
    if stated is not None and (not is_int(stated) or stated < 0):
        raise bad_field(schedule, "lds_bytes()", stated, "an integer, at least 0, or None")
    return stated
