"""Waits and barriers from nothing: proved, and every one of the loop's is needed and as weak as it can be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX942, GFX950, CompiledSchedule, FrameworkTag, Machine, Phase, ScheduleEntry, verify
from rota.compiler.loop import compile_loop
from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES, GemmShape
from rota.sync.sites import Sites
from rota.sync.synthesis import synthesise

LOOPS = [
    (GEMM_SHAPES[0], GFX950, False),
    (GEMM_SHAPES[0], GFX950, True),
    (GEMM_SHAPES[2], GFX950, False),
    (MI300X_GEMM_SHAPES[2], GFX942, False),
]
WAITS = (FrameworkTag.WAIT_VM, FrameworkTag.WAIT_LGKM)


def without(compiled: CompiledSchedule, place: int) -> CompiledSchedule:
    kernel = [entry for entry in compiled.kernel if entry.time_slot != place]
    return replace(compiled, kernel=tuple(replace(entry, time_slot=slot) for slot, entry in enumerate(kernel)))


def weakened(compiled: CompiledSchedule, at: ScheduleEntry) -> CompiledSchedule:
    weaker = replace(at, op=replace(at.op, wait_value=at.op.wait_value + 1))
    return replace(compiled, kernel=tuple(weaker if entry is at else entry for entry in compiled.kernel))


@pytest.mark.parametrize(("shape", "machine", "stagger"), LOOPS, ids=lambda value: getattr(value, "name", str(value)))
def test_every_wait_and_barrier_of_the_loop_is_needed(shape: GemmShape, machine: Machine, *, stagger: bool) -> None:
    compiled = compile_loop(shape.loop(instructions=False), machine, stagger=stagger)
    assert verify(compiled).clean
    assert any(entry.op.tag in WAITS for entry in compiled.kernel)
    for entry in compiled.kernel:
        if entry.op.tag in WAITS:
            assert not verify(without(compiled, entry.time_slot)).clean, entry
            assert not verify(weakened(compiled, entry)).clean, entry
        elif entry.op.tag == FrameworkTag.BARRIER and not stagger:
            assert not verify(without(compiled, entry.time_slot)).clean, entry


def test_staggered_groups_keep_the_barriers_that_align_them() -> None:
    compiled = compile_loop(GEMM_SHAPES[0].loop(instructions=False), stagger=True)
    assert compiled.trip_tiles is not None
    barriers = [entry for entry in compiled.kernel if entry.op.tag == FrameworkTag.BARRIER]
    assert len(barriers) == 4 * compiled.trip_tiles[0]
    assert any("apart" in change.reason for change in compiled.repairs)


def test_reasons_name_both_ends_by_their_new_numbers() -> None:
    compiled = compile_loop(GEMM_SHAPES[0].loop(instructions=False))
    waits = [change for change in compiled.repairs if change.phase is Phase.KERNEL]
    for change in waits:
        assert compiled.kernel[change.slot].op == change.op
    reason = next(change.reason for change in waits if change.op.tag == FrameworkTag.WAIT_VM)
    first = reason.split(" must be over ")[0]
    slot = int(first.split("#")[1].rstrip(")"))
    phase = compiled.prologue if "(prologue" in first else compiled.kernel
    assert first.startswith(str(phase[slot].op))


def test_a_loop_without_a_site_for_an_obligation_is_left_to_repair() -> None:
    compiled = compile_loop(GEMM_SHAPES[2].loop(instructions=False))
    assert compiled.placement is not None
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
    assert synthesise(bare, times, compiled.placement.interval, Sites(barriers=(), reads=()), GFX950) is None
