"""Unit times of GEMM loops, against numbers that can be counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX942, GFX950, Machine
from rota.kernels.gemm import BF16, GEMM_SHAPES, GemmShape
from rota.program.kinds import OpKind, Unit
from rota.program.loop_spec import LoopSpec, Read
from rota.targets.device import Rates, rates_of, timing_of
from rota.values.loop import Loop
from rota.values.op_times import find_precedences, time_loop
from tests.findings.smallest import raised

MI300X = GemmShape(
    name="gemm_bf16_mi300x", instruction="v_mfma_f32_16x16x16_bf16", mma=(16, 16), dma_bytes=4, read_bytes=8
)


@pytest.mark.parametrize("instructions", [False, True])
@pytest.mark.parametrize(
    ("shape", "machine", "busy"),
    [
        # 256 x 256 x 64 x 2 flop at 1,024 flop a clock and SIMD; 192 KiB read and 64 KiB written; 64 KiB fetched.
        (GEMM_SHAPES[0], GFX950, {Unit.MMA: 512, Unit.LDS: 192 + 128, Unit.DMA: 256}),
        (GEMM_SHAPES[1], GFX950, {Unit.MMA: 512, Unit.LDS: 128 + 128, Unit.DMA: 256}),
        (GEMM_SHAPES[2], GFX950, {Unit.MMA: 128, Unit.LDS: 64 + 64, Unit.DMA: 128}),
        (GEMM_SHAPES[3], GFX950, {Unit.MMA: 512, Unit.LDS: 192 + 128, Unit.DMA: 256}),
        (MI300X, GFX942, {Unit.MMA: 1024, Unit.LDS: 384 + 128, Unit.DMA: 256}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_how_busy_each_unit_is(shape: GemmShape, machine: Machine, busy: dict[Unit, int], instructions: bool) -> None:
    loop = shape.loop(instructions=instructions)
    times = time_loop(loop, timing_of(machine))
    loads = sum(op.instructions for op in loop.ops if op.kind is OpKind.DMA)  # three turns: m0, a wait state, the load
    turns = sum(op.instructions for op in loop.ops) + 2 * loads
    assert dict(times.busy) == busy | {Unit.ISSUE: turns}
    assert times.turns == (turns if instructions else 0)  # the order of a tile's instructions isn't the schedule's
    assert times.least_interval == busy[Unit.MMA]


@pytest.mark.parametrize(
    ("shape", "ops"), list(zip(GEMM_SHAPES, (96, 176, 56, 64), strict=True)), ids=lambda v: str(v)[:30]
)
def test_single_instructions_are_counted_per_wave(shape: GemmShape, ops: int) -> None:
    assert len(shape.loop(instructions=True).ops) == ops


def test_registers_and_lds_are_the_same_at_both_granularities() -> None:
    for shape in GEMM_SHAPES:
        coarse, fine = shape.loop(instructions=False), shape.loop(instructions=True)
        for home in {value.home for value in coarse.values}:
            sizes = [sum(value.size for value in spec.values if value.home is home) for spec in (coarse, fine)]
            assert sizes[0] == sizes[1]


def test_waves_other_than_four_or_eight_are_refused() -> None:
    raised("D102", lambda: replace(GEMM_SHAPES[0], waves=6))


def test_unknown_instructions_are_refused_with_a_guess() -> None:
    rates: Rates = rates_of(GFX950)
    raised("D105", lambda: rates.passes("v_mfma_f32_16x16x32_bf1"))
    assert rates.passes(BF16) == 4
    assert [rates.slots(clocks) for clocks in (0, 1, 4, 5)] == [0, 1, 1, 2]


def small() -> LoopSpec:
    loop = Loop("small", waves=4)
    tile = loop.tile("A", size=1024)
    loop.load(tile, moved=1024)
    a = loop.fragment("a", tile, registers=4)
    loop.valu("top", [a, Read(value="top", distance=1)], registers=1)
    loop.mma(loop.accumulator("c", registers=4), a, "top", instruction=BF16)
    return loop.build()


def test_a_matrix_op_adds_in_place_to_another_as_soon_as_that_has_left_the_unit() -> None:
    loop = Loop("chain", waves=4)
    tile = loop.tile("A", size=4096)
    loop.load(tile, moved=4096)
    a = loop.fragment("a", tile, registers=4)
    first = loop.product("first", [a], registers=4, instruction=BF16)
    second = loop.product("second", [a, first], registers=4, instruction=BF16, into=first)
    loop.valu("last", [second], registers=4)
    spec = loop.build()
    delays = {
        (spec.ops[p.earlier].name, spec.ops[p.later].name): p.delay
        for p in find_precedences(spec, time_loop(spec, timing_of(GFX950)), {})
        if p.distance == 0
    }
    assert delays["mma_first", "mma_second"] == 4
    assert delays["mma_second", "make_last"] == 4 + timing_of(GFX950).result_turns.value


def test_values_that_share_registers_take_turns() -> None:
    loop = Loop("turns", waves=4)
    old = Read(value="last", distance=1)
    first = loop.valu("first", [old], registers=2)
    loop.valu("seen", [first], registers=1, instructions=3)
    loop.valu("last", [first], registers=2, into=first)
    spec = loop.build()
    assert spec.registers_of("last") == ("first", "last")
    found = {
        (spec.ops[p.earlier].name, spec.ops[p.later].name, p.distance)
        for p in find_precedences(spec, time_loop(spec, timing_of(GFX950)), {"first": 1})
    }
    assert ("make_seen", "make_last", 0) in found  # the first is seen before the last overwrites it
    assert ("make_first", "make_first", 1) not in found  # it overwrites in place what it alone reads of the last
    assert ("make_last", "make_first", 1) in found


def test_flow_goes_forward_and_reuse_comes_back_after_as_many_iterations_as_there_are_copies() -> None:
    spec = small()
    found = {
        (spec.ops[p.earlier].name, spec.ops[p.later].name, p.distance): p.delay
        for p in find_precedences(spec, time_loop(spec, timing_of(GFX950)), {"A": 2})
    }
    assert found == {
        ("load_A", "read_a", 0): 4 + 200,
        ("read_a", "load_A", 2): 4 + 16,
        ("read_a", "make_top", 0): 4 + 16,
        ("make_top", "read_a", 1): 1,
        ("make_top", "make_top", 1): 1,
        ("read_a", "mma_c", 0): 4 + 16,
        ("mma_c", "read_a", 1): 4,
        ("make_top", "mma_c", 0): 1,
        ("mma_c", "make_top", 1): 4,
    }
