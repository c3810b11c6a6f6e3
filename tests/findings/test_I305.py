from __future__ import annotations

import pytest

from rota.errors import Finding
from rota.isa.binary.kernel_facts import Argument
from rota.isa.disassembly import read_listing
from rota.prove.hand_overs import HandOverReport, find_hand_overs
from rota.targets.memory_model import HandOverPiece as Piece
from tests.isa.single import facts, listing
from tests.wording.golden import worded

KERNEL = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v2, 2, v0
v_mov_b32_e32 v3, 1
s_waitcnt lgkmcnt(0)
s_cmp_lg_u32 s2, 0
s_cbranch_scc1 .LBB0_2
global_store_dword v2, v3, s[4:5]
buffer_wbl2 sc1
s_waitcnt vmcnt(0)
global_store_dword v2, v3, s[6:7] sc1
s_endpgm
.LBB0_2:
global_load_dword v4, v2, s[6:7] sc1
s_waitcnt vmcnt(0)
v_cmp_ne_u32_e32 vcc, 0, v4
s_cbranch_vccz .LBB0_2
buffer_inv sc1
global_load_dword v5, v2, s[4:5]
s_waitcnt vmcnt(0)
"""


def judged(text: str, arch: str = "gfx950", kind: str = "global_buffer") -> HandOverReport:
    pointers = tuple(Argument(name=name, offset=at, size=8, kind=kind) for at, name in ((0, "data"), (8, "flag")))
    launch = facts(
        arch, user_sgprs=(("kernarg_segment_ptr", 2),), workgroup_ids=(True, False, False), kernarg_bytes=16,
        arguments=pointers,
    )  # fmt: skip
    return find_hand_overs(launch, read_listing(listing(text), "k"))


SETS, LOOKS = "global_store_dword v2, v3, s[6:7] sc1", "global_load_dword v4, v2, s[6:7] sc1"
STORES, LOADS = "global_store_dword v2, v3, s[4:5]", "global_load_dword v5, v2, s[4:5]"


@pytest.mark.parametrize(
    ("gone", "missing", "ends"),
    [("buffer_wbl2 sc1\n", Piece.WRITE_BACK, (SETS, STORES)), ("buffer_inv sc1\n", Piece.INVALIDATE, (LOOKS, LOADS))],
)
def test_it_names_the_piece_the_flag_and_the_data(gone: str, missing: Piece, ends: tuple[str, str]) -> None:
    assert judged(KERNEL).findings == ()
    (finding,) = judged(KERNEL.replace(gone, "")).findings
    worded(finding)
    assert finding.code == "I305"
    assert tuple(each.label for each in finding.concerns) == ends
    assert dict(finding.evidence) == {"level": "required", "missing": missing.value}


def undecided(findings: tuple[Finding, ...]) -> set[str]:
    assert {dict(each.evidence)["level"] for each in findings} == {"undecided"}
    return {str(dict(each.evidence)["missing"]) for each in findings}


def test_who_knows_no_arguments_decides_nothing() -> None:
    wrong = KERNEL.replace("buffer_inv sc1\n", "")
    assert undecided(judged(wrong, kind="by_value").findings) == {Piece.INVALIDATE.value}


def test_a_piece_on_some_paths_is_undecided() -> None:
    """An argument decides whether caches are written back."""
    some = "s_cmp_lg_u32 s7, 0\ns_cbranch_scc1 .LBB0_7\nbuffer_wbl2 sc1\n.LBB0_7:\n"
    assert undecided(judged(KERNEL.replace("buffer_wbl2 sc1\n", some)).findings) == {Piece.WRITE_BACK.value}


def test_a_machine_without_a_memory_model_is_refused() -> None:
    assert [each.code for each in judged(KERNEL, arch="gfx1250").findings] == ["I401"]


def test_what_is_not_known_is_said() -> None:
    report = judged(f"image_load v[0:3], v[4:7], s[8:15]\n{KERNEL}")
    assert [each.code for each in report.unknown] == ["I401"]
    assert all(not each.findings for each in report.hand_overs)
