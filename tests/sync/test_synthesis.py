"""Waits and barriers from nothing: proved, and none of the waits can be left out or weakened by itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from rota import (
    GFX942,
    GFX950,
    DeclarativeSchedule,
    KernelGeometry,
    Machine,
    Phase,
    Pipeline4Wave,
    PipelineSchedule,
    ScheduleConfig,
    SingleBufferSchedule,
    compile_schedule,
    mi355x_target,
    verify,
)
from rota.cycles.predict import predict
from rota.kernels.attention import ATTENTION, MI300X_ATTENTION, AttentionShape
from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES, GemmShape
from rota.program.entry import Entry, wait_op
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable
from rota.sync.repair import Sites, synthesise
from rota.values.compile_loop import compile_loop
from rota.values.compiled_loop import CompiledLoop
from tests.sync.brute_force import Program, races
from tests.sync.drawn import drawn_loop
from tests.sync.minimality import with_less

LOOPS = [
    (GEMM_SHAPES[0], GFX950, False),
    (GEMM_SHAPES[0], GFX950, True),
    (GEMM_SHAPES[2], GFX950, False),
    (MI300X_GEMM_SHAPES[0], GFX942, False),
    (MI300X_GEMM_SHAPES[2], GFX942, False),
    (ATTENTION, GFX950, False),
]
OTHER_LOOPS = [
    (GEMM_SHAPES[1], GFX950, False),
    (GEMM_SHAPES[3], GFX950, False),
    (GEMM_SHAPES[3], GFX950, True),
    (MI300X_GEMM_SHAPES[1], GFX942, False),
    (MI300X_ATTENTION, GFX942, False),
]
Shape = GemmShape | AttentionShape


def refused(compiled: Lowerable) -> bool:
    return not verify(compiled).clean


def racy(compiled: Lowerable) -> bool:
    return bool(races(Program(compiled)))


def waits_for(counter: str, compiled: CompiledLoop) -> list[Entry]:
    return [e for e in compiled.kernel if e.effect.kind is OpKind.WAIT and e.effect.counter == counter]


def needed(compiled: CompiledLoop, is_wrong: Callable[[Lowerable], bool]) -> None:
    """Whatever was put in is listed, and without any of it, or with any wait weaker, the loop is wrong.

    Except that staggered groups are kept apart by all of their barriers.
    """
    entries = (*compiled.prologue, *compiled.kernel, *compiled.epilogue)
    assert len(compiled.repairs) == sum(entry.op.is_framework for entry in entries)
    assert not is_wrong(compiled)
    for change, variant in with_less(compiled, barriers=not compiled.staggered):
        assert is_wrong(variant), str(change)


@pytest.mark.parametrize("remainder", [0, 1])
@pytest.mark.parametrize(
    ("shape", "machine", "stagger"),
    [*LOOPS, *(pytest.param(*each, marks=pytest.mark.slow) for each in OTHER_LOOPS)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_every_wait_and_barrier_of_a_shipped_loop_is_needed(
    shape: Shape, machine: Machine, remainder: int, *, stagger: bool
) -> None:
    compiled = compile_loop(shape.loop(instructions=False), machine, stagger=stagger, remainder=remainder)
    assert any(entry.op.kind is OpKind.WAIT for entry in compiled.kernel)
    needed(compiled, refused)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [*GEMM_SHAPES, ATTENTION], ids=lambda shape: shape.name)
def test_every_wait_and_barrier_of_a_shipped_loop_in_single_instructions_is_needed(shape: Shape) -> None:
    needed(compile_loop(shape.loop(instructions=True)), refused)


@pytest.mark.slow
@pytest.mark.parametrize("remainder", [0, 1])
def test_where_turns_are_scarce_a_barrier_stands_every_other_iteration(remainder: int) -> None:
    """And its two waits are one instruction; an iteration more outside the loop doesn't change that."""
    compiled = compile_loop(ATTENTION.loop(), polish=False, remainder=remainder)
    own = [entry.effect.counter or entry.op.name for entry in compiled.kernel if entry.op.is_framework]
    assert own == ["vmcnt", "lgkmcnt", "barrier", "lgkmcnt", "lgkmcnt", "lgkmcnt"] * (compiled.trip_tiles[0] // 2)
    assert compiled.certificate is not None


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("seed", range(6))
def test_every_wait_and_barrier_of_a_drawn_loop_is_needed(seed: int) -> None:
    compiled = compile_loop(drawn_loop(seed), GFX942, remainder=seed % 2)
    needed(compiled, refused)
    needed(compiled, racy)


@pytest.mark.parametrize(
    "schedule",
    [
        Pipeline4Wave(KernelGeometry()),
        SingleBufferSchedule(2),
        DeclarativeSchedule(ScheduleConfig(scheduling="GREEDY", minimal_barriers=True), mi355x_target(max_globals=0)),
    ],
    ids=["4-wave", "single buffer", "minimal barriers"],
)
def test_every_repair_of_a_shipped_schedule_is_needed(schedule: PipelineSchedule) -> None:
    compiled = compile_schedule(schedule)
    assert compiled.repairs
    for change, variant in with_less(compiled):
        assert refused(variant), str(change)


@pytest.mark.thorough  # runs for seconds
def test_a_loop_staged_in_registers_waits_for_each_load_at_its_own_store() -> None:
    """One wait at the barrier would have to drain them all, and be slower for it."""
    compiled = compile_loop(drawn_loop(1, staged=True), GFX942)
    needed(compiled, racy)
    needed(compiled, refused)
    assert min(entry.effect.wait_value for entry in waits_for("vmcnt", compiled)) > 0
    drained = tuple(
        replace(entry, op=wait_op("vmcnt", 0), effect=replace(entry.effect, wait_value=0))
        if entry in waits_for("vmcnt", compiled)
        else entry
        for entry in compiled.kernel
    )
    assert predict(compiled, band=False).cycles < predict(replace(compiled, kernel=drained), band=False).cycles


def test_no_wait_is_weaker_than_can_be_encoded() -> None:
    """Eight reads may be in flight at a wait; where the counter tells only eight from more, seven, with no repair."""
    loop = GEMM_SHAPES[0].loop(instructions=False)
    few = replace(
        GFX950,
        counters=tuple(
            replace(each, holds=each.holds._replace(value=8)) if each.name == "lgkmcnt" else each
            for each in GFX950.counters
        ),
    )
    weakest = []
    for machine in (GFX950, few):
        compiled = compile_loop(loop, machine, polish=False)
        weakest.append(max(entry.effect.wait_value for entry in waits_for("lgkmcnt", compiled)))
        assert all(change.before is None for change in compiled.repairs)
    assert weakest == [8, 7]


def test_staggered_groups_keep_the_barriers_that_align_them() -> None:
    compiled = compile_loop(GEMM_SHAPES[0].loop(instructions=False), stagger=True)
    barriers = [entry for entry in compiled.kernel if entry.op.kind is OpKind.BARRIER]
    assert len(barriers) == 4 * compiled.trip_tiles[0]
    assert any("apart" in change.reason for change in compiled.repairs)


def test_reasons_name_both_ends_by_their_new_numbers() -> None:
    compiled = compile_loop(GEMM_SHAPES[0].loop(instructions=False))
    waits = [change for change in compiled.repairs if change.phase is Phase.KERNEL]
    for change in waits:
        assert compiled.kernel[change.slot].op == change.op
    reason = next(change.reason for change in waits if change.op.name.startswith("wait_vm"))
    ends = re.findall(r"\((\w+)\[(\d+)\]\)", reason)
    assert len(ends) == 2
    for phase, slot in ends:
        assert f"{compiled.phase(Phase[phase.upper()])[int(slot)].op} ({phase}[{slot}])" in reason


def test_a_loop_without_a_site_for_an_obligation_is_left_to_repair() -> None:
    compiled = compile_loop(GEMM_SHAPES[2].loop(instructions=False))
    bare = replace(
        compiled,
        prologue=tuple(entry for entry in compiled.prologue if not entry.op.is_framework),
        kernel=tuple(entry for entry in compiled.kernel if not entry.op.is_framework),
        epilogue=tuple(entry for entry in compiled.epilogue if not entry.op.is_framework),
    )
    times = {
        Phase.PROLOGUE: tuple(range(len(bare.prologue))),
        Phase.KERNEL: tuple(range(len(bare.kernel))),
        Phase.EPILOGUE: tuple(range(len(bare.epilogue))),
    }
    sites = Sites(barriers=(), waits={})
    assert synthesise(bare.lowered, times, compiled.placement.interval, sites) is None
