"""The proof, checked: mutants that it must flag, kernels that are executed as well, input that is meant to break it."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from rota.prove.verdict import Budget, Status, Verdict
from tests.campaigns.machine_code import proof_mutants
from tests.campaigns.machine_code.proof_agreement import compare
from tests.campaigns.machine_code.proof_mutants import (
    FLAGGED,
    JUDGED,
    MISSED,
    OUTSIDE,
    REDUNDANT,
    compiled_subject,
    fate_of,
    mutants_of,
    verdict_of,
)
from tests.isa.corpus.cases import FOLDER, Case
from tests.prove.written import codes, judged
from tests.shared import shared

MUTATED = ("h_scan.gfx950", "t_softmax.gfx950", "g_transpose.gfx950")
AGREE = ("h_histogram.gfx950", "h_transpose.gfx942", "t_cumsum.gfx942", "t_layernorm.gfx950", "ts_128_2.gfx950")


def case(name: str) -> Case:
    return Case(path=shared(f"{FOLDER}/{name}.hsaco"), name=name)


# Mutants: a share of `python -m benchmarks.proof_mutants`.


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("name", MUTATED)
def test_every_mutant_is_flagged_or_redundant(name: str) -> None:
    subject = compiled_subject(case(name))
    assert verdict_of(subject, subject.program, 20).proved
    fates = [fate_of(subject, mutant, 20, witness=True) for mutant in mutants_of(subject, 0, 1)]
    assert len(fates) >= 4
    for fate in fates:  # a shifted offset may compute something else without a race, which the proof doesn't judge
        allowed = {FLAGGED, REDUNDANT} if fate.mutant.change is not None else {FLAGGED, REDUNDANT, OUTSIDE}
        assert fate.verdict in allowed, (fate.mutant.what, fate.why)
    assert any(fate.verdict == FLAGGED for fate in fates)


def test_a_mutant_that_the_proof_lets_pass_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The campaign itself: a proof that finds nothing would not get through it."""
    subject = compiled_subject(case("h_scan.gfx950"))
    proved = verdict_of(subject, subject.program, 20)
    monkeypatch.setattr(proof_mutants, "verdict_of", lambda *_, **__: proved)
    fates = [fate_of(subject, mutant, 20) for mutant in mutants_of(subject, 0, 1)]
    assert any(fate.verdict == MISSED for fate in fates)


def test_outputs_that_are_wrong_by_global_memory_are_what_the_interpreter_finds_there() -> None:
    """Waves exchange data by loads and stores past caches, whatever the kernel is called."""
    subject = replace(compiled_subject(case("races/global_raw_barrier_nowait.gfx950")), name="k")
    (mutant,) = (each for each in mutants_of(subject, 0, 1) if each.kind == "barrier gone")
    fate = fate_of(subject, mutant, 20)
    assert (fate.verdict, "I302" in fate.why) == (OUTSIDE, True)
    blind = replace(subject, shadow=lambda _: ((), 2.0))
    assert fate_of(blind, mutant, 20).verdict == MISSED
    doubtful = replace(subject, shadow=lambda program: (("I302",) * (program is not mutant.program), 2.0))
    assert fate_of(doubtful, mutant, 20).verdict == MISSED  # what the unmodified kernel shows as well says nothing


# Agreement: a share of `python -m benchmarks.proof_agreement`.


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("name", AGREE)
def test_proof_and_execution_agree_that_it_is_right(name: str) -> None:
    both = compare(case(name), orders=2, seconds=20)
    assert (both.agree, both.outcome) == (True, "both right")


@pytest.mark.thorough  # runs for seconds
def test_proof_and_execution_agree_that_it_is_wrong() -> None:
    both = compare(case("g_mm_wrongwait.gfx950"), orders=2, seconds=20)
    assert (both.agree, both.outcome) == (True, "both wrong")
    assert not replace(both, status=Status.PROVED).agree
    assert both.executed <= JUDGED


# Input that is meant to break it ends within its budget, with a finding.

HEAD = "s_load_dwordx8 s[8:15], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_lshlrev_b32_e32 v1, 2, v0\n"
STORE = "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\n"
SECONDS = 0.5


def nested(depth: int) -> str:
    """Loops in loops, each as often as an argument says."""
    rows = [30 + level % 60 for level in range(depth)]
    into = "".join(f"s_mov_b32 s{row}, 0\nl{at}:\ns_add_u32 s{row}, s{row}, 1\n" for at, row in enumerate(rows))
    out = "".join(
        f"s_cmp_lt_u32 s{row}, s{8 + at % 8}\ns_cbranch_scc1 l{at}\n" for at, row in reversed([*enumerate(rows)])
    )
    return HEAD + into + STORE + out


HOSTILE = {
    "2^40 paths": HEAD
    + "".join(
        f"s_bitcmp1_b32 s8, {at % 32}\ns_cbranch_scc1 l{at}\ns_add_u32 s30, s30, {1 << at % 30}\nl{at}:\n"
        for at in range(40)
    )
    + "s_lshl_b32 s30, s30, 2\nv_add_u32_e32 v1, s30, v1\n"
    + STORE,
    "a loop of 2^31 rounds": HEAD
    + "s_mov_b32 s20, 0\nagain:\nv_add_u32_e32 v1, 4, v1\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\n"
    "s_add_u32 s20, s20, 1\ns_cmp_lt_u32 s20, 0x7fffffff\ns_cbranch_scc1 again\n",
    "M0 made of M0": HEAD
    + "s_mov_b32 m0, s8\nagain:\ns_mul_i32 m0, m0, 0x19660d\ns_add_u32 m0, m0, 0x3c6ef35f\ns_xor_b32 m0, m0, s9\n"
    "s_lshr_b32 s21, m0, 7\ns_xor_b32 m0, m0, s21\ns_nop 4\nbuffer_load_dword v1, s[12:15], 0 offen lds\n"
    "s_waitcnt vmcnt(0)\ns_barrier\ns_bitcmp1_b32 m0, 5\ns_cbranch_scc1 again\n",
    "60 nested loops": nested(60),
    "straight code without end": HEAD
    + "".join(f"v_mad_u32_u24 v{2 + at % 60}, v{2 + (at + 7) % 60}, v1, v3\n" for at in range(4000))
    + STORE,
    "scalar loads without a wait": HEAD
    + "".join(f"s_load_dword s{20 + at % 60}, s[0:1], {4 * (at % 900):#x}\n" for at in range(2000)),
    "flat loads without a wait": HEAD + "".join(f"flat_load_dword v{2 + at % 60}, v[62:63]\n" for at in range(2000)),
    "masks of masks": HEAD
    + "".join(
        f"v_cmp_gt_u32_e64 s[{20 + 2 * (at % 20)}:{21 + 2 * (at % 20)}], s{8 + at % 8}, v{at % 7}\n"
        f"v_mul_lo_u32 v{at % 7 + 1}, v{at % 7}, s{8 + (at + 3) % 8}\n"
        f"s_xor_b64 exec, exec, s[{20 + 2 * (at * 7 % 20)}:{21 + 2 * (at * 7 % 20)}]\n"
        for at in range(600)
    )
    + STORE,
}


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_input_ends_within_its_budget(what: str) -> None:
    started = time.process_time()
    verdict = judged(HOSTILE[what], waves=4, lds_bytes=1 << 16, budget=Budget(seconds=SECONDS))
    assert time.process_time() - started < 4 * SECONDS + 2
    assert verdict.status is not Status.PROVED or not verdict.findings
    assert_named(verdict)


def assert_named(verdict: Verdict) -> None:
    """Whatever isn't proved says why."""
    if not verdict.proved:
        assert verdict.findings
        assert all(finding.code in {"I104", "I105", "I109", "I103", "I402"} for finding in verdict.findings)


def test_a_kernel_too_long_for_its_budget_is_not_begun() -> None:
    verdict = judged(HEAD + "s_nop 0\n" * 3000 + STORE, budget=Budget(seconds=0.2))
    assert verdict.status is Status.INCONCLUSIVE
    assert codes(verdict) == ["I402"]
    assert verdict.statistics.seconds < 2
