"""What an entry's origin names is what made it: without it the entry is gone or another."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from rota import (
    DeclarativeSchedule,
    KernelGeometry,
    Pipeline4Wave,
    PipelineSchedule,
    SingleBufferSchedule,
    build_kernel_program,
    compile_schedule,
)
from rota.program.entry import Origin
from tests.pipeline.origins import LEFT, NAMELESS, REFUSED, REMOVED, draw, judge
from tests.programs.ported import Plain, Rotating, Tag

SHIPPED = {
    "four_wave": Pipeline4Wave(KernelGeometry()),
    "ping_pong": DeclarativeSchedule(),
    "single_buffer": SingleBufferSchedule(2),
    "plain": Plain(),
    "rotating": Rotating(),
}


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize(("name", "refused"), [*zip(SHIPPED, (1, 1, 13, 1, 1), strict=True)])
def test_every_entry_of_a_schedule_names_what_made_it(name: str, refused: int) -> None:
    judged = list(judge(SHIPPED[name]))
    assert not [str(each.entry) for each in judged if each.verdict in (LEFT, NAMELESS)]
    # Without these there is no schedule: a double buffer's closing barrier, and ops that a single buffer has once.
    assert sum(each.verdict is REFUSED for each in judged) == refused


@pytest.mark.no_cover
def test_every_entry_of_drawn_schedules_names_what_made_it() -> None:
    """A share of `benchmarks/origins.py`."""
    seen = Counter[str]()
    for seed in range(12):
        for each in judge(draw(Random(seed))):
            seen[each.verdict] += 1
            assert each.verdict in (REMOVED, REFUSED), f"seed {seed}: {each.entry}: {each.entry.origin}"
    assert seen[REMOVED] > 4 * seen[REFUSED]


def test_a_wrong_origin_is_noticed() -> None:
    wrong = Origin(rule="a rule that it isn't", knobs=("sched_barrier_mask",))
    schedule = Plain()
    listing = [
        [op.with_origin(wrong) if str(op) == "barrier" else op for op in block.expand()]
        for block in build_kernel_program(schedule.build_body(), schedule.config(), schedule.schedule_config()).blocks
    ]
    vars(schedule)["build_explicit_blocks"] = lambda _body, _program: listing
    verdicts = {each.verdict for each in judge(schedule) if each.entry.origin == wrong}
    assert LEFT in verdicts


def origin_of(schedule: PipelineSchedule, text: str, phase: str = "kernel") -> Origin:
    compiled = compile_schedule(schedule, sync="as_written")
    entries = compiled.prologue if phase == "prologue" else compiled.kernel
    origin = next(each.origin for each in entries if str(each.op) == text)
    assert origin is not None
    return origin


def test_a_data_op_names_its_number_and_its_line_in_the_body() -> None:
    schedule = Plain()
    body = schedule.build_body()
    for entry in compile_schedule(schedule, sync="as_written").kernel:
        if not entry.op.is_framework:
            assert entry.origin is not None
            (number,) = entry.origin.ops
            assert body[number] == entry.op
            assert entry.origin.source == body[number].source


def test_knobs_hooks_and_repairs_are_named() -> None:
    assert origin_of(Plain(), "barrier").knobs == ("minimal_barriers",)
    assert origin_of(Plain(wrap_waits_with_sched_barrier=True), "schedule_barrier").knobs == (
        "wrap_waits_with_sched_barrier",
    )
    assert origin_of(Rotating(), "frag_a s0 t0", "prologue").hook == "bootstrap_frags"
    assert origin_of(Rotating(), "schedule_barrier").hook == "build_explicit_blocks"
    compiled = compile_schedule(Rotating())
    for repair in compiled.repairs:
        origin = compiled.phase(repair.phase)[repair.slot].origin
        assert origin is not None
        assert origin.repair
        assert origin.rule == repair.reason


def test_a_prologue_load_is_the_op_of_the_body_that_prefetches() -> None:
    origin = origin_of(Plain(), "copy_b s1 t1 k1", "prologue")
    assert Plain().build_body()[origin.ops[0]].tag is Tag.COPY_B


def test_an_origin_takes_no_part_in_equality() -> None:
    first = compile_schedule(Plain(), sync="as_written").kernel[0]
    assert replace(first, op=first.op.with_origin(None)) == first
    assert compile_schedule(Plain()).lowered.kernel[0].origin == first.origin
