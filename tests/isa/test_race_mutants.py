"""A share of the race mutants, and what the arguments about them rest on; `benchmarks.race_mutants` has them all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import load_kernel
from rota.isa.launch.interleaving import LATEST, some_interleavings
from tests.campaigns.machine_code.race_argument import APART, ENDS, LATER, SLACK, Change, argument
from tests.campaigns.machine_code.race_edits import facts_of
from tests.campaigns.machine_code.race_mutants import (
    BAD,
    DOUBTFUL,
    FLAGGED,
    HARMLESS,
    MISSED,
    UNEXPLAINED,
    _verdict,
    judged,
    launched,
)
from tests.campaigns.machine_code.race_trace import Op, WaveTrace, matters, traced
from tests.isa.corpus.cases import FOLDER, Case
from tests.isa.single import loaded
from tests.shared import shared


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("name", ["h_scan.gfx950", "h_stencil.gfx942", "t_cumsum.gfx950"])
def test_a_share_is_flagged_or_harmless_for_a_reason(name: str) -> None:
    found = judged(name, orders=3, most=2)
    assert found.alarms == ()
    assert [(fate.mutant.what, fate.why) for fate in found.fates if fate.verdict in BAD] == []
    assert sum(fate.verdict == FLAGGED for fate in found.fates) >= 4


def test_verdicts() -> None:
    def verdict(*found: str, off: float = 0.0, harmless: bool = False) -> str:
        return _verdict(found, off, harmless=harmless, why="")["verdict"]

    assert verdict("I109") == FLAGGED
    assert verdict("I109", harmless=True) == DOUBTFUL
    assert verdict(off=2.0, harmless=True) == verdict(off=2.0) == MISSED
    assert verdict(harmless=True) == HARMLESS
    assert verdict() == UNEXPLAINED


# Wave 0 writes 4 bytes, waits, meets wave 1 at a barrier, and ends; wave 1 reads them after it, waits and uses it.
HANDOVER = loaded("""
ds_write_b32 v0, v1
s_waitcnt lgkmcnt(0)
s_barrier
ds_read_b32 v2, v0
s_waitcnt lgkmcnt(1)
s_waitcnt lgkmcnt(0)
v_mov_b32_e32 v3, v2
s_waitcnt lgkmcnt(0)
""")
WRITES, READS = [0, 1, 2, 8], [1, 2, 3, 4, 5, 6, 7, 8]


def handed_over(change: Change, bytes_read: int = 0xF) -> tuple[bool, str]:
    write = Op(counter="ds", rows=frozenset(), pc=0, writes={"lds": 0xF})
    read = Op(counter="ds", rows=frozenset({2}), pc=3, reads={"lds": bytes_read})
    waves = [
        WaveTrace(group=(0, 0, 0), number=0, pcs=WRITES, ops={0: write}),
        WaveTrace(group=(0, 0, 0), number=1, pcs=READS, ops={2: read}),
    ]
    return argument(waves, facts_of(HANDOVER), change)


def test_arguments_say_what_they_rest_on() -> None:
    assert handed_over(Change()) == (True, SLACK)
    assert handed_over(Change(gone=frozenset({4}))) == (True, SLACK)
    assert handed_over(Change(gone=frozenset({7}))) == (True, SLACK)
    assert handed_over(Change(waits={4: {"lgkmcnt": 0}})) == (True, LATER)  # as much as an earlier wait does
    assert handed_over(Change(gone=frozenset({5, 6}))) == (True, LATER)
    assert handed_over(Change(gone=frozenset({5, 6, 7}))) == (True, ENDS)
    assert handed_over(Change(moved=(2, 1)), bytes_read=0xF0) == (True, APART)


def test_arguments_see_what_breaks() -> None:
    race = (False, "waves 0 and 1 conflict in epoch 1, lds")
    assert handed_over(Change(gone=frozenset({1}))) == race
    assert handed_over(Change(waits={1: {"lgkmcnt": 1}})) == race
    assert handed_over(Change(moved=(2, 1))) == race
    assert handed_over(Change(gone=frozenset({1})), bytes_read=0xF0) == (True, ENDS)
    assert handed_over(Change(gone=frozenset({2}))) == (False, "waves 0 and 1 conflict in epoch 0, lds")
    assert handed_over(Change(waits={5: {"lgkmcnt": 1}})) == (
        False,
        "v_mov_b32_e32 v3, v2 uses row 2 of ds_read_b32 v2, v0",
    )


def test_one_instruction_earlier_the_wait_of_the_fp8_matmul_is_right() -> None:
    """s_barrier, s_waitcnt lgkmcnt(0): exchanged, the kernel is clean and right; docs/fp8_matmul.md says why."""
    name = "m_256_256_128_8_2_fp8e4nv.gfx950"
    case = Case(path=shared(f"{FOLDER}/{name}.hsaco"), name=name)
    program = load_kernel(case.path).program
    lines = {step.instruction.line: number for number, step in enumerate(program.steps)}
    at = lines[712]
    assert [step.instruction.text for step in program.steps[at : at + 2]] == ["s_barrier", "s_waitcnt lgkmcnt(0)"]
    steps = (*program.steps[:at], program.steps[at + 1], program.steps[at], *program.steps[at + 2 :])
    assert launched(replace(program, steps=steps), case.problem(), (LATEST,)) == ((), 0.0)


@pytest.mark.thorough  # runs for seconds
def test_loads_to_lds_are_traced_with_the_bytes_that_they_write() -> None:
    name = "g_mm.gfx950"
    case = Case(path=shared(f"{FOLDER}/{name}.hsaco"), name=name)
    kernel = load_kernel(case.path)
    loads = {number for number, step in enumerate(kernel.program.steps) if " lds" in step.instruction.text}
    ops = [op for trace in traced(kernel, case.problem()) for op in trace.ops.values()]
    assert {op.pc for op in ops if op.dma} == loads
    assert all(op.writes["lds"] for op in ops if op.dma)


def test_what_a_read_brings_may_not_matter() -> None:
    """In the second half of the last tile of K, one operand is zero; in the first half it isn't."""
    name = "t_matmul_bf16_s2.gfx950"
    case = Case(path=shared(f"{FOLDER}/{name}.hsaco"), name=name)
    kernel = load_kernel(case.path)
    texts = [step.instruction.text for step in kernel.program.steps]
    asked = ("ds_read_b128 v[116:119], v66 offset:96", "ds_read_b128 v[92:95], v66 offset:32")
    assert [matters(kernel, case.problem(), texts.index(text)) for text in asked] == [False, True]


@pytest.mark.slow
def test_the_argument_agrees_about_the_fp8_matmul() -> None:
    """As it is, and with the wait one instruction earlier, which every order agrees with."""
    name = "m_256_256_128_8_2_fp8e4nv.gfx950"
    case = Case(path=shared(f"{FOLDER}/{name}.hsaco"), name=name)
    kernel = load_kernel(case.path)
    traces, facts = traced(kernel, case.problem()), facts_of(kernel.program)
    at = next(number for number, step in enumerate(kernel.program.steps) if step.instruction.line == 712)
    assert argument(traces, facts, Change()) == (False, "waves 0 and 4 conflict in epoch 5, lds")
    assert argument(traces, facts, Change(moved=(at, at + 1))) == (True, APART)
    steps = (*facts.steps[:at], facts.steps[at + 1], facts.steps[at], *facts.steps[at + 2 :])
    repaired = replace(kernel.program, steps=steps)
    assert launched(repaired, case.problem(), some_interleavings(8, 6)) == ((), 0.0)
