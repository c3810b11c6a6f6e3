from __future__ import annotations

from dataclasses import replace

from rota import CompiledSchedule, Loop, Severity, compile_loop, verify
from rota.execute.executor import execute
from rota.program.kinds import OpKind
from tests.wording.golden import worded


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
    assert execute(compiled, 3).right
    kernel = tuple(
        entry for entry in compiled.kernel if entry.effect.kind is not OpKind.WAIT or entry.effect.counter != "lgkmcnt"
    )
    careless = replace(compiled, kernel=kernel, certificate=None)
    finding = next(each for each in verify(careless).errors if each.code == "R105")
    worded(finding)
    assert [end.label.split()[0] for end in finding.concerns] == ["read_old", "make_new"]
    assert finding.witness is not None
    assert not execute(careless, 3).right


def test_with_a_compiler_that_waits_it_is_a_note() -> None:
    """Nothing that the compiler would wait for is used before `new`, which an input alone makes."""
    loop = Loop("stale", waves=4)
    loop.load(loop.tile("T", size=4096), moved=4096)
    old = loop.fragment("old", "T", registers=4)
    new = loop.valu("new", [loop.input("w", registers=4)], registers=4, into=old)
    loop.mma(loop.accumulator("c", registers=4), new, new, instruction="v_mfma_f32_16x16x32_bf16")
    compiled = compile_loop(loop.build())
    kernel = tuple(
        entry for entry in compiled.kernel if entry.effect.kind is not OpKind.WAIT or entry.effect.counter != "lgkmcnt"
    )
    careless = replace(compiled, kernel=kernel, certificate=None, compiler_tracks_registers=True)
    notes = [each for each in verify(careless).findings if each.code == "R105"]
    assert [each.severity for each in notes] == [Severity.NOTE] * len(notes)
    assert notes
    alone = replace(careless, compiler_tracks_registers=False)
    assert "R105" in {each.code for each in verify(alone).errors}
