from __future__ import annotations

from rota import compile_schedule
from rota.audit.machine_loop import expect_counts, read_machine_loop
from rota.isa.disassembly import read_listing
from rota.kernels.ping_pong import DeclarativeSchedule
from tests.findings.smallest import raised


def test_machine_code_without_a_loop_is_no_schedule() -> None:
    raised("I201", lambda: read_machine_loop(read_listing("k:\n\ts_endpgm\n", "k")))


def test_machine_code_with_two_loops_is_no_schedule() -> None:
    text = "k:\n.LBB0_1:\n\ts_cbranch_scc1 .LBB0_1\n.LBB0_2:\n\ts_cbranch_scc1 .LBB0_2\n\ts_endpgm\n"
    finding = raised("I201", lambda: read_machine_loop(read_listing(text, "k")))
    assert len(finding.evidence) == 2


def test_ops_that_do_not_say_their_instructions_cannot_be_compared() -> None:
    raised("I201", lambda: expect_counts(compile_schedule(DeclarativeSchedule())))
