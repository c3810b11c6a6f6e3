"""What the kinds of op cost: in planning, in the bound that no execution beats, and in the cycle model alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX942, GFX950, Loop, compile_loop
from rota.cycles.instructions import CODE, encode, nominal
from rota.cycles.predict import predict
from rota.program.kinds import OpKind, Unit
from rota.program.loop_spec import LoopSpec
from rota.targets.device import Device, Estimate, device_of
from rota.values.op_times import bound_times, time_loop
from tests.findings.smallest import raised
from tests.values.loops import MFMA, SCALED, gstore, k_slices, scaled, transcendental, transposed
from tests.wording.golden import mentions

pytestmark = pytest.mark.thorough  # runs for seconds

DEVICE = device_of(GFX950)


def busy(spec: LoopSpec, unit: Unit, device: Device = DEVICE) -> int:
    return dict(time_loop(spec, device.timing).busy)[unit]


def held(spec: LoopSpec, kind: OpKind, device: Device = DEVICE) -> int:
    """Clocks for which one instruction of a kind holds its unit in the cycle model."""
    code = encode(compile_loop(spec, device), nominal(device))
    (clocks,) = {each.held for each in code.instructions[0] if each.kind == CODE[kind]}
    return clocks


@pytest.mark.parametrize(
    ("formats", "passes"),
    [((), 8), (("fp8",), 8), (("bf8", "fp4"), 8), (("fp6",), 4), (("fp4", "bf6"), 4), (("fp4",), 4)],
)
def test_the_wider_format_decides_the_passes(formats: tuple[str, ...], passes: int) -> None:
    spec = scaled(*formats, instructions=6)
    assert busy(spec, Unit.MMA) == 6 * passes
    assert held(spec, OpKind.MMA) == 4 * passes
    waits = [
        each for each in bound_times(spec, DEVICE.timing, {}).precedences if spec.ops[each.earlier].writes == ("a",)
    ]
    assert waits  # the factors are waited for


def test_many_narrow_products_are_bound_by_their_passes() -> None:
    wide, narrow = (compile_loop(scaled(each, instructions=16)) for each in ("fp8", "fp4"))
    assert wide.modulo is not None
    assert narrow.modulo is not None
    assert (wide.modulo.ii, narrow.modulo.ii) == (16 * 8, 16 * 4)


def test_a_transcendental_holds_the_valu_four_times_as_long() -> None:
    assert busy(transcendental(10), Unit.VALU) == 40
    assert held(transcendental(10), OpKind.TRANSCENDENTAL) == 4 * held(gstore(), OpKind.VALU)
    least = bound_times(transcendental(10), DEVICE.timing, {"A": 1, "a": 1, "e": 1}).least_interval
    assert least == 40


def test_a_store_occupies_the_path_to_memory() -> None:
    """64 bytes a clock, four clocks a slot."""
    assert busy(gstore(), Unit.DMA) == 2 * 4096 // 64 // 4


def test_a_transposed_read_has_a_rate_of_its_own() -> None:
    rates = DEVICE.rates
    assert rates.lds_read_transposed is not None
    fact = rates.lds_read_transposed.fact._replace(value=rates.lds_read.value // 4)
    slow = replace(rates, lds_read_transposed=Estimate(fact, fact.value, fact.value))
    device = replace(DEVICE, timing=replace(DEVICE.timing, rates=slow))
    spec = transposed()
    times = [time_loop(spec, each.timing).timings[1].occupancy for each in (DEVICE, device)]
    assert times[1] == 4 * times[0]
    assert held(spec, OpKind.LDS_READ_TRANSPOSED, device) == 4 * held(spec, OpKind.LDS_READ_TRANSPOSED)


def test_how_fast_transposed_reads_are_is_an_estimate_and_a_prediction_says_what_it_does() -> None:
    loop = Loop("wide", waves=4)
    loop.load(loop.tile("A", size=4096), moved=4096)
    loop.transposed("a", "A", registers=64, instructions=16)
    loop.mma(loop.accumulator("c", registers=4), "a", "a", instruction=MFMA)
    found = predict(compile_loop(loop.build()))
    assert found.bound_by == "LDS port"
    assert found.hangs_on[0].name == "lds_read_transposed"
    landing = 4096 // 128
    assert (found.cycles, found.cycles_band.high) == (65536 // 256 + landing, 65536 // 128 + landing)


def test_a_device_without_the_instruction_refuses_it_by_name() -> None:
    finding = raised("D105", lambda: compile_loop(product(SCALED, scales=True), GFX942))
    assert mentions(finding.message, "gfx942", SCALED)


# What can't be


def product(instruction: str, *, scales: bool, formats: str | tuple[str, ...] = (), registers: int = 8) -> LoopSpec:
    loop = Loop("product", waves=4)
    loop.load(loop.tile("A", size=4096), instructions=4, moved=4096)
    a = loop.fragment("a", "A", registers=registers, instructions=2)
    scale = [loop.input("scale", registers=1)] if scales else []
    c = loop.accumulator("c", registers=4)
    loop.mma(c, a, a, instruction=instruction, scales=scale, formats=formats)
    return loop.build()


def test_one_format_may_stand_for_itself() -> None:
    assert product(SCALED, scales=True, formats="fp8") == product(SCALED, scales=True, formats=("fp8",))


def test_a_scaled_product_without_scales_is_refused() -> None:
    finding = raised("L109", lambda: compile_loop(product(SCALED, scales=False)))
    assert mentions(finding.message, "mma_c", SCALED)
    assert compile_loop(product(SCALED, scales=True)).certificate is not None


def test_scales_are_no_factors() -> None:
    """Of 8-bit elements each factor takes 8 registers; the scale's doesn't count."""
    finding = raised("L109", lambda: compile_loop(product(SCALED, scales=True, formats=("fp8",), registers=7)))
    assert mentions(finding.message, "mma_c", "14")
    assert finding.evidence == (("registers", 14), ("of one instruction", 16))


@pytest.mark.parametrize(("formats", "least"), [(("fp6",), 6), (("fp8", "fp4"), 6), (("fp4",), 4), ((), 4)])
def test_registers_follow_from_the_formats(formats: tuple[str, ...], least: int) -> None:
    """6 registers a lane for 16 x 128 elements of 6 bits; 8 and 4 are 12 together."""
    assert compile_loop(product(SCALED, scales=True, formats=formats, registers=least)).certificate is not None
    raised("L109", lambda: compile_loop(product(SCALED, scales=True, formats=formats, registers=least - 1)))


def test_scales_and_formats_that_an_instruction_does_not_take_are_refused() -> None:
    raised("D111", lambda: product(MFMA, scales=True))
    assert "fp4" in raised("D111", lambda: product(MFMA, scales=False, formats=("fp4",))).message
    assert "3 formats" in raised("D111", lambda: product(SCALED, scales=True, formats=("fp4",) * 3)).message
    assert raised("D105", lambda: product(SCALED, scales=True, formats=("fp5",))).fixes


def test_a_scale_that_is_not_read_is_none() -> None:
    spec = product(SCALED, scales=True)
    mma = replace(spec.ops[-1], inputs=())
    raised("D111", lambda: replace(spec, ops=(*spec.ops[:-1], mma)))


def test_parts_that_a_value_does_not_have_are_refused() -> None:
    spec = k_slices()
    read = spec.ops[2].reads[0]
    beyond = replace(spec.ops[2], reads=(replace(read, parts=(0, 2)),))
    finding = raised("D111", lambda: replace(spec, ops=(*spec.ops[:2], beyond, *spec.ops[3:])))
    assert "read_a0" in finding.message
    of_registers = replace(spec.ops[3], reads=(replace(spec.ops[3].reads[0], parts=(0,)),))
    finding = raised("D111", lambda: replace(spec, ops=(*spec.ops[:3], of_registers, *spec.ops[4:])))
    assert mentions(finding.message, "mma0", "a0")


@pytest.mark.parametrize("parts", [(1, 0), (0, 0), (-1,), (True,)])
def test_parts_are_numbers_in_order(parts: tuple[int, ...]) -> None:
    raised("D102", lambda: replace(k_slices().ops[2].reads[0], parts=parts))
