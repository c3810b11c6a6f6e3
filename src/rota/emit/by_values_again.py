"""A loop by values, derived again: takes a schedule that was read, gives silence or an error where a part differs."""

from __future__ import annotations

from rota.compiler.compiled import CompiledSchedule
from rota.declare.config import PipelineConfig, WarpStaggerRule
from rota.declare.values import Home, LoopSpec
from rota.declare.vocabulary import Phase
from rota.emit.disagreement import demand, derived_again, disagreement
from rota.program.config import ScheduleConfig
from rota.program.entry import ScheduleEntry
from rota.program.unroll import Placement, UnrolledLoop, derive_loop_phases

_STAGES_ALONE = {"body": (), "edges": (), "kernel_deps": (), "program": None, "ordering": None}


def check_values(schedule: CompiledSchedule, loop: LoopSpec) -> None:
    """The order of data entries is free, within their phase; waits and barriers say all themselves."""
    placement, tiles = schedule.placement, schedule.trip_tiles
    for name, nothing in _STAGES_ALONE.items():
        demand(name, getattr(schedule, name), nothing, "a loop by values has none")
    demand("schedule_config", schedule.schedule_config, ScheduleConfig(), "a loop by values has no knobs")
    if placement is None or tiles is None:
        raise disagreement("placement", "a loop by values has one, and trip_tiles")
    _check_copies(loop, placement)
    _check_sizes(schedule, loop, placement, tiles)
    with derived_again("loop"):
        due = derive_loop_phases(loop, placement, tiles[1] - placement.stages + 1)
    demand("lds_bytes", schedule.lds_bytes, loop.lds_bytes(dict(placement.copies)))
    _check_config(schedule, due)
    _check_entries(schedule, due)


def _check_copies(loop: LoopSpec, placement: Placement) -> None:
    own = {value.name for value in loop.values if value.home in (Home.LDS, Home.REGISTERS) and not value.into}
    names = [name for name, _ in placement.copies]
    for number, (name, count) in enumerate(placement.copies):
        where = f"placement.copies[{number}]"
        if name not in own:
            raise disagreement(where, f"{name!r:.60} is no value of the loop that has copies of its own")
        if names.count(name) > 1 or count < 1:
            raise disagreement(where, f"{count} copies of {name}, which stands there {names.count(name)} times")


def _check_sizes(schedule: CompiledSchedule, loop: LoopSpec, placement: Placement, tiles: tuple[int, int]) -> None:
    """Before anything is unrolled, so that nothing is that isn't in the document."""
    if len(placement.starts) != len(loop.ops) or min(placement.starts, default=0) < 0:
        raise disagreement("placement.starts", f"expected {len(loop.ops)} slots from 0 on, one for each op")
    inside, prologue, epilogue = (
        sum(not entry.op.is_framework for entry in entries)
        for entries in (schedule.kernel, schedule.prologue, schedule.epilogue)
    )
    demand("trip_tiles[0]", tiles[0], placement.unroll)
    if placement.stages > tiles[1] + 1:
        raise disagreement(
            "trip_tiles[1]",
            f"{placement.stages} stages leave {placement.stages - 1} K-tiles or more outside the loop, not {tiles[1]}",
        )
    expected = tiles[0] * len(loop.ops), tiles[1] * len(loop.ops)
    demand("kernel", inside, expected[0], f"has {inside} data entries; the loop gives {expected[0]}")
    outside = prologue + epilogue
    demand(
        "epilogue", outside, expected[1], f"has {outside} data entries with the prologue; the loop gives {expected[1]}"
    )


def _check_config(schedule: CompiledSchedule, due: UnrolledLoop) -> None:
    staggers = schedule.config.warp_stagger.enabled
    rule = WarpStaggerRule.fixed(len(due.prologue)) if staggers else WarpStaggerRule.none()
    expected = PipelineConfig(depth=1, num_partitions=1, warp_stagger=rule)
    demand("config", schedule.config, expected, "is not that of a loop by values")


def _check_entries(schedule: CompiledSchedule, due: UnrolledLoop) -> None:
    given = schedule.prologue, schedule.kernel, schedule.epilogue
    for phase, entries, wanted in zip(Phase, given, (due.prologue, due.kernel, due.epilogue), strict=True):
        missing: dict[ScheduleEntry, list[str]] = {}
        for entry in wanted:
            missing.setdefault(_placeless(entry), []).append(entry.op.label)
        for slot, entry in enumerate(entries):
            where = f"{phase.value.lower()}[{slot}]"
            if entry.op.is_framework:
                if entry.effect is not None:
                    raise disagreement(f"{where}.effect", "follows from the op, and can't be given")
                continue
            labels = missing.get(_placeless(entry), [])
            if entry.op.label not in labels:
                raise disagreement(where, f"{entry.op} is none of the data entries that loop and placement give here")
            labels.remove(entry.op.label)


def _placeless(entry: ScheduleEntry) -> ScheduleEntry:
    """All of an entry but its place."""
    return ScheduleEntry(
        op=entry.op,
        time_slot=0,
        phase=entry.phase,
        is_prefetch=entry.is_prefetch,
        group=entry.group,
        effect=entry.effect,
    )
