"""A GEMM on a device that nobody builds is scheduled, synchronised, proved, executed and predicted, as on any other."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest

from rota import Loop, Machine, PipelineSchedule, compile_loop, compile_schedule, verify
from rota.cycles.predict import predict
from rota.cycles.record import record
from rota.emit.document.exchange import from_json, to_json
from rota.emit.forms import emit_skeleton
from rota.execute.executor import execute
from rota.execute.semantics import Gemm
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.gemm import GEMM_SHAPES
from rota.kernels.ping_pong import DeclarativeSchedule, mi355x_target
from rota.kernels.single_buffer import SingleBufferSchedule
from rota.pipeline.geometry import KernelGeometry
from rota.program.kinds import OpKind, Phase
from rota.program.loop_spec import LoopSpec
from rota.values.compiled_loop import CompiledLoop
from rota.values.op_times import time_loop
from tests.findings.smallest import raised
from tests.programs.edits import changed, without
from tests.programs.made_up_device import MADE_UP

pytestmark = pytest.mark.no_cover  # many cases: what they run is covered where it is tested by itself

SMALL = GEMM_SHAPES[2]  # 128x128x64, four waves
DEEP = replace(SMALL, instruction="v_mfma_f32_32x32x16_bf16", mma=(32, 16))  # so that the matrix unit binds
LOOPS: dict[str, tuple[LoopSpec, bool]] = {
    "in quadrants": (SMALL.loop(instructions=False), False),
    "by instruction": (SMALL.loop(instructions=True), False),
    "staggered": (DEEP.loop(instructions=False), True),
}


@lru_cache
def made(name: str) -> CompiledLoop:
    spec, stagger = LOOPS[name]
    return compile_loop(spec, MADE_UP, stagger=stagger)


def sites(name: str, kind: OpKind) -> list[tuple[Phase, int]]:
    program = made(name).lowered
    return [
        (phase, place) for phase in Phase for place, entry in enumerate(program.phase(phase)) if entry.op.kind is kind
    ]


@pytest.mark.parametrize("name", LOOPS)
def test_it_is_proved_with_the_device_s_own_counters(name: str) -> None:
    certificate = made(name).certificate
    assert certificate is not None
    told = str(certificate)
    for counter, holds in (("loadcnt", 31), ("dmacnt", 15), ("dscnt", 7)):
        assert f"xyz1 {counter}: {holds} tokens" in told
    assert "dscnt counts down in the order of issue" in certificate.assumptions
    assert not any("dmacnt" in each for each in certificate.assumptions)
    assert not any(shipped in told for shipped in ("vmcnt", "lgkmcnt"))


@pytest.mark.parametrize("name", LOOPS)
def test_waits_and_barriers_are_such_as_the_device_has(name: str) -> None:
    program = made(name).lowered
    waits = [entry.effect for entry in program.entries if entry.op.kind is OpKind.WAIT]
    assert {effect.counter for effect in waits} == {"dmacnt", "dscnt"}
    assert {effect.wait_value for effect in waits if effect.counter == "dmacnt"} == {0}
    assert all(effect.wait_value < 7 for effect in waits if effect.counter == "dscnt")
    halves = [entry.effect for entry in program.entries if entry.op.kind is OpKind.BARRIER]
    assert halves
    assert all((effect.arrives is None) != (effect.awaits is None) for effect in halves)


@pytest.mark.parametrize("name", LOOPS)
def test_it_computes_the_product_at_every_trip_count(name: str) -> None:
    spec, _ = LOOPS[name]
    semantics = None if name == "by instruction" else Gemm(spec=spec)
    for trips in range(5):
        ran = execute(made(name), trips, semantics=semantics)
        assert ran.right, (trips, ran.first_wrong)


@pytest.mark.parametrize("name", LOOPS)
def test_without_any_wait_for_a_dma_it_is_neither_proved_nor_right(name: str) -> None:
    program = made(name).lowered
    kept = {
        phase: [
            entry for entry in program.phase(phase) if (entry.op.kind, entry.effect.counter) != (OpKind.WAIT, "dmacnt")
        ]
        for phase in Phase
    }
    mutant = program.with_phases(kept)
    assert not verify(mutant).clean
    assert not execute(mutant, 3).right


@pytest.mark.parametrize("name", ["in quadrants", "staggered"])
def test_each_half_of_a_barrier_in_the_loop_is_needed(name: str) -> None:
    halves = [site for site in sites(name, OpKind.BARRIER) if site[0] is Phase.KERNEL]
    assert halves
    for phase, place in halves:
        assert not verify(without(made(name), phase, place)).clean, (phase, place)


@pytest.mark.parametrize("name", ["in quadrants", "staggered"])
def test_outside_the_loop_what_is_proved_without_a_half_is_right_without_it(name: str) -> None:
    """Behind the last read nobody needs to wait, but somebody may still be waited for."""
    proved = 0
    for phase, place in sites(name, OpKind.BARRIER):
        mutant = without(made(name), phase, place)
        if verify(mutant).clean:
            proved += 1
            assert all(execute(mutant, trips).right for trips in range(4)), (phase, place)
    assert proved < len(sites(name, OpKind.BARRIER))


def test_a_wait_that_leaves_dmas_pending_covers_none() -> None:
    program = made("in quadrants").lowered
    waits = [
        (phase, place)
        for phase, place in sites("in quadrants", OpKind.WAIT)
        if phase is Phase.KERNEL and program.phase(phase)[place].effect.counter == "dmacnt"
    ]
    assert waits
    for phase, place in waits:
        entry = program.phase(phase)[place]
        assert not verify(changed(program, phase, place, effect=replace(entry.effect, wait_value=1))).clean


def test_the_prediction_is_the_device_s() -> None:
    found = predict(made("in quadrants"), band=False)
    mfmas = (64 // 16) ** 2 * (64 // 32)  # of a wave, whose share is 64 x 64
    assert found.mma_share * found.cycles == pytest.approx(mfmas * 5 * 2 * 2)  # passes, clocks, waves of a SIMD
    flops = 2 * 128 * 128 * 64
    assert found.ceiling_tflops == pytest.approx(flops * 10 * 1000e6 / found.cycles / 1e12)  # compute units, clock
    as_placed = predict(compile_loop(LOOPS["in quadrants"][0], MADE_UP, polish=False), band=False)
    assert {cause for cause, _ in as_placed.causes} >= {"wait dmacnt", "barrier"}
    timeline = record(made("in quadrants"))
    assert timeline.counter_limits == (("loadcnt", 31), ("dmacnt", 15), ("dscnt", 7))
    assert timeline.simds == 2
    assert timeline.register_limit == 384 // 2


def test_an_exponential_takes_the_slots_that_the_device_states() -> None:
    loop = Loop("exponentials", waves=4)
    scores = loop.input("scores", registers=2)
    loop.valu("weights", [scores], registers=2, instructions=6)
    spec = loop.build()
    slow = replace(spec, ops=tuple(replace(op, kind=OpKind.TRANSCENDENTAL) for op in spec.ops))
    fast_time, slow_time = (time_loop(each, MADE_UP.timing).timings[0] for each in (spec, slow))
    assert fast_time.occupancy == 6 * 2  # waves of a SIMD
    assert slow_time.occupancy == 3 * fast_time.occupancy


def test_a_document_names_it_and_source_has_no_words_for_it() -> None:
    compiled = made("staggered")
    assert from_json(to_json(compiled), machines=(MADE_UP,)).machine == MADE_UP
    raised("T204", lambda: from_json(to_json(compiled)))
    raised("T207", lambda: emit_skeleton(compiled))


class _Single(SingleBufferSchedule):
    def machine(self) -> Machine:
        return MADE_UP


class _PingPong(DeclarativeSchedule):
    def machine(self) -> Machine:
        return MADE_UP


class _FourWave(Pipeline4Wave):
    def machine(self) -> Machine:
        return MADE_UP

    def lds_bytes(self) -> int:
        return MADE_UP.lds_bytes.value  # a tile of its own; the geometry's is for a larger LDS


STAGED: dict[str, PipelineSchedule] = {
    "single buffer": _Single(4),
    "ping-pong": _PingPong(target=mi355x_target(2, 2, 1)),
    "four waves": _FourWave(KernelGeometry(lgkm_per_load_a=4, lgkm_per_load_b=4)),
}


@pytest.mark.parametrize("name", STAGED)
def test_a_body_declared_in_stages_waits_on_its_counters_too(name: str) -> None:
    compiled = compile_schedule(STAGED[name])
    assert compiled.certificate is not None
    counters = {entry.effect.counter for entry in compiled.lowered.entries} - {None}
    assert counters <= {"loadcnt", "dmacnt", "dscnt"}
    for trips in range(5):
        ran = execute(compiled, trips)
        assert ran.right, (trips, ran.first_wrong)
