"""Devices are objects: what is known of one is in it, with its source; no other device's number stands in for it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from importlib import metadata
from typing import Any

import pytest
from click.testing import CliRunner

from rota import GFX942, GFX950, DeclarationError, compile_loop
from rota.cli.main import main
from rota.cycles.predict import predict
from rota.emit.document.exchange import from_json, to_json
from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES
from rota.program.kinds import OpKind
from rota.program.machine import Confidence, Fact
from rota.targets import registry
from rota.targets.device import Device, Estimate, rates_of, timing_of
from rota.targets.registry import architecture_named, default, device_named, known_devices
from tests.findings.smallest import raised
from tests.wording.golden import mentions

DEVICES = known_devices().devices
SMALL = next(shape for shape in GEMM_SHAPES if shape.rows == 128 and shape.waves == 4)


def held(value: object) -> Iterator[object]:
    """All facts and estimates inside a value."""
    if isinstance(value, Fact | Estimate):
        yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from held(getattr(value, field.name))
    elif isinstance(value, tuple):
        for each in value:
            yield from held(each)


def test_the_five_devices_are_there() -> None:
    published = {  # AMD's figures: architecture, compute units, MHz, GiB
        "MI355X": ("gfx950", 256, 2400, 288),
        "MI350X": ("gfx950", 256, 2200, 288),
        "MI325X": ("gfx942", 304, 2100, 256),
        "MI300X": ("gfx942", 304, 2100, 192),
        "MI300A": ("gfx942", 228, 2100, 128),
    }
    found = {
        each.name: (each.arch, each.timing.compute_units.value, each.timing.clock.value, each.memory.value)
        for each in DEVICES
    }
    assert found == published


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
def test_every_number_has_a_source_and_every_estimate_a_range(device: Device) -> None:
    everything = [*held(device)]
    facts = [each for each in everything if isinstance(each, Fact)]
    estimates = [each for each in everything if isinstance(each, Estimate)]
    assert len(facts) > 30
    for fact in (*facts, *(each.fact for each in estimates)):
        assert fact.unit.strip(), fact
        assert fact.source.strip(), fact
        assert isinstance(fact.confidence, Confidence)
    ranged = [each for each in estimates if each.low < each.high]
    for each in estimates:
        assert each.low <= each.fact.value <= each.high
        assert (each in ranged) == (each.fact.confidence is Confidence.ESTIMATE), each
    unbounded = [fact for fact in facts if fact.confidence is Confidence.ESTIMATE]
    assert [fact for fact in unbounded if fact not in {each.fact for each in ranged}] == []


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
def test_a_device_is_a_value(device: Device) -> None:
    assert pickle.loads(pickle.dumps(device)) == device
    assert hash(device) == hash(replace(device))
    assert replace(device, name="other") != device
    assert repr(device) == f"<Device {device.name} ({device.arch})>"


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
def test_peaks_are_those_that_are_published(device: Device) -> None:
    """Passes, units and clock multiply to the dense bf16 rate that AMD states, for CDNA4 as 2.5 and 2.3 PFLOP/s."""
    published = {"MI355X": 2516.6, "MI350X": 2306.9, "MI325X": 1307.4, "MI300X": 1307.4, "MI300A": 980.6}
    instruction, flops = next(
        (each, 2 * 16 * 16 * depth)
        for each, depth in (("v_mfma_f32_16x16x32_bf16", 32), ("v_mfma_f32_16x16x16_bf16", 16))
        if each in device.rates.mfma_passes
    )
    clocks = device.rates.passes(instruction) * device.rates.clocks_per_slot.value
    per_clock = flops / clocks * device.rates.simds.value * device.timing.compute_units.value
    assert per_clock * device.timing.clock.value / 1e6 == pytest.approx(published[device.name], abs=0.1)


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
def test_every_asynchronous_op_that_there_is_has_a_counter(device: Device) -> None:
    missing = set() if device.transposed_reads else {OpKind.LDS_READ_TRANSPOSED}
    for kind in OpKind:
        assert (device.counter_of(kind) is not None) == (kind.asynchronous and kind not in missing), kind


def test_siblings_differ_in_what_is_their_own_and_share_the_rest() -> None:
    faster, slower = device_named("mi355x"), device_named("mi350x")
    assert faster.architecture == slower.architecture
    compiled = compile_loop(SMALL.loop(instructions=False), faster)
    fast = predict(compiled, band=False)
    slow = predict(replace(compiled, machine=slower), band=False)
    assert fast.cycles == slow.cycles
    assert slow.ceiling_tflops / fast.ceiling_tflops == pytest.approx(2200 / 2400)


def test_a_users_own_device_keeps_its_own_facts() -> None:
    """Looked up by architecture, it would have none, or its sibling's."""
    clock = GFX950.timing.clock._replace(value=1000)
    own = replace(GFX950, name="X", arch="gfx951", timing=replace(GFX950.timing, clock=clock))
    assert rates_of(own) is GFX950.rates
    assert timing_of(own).clock.value == 1000
    compiled = compile_loop(SMALL.loop(instructions=False), own)
    assert predict(compiled, band=False).machine == "X"
    assert predict(replace(compiled, machine=GFX950), band=False).ceiling_tflops == pytest.approx(
        2.4 * predict(compiled, band=False).ceiling_tflops
    )


def test_names_are_found_in_any_case_and_an_architecture_stands_for_one_device() -> None:
    assert device_named("MI355X") is device_named("gfx950") is device_named("GFX950") is default() is GFX950
    assert device_named("gfx942") is GFX942
    assert set(registry.STANDS_FOR.values()) <= set(registry.BUILT_IN)


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_a_device_is_registered_under_its_own_name(name: str) -> None:
    assert device_named(name).name.lower() == name


@pytest.mark.parametrize("name", ["mi356x", "", "gfx90a", 950])
def test_an_unknown_name_is_refused_with_the_nearest(name: Any) -> None:
    finding = raised("D105", lambda: device_named(name))
    if name == "mi356x":
        assert "mi355x" in finding.fixes[0]
    assert "'rota.targets'" in finding.fixes[-1]


def test_an_architecture_has_no_times() -> None:
    shared = architecture_named("gfx950")
    assert shared is not None
    assert not isinstance(shared, Device)
    assert shared == GFX950.architecture == device_named("mi350x").architecture
    assert architecture_named("gfx90a") is None
    raised("D114", lambda: timing_of(shared))


@pytest.mark.parametrize("suffix", ["16x16x128", "32x32x64"])
def test_narrow_formats_take_half_the_passes_and_scales_none(suffix: str) -> None:
    """As LLVM 22 inserts wait states: 8 and 16 passes where a factor is fp8, 4 and 8 where both are narrower."""
    wide = {"16x16x128": 8, "32x32x64": 16}[suffix]
    for name in (f"v_mfma_f32_{suffix}_f8f6f4", f"v_mfma_scale_f32_{suffix}_f8f6f4"):
        assert [GFX950.rates.passes(name, bits) for bits in (8, 6, 4)] == [wide, wide // 2, wide // 2]
    assert GFX950.rates.passes("v_mfma_f32_16x16x32_bf16", 4) == 4  # takes one format only


def test_only_cdna4_transposes_while_it_reads() -> None:
    assert "ds_read_b64_tr_b16" in GFX950.transposed_reads
    assert GFX950.rates.lds_read_transposed is not None
    assert GFX950.rates.lds_read_transposed.fact.value == GFX950.rates.lds_read.value
    assert (GFX942.transposed_reads, GFX942.rates.lds_read_transposed) == ((), None)


def test_a_loop_runs_on_every_device_of_its_architecture() -> None:
    for name in ("mi325x", "mi300a"):
        compiled = compile_loop(MI300X_GEMM_SHAPES[2].loop(instructions=False), device_named(name))
        assert compiled.certificate is not None
        assert from_json(to_json(compiled)).machine is device_named(name)


def test_a_document_keeps_the_doubts_about_a_counter() -> None:
    compiled = compile_loop(SMALL.loop(instructions=False), vmcnt_in_order=False)
    read = from_json(to_json(compiled)).machine
    assert isinstance(read, Device)
    assert read == GFX950.doubting("vmcnt")


# An out-of-tree device, as an installed package registers it.

OWN = replace(GFX950, name="Own1", timing=replace(GFX950.timing, clock=GFX950.timing.clock._replace(value=1234)))
OTHER_ISA = replace(
    GFX950, name="Own2", arch="gfx951", toolchain="gfx951", elf_machine=GFX950.elf_machine._replace(value=0x7F)
)
NO_DEVICE = GFX950.architecture


def register(monkeypatch: pytest.MonkeyPatch, *entries: tuple[str, str]) -> None:
    """Packages that register these names for these objects."""
    made = tuple(metadata.EntryPoint(name, value, registry.ENTRY_POINT_GROUP) for name, value in entries)
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: made if group == registry.ENTRY_POINT_GROUP else ())


@pytest.mark.thorough  # runs for seconds
def test_a_registered_device_is_as_good_as_rotas_own(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, ("own1", f"{__name__}:OWN"))
    assert device_named("OWN1") is OWN
    shown = CliRunner().invoke(main, ["targets", "own1"])
    assert (shown.exit_code, shown.output.splitlines()[0]) == (0, "Own1 (gfx950)")
    assert "1234 MHz" in shown.output
    assert "Own1 (gfx950)" in CliRunner().invoke(main, ["targets"]).output
    done = CliRunner().invoke(main, ["check", "gemm_small", "--set", "machine=own1"])
    assert done.exit_code == 0, done.output
    assert from_json(to_json(compile_loop(SMALL.loop(instructions=False), OWN))).machine is OWN


def test_the_architecture_of_a_registered_device_is_known_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert architecture_named("gfx951") is None
    register(monkeypatch, ("own2", f"{__name__}:OTHER_ISA"))
    assert architecture_named("gfx951") == OTHER_ISA.architecture
    assert registry.architecture_with(0x7F) == OTHER_ISA.architecture
    assert OTHER_ISA.architecture in registry.list_architectures()


def test_a_package_cant_replace_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, ("mi355x", f"{__name__}:OWN"))
    assert device_named("mi355x") is GFX950
    assert len(known_devices().devices) == len(DEVICES)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("no_such_module_at_all:X", ("ModuleNotFoundError",)),
        (f"{__name__}:NO_SUCH_NAME", ("AttributeError",)),
        (f"{__name__}:NO_DEVICE", ("Architecture", "Device")),
        (f"{__name__}:OTHER_ISA", ("Own2",)),
    ],
)
def test_a_device_that_cant_be_loaded_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, value: str, names: tuple[str, ...]
) -> None:
    register(monkeypatch, ("own1", value))
    assert mentions(raised("D105", lambda: device_named("own1")).message, *names)
    known = known_devices()
    assert known.devices == DEVICES
    assert [finding.code for finding in known.findings] == ["D105"]
    listed = CliRunner().invoke(main, ["targets"])
    assert listed.exit_code == 0
    assert "MI355X (gfx950)" in listed.output
    assert mentions(listed.output, *names)
    assert compile_loop(SMALL.loop(instructions=False)).machine is GFX950
    for command in (["targets", "own1"], ["check", "gemm_small", "--set", "machine=own1"]):
        done = CliRunner().invoke(main, command)
        assert done.exit_code != 0
        assert mentions(done.output + done.stderr, *names)
        assert done.exception is None or isinstance(done.exception, SystemExit | DeclarationError)
