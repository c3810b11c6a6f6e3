"""The pace of one wave against the cycle model, which runs all of them."""

from dataclasses import replace
from functools import cache
from random import Random

import pytest

from rota import GFX950
from rota.cycles.instructions import encode, nominal
from rota.cycles.pace import TURNS, PacedLoop, PaceStep, WavePace, make_paced_loop
from rota.cycles.predict import clocks_per_tile
from rota.kernels.attention import ATTENTION, AttentionShape
from rota.kernels.gemm import BF16, GEMM_SHAPES, GemmShape
from rota.program.kinds import OpKind
from rota.targets.device import device_of
from rota.values.compile_loop import compile_loop
from rota.values.compiled_loop import CompiledLoop


@cache
def loop(*, waves: int) -> CompiledLoop:
    shape = GemmShape(name="pace", instruction=BF16, mma=(16, 32), rows=128, columns=64 * waves // 4, waves=waves)
    return compile_loop(shape.loop(), GFX950, polish=False)


def wave_of(compiled: CompiledLoop) -> PacedLoop:
    parameters = nominal(device_of(compiled.machine))
    return make_paced_loop(encode(compiled, parameters), parameters)


@pytest.mark.parametrize("waves", [4, 8])
def test_it_is_close_to_the_model(waves: int) -> None:
    compiled = loop(waves=waves)
    clocks = wave_of(compiled).clocks(range(len(compiled.kernel))) / compiled.trip_tiles[0]
    assert clocks == pytest.approx(clocks_per_tile(compiled), rel=0.08)


def test_a_crowded_gap_takes_longer_and_is_named() -> None:
    compiled = loop(waves=4)
    wave, kernel = wave_of(compiled), compiled.kernel
    matrix = [number for number, entry in enumerate(kernel) if entry.effect.kind is OpKind.MMA]
    others = [number for number in range(len(kernel)) if number not in matrix]
    crowded = (*others, *matrix)
    assert wave.clocks(crowded) > wave.clocks(range(len(kernel)))
    assert matrix[0] in wave.trip(crowded).late


def test_a_stall_is_what_issuing_then_takes() -> None:
    compiled = loop(waves=4)
    wave = wave_of(compiled)
    pace, waits = WavePace(wave), False
    for entry in range(len(compiled.kernel)):
        stall, before = pace.stall(entry), pace.time
        lead = sum(step.held for step in wave.entries[entry] if step.form == TURNS)
        pace.issue(entry)
        waits, fused = compiled.kernel[entry].effect.kind is OpKind.WAIT, waits
        if waits and fused:  # a field of the wait before, which had its turn
            assert 0 <= pace.time - before <= stall + wave.turn * (stall > 0)
            continue
        after = lead if compiled.kernel[entry].effect.kind is OpKind.BARRIER else lead + wave.turn
        if not waits or stall == 0:  # of a load that hasn't landed the port may be busy
            assert pace.time - before - after == stall + -stall % wave.turn


def one_by_one(step: PaceStep) -> list[PaceStep]:
    others = [step._replace(needs=(), makes=(), times=1)] * step.times
    others[0] = others[0]._replace(needs=step.needs)
    return [*others[:-1], others[-1]._replace(makes=step.makes)]


@pytest.mark.parametrize("shape", [GEMM_SHAPES[0], ATTENTION], ids=lambda shape: shape.name)
def test_equal_instructions_are_paced_together_as_one_by_one(shape: GemmShape | AttentionShape) -> None:
    """In tiles an entry has up to hundreds of them."""
    compiled = compile_loop(shape.loop(instructions=False), GFX950, polish=False)
    together = wave_of(compiled)
    single = tuple(tuple(one for step in each for one in one_by_one(step)) for each in together.entries)
    apart = replace(together, entries=single)
    assert sum(map(len, together.entries)) * 2 < sum(map(len, single))
    for seed in range(20):
        order = Random(seed).sample(range(len(compiled.kernel)), len(compiled.kernel))
        assert together.trip(order) == apart.trip(order)
