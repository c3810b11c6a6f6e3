"""The block of a launch: what is given, what the kernel states, and what is only assumed and so decides nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rota.isa.disassembly import read_listing
from rota.prove.causes import UNDECIDED
from rota.prove.kernel_proof import prove
from rota.prove.verdict import Status, Verdict
from tests.cli.command import data, rota
from tests.isa.single import facts, listing
from tests.shared import shared

BYTES = 256 * 4
OWN = "v_lshlrev_b32_e32 v1, 2, v0\nds_write_b32 v1, v0"  # a word for each of 256 work items
FLAT = "v_and_b32_e32 v2, 0x3ff, v0\nv_bfe_u32 v3, v0, 10, 10\nv_lshl_add_u32 v1, v3, 4, v2\n"
SQUARE = FLAT + "v_lshlrev_b32_e32 v1, 2, v1\nds_write_b32 v1, v0"  # of 16 x 16
RACE = "v_mov_b32_e32 v1, 0\nds_write_b32 v1, v0"


def judged(text: str, block: int | tuple[int, int, int] | None = None, **changes: Any) -> Verdict:
    told = facts(**{"max_workgroup": 1024, "lds_bytes": BYTES, **changes})
    told = replace(told, descriptor=replace(told.descriptor, lds_bytes=told.lds_bytes))
    return prove(told, read_listing(listing(text), "k"), block=block, witness=True)


def test_a_block_that_was_assumed_refutes_nothing() -> None:
    verdict = judged(OWN)
    assert verdict.status is Status.UNDECIDED
    (finding,) = verdict.findings
    shown = dict(finding.evidence)
    assert (finding.code, finding.severity.value) == ("I105", "warning")
    assert "1024" in str(shown[UNDECIDED])
    assert finding.fixes


@pytest.mark.parametrize("text", [OWN, RACE])
def test_a_block_that_is_given_or_stated_does(text: str) -> None:
    for verdict in (
        judged(text, 512),
        judged(text, (512, 1, 1)),
        judged(text, required_workgroup=(512, 1, 1)),
        judged(text, max_workgroup=512),
    ):
        assert verdict.status is Status.REFUTED
        assert all(UNDECIDED not in dict(each.evidence) for each in verdict.findings)
    assert judged(text).status is Status.UNDECIDED


def test_a_right_kernel_is_proved_by_its_block() -> None:
    assert judged(OWN, 256).proved
    assert judged(OWN, max_workgroup=256).proved
    assert judged(OWN, required_workgroup=(256, 1, 1)).proved


def test_a_number_says_nothing_about_two_dimensions() -> None:
    """256 in a row are outside of a buffer for 16 x 16; nobody said that they are in a row."""
    square = {"workitem_ids": 1, "lds_bytes": 16 * 16 * 4}
    assert judged(SQUARE, (16, 16, 1), **square).proved
    assert judged(SQUARE, required_workgroup=(16, 16, 1), **square).proved
    assert judged(SQUARE, 256, required_workgroup=(16, 16, 1), **square).proved
    wide = SQUARE.replace("v_lshl_add_u32 v1, v3, 4, v2", "v_lshl_add_u32 v1, v2, 4, v3")  # transposed
    assert judged(wide, (16, 16, 1), **square).proved
    for verdict in (judged(wide, 256, **square), judged(wide, max_workgroup=256, **square)):
        assert verdict.status is Status.UNDECIDED
        assert UNDECIDED in dict(verdict.findings[0].evidence)


def test_a_kernel_that_masks_x_out_has_no_use_for_a_shape() -> None:
    """Compilers ask for y and z, and don't look at them."""
    x = "v_and_b32_e32 v2, 0x3ff, v0\nv_and_b32_e32 v3, 31, v0\nv_lshlrev_b32_e32 v1, 2, v2\nds_write_b32 v1, v2"
    given = {"workitem_ids": 2, "max_workgroup": 512}
    assert judged(x, **given).status is Status.REFUTED
    for more in (
        "v_lshlrev_b32_e32 v4, 2, v0\nv_and_b32_e32 v4, 60, v4\nv_add_u32_e32 v5, v4, v4\nv_mul_lo_u32 v5, v5, v4",
        "v_bitop3_b32 v4, v2, v0, 56 bitop3:0x78\nv_mul_lo_u32 v5, v4, v4",  # v2 ^ v0 & 56
        "v_and_or_b32 v4, v0, 48, s6\nv_mul_lo_u32 v5, v4, v4",
        "v_bfe_u32 v4, v0, 4, 6\nv_mul_lo_u32 v5, v4, v4",
        "v_mul_f32_e32 v4, 0.5, v3\nv_med3_f32 v4, v4, -1.0, 1.0",  # floats are no integers
    ):
        assert judged(f"{x}\n{more}", **given).status is Status.REFUTED
    for more in (
        "v_lshrrev_b32_e32 v4, 2, v0\nv_and_b32_e32 v4, 0x1ff, v4\nv_mul_lo_u32 v5, v4, v4",
        "v_bitop3_b32 v4, v2, v0, 56 bitop3:0x3c\nv_mul_lo_u32 v5, v4, v4",  # v2 ^ v0
        "v_or_b32_e32 v4, 8, v0\nglobal_store_dword v3, v4, s[4:5]",
        "v_add_u32_e32 v4, 8, v0\nv_cmp_lt_u32_e32 vcc, 7, v4",
        "v_bfe_u32 v4, v0, 4, 7\nv_mul_lo_u32 v5, v4, v4",
    ):
        assert judged(f"{x}\n{more}", **given).status is Status.UNDECIDED
    for more in (
        "v_bfe_u32 v4, v0, 10, 10\nv_mul_lo_u32 v5, v4, v4",
        "v_and_b32_e32 v4, 0x7ff, v0\nv_mul_lo_u32 v5, v4, v4",
        "v_and_b32_e32 v4, 1.0, v0\nv_mul_lo_u32 v5, v4, v4",  # 0x3f800000
        "global_store_dword v3, v0, s[4:5]",
    ):
        assert judged(f"{x}\n{more}", **given).status is Status.UNDECIDED
    assert judged(f"{x}\nv_mov_b32_e32 v0, 0\nv_add_u32_e32 v1, v0, v0", **given).status is Status.REFUTED
    skipped = "s_cbranch_scc1 L1\nv_mov_b32_e32 v0, 0\nL1:\nv_mul_lo_u32 v4, v0, v0"
    assert judged(f"{x}\n{skipped}", **given).status is Status.UNDECIDED


def test_what_isnt_about_the_block_is_no_less_certain() -> None:
    early = "ds_read_b32 v1, v0\nv_add_u32_e32 v2, 1, v1"
    assert {
        each.code for each in judged(f"v_mov_b32_e32 v0, 0\n{early}").findings if UNDECIDED in dict(each.evidence)
    } == set()


def test_the_command_takes_a_block_of_several_dimensions() -> None:
    file = shared("cases/hip/transpose2d.hip")
    base = f"check {file} --device mi355x"
    for option, status in (("", "undecided"), ("--block 256", "undecided")):
        (kernel,) = data(f"{base} {option}")["kernels"]
        assert kernel["verdict"]["status"] == status
        assert rota(f"{base} {option} --fail-on undecided").exit_code == 1
    assert data(f"{base} --block 16x16")["proved"]


@pytest.mark.parametrize("block", ["0", "16x", "2000", "1x2x3x4", "64x64", "-1", "many"])
def test_a_block_that_is_none_is_refused(block: str) -> None:
    assert rota(f"check kernel.co --block={block}").exit_code == 2
