"""The exchange format: versioned JSON of a compiled schedule, and back.

A document is not trusted. What rota derives is derived again and compared, a device is looked up, a certificate is
proved again. What took a search to find out is not taken over; see `DerivedAgain.as_claimed`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NoReturn

from rota.check import expect
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.document.codec import (
    CLAIMED,
    DerivedAgain,
    MachineSaid,
    Waits,
    check_agreement,
    compare_whole,
    decode,
    decode_record,
    derive_again,
    disagreement,
    encode,
    machine_meant,
    machine_said,
    rebuild_repairs,
    refuse_malformed,
    show_value,
)
from rota.errors import EmissionError, Finding
from rota.order.acyclic.check_ordering import check_ordering
from rota.order.acyclic.greedy import measured, scheduler_named
from rota.order.acyclic.problem import DepEdge, LoopBody, Ordering, OrderProblem, Proof, SchedulingStrategy
from rota.order.modulo.modulo_problem import LONGEST, ModuloSchedule
from rota.pipeline.block import PipelineProgram
from rota.pipeline.build import (
    check_explicit_blocks,
    check_nothing_lost,
    derive_program,
    order_problem,
    verify_schedule,
)
from rota.pipeline.compiled_pipeline import CompiledPipeline, EffectTerms
from rota.pipeline.op import FrameworkTag, OpDesc, ScheduleEntry
from rota.pipeline.phases import (
    derive_epilogue_from_program,
    derive_kernel_deps,
    derive_prologue_from_program,
    derive_single_buffer_phases,
    partition_entry_bounds,
)
from rota.pipeline.schedule_config import ScheduleConfig
from rota.program.entry import Effect, Entry, Op, Place, Space, barrier_ops, wait_effect, wait_op
from rota.program.kinds import Home, OpKind, OpRole, Phase
from rota.program.loop_spec import LoopSpec
from rota.program.lowered import name_phases
from rota.program.machine import Machine
from rota.targets.architecture import architecture_of
from rota.targets.device import timing_of
from rota.values.buffer_depth import derive_allowances
from rota.values.compiled_loop import CompiledLoop
from rota.values.interval_certificate import Claim
from rota.values.op_times import time_loop
from rota.values.placement import certify_again
from rota.values.unroll import Placement, derive_loop_phases
from rota.verify.report import Certificate

# A schedule by stages, derived again.
#
# The author's hooks may have rewritten the kernel and chosen the prologue's fragments; these are taken as they are.

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
    result = CompiledPipeline
    optional = ("kernel_deps",)
    structure_codes = frozenset({"P102", "P103", "P104", "P105", "P106", "P107", "W101"})

    def rebuild(self, schedule: CompiledPipeline) -> CompiledPipeline:
        """All that follows from body, edges, config and knobs; the author's hooks may have chosen the rest."""
        staggered = schedule.config.warp_stagger.enabled
        never = len(schedule.prologue) + 1  # the first place that is none, where no group falls back
        found = replace(
            schedule,
            **name_phases({phase: _own_entries(schedule, phase) for phase in Phase}),
            warp_stagger_index=schedule.warp_stagger_index if staggered else never,
        )
        _check_fall_back("warp_stagger_index", found.warp_stagger_index, never - staggered)
        found = rebuild_repairs(self, found)
        blocks = schedule.config.total_blocks
        if blocks > _MOST_BLOCKS:
            raise disagreement("config", f"{blocks} matrix ops a trip are more than any schedule has")
        found = _rebuild_blocks(found) if schedule.config.has_blocks else _rebuild_single_buffer(found)
        with derive_again("body"):
            _check_lds(found)
        return found

    def waits(self, schedule: CompiledPipeline, entry: ScheduleEntry) -> Waits | None:
        if entry.op.kind is not OpKind.WAIT:
            return None
        with derive_again("config"):
            setting = EffectTerms(schedule.config, schedule.machine)
            return Waits(setting.vm if entry.op.tag == FrameworkTag.WAIT_VM else setting.lgkm, entry.op.wait_value)

    def structure(self, schedule: CompiledPipeline) -> Iterator[Finding]:
        yield from check_nothing_lost(schedule.body, schedule.kernel)
        if schedule.program is not None:
            yield from verify_schedule(schedule.program, schedule.schedule_config)

    def as_claimed(self, schedule: CompiledPipeline) -> CompiledPipeline:
        # A search that found nothing better is no proof that can be read; a bound for any order of the body is.
        ordering = schedule.ordering
        if ordering is None:
            return schedule
        with derive_again("edges"):
            problem = order_problem(schedule.body, schedule.config, schedule.schedule_config, schedule.edges)
        claimed = ordering.certificate
        known = measured(problem, ordering.order, claimed.by).certificate
        bounds = known.bound, known.vgpr_bound
        if claimed.proof is Proof.OPTIMAL and bounds == (ordering.makespan, ordering.vgpr_peak):
            return schedule
        proof = Proof.NONE if claimed.proof is Proof.NONE else Proof.FEASIBLE
        held = replace(claimed, proof=proof, bound=known.bound, vgpr_bound=known.vgpr_bound)
        if held == claimed:
            return schedule
        return replace(schedule, ordering=replace(ordering, certificate=replace(held, by=CLAIMED)))


def _check_fall_back(field: str, index: int, last: int) -> None:
    if not 0 <= index <= last:
        raise disagreement(field, f"{index} is no place in a prologue of {last} entries")


def _own_entries(schedule: CompiledPipeline, phase: Phase) -> tuple[ScheduleEntry, ...]:
    """The same: an op of the author's says all itself, one of rota's own is what its tag and its numbers say."""
    found = []
    for slot, entry in enumerate(schedule.phase(phase)):
        op = entry.op
        if op.is_framework:
            if op.tag not in _FRAMEWORK_OPS:
                raise disagreement(f"{phase.value.lower()}[{slot}].op.tag", f"{op.tag} is none of rota's own")
            op = _FRAMEWORK_OPS[FrameworkTag(op.tag)](op).with_origin(op.origin)
        ahead = entry.is_prefetch and phase is Phase.KERNEL and op.is_prefetch_load
        found.append(ScheduleEntry(op=op, time_slot=slot, phase=phase, is_prefetch=ahead))
    return tuple(found)


def _kernel_deps(schedule: CompiledPipeline, program: PipelineProgram) -> tuple[DepEdge, ...]:
    """The dependencies of the kernel's entries: those of the kernel before its repairs, at the places of today."""
    slots, written = _before_repair(schedule)
    bounds = partition_entry_bounds(program)
    if len(written) != bounds[-1]:
        bounds = (0, len(written))
    return tuple(
        replace(dep, producer_idx=slots[dep.producer_idx], consumer_idx=slots[dep.consumer_idx])
        for dep in derive_kernel_deps(written, bounds)
    )


def _before_repair(schedule: CompiledPipeline) -> tuple[list[int], list[ScheduleEntry]]:
    """The kernel without its repairs, and where its entries are today."""
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


def _rebuild_single_buffer(schedule: CompiledPipeline) -> CompiledPipeline:
    """A single buffer is not cut into blocks."""
    with derive_again("edges"):
        LoopBody(schedule.body, schedule.edges)
    with derive_again("body"):
        due = derive_single_buffer_phases(schedule.body, schedule.config)
    _check_data("prologue", schedule.prologue, due.prologue)
    _check_data("epilogue", schedule.epilogue, due.epilogue)
    return replace(schedule, program=None, ordering=None, kernel_deps=schedule.edges)


def _rebuild_blocks(schedule: CompiledPipeline) -> CompiledPipeline:
    config, sched = schedule.config, schedule.schedule_config
    if schedule.program is None or schedule.ordering is None:
        raise disagreement("program", "a schedule of several stages has one, and an ordering")
    with derive_again("edges"):
        problem = order_problem(schedule.body, config, sched, schedule.edges)
    with derive_again("ordering"):
        ordering = _rebuild_order(problem, schedule.ordering, sched)
    with derive_again("body"):
        program = derive_program([schedule.body[index] for index in ordering.order], config, sched)
    with derive_again("program.explicit_blocks"):
        program = program.with_explicit_blocks(check_explicit_blocks(schedule.program.explicit_blocks, program))
    with derive_again("program"):
        prologue = derive_prologue_from_program(program, config, sched)
        epilogue = derive_epilogue_from_program(program, config)
    # Which loads may be left out at the end follows from the blocks, unless the author rewrote the kernel.
    slots, written = _before_repair(schedule)
    expanded = program.expand_to_list()
    kernel = list(schedule.kernel)
    if [entry.op for entry in written] == [entry.op for entry in expanded]:
        for slot, due in zip(slots, expanded, strict=True):
            kernel[slot] = replace(kernel[slot], is_prefetch=due.is_prefetch)
    _check_data("prologue", schedule.prologue, prologue, bootstrap=sched.partial_prologue_drain)
    _check_data("epilogue", schedule.epilogue, epilogue)
    deps = _kernel_deps(schedule, program)
    return replace(schedule, kernel=tuple(kernel), program=program, ordering=ordering, kernel_deps=deps)


def _rebuild_order(problem: OrderProblem, ordering: Ordering, knobs: ScheduleConfig) -> Ordering:
    """Where no search was asked for there is only one order; any other is checked, except for budgets, mere wishes."""
    if knobs.scheduling in _NO_SEARCH:
        due = scheduler_named(knobs.scheduling).order(problem)
        compare_whole(ordering, due, "ordering")  # the program follows from it
        return ordering
    check_ordering(problem, ordering, budgets=False)
    if ordering.certificate.by == _AUTHORS:
        raise disagreement("ordering.certificate.by", f"{knobs.scheduling:.60} was asked, not the author")
    return ordering


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
        if Home.LDS in entry.effect.kind.writes:
            for place in entry.effect.writes:
                if place.space is Space.LDS:
                    tiles[place] = max(tiles.get(place, 0), entry.effect.tokens * lanes)
    least = sum(tiles.values())
    if schedule.lds_bytes < least:
        raise disagreement(
            "lds_bytes",
            f"{schedule.lds_bytes} bytes don't hold {len(tiles)} tiles, into which {least} or more are written",
        )


def _modulo(schedule: CompiledLoop) -> ModuloSchedule | None:
    """Starts keep every edge and unit at the interval, with the slack that is said; then the bound is derived again."""
    found, loop, placement = schedule.modulo, schedule.loop, schedule.placement
    if placement.interval > LONGEST or max(placement.starts, default=0) > LONGEST:
        raise disagreement("placement", f"takes more than {LONGEST} slots")
    if found is None:
        _check_no_slack(placement, "no interval was searched for")
        return None
    groups = 2 if schedule.staggered else 1
    with derive_again("loop"):
        times = time_loop(loop, timing_of(schedule.machine), groups=groups)
    if not placement.barriers:
        _check_no_slack(placement, "no barriers were placed")
    with derive_again("placement"):
        certify_again(loop, times, placement)
    with derive_again("loop"):
        deep, few = derive_allowances(loop, schedule.machine, times)
        claim = Claim(loop=loop, machine=schedule.machine, times=times, deep=deep, few=few)
        shown = claim.certify(found, placement)
    if shown.certificate.optimal:  # by bounds alone
        named = {name: getattr(shown.certificate, name) for name in ("mii", "limits", "proof", "lower", "refuted")}
        compare_whole(found, replace(found, certificate=replace(found.certificate, **named)), "modulo")
        return found
    return replace(shown, certificate=replace(shown.certificate, by=CLAIMED))


def _check_no_slack(placement: Placement, why: str) -> None:
    for name in ("landing_slack", "read_slack"):
        if said := getattr(placement, name):
            both = {"in the document": said, "derived": 0}
            raise refuse_malformed(f"schedule.placement.{name}", f"{why}, so nothing is known about slack", **both)


class ValuesAgain(DerivedAgain[CompiledLoop]):
    result = CompiledLoop

    def rebuild(self, schedule: CompiledLoop) -> CompiledLoop:
        """The entries that loop and placement give, and what follows; their order within a phase is free.

        Waits and barriers say all themselves.
        """
        loop, placement, tiles = schedule.loop, schedule.placement, schedule.trip_tiles
        _check_copies(loop, placement)
        _check_sizes(schedule, loop, placement, tiles)
        with derive_again("loop"):
            due = derive_loop_phases(loop, placement, schedule.machine, tiles[1] - placement.stages + 1)
        last, modulo = len(schedule.prologue), schedule.modulo
        found = replace(
            schedule,
            prologue=tuple(_match_entries(Phase.PROLOGUE, schedule.prologue, due.prologue, schedule.machine)),
            kernel=tuple(_match_entries(Phase.KERNEL, schedule.kernel, due.kernel, schedule.machine)),
            epilogue=tuple(_match_entries(Phase.EPILOGUE, schedule.epilogue, due.epilogue, schedule.machine)),
            lds_bytes=loop.lds_bytes(dict(placement.copies)),
            compiler_tracks_registers=False,
            stagger_index=schedule.stagger_index if schedule.staggered else last,
            modulo=modulo and replace(modulo, ii=placement.interval, starts=placement.starts),
        )
        _check_fall_back("stagger_index", found.stagger_index, last)
        return rebuild_repairs(self, found)

    def waits(self, schedule: CompiledLoop, entry: Entry) -> Waits | None:
        effect = entry.effect
        waits = effect.kind is OpKind.WAIT and effect.counter is not None
        return Waits(effect.counter or "", effect.wait_value) if waits else None

    def as_claimed(self, schedule: CompiledLoop) -> CompiledLoop:
        # A search that found nothing better is no proof that can be read; a bound of the loop itself is.
        shown = _modulo(schedule)
        return replace(schedule, modulo=None) if shown is None else schedule.with_interval(shown)


def _check_copies(loop: LoopSpec, placement: Placement) -> None:
    own = {value.name for value in loop.values if value.home in (Home.LDS, Home.REGISTERS) and not value.into}
    names = [name for name, _ in placement.copies]
    for number, (name, count) in enumerate(placement.copies):
        where = f"placement.copies[{number}]"
        if name not in own:
            raise disagreement(where, f"{name!r:.60} is no value of the loop that has copies of its own")
        if names.count(name) > 1 or count < 1:
            raise disagreement(where, f"{count} copies of {name}, which is there {names.count(name)} times")


def _check_sizes(schedule: CompiledLoop, loop: LoopSpec, placement: Placement, tiles: tuple[int, int]) -> None:
    """Before anything is unrolled, so that nothing is that isn't in the document."""
    if len(placement.starts) != len(loop.ops) or min(placement.starts, default=0) < 0:
        raise disagreement("placement.starts", f"expected {len(loop.ops)} slots from 0 on, one for each op")
    inside, prologue, epilogue = (
        sum(not entry.op.is_framework for entry in entries)
        for entries in (schedule.kernel, schedule.prologue, schedule.epilogue)
    )
    compare_whole(tiles[0], placement.unroll, "trip_tiles[0]")
    if placement.stages > tiles[1] + 1:
        raise disagreement(
            "trip_tiles[1]",
            f"{placement.stages} stages leave {placement.stages - 1} K-tiles or more outside the loop, not {tiles[1]}",
        )
    expected = tiles[0] * len(loop.ops), tiles[1] * len(loop.ops)
    for field, count, due, with_it in (
        ("kernel", inside, expected[0], ""),
        ("epilogue", prologue + epilogue, expected[1], " with the prologue"),
    ):
        if count != due:
            both = {"in the document": count, "derived": due}
            raise refuse_malformed(
                f"schedule.{field}", f"has {count} data entries{with_it}; the loop gives {due}", **both
            )


def _match_entries(phase: Phase, said: Sequence[Entry], due: Sequence[Entry], machine: Machine) -> Iterator[Entry]:
    """The entries that should be there, in the given order, with the waits and barriers between them."""
    missing: dict[Entry, list[Entry]] = {}
    for entry in due:
        missing.setdefault(replace(entry, time_slot=0), []).append(entry)
    for slot, entry in enumerate(said):
        where = f"{phase.value.lower()}[{slot}]"
        if entry.op.is_framework:
            op, effect = _rebuild_sync(where, entry, machine)
            yield Entry(op=op, effect=effect, time_slot=slot, phase=phase)
            continue
        left = missing.get(replace(entry, time_slot=0, phase=phase))
        if not left:
            raise disagreement(where, f"{entry.op} is none of the data entries that loop and placement give here")
        yield replace(left.pop(0), time_slot=slot)


def _rebuild_sync(where: str, said: Entry, machine: Machine) -> tuple[Op, Effect]:
    """A wait or a barrier is what its effect says; a loop by values has no other ops of rota's own."""
    if said.op.kind is OpKind.WAIT:
        counter, count = said.effect.counter, said.effect.wait_value
        if counter is None or counter not in [each.name for each in machine.counters]:
            raise disagreement(f"{where}.effect.counter", f"{machine.name} has no counter {counter!r:.60}")
        if count < 0:
            raise disagreement(f"{where}.effect.wait_value", f"{count} tokens can't be left")
        return wait_op(counter, count), wait_effect(counter, count)
    known = {op: (op, effect) for op, effect in barrier_ops(split=machine.split_barrier)}
    if said.op not in known:
        raise disagreement(f"{where}.op", f"{said.op!s:.60} is no wait and no barrier of {machine.name}")
    return known[said.op]


FORMAT = "rota.schedule"
VERSION = 2
_KEYS = ("format", "version", "kind", "schedule")

_LONGEST = 2**26  # characters; a hundred times the largest schedule that we know

FRONT_ENDS: Mapping[str, DerivedAgain[Any]] = MappingProxyType({"pipeline": StagesAgain(), "values": ValuesAgain()})
"""Whose schedules a document can hold, by the kind that it says."""


def to_json(compiled: CompiledSchedule) -> str:
    """The schedule as a document."""
    kind = next((name for name, each in FRONT_ENDS.items() if type(compiled) is each.result), None)
    if kind is None:
        raise EmissionError.of(
            "T208",
            f"{compiled.name} is a {type(compiled).__name__}, which can't be derived again from a document",
            evidence=(("known", ", ".join(each.result.__name__ for each in FRONT_ENDS.values())),),
            fixes=("declare the loop by stages (PipelineSchedule) or by values (Loop)",),
        )
    schedule = encode(compiled) | {"machine": encode(machine_said(compiled.machine))}
    return json.dumps(dict(zip(_KEYS, (FORMAT, VERSION, kind, schedule), strict=True)), indent=1)


def from_json(text: str, machines: Iterable[Machine] | None = None) -> CompiledSchedule:
    """The schedule that a document describes, every field checked, and proved again if it says that it is proved.

    The schedule's machine is one of `machines`, by default of all that are registered.  "Proven least" remains
    only where a bound of the loop itself shows it again; what a search has shown becomes an open claim.
    """
    kind, given = _document(expect("the document", text, str))
    front_end, claimed = FRONT_ENDS[kind], given.pop("certificate", None)
    if "machine" not in given:
        raise refuse_malformed("schedule.machine", f"{front_end.result.__name__} needs it")
    machine = machine_meant(decode(given.pop("machine"), MachineSaid, "schedule.machine"), machines)
    complete = {name: [] for name in front_end.optional} | given
    schedule: CompiledSchedule = decode_record(complete, front_end.result, "schedule", machine=machine)
    terms: Certificate | None = decode(claimed, Certificate | None, "schedule.certificate")
    read: CompiledSchedule = check_agreement(front_end, schedule, terms, given)
    return read


def _document(text: str) -> tuple[str, dict[str, Any]]:
    """The kind, and the content of "schedule"; everything around it is checked here."""
    if len(text) > _LONGEST:
        raise refuse_malformed("the document", f"{len(text)} characters are more than a schedule takes", most=_LONGEST)
    try:
        document = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise refuse_malformed("the document", f"not JSON: {error!s:.200}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise refuse_malformed("format", f"expected {FORMAT!r}")
    _check_version(document.get("version"))
    if set(document) != set(_KEYS):
        raise refuse_malformed("the document", f"expected {', '.join(_KEYS[:-1])} and {_KEYS[-1]}, and nothing else")
    kind, schedule = document["kind"], document["schedule"]
    if not isinstance(kind, str) or kind not in FRONT_ENDS:
        raise refuse_malformed("kind", f"expected one of {', '.join(FRONT_ENDS)}, got {show_value(kind)}")
    if not isinstance(schedule, dict):
        fields = FRONT_ENDS[kind].result.__name__
        raise refuse_malformed("schedule", f"expected the fields of {fields}, got {show_value(schedule)}")
    return kind, schedule


def _check_version(version: object) -> None:
    if type(version) is int and 0 < version < VERSION:
        raise refuse_malformed(
            "version",
            f"{FORMAT} version {version} was written by an earlier rota, whose schedules had other fields; this one "
            f"reads version {VERSION}: write the document again, with to_json or `rota emit KERNEL --form json`",
        )
    if type(version) is not int or version != VERSION:
        raise refuse_malformed("version", f"expected {VERSION}, got {version!r:.60}")


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Of a name that is twice, one reader takes the first and another the last."""
    named: dict[str, Any] = {}
    for name, value in pairs:
        if name in named:
            raise ValueError(f"{name!r} stands twice in one object")
        named[name] = value
    return named


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
