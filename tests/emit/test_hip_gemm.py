from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pytest

from rota.audit.gemm_launch import GemmProgram, load_emitted
from rota.emit.gemm.gemm_tile import Element
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.launch.interleaving import LATEST, draw_order
from tests.emit.kernels import SMALL, SMALL_MI300X, Emitted, by_values, four_wave, ping_pong


def loaded(emitted: Emitted) -> GemmProgram:
    compiled, geometry = emitted
    code = find_toolchain().compile(emit_gemm(compiled, geometry), compiled.machine.arch)
    return load_emitted(compiled, geometry, code)


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("name", [SMALL_MI300X, "gemm_fp16_128x128x64_4wave_mi300x"])
def test_the_machine_code_multiplies(name: str) -> None:
    gemm = loaded(by_values(name))
    for trips, interleaving in product((0, 1), (LATEST, draw_order(7))):
        assert gemm.launch(trips, interleaving).right


def test_every_workgroup_has_its_own_tile() -> None:
    assert loaded(by_values(SMALL_MI300X)).launch(0, LATEST, grid=(2, 3)).right


@pytest.mark.thorough  # compiles, or starts commands
def test_a_tail_reaches_the_numbers_of_tiles_between_trips() -> None:
    compiled, geometry = by_values(SMALL_MI300X)
    tail, _ = by_values(SMALL_MI300X, remainder=1)
    assert tail.lowered.tiles_outside == compiled.lowered.tiles_outside + 1
    code = find_toolchain().compile(emit_gemm(compiled, geometry, tails=[tail]), "gfx942")
    gemm = load_emitted(tail, geometry, code, kernel=f"{compiled.name}_tail1")
    assert gemm.launch(0, LATEST).right
    assert gemm.launch(1, draw_order(7)).right


@pytest.mark.parametrize("emitted", [lambda: by_values(SMALL), ping_pong, four_wave])
def test_each_line_says_which_entry_it_is(emitted: Callable[[], Emitted]) -> None:
    source = emit_gemm(*emitted())
    calls = [line for line in source.splitlines() if line.strip().startswith("ROTA_") and "//" in line]
    assert all(re.search(r"// (prologue|kernel|epilogue)\[\d+\] ", line) for line in calls)
    assert all(": " in line.split("// ")[1] for line in calls if "WAIT" in line or "BARRIER" in line)


def test_barriers_of_one_group_say_which_group_waits() -> None:
    """Group 1 has the extra barrier first, so it is the late one; group 0 has one more at the end."""
    lines = [line.strip() for line in emit_gemm(*ping_pong()).splitlines() if "if (wave_group" in line]
    assert [(line[:21], line.rpartition(": ")[2]) for line in lines] == [
        ("if (wave_group == 1) ", "group 1 falls one barrier behind group 0"),
        ("if (wave_group == 0) ", "group 0 lets group 1 catch up"),
    ]


def test_the_contract_stands_at_the_top() -> None:
    source = emit_gemm(*ping_pong())
    assert "// K / 64 = 2 + 2 * trips, for any trips >= 0" in source
    assert "C: M x N, fp32, row-major, overwritten" in source
    assert "// Rows follow one another without gaps; A and B are aligned to 16 bytes." in source
    assert "512 threads, no dynamic LDS" in source
    assert "-O2 or -O3 (clang++ -x hip --offload-arch=gfx950)" in source
    assert "proved for every trip count" in source


def test_reads_that_nothing_uses_are_kept() -> None:
    """The rotation's last fragments feed a partition that never comes."""
    assert "nothing uses these, but the schedule reads them" in emit_gemm(*four_wave())
    assert "nothing uses these" not in emit_gemm(*ping_pong())


def test_elements_can_be_chosen_where_the_schedule_names_none() -> None:
    compiled, geometry = ping_pong()
    assert "v_mfma_f32_16x16x32_f16" in emit_gemm(compiled, geometry, element=Element.FP16)
    assert "v_mfma_f32_16x16x32_bf16" in emit_gemm(compiled, geometry)


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("wrong", [("tile_column * 128", "0"), ("(u64)tile_row * 128", "(u64)0")])
def test_a_workgroup_that_takes_the_tile_of_another_is_found(wrong: tuple[str, str]) -> None:
    compiled, geometry = by_values(SMALL_MI300X)
    source = emit_gemm(compiled, geometry)
    assert wrong[0] in source
    code = find_toolchain().compile(source.replace(*wrong), "gfx942")
    result = load_emitted(compiled, geometry, code).run_trips(0, 0)
    assert result.right == result.runs - 1
