"""A schedule by stages, derived again: takes one that was read, gives silence or an error where a part differs.

The author's hooks may have rewritten the kernel and chosen the prologue's fragments; these are taken as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace

from rota.compiler.build import derive_program, order_problem
from rota.compiler.compiled import CompiledSchedule
from rota.declare.effects import Action, Space
from rota.declare.vocabulary import OpRole, Phase, SchedulingStrategy
from rota.emit.disagreement import demand, derived_again, disagreement
from rota.errors import Finding
from rota.graph.edge import DepEdge
from rota.graph.loop_body import LoopBody
from rota.order.check import check_ordering
from rota.order.problem import Ordering, OrderProblem
from rota.order.registry import scheduler_named
from rota.program.checks import check_explicit_blocks, check_nothing_lost, verify_schedule
from rota.program.config import ScheduleConfig
from rota.program.entry import ScheduleEntry
from rota.program.kernel_deps import derive_kernel_deps, partition_entry_bounds
from rota.program.loop import steps_of
from rota.program.phases import derive_epilogue_from_program, derive_prologue_from_program
from rota.program.program import PipelineProgram
from rota.program.single_buffer import derive_single_buffer_phases
from rota.targets.rates import LANES

STRUCTURE = frozenset({"P102", "P103", "P104", "P105", "P106", "P107", "W101"})
"""Codes of the findings that `structure` finds again."""

_MOST_BLOCKS = 4096
_NO_SEARCH = (SchedulingStrategy.IDENTITY, SchedulingStrategy.GREEDY)
_AUTHORS = "identity"  # by this name an order is called the author's
_VALUES_ALONE = ("placement", "modulo", "trip_tiles")


def check_stages(schedule: CompiledSchedule) -> None:
    """All that is derived from body, edges, config and knobs is so here."""
    blocks = schedule.config.total_blocks
    if blocks > _MOST_BLOCKS:
        raise disagreement("config", f"{blocks} matrix ops a trip are more than any schedule has")
    for name in _VALUES_ALONE:
        demand(name, getattr(schedule, name), None, "only a loop by values has it")
    for phase in (schedule.prologue, schedule.kernel, schedule.epilogue):
        for entry in phase:
            where = f"{entry.phase.value.lower()}[{entry.time_slot}].effect"
            demand(where, entry.effect, None, "follows from the op, and can't be given")
    if schedule.config.depth < 2:
        _check_single_buffer(schedule)
    else:
        _check_blocks(schedule)
    demand("kernel_deps", schedule.kernel_deps, derived_kernel_deps(schedule))
    _check_lds(schedule)


def structure(schedule: CompiledSchedule) -> Iterator[Finding]:
    """The findings about body and blocks that every compilation of them makes."""
    if schedule.loop is None:
        yield from check_nothing_lost(schedule.body, schedule.kernel)
    if schedule.program is not None:
        yield from verify_schedule(schedule.program, schedule.schedule_config)


def derived_kernel_deps(schedule: CompiledSchedule) -> tuple[DepEdge, ...]:
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


def _before_repair(schedule: CompiledSchedule) -> tuple[list[int], list[ScheduleEntry]]:
    """The kernel without its repairs, and where its entries stand today."""
    repairs = {repair.slot: repair.before for repair in schedule.repairs if repair.phase is Phase.KERNEL}
    was = {slot: repairs.get(slot, entry.op) for slot, entry in enumerate(schedule.kernel)}
    kept = [(slot, op) for slot, op in was.items() if op is not None]
    return [slot for slot, _ in kept], [replace(schedule.kernel[slot], op=op) for slot, op in kept]


def _check_single_buffer(schedule: CompiledSchedule) -> None:
    for name in ("program", "ordering"):
        demand(name, getattr(schedule, name), None, "a single buffer is not cut into blocks")
    with derived_again("edges"):
        LoopBody(schedule.body, schedule.edges)
    with derived_again("body"):
        due = derive_single_buffer_phases(schedule.body, schedule.config)
    _check_data("prologue", schedule.prologue, due.prologue)
    _check_data("epilogue", schedule.epilogue, due.epilogue)


def _check_blocks(schedule: CompiledSchedule) -> None:
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


def _check_prefetches(schedule: CompiledSchedule, program: PipelineProgram) -> None:
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
            raise disagreement("ordering.certificate.by", f"{knobs.scheduling!s:.60} was asked, not the author")
        return
    due = scheduler_named(knobs.scheduling).order(problem)
    for each in fields(Ordering):
        demand(f"ordering.{each.name}", getattr(ordering, each.name), getattr(due, each.name))


def _check_data(
    phase: str, said: Iterable[ScheduleEntry], due: Iterable[ScheduleEntry], *, bootstrap: bool = False
) -> None:
    """Each data op as often as derived; the author may bootstrap with fragments of his own choice."""
    given, wanted = (Counter(e.op for e in entries if not e.op.is_framework) for entries in (said, due))
    for op in (wanted - given).elements():
        raise disagreement(phase, f"{op} is missing, which body and knobs give")
    for op in (given - wanted).elements():
        if not (bootstrap and op.role is OpRole.FRAGMENT_LOAD):
            raise disagreement(phase, f"{op} is none of the ops that body and knobs give")


def _check_lds(schedule: CompiledSchedule) -> None:
    """How large a tile is only the author knows, but an instruction writes a byte a lane or more into it."""
    if schedule.lds_bytes is None:
        return
    tiles: dict[object, int] = {}
    steps = steps_of(schedule)
    for step in (*steps.prologue, *steps.kernel, *steps.epilogue):
        if step.effect.action in (Action.DMA, Action.LDS_WRITE):
            for place in step.effect.writes:
                if place.space is Space.LDS:
                    tiles[place] = max(tiles.get(place, 0), step.effect.tokens * LANES)
    least = sum(tiles.values())
    if schedule.lds_bytes < least:
        raise disagreement(
            "lds_bytes",
            f"{schedule.lds_bytes} bytes don't hold {len(tiles)} tiles, into which {least} or more are written",
        )
