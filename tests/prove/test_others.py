"""Kernels that others compiled: what is known of them is found, and no more."""

from __future__ import annotations

import pytest

from rota.prove.causes import EvidenceLevel
from rota.prove.kernel_proof import prove_object
from rota.prove.verdict import Status, Verdict
from tests.isa.corpus.cases import FOLDER, cases, judged
from tests.shared import shared
from tests.wording.golden import worded

pytestmark = pytest.mark.thorough  # runs for seconds

COMPILED = "kernels/compiled"
# The proof judges LDS, registers and barriers; of these two kinds it says that it doesn't.
NOT_JUDGED = ("global_raw_barrier_nowait", "global_raw_nosync", "global_ww_workgroups", "oob_global", "uninit_lds")
RIGHT = ("raw_sync_ok", "war_ok", "u16_ok", "reduce_own")
WRONG = (
    "barrier_only_nowait", "divergent_barrier", "oob_lds", "raw_nosync", "reduce_missing_last", "same_value_war",
    "u16_barrier_only_nowait", "u16_raw_nosync", "u8_raw_nosync", "war_nosync", "waw",
)  # fmt: skip
JUDGED = frozenset({"I103", "I104", "I105", "I106", "I109"})


def verdict(name: str, *, witness: bool = False) -> Verdict:
    (only,) = prove_object(shared(f"{COMPILED}/{name}.hsaco"), witness=witness)
    return only


@pytest.mark.parametrize("name", [*RIGHT, *NOT_JUDGED])
def test_right_kernels_are_proved(name: str) -> None:
    assert verdict(f"races/{name}.gfx950").proved


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_refuted_by_execution(name: str) -> None:
    policy = name == "same_value_war"  # what is read late is what it was
    assert verdict(f"races/{name}.gfx950").status is (Status.ONE_SOURCE if policy else Status.ALARM)
    executed = verdict(f"races/{name}.gfx950", witness=True)
    if policy:
        assert executed.status is Status.ONE_SOURCE
        told = dict(executed.findings[0].evidence)["not replayed"]
        worded(str(told))
    else:
        assert executed.status is Status.REFUTED
        assert all(
            {"launch", "replayed"} <= set(dict(each.evidence)) for each in executed.findings if each.code != "I121"
        )


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("pp_on.gfx942", Status.PROVED),
        ("g_mm.gfx950", Status.UNDECIDED),  # with K = 0 it reads before the beginning of LDS
        ("g_mm_wrongwait.gfx950", Status.ALARM),
        ("h_reduction.gfx942", Status.PROVED),
    ],
)
def test_known_kernels(name: str, status: Status) -> None:
    assert verdict(name).status is status


def test_the_published_race_of_a_ping_pong_is_shown() -> None:
    """By the rule it is a matter of policy; the interpreter shows a value that differs."""
    name = "triton-3.8.0/pp_on.gfx942"
    assert verdict(name).status is Status.ONE_SOURCE
    executed = verdict(name, witness=True)
    assert (executed.status, executed.level) == (Status.REFUTED, EvidenceLevel.SHOWN)


@pytest.mark.parametrize(
    "name",
    [
        "gfx942__topksoftmax__topksoftmax_4x128x6",
        "gfx942__pa_a16w16_b16",
        "gfx942__fp8gemm_blockscale__fp8gemm_bf16_blockscale_BpreShuffle_32x128",
    ],
)
def test_every_path_of_a_shipped_kernel_is_followed(name: str) -> None:
    (only,) = prove_object(shared(f"kernels/aiter/{name}.co"), witness=False)
    assert not only.ended_early
    assert only.statistics.concrete_sites == only.statistics.sites


def test_a_missing_barrier_of_a_shipped_kernel_is_found_where_its_fix_put_one() -> None:
    """The binary before ROCm/aiter pull 4995: a tile in LDS is read by other waves with no barrier behind its write."""
    name = "gfx942__fmoe__silu__fmoe_bf16_a16_blockscaleFp8_g1u1_vs_silu_1tg_16x256"
    (only,) = prove_object(shared(f"kernels/aiter/{name}.co"), witness=False)
    races = [finding for finding in only.findings if finding.code == "I109"]
    assert {dict(finding.evidence)["rule"] for finding in races} == {"no synchronisation"}
    pairs = {tuple(concern.label.split()[0] for concern in finding.concerns) for finding in races}
    assert ("ds_read_b128", "ds_write_b128") in pairs
    assert not {finding.code for finding in only.findings} & {"I401", "I402"}


def test_proof_and_execution_agree() -> None:
    """Where both judge: the executed launch shows nothing that the proof rules out, and confirms what it flags."""
    folder = shared(FOLDER)
    ran = [judged(case, 2) for case in cases(folder, "races")]
    assert len(ran) >= len(RIGHT) + len(WRONG)
    for each in ran:
        name = each.case.name.rpartition("/")[2].partition(".")[0]
        if name in NOT_JUDGED:
            continue
        executed = {finding.code for finding in each.findings} & JUDGED
        proved = {finding.code for finding in verdict(f"races/{name}.gfx950").findings} & JUDGED
        assert executed == proved, name
