"""What is written in each language, and what is refused; no compiler is needed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rota.emit.forms import EMITTERS
from rota.emit.gemm.gemm_plan import gemm_plan
from rota.emit.text import Addition, Emission
from rota.errors import EmissionError
from rota.kernels.catalogue import kernel_named
from rota.languages.flydsl import emit_flydsl
from rota.languages.gluon import additions, emit_gluon, gluon_plan, gluon_signature
from rota.languages.mojo import Extra, emit_mojo, emit_mojo_table, extras
from rota.program.kinds import Phase
from tests.campaigns.whole.whole_kernels import FINE, LOOPS, loop_of
from tests.emit.kernels import FP8, SMALL, SMALL_MI300X, by_values, four_wave, ping_pong
from tests.languages import source_edits
from tests.wording.golden import mentions, worded


@pytest.mark.parametrize("form", ["flydsl", "mojo"])
def test_a_shipped_kernel_is_emitted_by_name(form: str) -> None:
    kernel = kernel_named("four_wave")
    text = EMITTERS.named(form)(Emission(compiled=kernel.compile(), kernel=kernel))
    assert "C = A x B^T on MI355X (gfx950)" in text.splitlines()[0]


def test_gluon_is_emitted_by_name() -> None:
    kernel = kernel_named("gemm_small").but("instructions", value=False)
    text = EMITTERS.named("gluon")(Emission(compiled=by_values(SMALL)[0], kernel=kernel))
    compile(text, "emitted.py", "exec")
    assert text.count("gl.barrier()") == 16


@pytest.mark.parametrize("emit", [emit_flydsl, emit_mojo])
def test_fp8_of_mi300x_is_written_with_its_own_format(emit: Callable[..., str]) -> None:
    """Its matrix instruction takes e4m3 as the machine has it; this was a KeyError."""
    text = emit(loop_of("fp8_mi300x"), LOOPS["fp8_mi300x"][0].geometry)
    assert "v_mfma_f32_16x16x32_fp8_fp8" in text
    assert "fp8 (FNUZ E4M3)" in text.splitlines()[1]
    assert "row_bytes = K * 1" in text


def test_a_barrier_of_one_wave_group_asks_for_the_group() -> None:
    flydsl, mojo = (emit(*ping_pong()) for emit in (emit_flydsl, emit_mojo))
    compile(flydsl, "emitted.py", "exec")
    assert flydsl.count("if wave_group == 1:") == flydsl.count("if wave_group == 0:") == 1
    assert mojo.count("if wave_group == 1:") == mojo.count("if wave_group == 0:") == 1


def test_barriers_beside_a_table_stand_where_the_stagger_has_them() -> None:
    plan = gemm_plan(*ping_pong())
    assert extras(plan, Phase.PROLOGUE) == (Extra(4, 1), Extra(10, -1))
    assert extras(plan, Phase.KERNEL) == ()
    assert extras(plan, Phase.EPILOGUE) == (Extra(58, 0),)


def test_fp8_joins_two_reads() -> None:
    flydsl, mojo, gluon = (emit(*by_values(FP8)) for emit in (emit_flydsl, emit_mojo, emit_gluon))
    assert "llvm.shufflevector(" in flydsl
    assert "].join(a[" in mojo
    assert 'cdna4.mfma_scaled(a0_0_0, None, "e4m3", b0_0_0, None, "e4m3", c_0_0)' in gluon
    assert gluon_signature(gluon_plan(*by_values(FP8)))["A"] == "*fp8e4nv"


def test_gluon_reads_whole_steps() -> None:
    with pytest.raises(EmissionError) as caught:
        emit_gluon(*by_values(FP8, instructions=True))
    worded(caught.value)


def test_gluon_is_written_for_gfx950() -> None:
    with pytest.raises(EmissionError) as caught:
        emit_gluon(*by_values(SMALL_MI300X))
    worded(caught.value)
    assert mentions(caught.value, "gfx942")


def test_gluon_fetches_whole_dmas() -> None:
    """Beyond the tile it would read whatever memory holds there; the others have resources that end with it."""
    compiled, geometry = loop_of("ragged_low" + FINE), LOOPS["ragged_low"][0].geometry
    with pytest.raises(EmissionError) as caught:
        emit_gluon(compiled, geometry)
    worded(caught.value)
    assert mentions(caught.value, "96", "64")
    assert emit_flydsl(compiled, geometry).count("row_bytes * 96, fx.Int32(0x00027000)") == 1


def test_the_other_languages_are_written_for_4_byte_dmas_too() -> None:
    compiled, geometry = by_values(SMALL_MI300X)
    assert "buffer_load_dword $2" in emit_flydsl(compiled, geometry)
    assert "buffer_load_dword $3" in emit_mojo(compiled, geometry)


def test_announced_waits_are_in_the_head_of_the_module() -> None:
    plan = gluon_plan(*by_values(SMALL))
    added = additions(plan)
    assert added[0] == Addition(phase=Phase.KERNEL, before=0, counter="lgkmcnt", count=0, at_barrier=True)
    assert sum(not each.at_barrier for each in added) == 27
    head = emit_gluon(*by_values(SMALL)).split("\n\n")[0]
    assert "#   kernel: 8 x lgkmcnt(0), 4 x lgkmcnt(4), 4 x lgkmcnt(5), 4 x lgkmcnt(7)" in head


def test_a_table_alone_prints_itself() -> None:
    text = emit_mojo_table(*four_wave())
    assert text.count("table.append(ScheduleEntry(OpDesc(") == 14 + 48 + 34
    assert "print(e.op.tag, e.op.stage" in text


@pytest.mark.parametrize("language", source_edits.WORDS)
def test_every_fault_changes_the_source(language: str) -> None:
    written: dict[str, Callable[..., str]] = {"gluon": emit_gluon, "flydsl": emit_flydsl, "mojo": emit_mojo}
    source = written[language](*by_values(SMALL))
    edits = source_edits.edits(language)
    assert len(edits) >= 10
    assert len({edit(source) for edit in edits.values()} - {source}) == len(edits)
