"""`rota show`, `rota diff` and `rota check` of machine code that others compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import data, rota
from tests.shared import shared
from tests.wording.golden import mentions, worded

COMPILED = "kernels/compiled"
ASSEMBLY = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
.text
.globl k
.p2align 8
.type k,@function
k:
  v_lshlrev_b32_e32 v1, 2, v0
  v_xor_b32_e32 v2, 0x100, v1
  ds_write_b32 v1, v0
  {wait}
  s_barrier
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  v_mov_b32_e32 v4, v3
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_group_segment_fixed_size 512
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 8
  .amdhsa_accum_offset 8
.end_amdhsa_kernel
"""


@pytest.fixture
def assembly(tmp_path: Path) -> Path:
    path = tmp_path / "k.s"
    path.write_text(ASSEMBLY.format(wait="s_waitcnt lgkmcnt(0)"), encoding="utf-8")
    return path


def compiled(name: str) -> str:
    return str(shared(f"{COMPILED}/{name}.hsaco"))


def test_a_loop_is_shown_with_what_it_rests_on(tmp_path: Path) -> None:
    picture = tmp_path / "loop.svg"
    result = rota(f"show {compiled('t_matmul_bf16_s2.gfx950')} --svg {picture}")
    assert result.exit_code == 0, result.output
    worded(result.stdout)
    worded(result.stderr)
    assert "the steady state of the loop alone" in picture.read_text(encoding="utf-8")


def test_the_listing_has_waits_and_barriers() -> None:
    found = data(f"show {compiled('t_matmul_bf16_s2.gfx950')} --listing")
    names = [each["op"] for each in found["kernel"]]
    assert "barrier" in names
    assert any(name.startswith("wait_lgkm(") for name in names)


def test_two_builds_are_compared() -> None:
    found = data(f"diff {compiled('g_mm.gfx950')} {compiled('g_mm_wrongwait.gfx950')}")
    changed = [row["text"] for row in found["rows"] if row["change"] != "same"]
    assert changed
    assert not found["same"]
    assert all("wait_vm" in text for text in changed)


def test_settings_are_not_for_machine_code() -> None:
    assert rota(f"show {compiled('g_mm.gfx950')} --set depth=2").exit_code == 2
    assert rota(f"diff {compiled('g_mm.gfx950')}").exit_code == 2
    assert rota("check gemm_small --needed").exit_code == 2


def test_assembly_is_assembled_for_the_processor_that_it_names(assembly: Path) -> None:
    result = rota(f"check {assembly}:k --block 128 --needed")
    assert result.exit_code == 0, result.output
    worded(result.stdout)


def test_what_an_edit_of_assembly_broke_is_suggested(assembly: Path) -> None:
    assembly.write_text(ASSEMBLY.format(wait="s_nop 0"), encoding="utf-8")
    result = rota(f"check {assembly} --block 128 --suggest")
    assert result.exit_code == 1
    worded(result.stdout)
    assert mentions(result.stdout, "s_waitcnt", "lgkmcnt(0)", "s_barrier")


def test_source_without_a_device_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k.s"
    path.write_text("s_endpgm\n", encoding="utf-8")
    result = rota(f"check {path}")
    assert result.exit_code == 2
    assert "--device" in result.output
