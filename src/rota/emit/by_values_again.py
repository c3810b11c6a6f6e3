"""A loop by values, derived again: takes a schedule that was read, gives what doesn't follow from its loop."""

from __future__ import annotations

from collections.abc import Iterator

from rota.compiler.compiled import CompiledSchedule
from rota.declare.config import PipelineConfig, WarpStaggerRule
from rota.declare.values import Home, LoopSpec
from rota.declare.vocabulary import Phase
from rota.emit.disagreement import Disagreement, derived_again, differing
from rota.program.config import ScheduleConfig
from rota.program.entry import ScheduleEntry
from rota.program.unroll import Placement, UnrolledLoop, derive_loop_phases

_STAGES_ALONE = {"body": (), "edges": (), "kernel_deps": (), "program": None, "ordering": None}


def loop_by_values(schedule: CompiledSchedule) -> Iterator[Disagreement]:
    """The order of data entries is free, within their phase; waits and barriers say all themselves."""
    loop, placement, tiles = schedule.loop, schedule.placement, schedule.trip_tiles
    for name, nothing in _STAGES_ALONE.items():
        yield from differing(name, getattr(schedule, name), nothing, "a loop by values has none")
    yield from differing("schedule_config", schedule.schedule_config, ScheduleConfig(), "a loop by values has no knobs")
    if loop is None or placement is None or tiles is None:
        yield Disagreement("placement", "a loop by values has one, and trip_tiles")
        return
    yield from _copies(loop, placement)
    yield from _sizes(schedule, loop, placement, tiles)
    with derived_again("loop"):
        due = derive_loop_phases(loop, placement, tiles[1] - placement.stages + 1)
    yield from differing("lds_bytes", schedule.lds_bytes, loop.lds_bytes(dict(placement.copies)))
    yield from _config(schedule, due)
    yield from _entries(schedule, due)


def _copies(loop: LoopSpec, placement: Placement) -> Iterator[Disagreement]:
    own = {value.name for value in loop.values if value.home in (Home.LDS, Home.REGISTERS) and not value.into}
    names = [name for name, _ in placement.copies]
    for number, (name, count) in enumerate(placement.copies):
        where = f"placement.copies[{number}]"
        if name not in own:
            yield Disagreement(where, f"{name!r:.60} is no value of the loop that has copies of its own")
        if names.count(name) > 1 or count < 1:
            yield Disagreement(where, f"{count} copies of {name}, which stands there {names.count(name)} times")


def _sizes(
    schedule: CompiledSchedule, loop: LoopSpec, placement: Placement, tiles: tuple[int, int]
) -> Iterator[Disagreement]:
    """Before anything is unrolled, so that nothing is that isn't in the document."""
    if len(placement.starts) != len(loop.ops) or min(placement.starts, default=0) < 0:
        yield Disagreement("placement.starts", f"expected {len(loop.ops)} slots from 0 on, one for each op")
        return
    inside, prologue, epilogue = (
        sum(not entry.op.is_framework for entry in entries)
        for entries in (schedule.kernel, schedule.prologue, schedule.epilogue)
    )
    yield from differing("trip_tiles[0]", tiles[0], placement.unroll)
    if placement.stages > tiles[1] + 1:
        yield Disagreement(
            "trip_tiles[1]",
            f"{placement.stages} stages leave {placement.stages - 1} K-tiles or more outside the loop, not {tiles[1]}",
        )
    expected = tiles[0] * len(loop.ops), tiles[1] * len(loop.ops)
    yield from differing("kernel", inside, expected[0], f"has {inside} data entries; the loop gives {expected[0]}")
    outside = prologue + epilogue
    yield from differing(
        "epilogue", outside, expected[1], f"has {outside} data entries with the prologue; the loop gives {expected[1]}"
    )


def _config(schedule: CompiledSchedule, due: UnrolledLoop) -> Iterator[Disagreement]:
    staggers = schedule.config.warp_stagger.enabled
    rule = WarpStaggerRule.fixed(len(due.prologue)) if staggers else WarpStaggerRule.none()
    expected = PipelineConfig(depth=1, num_partitions=1, warp_stagger=rule)
    yield from differing("config", schedule.config, expected, "is not that of a loop by values")


def _entries(schedule: CompiledSchedule, due: UnrolledLoop) -> Iterator[Disagreement]:
    given = schedule.prologue, schedule.kernel, schedule.epilogue
    for phase, entries, wanted in zip(Phase, given, (due.prologue, due.kernel, due.epilogue), strict=True):
        missing: dict[ScheduleEntry, list[str]] = {}
        for entry in wanted:
            missing.setdefault(_placeless(entry), []).append(entry.op.label)
        for slot, entry in enumerate(entries):
            where = f"{phase.value.lower()}[{slot}]"
            if entry.op.is_framework:
                if entry.effect is not None:
                    yield Disagreement(f"{where}.effect", "follows from the op, and can't be given")
                continue
            labels = missing.get(_placeless(entry), [])
            if entry.op.label not in labels:
                yield Disagreement(where, f"{entry.op} is none of the data entries that loop and placement give here")
                return
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
