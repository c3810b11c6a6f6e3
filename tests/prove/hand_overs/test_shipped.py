"""Hand-overs in kernels that others ship, as they were read by hand."""

from __future__ import annotations

import pytest

from rota.isa.binary.toolchain import read_object
from rota.prove.hand_overs import HandOver, HandOverKind, find_hand_overs
from rota.targets.memory_model import HandOverPiece as Piece
from tests.shared import shared

ZEROED_FIRST = "gfx942__fmoe__silu__fmoe_bf16_a16_blockscaleFp8_g1u1_vs_silu_1tg_16x128_flat_pf3.co"
SPLIT_K = "gfx942__bf16gemm__bf16gemm_fp32bf16_tn_80x64_bshuffle_splitk_clean.co"
ALL_REDUCE = "gfx942__all_reduce.co"


def hand_overs(name: str) -> tuple[HandOver, ...]:
    code = read_object(shared(f"kernels/aiter/{name}"))
    report = find_hand_overs(code.kernel(), code.instructions())
    assert report.unknown == ()
    return report.hand_overs


def test_a_wave_says_that_rows_are_zero_before_the_others_have_zeroed_theirs() -> None:
    """The barrier comes after the flag; whoever polls it adds to rows that may be zeroed later."""
    (release,) = [each for each in hand_overs(ZEROED_FIRST) if each.findings]
    assert (release.kind, release.missing) == (HandOverKind.RELEASE, (Piece.BARRIER_BEFORE,))
    (finding,) = release.findings
    assert dict(finding.evidence)["level"] == "required"
    assert [each.place for each in finding.concerns] == ["0x26bc", "0x2674"]


def test_the_zeros_of_a_split_gemm_have_landed_before_its_flag() -> None:
    """They pass the caches, 24 loads come after them, and vmcnt(24) and a barrier before the flag."""
    found = hand_overs(SPLIT_K)
    assert all(not each.findings for each in found)
    release = next(each for each in found if each.flag.place == "0x3340")
    assert release.kind is HandOverKind.RELEASE
    assert Piece.DATA_WAIT in release.pieces


@pytest.mark.parametrize("piece", [Piece.INVALIDATE, Piece.WRITE_BACK])
def test_pointers_from_memory_leave_it_undecided(piece: Piece) -> None:
    """Other devices' buffers, whose addresses the kernel loads; it writes back and invalidates nothing."""
    found = [finding for each in hand_overs(ALL_REDUCE) for finding in each.findings]
    assert {dict(each.evidence)["level"] for each in found} == {"undecided"}
    assert piece.value in {dict(each.evidence)["missing"] for each in found}
