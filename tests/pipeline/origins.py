"""Holds every origin against its claim: deletes what it names from the schedule and looks whether the entry is left.

An entry is told apart by the data ops around it, which have labels of their own, and not by what its origin says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from difflib import SequenceMatcher
from random import Random
from typing import Any, NamedTuple

from rota import OpRole, Phase, PipelineSchedule, RotaError, ScheduleEntry, compile_schedule, verify
from rota.compiled.proved import without_repair
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.program.entry import Origin
from tests.oracle.draw_stages import draw_schedule

REMOVED, REFUSED, LEFT, NAMELESS = "removed or changed", "refused without it", "left as it was", "names nothing"
_OFF: dict[str, Any] = {
    "minimal_barriers": True,
    "omit_mma_set_prio": True,
    "sched_barrier_mask": 0,
    "wrap_waits_with_sched_barrier": False,
    "drain_lgkm_mask": 0,
    "auto_drain": False,
    "lgkm_after_last": False,
    "inter_block_lgkm_drain": False,
    "auto_waits": False,
    "wait_lgkm_first": 255,
}
"""What a knob is when nothing is issued because of it."""


class Judged(NamedTuple):
    """An entry and what became of it without what its origin names."""

    entry: ScheduleEntry
    verdict: str


def judge(schedule: PipelineSchedule) -> Iterator[Judged]:
    """Every entry of the schedule as its rules derive it, then every entry that a repair added or changed."""
    labelled = _with(schedule, body=[op.but(label=f"op{n}") for n, op in enumerate(schedule.build_body())])
    written = compile_schedule(labelled, sync="as_written")
    without: dict[Origin, CompiledPipeline | None] = {}
    for phase in Phase:
        for entry in written.phase(phase):
            yield Judged(entry, _verdict(labelled, written, entry, without))
    try:
        repaired = compile_schedule(labelled)
    except RotaError:
        return
    for repair in repaired.repairs:
        entry = repaired.phase(repair.phase)[repair.slot]
        named = entry.origin is not None and entry.origin.repair
        yield Judged(entry, (REMOVED if _is_needed(repaired, repair) else LEFT) if named else NAMELESS)


def draw(random: Random) -> PipelineSchedule:
    """A drawn schedule that compiles, in the order that its scheduler finds."""
    while True:
        drawn = draw_schedule(random)
        with suppress(RotaError):
            return _in_its_order(drawn)


def _in_its_order(schedule: PipelineSchedule) -> PipelineSchedule:
    """The schedule with the order that its scheduler found as its body: without an op nothing is sought anew."""
    written = compile_schedule(schedule, sync="as_written")
    if written.ordering is None:
        return schedule
    made = _with(schedule, body=[written.body[number] for number in written.ordering.order])
    knobs = schedule.schedule_config().but(scheduling="IDENTITY")
    vars(made)["schedule_config"] = lambda: knobs
    return made


def _is_needed(repaired: CompiledPipeline, repair: Any) -> bool:
    """Without this repair the proof fails."""
    return not verify(without_repair(repaired, repair)).clean


def _verdict(
    schedule: PipelineSchedule,
    written: CompiledPipeline,
    entry: ScheduleEntry,
    without: dict[Origin, CompiledPipeline | None],
) -> str:
    origin = entry.origin
    if origin is None or not (origin.ops or origin.knobs or origin.hook):
        return NAMELESS
    if origin not in without:
        try:
            without[origin] = compile_schedule(_without(schedule, origin, entry), sync="as_written")
        except RotaError:
            without[origin] = None
    less = without[origin]
    if less is None:
        return REFUSED
    before, after = ([*each.phase(entry.phase)] for each in (written, less))
    return REMOVED if _is_gone(before, after, entry.time_slot) else LEFT


def _is_gone(before: Sequence[ScheduleEntry], after: Sequence[ScheduleEntry], slot: int) -> bool:
    """A data op is gone with its label, a wait, barrier or fence if fewer are left between its data ops.

    It has gone, too, if there are as many in another order and it is not among those that keep their places.
    """
    entry = before[slot]
    places = {str(each.op): n for n, each in enumerate(after) if not each.op.is_framework}
    if not entry.op.is_framework:
        return sum(each.op == entry.op for each in after) < sum(each.op == entry.op for each in before)
    stays = [str(each.op) in places and not each.op.is_framework for each in before]
    first = max((n for n in range(slot) if stays[n]), default=-1)
    last = min((n for n in range(slot + 1, len(before)) if stays[n]), default=len(before))
    start = places[str(before[first].op)] if first >= 0 else -1
    stop = places[str(before[last].op)] if last < len(before) else len(after)
    was, now = ([str(each.op) for each in part] for part in (before[first + 1 : last], after[start + 1 : stop]))
    if now.count(str(entry.op)) < was.count(str(entry.op)):
        return True
    kept = SequenceMatcher(None, was, now, autojunk=False).get_matching_blocks()
    return not any(block.a <= slot - first - 1 < block.a + block.size for block in kept)


def _without(schedule: PipelineSchedule, origin: Origin, entry: ScheduleEntry) -> PipelineSchedule:
    """The schedule without all that an origin names."""
    body, config, knobs = list(schedule.build_body()), schedule.config(), schedule.schedule_config()
    gone = set(origin.ops)
    cells = {(body[n].stage, body[n].subtile) for n in gone if body[n].role is OpRole.COMPUTE}
    if cells and config.has_blocks:  # a grid loses a cell in every partition, or it isn't one
        gone |= {n for n, op in enumerate(body) if op.role is OpRole.COMPUTE and (op.stage, op.subtile) in cells}
        config = config.but(m_mmas=1, n_mmas=config.mmas_per_partition - len(cells))
    if "depth" in origin.knobs:
        config = config.but(depth=1 if config.has_blocks else 2, num_partitions=1 if config.has_blocks else 2)
    changes = {name: _OFF[name] for name in origin.knobs if name in _OFF}
    if "wait_vm_last" in origin.knobs:
        changes["wait_vm_last"] = entry.op.wait_value + 1
    if "partial_prologue_drain" in origin.knobs:
        changes["partial_prologue_drain"] = not knobs.partial_prologue_drain
    made = _with(schedule, body=[op for n, op in enumerate(body) if n not in gone], config=config)
    changed = knobs.but(**changes)
    vars(made).update(schedule_config=lambda: changed, _sched=changed)
    if not any(op.is_prefetch_load for op in made.build_body()):  # a bootstrap fragment waits for one
        vars(made)["bootstrap_frags"] = lambda: ()
    if origin.hook:
        nothing: dict[str, Any] = {
            "bootstrap_frags": lambda: (),
            "build_explicit_blocks": lambda _body, _program: (),
            "transform_kernel": lambda kernel, _body: kernel,
        }
        vars(made)[origin.hook] = nothing[origin.hook]
    return made


def _with(schedule: PipelineSchedule, *, body: Sequence[Any], config: Any = None) -> PipelineSchedule:
    """A copy of the schedule whose methods return these."""
    made = copy(schedule)
    vars(made)["build_body"] = lambda: tuple(body)
    if config is not None:
        vars(made)["config"] = lambda: config
    return made
