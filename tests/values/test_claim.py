"""What is said about a loop's interval holds against all copies and starts, other runs of rota, and the cycle model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rota import GFX950, Loop, LoopSpec, ModuloScheduler, Read, RotaError, compile_loop
from rota.cli.commands.check import summarise
from rota.cycles.predict import predict
from rota.kernels.gemm import BF16
from rota.order.modulo.modulo_problem import ModuloCertificate, ModuloProof, ModuloSchedule
from rota.targets.device import timing_of
from rota.values.buffer_depth import derive_allowances, modulo_problem
from rota.values.compiled_loop import CompiledLoop
from rota.values.interval_certificate import _find_most_copies
from rota.values.op_times import OpTime, time_loop
from tests.values.all_copies import Drawn, better, drawn
from tests.wording.golden import worded

pytestmark = pytest.mark.no_cover  # searches, which the tests of the schedulers cover

CLOCKS = GFX950.rates.clocks_per_slot.value
SHARE = (*range(20), 31, 48)  # of the campaign: python -m benchmarks.optimality


def schedule_of(made: CompiledLoop) -> ModuloSchedule:
    assert made.modulo is not None
    return made.modulo


def on_its_machine(made: Drawn) -> CompiledLoop | None:
    """None if it is refused."""
    try:
        return compile_loop(made.spec, made.machine)
    except RotaError as error:
        if error.findings[0].code not in ("L103", "L104"):
            raise
        return None


@pytest.mark.parametrize("seed", SHARE)
def test_no_copies_and_no_starts_beat_what_is_called_least(seed: int) -> None:
    made = drawn(seed)
    done = on_its_machine(made)
    if done is not None and schedule_of(done).certificate.optimal:
        found = schedule_of(done)
        assert better(made, time_loop(made.spec, made.machine.timing), found.ii, found.certificate.limits) is None


@pytest.mark.parametrize("seed", range(40))
def test_the_most_copies_are_the_most_that_fit(seed: int) -> None:
    made = drawn(seed)
    times = time_loop(made.spec, made.machine.timing)
    for allowed in derive_allowances(made.spec, made.machine, times, None):
        most = _find_most_copies(allowed)
        for name, count in most.items():
            assert allowed.holds({**allowed.least, name: count}) or count == allowed.least[name]
            assert not allowed.holds({**allowed.least, name: count + 1})


def test_the_enumeration_finds_what_a_false_claim_overlooks() -> None:
    beaten = 0
    for seed in SHARE[:8]:
        made = drawn(seed)
        done = on_its_machine(made)
        if done is not None:
            beaten += better(made, time_loop(made.spec, made.machine.timing), schedule_of(done).ii + 1, ()) is not None
    assert beaten > 4


def test_the_enumeration_beats_a_bound_that_counts_one_hold_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the ops that hold a unit in turn the last one's hold isn't waited for."""

    def too_long(timings: Sequence[OpTime]) -> int:
        return sum(max(each.occupancy, each.issue) for each in timings) + min(each.latency for each in timings)

    monkeypatch.setattr("rota.values.op_times._span", too_long)
    beaten = 0
    for seed in SHARE:
        made = drawn(seed)
        done = on_its_machine(made)
        if done is not None and (found := schedule_of(done)).certificate.optimal:
            limits = found.certificate.limits
            beaten += better(made, time_loop(made.spec, made.machine.timing), found.ii, limits) is not None
    assert beaten


def running_max(waves: int = 4) -> LoopSpec:
    """The loop of docs/howto/by_values.md."""
    loop = Loop("running_max", waves=waves)
    x = loop.tile("X", size=8192)
    loop.load(x, instructions=2, moved=8192)
    a = loop.fragment("a", x, registers=8, instructions=2)
    w = loop.input("w", registers=8)
    s = loop.product("s", [a, w], registers=16, instruction=BF16, instructions=8)
    loop.valu("m", [s, Read(value="m", distance=1)], registers=1, instructions=16)
    return loop.build()


def streaming(size: int, registers: int = 8, waves: int = 4) -> LoopSpec:
    """What a wave reads is used at once: the cycle of its registers is that of one wave, not of all."""
    loop = Loop("streaming", waves=waves)
    x = loop.tile("X", size=size)
    loop.load(x, instructions=2, moved=size)
    a = loop.fragment("a", x, registers=registers, instructions=registers // 4)
    loop.valu("m", [a, Read(value="m", distance=1)], registers=1, instructions=4)
    return loop.build()


def test_more_than_four_copies_are_tried() -> None:
    """With four copies of X the interval is 64, and it was called the least possible."""
    made = compile_loop(running_max())
    found = schedule_of(made)
    assert (found.ii, found.certificate.proof, found.certificate.limits) == (32, ModuloProof.MEETS_BOUND, ())
    assert made.placement is not None
    assert dict(made.placement.copies)["X"] >= 8


def test_a_limit_on_copies_is_part_of_the_claim() -> None:
    made = compile_loop(streaming(1024))
    found = schedule_of(made)
    assert found.certificate.limits == ("at most 16 copies of X",)
    assert "16" in worded(str(found))
    assert "16" in worded(str(summarise("streaming", made)))


def test_where_lds_holds_no_more_copies_there_is_no_limit_to_state() -> None:
    """Of 64 KiB two copies fit: load, read and load again within two iterations."""
    loop = Loop("large", waves=4)
    x = loop.tile("X", size=65536)
    loop.load(x, moved=8192, instructions=2)
    a = loop.fragment("a", x, registers=8, instructions=2)
    loop.valu("m", [a, Read(value="m", distance=1)], registers=1)
    found = schedule_of(compile_loop(loop.build()))
    assert found.certificate.optimal
    assert found.certificate.limits == ()
    worded(str(found))


def test_waves_that_drift_apart_may_be_faster_and_the_claim_says_so() -> None:
    """Each wave waits for its own part of what is read; in step all wait for all, and that was called the least."""
    loop = Loop("streaming", waves=16)
    x = loop.tile("X", size=4096)
    loop.load(x, moved=4096)
    a = loop.fragment("a", x, registers=64, instructions=16)  # of which one copy fits beside v
    loop.valu("v", [a], registers=1, instructions=16)
    made = compile_loop(loop.build())
    found = schedule_of(made)
    assert found.certificate.optimal
    assert "all waves in step" in found.certificate.limits
    assert predict(made, band=False).cycles < found.ii * CLOCKS


def claims() -> list[LoopSpec]:
    return [running_max(), running_max(8), streaming(1024), streaming(8192), streaming(4096, 16, 8)]


@pytest.mark.parametrize("spec", claims(), ids=lambda spec: f"{spec.name}_{spec.waves}")
def test_no_other_run_beats_a_claim(spec: LoopSpec) -> None:
    found = schedule_of(compile_loop(spec))
    least = found.certificate
    assert least.optimal
    others = [
        compile_loop(spec, scheduler=ModuloScheduler(seed=7)),
        compile_loop(spec, scheduler=ModuloScheduler(time_limit=2)),
        compile_loop(spec, fewest_barriers=True),
        compile_loop(spec, remainder=1),
        compile_loop(replace(spec, ops=spec.ops[::-1])),
        compile_loop(replace(spec, values=spec.values[::-1])),
    ]
    assert all(schedule_of(other).ii >= found.ii for other in others)
    if "all waves in step" not in least.limits:
        assert all(predict(other, band=False).cycles >= found.ii * CLOCKS for other in others)
        try:
            in_turn = schedule_of(compile_loop(spec, stagger=True)).ii
        except RotaError:
            in_turn = found.ii
        assert in_turn >= found.ii


@pytest.mark.parametrize("spec", claims(), ids=lambda spec: f"{spec.name}_{spec.waves}")
def test_no_copies_of_single_values_beat_a_claim(spec: LoopSpec) -> None:
    made = compile_loop(spec)
    found = schedule_of(made)
    assert made.placement is not None
    times = time_loop(spec, timing_of(GFX950))
    most = {name: 16 for name, _ in made.placement.copies}
    for copies in (dict(made.placement.copies), most, *({**most, name: 4} for name in most)):
        if spec.lds_bytes(copies) <= GFX950.lds_bytes.value:
            other = ModuloScheduler(time_limit=5).schedule(modulo_problem(spec, times, copies))
            assert max(other.ii, times.least_interval) >= found.ii


def test_limits_are_words_of_the_claim_in_every_form() -> None:
    bare = schedule_of(compile_loop(running_max()))
    limited = replace(bare.certificate, limits=("at most 4 copies of X", "all waves in step"))
    assert limited.scope == " with at most 4 copies of X, all waves in step"
    assert isinstance(limited, ModuloCertificate)
    refuted = replace(limited, proof=ModuloProof.REFUTED, refuted=(31,))
    worded(str(replace(bare, certificate=refuted)))
    unsure = replace(limited, proof=ModuloProof.OPEN, lower=31)
    assert "31..32" in worded(str(replace(bare, certificate=unsure)))
