from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX942, GFX950, Loop, compile_loop
from rota.program.kinds import OpKind
from rota.program.loop_spec import LoopSpec
from rota.program.machine import Machine
from rota.targets.cdna3 import MI300A, MI325X
from rota.targets.cdna4 import MI350X
from rota.targets.device import device_of
from rota.verify.prove import verify
from tests.findings.smallest import raised

MFMA = {"gfx942": "v_mfma_f32_16x16x16_bf16", "gfx950": "v_mfma_f32_16x16x32_bf16"}


def turned(arch: str) -> LoopSpec:
    loop = Loop("turned", waves=4)
    loop.load(loop.tile("A", size=4096), instructions=4, moved=4096)
    a = loop.transposed("a", "A", registers=4)
    loop.mma(loop.accumulator("c", registers=4), a, a, instruction=MFMA[arch])
    return loop.build()


def test_a_transposed_read_is_refused_where_there_is_none() -> None:
    finding = raised("L110", lambda: compile_loop(turned("gfx942"), GFX942))
    assert "MI300X" in finding.message
    assert finding.concerns[0].label == "read_a"
    assert compile_loop(turned("gfx950"), GFX950).certificate is not None


def test_and_so_it_is_by_the_proof() -> None:
    """A program that came about otherwise."""
    program = replace(compile_loop(turned("gfx950"), GFX950).lowered, machine=GFX942)
    assert "L110" in {finding.code for finding in verify(program).findings}


def test_nobody_plans_with_another_rate_instead() -> None:
    rates = device_of(GFX942).rates
    assert raised("D114", lambda: rates.lds_rate(OpKind.LDS_READ_TRANSPOSED)).evidence[0] == ("machine", "gfx942")


@pytest.mark.parametrize("machine", [GFX942, GFX950, MI300A, MI325X, MI350X])
def test_counter_rate_and_instructions_agree_about_transposed_reads(machine: Machine) -> None:
    device = device_of(machine)
    counted = device.counter_of(OpKind.LDS_READ_TRANSPOSED) is not None
    assert counted == bool(device.transposed_reads)
    assert counted == (device.rates.lds_read_transposed is not None)
