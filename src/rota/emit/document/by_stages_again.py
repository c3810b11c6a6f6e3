"""A schedule by stages, derived again: takes one that was read, gives it, or an error where a part differs.

The author's hooks may have rewritten the kernel and chosen the prologue's fragments; these are taken as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import fields, replace

from rota.emit.document.derived_again import DerivedAgain, Waits
from rota.emit.document.disagreement import demand, derived_again, disagreement
from rota.emit.document.order_claim import with_order_as_claimed
from rota.errors import Finding
from rota.order.acyclic.check_ordering import check_ordering
from rota.order.acyclic.edge import DepEdge
from rota.order.acyclic.loop_body import LoopBody
from rota.order.acyclic.problem import Ordering, OrderProblem, SchedulingStrategy
from rota.order.acyclic.registry import scheduler_named
from rota.pipeline.build import derive_program, order_problem
from rota.pipeline.checks import check_explicit_blocks, check_nothing_lost, verify_schedule
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.pipeline.op import OpDesc
from rota.pipeline.op_effects import EffectTerms
from rota.pipeline.phase_derivation import derive_kernel_deps, partition_entry_bounds
from rota.pipeline.phases import derive_epilogue_from_program, derive_prologue_from_program
from rota.pipeline.pipeline_program import PipelineProgram
from rota.pipeline.schedule_config import ScheduleConfig
from rota.pipeline.schedule_entry import ScheduleEntry
from rota.pipeline.single_buffer_phases import derive_single_buffer_phases
from rota.pipeline.vocabulary import FrameworkTag
from rota.program.effects import Place, Space
from rota.program.kinds import OpKind, OpRole
from rota.program.phase import Phase
from rota.targets.architecture import architecture_of

_FRAMEWORK_OPS: dict[FrameworkTag, Callable[[OpDesc], OpDesc]] = {
    FrameworkTag.BARRIER: lambda _: OpDesc.barrier(),
    FrameworkTag.WAIT_VM: lambda op: OpDesc.wait_vm(op.wait_value),
    FrameworkTag.WAIT_LGKM: lambda op: OpDesc.wait_lgkm(op.wait_value),
    FrameworkTag.SET_PRIO: lambda op: OpDesc.set_prio(op.wait_value),
    FrameworkTag.SCHEDULE_BARRIER: lambda _: OpDesc.schedule_barrier(),
    FrameworkTag.SCHED_GROUP_BARRIER: lambda op: OpDesc.sched_group_barrier(op.subtile, op.wait_value),
}

_MOST_BLOCKS = 4096
_NO_SEARCH = (SchedulingStrategy.IDENTITY, SchedulingStrategy.GREEDY)
_AUTHORS = "identity"  # by this name an order is called the author's


class StagesAgain(DerivedAgain[CompiledPipeline]):
    """Reads schedules by stages."""

    result = CompiledPipeline
    optional = ("kernel_deps",)
    structure_codes = frozenset({"P102", "P103", "P104", "P105", "P106", "P107", "W101"})

    def completed(self, schedule: CompiledPipeline, said: Container[str]) -> CompiledPipeline:
        """With the dependencies of its kernel, if the document leaves them out."""
        return schedule if "kernel_deps" in said else replace(schedule, kernel_deps=_kernel_deps(schedule))

    def with_own_entries(self, schedule: CompiledPipeline) -> CompiledPipeline:
        """The same: an op of the author's says all itself, one of rota's own is what its tag and its numbers say."""
        for phase in Phase:
            for slot, entry in enumerate(schedule.phase(phase)):
                where, op = f"{phase.value.lower()}[{slot}]", entry.op
                if entry.is_prefetch and not (phase is Phase.KERNEL and op.is_prefetch_load):
                    raise disagreement(f"{where}.is_prefetch", f"{op} fetches no tile ahead")
                if op.is_framework:
                    _check_ours(f"{where}.op", op)
        return schedule

    def waits(self, schedule: CompiledPipeline, entry: ScheduleEntry) -> Waits | None:
        """What an entry waits for, if it is a wait."""
        if entry.op.kind is not OpKind.WAIT:
            return None
        with derived_again("config"):
            setting = EffectTerms(schedule.config, schedule.machine)
            return Waits(setting.vm if entry.op.tag == FrameworkTag.WAIT_VM else setting.lgkm, entry.op.wait_value)

    def check_parts(self, schedule: CompiledPipeline) -> None:
        """All that is derived from body, edges, config and knobs is so here."""
        _check_stagger(schedule)
        blocks = schedule.config.total_blocks
        if blocks > _MOST_BLOCKS:
            raise disagreement("config", f"{blocks} matrix ops a trip are more than any schedule has")
        if schedule.config.has_blocks:
            _check_blocks(schedule)
        else:
            _check_single_buffer(schedule)
        demand("kernel_deps", schedule.kernel_deps, _kernel_deps(schedule))
        with derived_again("body"):
            _check_lds(schedule)

    def structure(self, schedule: CompiledPipeline) -> Iterator[Finding]:
        """The findings about body and blocks that every compilation of them makes."""
        yield from check_nothing_lost(schedule.body, schedule.kernel)
        if schedule.program is not None:
            yield from verify_schedule(schedule.program, schedule.schedule_config)

    def as_claimed(self, schedule: CompiledPipeline) -> CompiledPipeline:
        """Of what is said about the order, what a bound shows again."""
        return with_order_as_claimed(schedule)


def _check_ours(where: str, op: OpDesc) -> None:
    if op.tag not in _FRAMEWORK_OPS:
        raise disagreement(f"{where}.tag", f"{op.tag} is none of rota's own")
    canonical = _FRAMEWORK_OPS[FrameworkTag(op.tag)](op)
    for each in fields(OpDesc):
        if each.compare:
            demand(f"{where}.{each.name}", getattr(op, each.name), getattr(canonical, each.name))


def _check_stagger(schedule: CompiledPipeline) -> None:
    """Where group 1 falls back is one of the prologue's gaps; where no group does, the first place that is none."""
    never = len(schedule.prologue) + 1
    if not schedule.config.warp_stagger.enabled:
        demand("warp_stagger_index", schedule.warp_stagger_index, never)
    elif not 0 <= schedule.warp_stagger_index < never:
        raise disagreement(
            "warp_stagger_index", f"{schedule.warp_stagger_index} is no place in a prologue of {never - 1} entries"
        )


def _kernel_deps(schedule: CompiledPipeline) -> tuple[DepEdge, ...]:
    """The dependencies of the kernel's entries: those of the kernel before its repairs, at the places of today."""
    if schedule.program is None:
        return schedule.edges
    slots, written = _before_repair(schedule)
    bounds = partition_entry_bounds(schedule.program)
    if len(written) != bounds[-1]:
        bounds = (0, len(written))
    return tuple(
        replace(dep, producer_idx=slots[dep.producer_idx], consumer_idx=slots[dep.consumer_idx])
        for dep in derive_kernel_deps(written, bounds)
    )


def _before_repair(schedule: CompiledPipeline) -> tuple[list[int], list[ScheduleEntry]]:
    """The kernel without its repairs, and where its entries stand today."""
    repairs = {repair.slot: repair for repair in schedule.repairs if repair.phase is Phase.KERNEL}
    slots: list[int] = []
    written: list[ScheduleEntry] = []
    for slot, entry in enumerate(schedule.kernel):
        repair = repairs.get(slot)
        if repair is None or repair.before is not None:
            slots.append(slot)
            was = entry.op if repair is None else entry.op.but(wait_value=repair.count_before)
            written.append(replace(entry, op=was))
    return slots, written


def _check_single_buffer(schedule: CompiledPipeline) -> None:
    for name in ("program", "ordering"):
        demand(name, getattr(schedule, name), None, "a single buffer is not cut into blocks")
    with derived_again("edges"):
        LoopBody(schedule.body, schedule.edges)
    with derived_again("body"):
        due = derive_single_buffer_phases(schedule.body, schedule.config)
    _check_data("prologue", schedule.prologue, due.prologue)
    _check_data("epilogue", schedule.epilogue, due.epilogue)


def _check_blocks(schedule: CompiledPipeline) -> None:
    config, sched = schedule.config, schedule.schedule_config
    if schedule.program is None or schedule.ordering is None:
        raise disagreement("program", "a schedule of several stages has one, and an ordering")
    with derived_again("edges"):
        problem = order_problem(schedule.body, config, sched, schedule.edges)
    with derived_again("ordering"):
        _check_order(problem, schedule.ordering, sched)
    with derived_again("body"):
        program = derive_program([schedule.body[index] for index in schedule.ordering.order], config, sched)
    with derived_again("program.explicit_blocks"):
        program = program.with_explicit_blocks(check_explicit_blocks(schedule.program.explicit_blocks, program))
    demand("program", schedule.program, program, "is not what body, ordering and knobs give")
    with derived_again("program"):
        prologue = derive_prologue_from_program(program, config, sched)
        epilogue = derive_epilogue_from_program(program, config)
    _check_prefetches(schedule, program)
    _check_data("prologue", schedule.prologue, prologue, bootstrap=sched.partial_prologue_drain)
    _check_data("epilogue", schedule.epilogue, epilogue)


def _check_prefetches(schedule: CompiledPipeline, program: PipelineProgram) -> None:
    """Which loads may be left out at the end follows from the blocks, unless the author rewrote the kernel."""
    slots, written = _before_repair(schedule)
    expanded = program.expand_to_list()
    if [entry.op for entry in written] == [entry.op for entry in expanded]:
        for slot, said, due in zip(slots, written, expanded, strict=True):
            demand(f"kernel[{slot}].is_prefetch", said.is_prefetch, due.is_prefetch)


def _check_order(problem: OrderProblem, ordering: Ordering, knobs: ScheduleConfig) -> None:
    """Where no search was asked for there is only one order; any other is checked, except for budgets, mere wishes."""
    if knobs.scheduling not in _NO_SEARCH:
        check_ordering(problem, ordering, budgets=False)
        if ordering.certificate.by == _AUTHORS:
            raise disagreement("ordering.certificate.by", f"{knobs.scheduling:.60} was asked, not the author")
        return
    due = scheduler_named(knobs.scheduling).order(problem)
    for each in fields(Ordering):
        demand(f"ordering.{each.name}", getattr(ordering, each.name), getattr(due, each.name))


def _check_data(
    phase: str, said: Iterable[ScheduleEntry], due: Iterable[ScheduleEntry], *, bootstrap: bool = False
) -> None:
    """Each data op as often as derived; the author may choose the bootstrap fragments."""
    given, wanted = (Counter(e.op for e in entries if not e.op.is_framework) for entries in (said, due))
    for op in (wanted - given).elements():
        raise disagreement(phase, f"{op} is missing, which body and knobs give")
    for op in (given - wanted).elements():
        if not (bootstrap and op.role is OpRole.FRAGMENT_LOAD):
            raise disagreement(phase, f"{op} is none of the ops that body and knobs give")


def _check_lds(schedule: CompiledPipeline) -> None:
    """How large a tile is only the author knows, but an instruction writes a byte a lane or more into it."""
    if schedule.lds_bytes is None:
        return
    tiles: dict[Place, int] = {}
    lanes = architecture_of(schedule.machine).lanes.value
    for entry in schedule.lowered.entries:
        if entry.effect.kind in (OpKind.DMA, OpKind.LDS_WRITE):
            for place in entry.effect.writes:
                if place.space is Space.LDS:
                    tiles[place] = max(tiles.get(place, 0), entry.effect.tokens * lanes)
    least = sum(tiles.values())
    if schedule.lds_bytes < least:
        raise disagreement(
            "lds_bytes",
            f"{schedule.lds_bytes} bytes don't hold {len(tiles)} tiles, into which {least} or more are written",
        )
