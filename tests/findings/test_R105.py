from __future__ import annotations

from dataclasses import replace

from rota import CompiledSchedule, FrameworkTag, Loop, Severity, compile_loop, verify
from rota.simulate.values import execute


def stale() -> CompiledSchedule:
    """Nobody reads `old`, and `new` takes over its registers."""
    loop = Loop("stale", waves=4)
    loop.load(loop.tile("T", size=4096), moved=4096)
    old = loop.fragment("old", "T", registers=4)
    used = loop.fragment("used", "T", registers=4)
    new = loop.valu("new", [used], registers=4, into=old)
    loop.mma(loop.accumulator("c", registers=4), new, used, instruction="v_mfma_f32_16x16x32_bf16")
    return compile_loop(loop.build())


def test_a_late_landing_on_a_newer_value_is_reported_and_computes_wrong() -> None:
    compiled = stale()
    assert verify(compiled).clean
    assert execute(compiled, 3, spec=compiled.loop).right
    kernel = tuple(entry for entry in compiled.kernel if entry.op.tag != FrameworkTag.WAIT_LGKM)
    careless = replace(compiled, kernel=kernel, certificate=None)
    finding = next(each for each in verify(careless).errors if each.code == "R105")
    assert "may still land on top" in finding.message
    assert [end.label.split()[0] for end in finding.concerns] == ["read_old", "make_new"]
    assert finding.witness is not None
    assert not execute(careless, 3, spec=compiled.loop).right


def test_with_a_compiler_that_waits_it_is_a_note() -> None:
    compiled = stale()
    kernel = tuple(entry for entry in compiled.kernel if entry.op.tag != FrameworkTag.WAIT_LGKM)
    careless = replace(compiled, kernel=kernel, certificate=None, compiler_tracks_registers=True)
    notes = [each for each in verify(careless).findings if each.code == "R105"]
    assert all(each.severity is Severity.NOTE for each in notes)
