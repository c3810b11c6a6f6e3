"""Registers that are live at once, by hand and against counting them slot by slot."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from rota import GFX950, Loop, Read, compile_loop
from rota.kernels.gemm import BF16
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopSpec
from rota.targets.device import timing_of
from rota.values.compile_loop import unroll_bare
from rota.values.op_times import time_loop
from rota.values.unroll import Holder, Placement, find_least_live, find_most_live
from tests.execute.random_loops import specs
from tests.findings.smallest import raised


def one_after_the_other(count: int, registers: int) -> LoopSpec:
    """So many values, each made of the one before: no more than two need be live at once."""
    loop = Loop("chain", waves=4)
    tile = loop.tile("A", size=4096)
    loop.load(tile, moved=4096)
    value = loop.fragment("v0", tile, registers=registers, instructions=-(-registers // 4))
    for number in range(1, count):
        value = loop.valu(f"v{number}", [value], registers=registers, instructions=registers)
    return loop.build()


def test_values_that_are_never_live_together_fit_where_their_sum_does_not() -> None:
    spec = one_after_the_other(6, 100)
    assert spec.registers({}) == 600
    compiled = compile_loop(spec)
    assert compiled.certificate is not None
    assert compiled.registers is not None
    assert 200 <= compiled.registers <= 512


def test_what_no_schedule_can_hold_is_refused_with_its_holders_and_their_lines() -> None:
    loop = Loop("wide", waves=4)
    total = loop.accumulator("c", registers=300)
    tile = loop.tile("A", size=4096)
    loop.load(tile, moved=4096)
    a = loop.fragment("a", tile, registers=150, instructions=38)
    b = loop.fragment("b", tile, registers=100, instructions=25)
    loop.mma(total, a, b, instruction="v_mfma_f32_16x16x32_bf16")
    finding = raised("L104", lambda: compile_loop(loop.build()))
    assert ("registers live at once", 550) in finding.evidence
    assert ("limit", 512) in finding.evidence
    assert [each.label for each in finding.concerns] == ["c", "a", "b"]
    assert [each.role for each in finding.concerns] == [
        "holds 300 registers, made by mma_c",
        "holds 150 registers, made by read_a",
        "holds 100 registers, made by read_b",
    ]
    assert all(each.source is not None and each.source.file.endswith("test_live.py") for each in finding.concerns)


def test_an_operand_of_an_earlier_iteration_may_be_overwritten_by_its_own_reader() -> None:
    loop = Loop("scan", waves=4)
    tile = loop.tile("A", size=4096)
    loop.load(tile, moved=4096)
    a = loop.fragment("a", tile, registers=4)
    loop.valu("total", [a, Read(value="total", distance=1)], registers=8)
    assert find_least_live(loop.build()).registers == 4 + 8


def test_values_that_share_registers_count_once() -> None:
    loop = Loop("in_place", waves=4)
    tile = loop.tile("A", size=4096)
    loop.load(tile, moved=4096)
    a = loop.fragment("a", tile, registers=4)
    b = loop.valu("b", [a], registers=4, into=a)
    loop.valu("c", [b], registers=4, into=b)
    spec = loop.build()
    assert find_least_live(spec).registers == 4
    placement = Placement(interval=300, starts=(0, 230, 260, 280), copies=(("A", 1), ("a", 1)))
    live = find_most_live(spec, placement, time_loop(spec, timing_of(GFX950)))
    assert live.registers == 4
    assert [holder.registers for holder in live.holders] == [4]


def test_where_a_matrix_op_has_no_length_every_copy_has_registers() -> None:
    loop = Loop("nameless", waves=4)
    tile = loop.tile("A", size=4096)
    loop.load(tile, moved=4096)
    loop.mma(loop.accumulator("c", registers=8), loop.fragment("a", tile, registers=4), instruction="")
    placement = Placement(interval=300, starts=(0, 230, 260), copies=(("A", 1), ("a", 3)))
    assert unroll_bare(loop.build(), placement).registers == 8 + 3 * 4


def test_a_life_longer_than_the_interval_counts_as_often_as_it_overlaps_itself() -> None:
    spec = one_after_the_other(2, 10)
    times = time_loop(spec, timing_of(GFX950))
    placement = Placement(interval=100, starts=(0, 210, 420), copies=(("A", 3), ("v0", 3), ("v1", 1)))
    # v0 lives from slot 210 to 430, so at 210 + 2 x 100 = 410 for three iterations; v1 from 420 to 430.
    live = find_most_live(spec, placement, times)
    assert live == (40, (Holder("v0", 30), Holder("v1", 10)))


@given(specs())
@settings(max_examples=6, deadline=None, derandomize=True)
def test_the_count_is_what_a_walk_over_all_slots_finds(spec: LoopSpec) -> None:
    ops = (replace(op, instruction=BF16) if op.kind is OpKind.MMA else op for op in spec.ops)
    spec = replace(spec, ops=tuple(ops))
    compiled = compile_loop(spec, polish=False)
    placement = compiled.placement
    assert placement is not None
    times = time_loop(spec, timing_of(GFX950))
    ii, copies, warm = placement.interval, dict(placement.copies), 2 * placement.stages + 4
    always = sum(value.size for value in spec.values if value.home in (Home.INPUT, Home.ACCUMULATOR))
    in_use: dict[int, set[tuple[str, int]]] = {slot: set() for slot in range(warm * ii, (warm + 1) * ii)}
    for value in spec.values:
        if value.home is not Home.REGISTERS:
            continue
        first = spec.registers_of(value.name)[0]
        for iteration in range(warm + 1):
            shift = iteration * ii
            for number, op in enumerate(spec.ops):
                start, timing = placement.starts[number] + shift, times.timings[number]
                if value.name in op.writes:
                    begins, end = start, start + max(1, timing.latency)
            for number, op in enumerate(spec.ops):
                for read in op.reads:
                    if read.value == value.name:
                        last = placement.starts[number] + shift + read.distance * ii
                        end = max(end, last + max(1, times.timings[number].occupancy))
            for slot in range(max(begins, warm * ii), min(end, (warm + 1) * ii)):
                in_use[slot].add((first, iteration % copies.get(first, 1)))
    sizes = {value.name: value.size for value in spec.values}
    assert compiled.registers == always + max(sum(sizes[first] for first, _ in held) for held in in_use.values())
    assert find_least_live(spec).registers <= compiled.registers <= spec.registers(copies)
