"""Proof and executor agree on a sample of mutants, and the campaign would notice if they didn't."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from benchmarks import mutants as command
from rota import (
    CompiledSchedule,
    Finding,
    FrameworkTag,
    KernelGeometry,
    OpRole,
    Phase,
    Pipeline4Wave,
    SingleBufferSchedule,
    compile_schedule,
    verify,
)
from rota.errors import Witness
from rota.verify.report import Report
from tests.mutation import campaign
from tests.mutation.campaign import Judgement, Outcome, Subject, judge, sampled, subjects
from tests.mutation.mutants import Kind, Mutant, mutants_of

SAMPLE = 180
STAGGERED = "ping-pong GREEDY, max_globals 1, vm 4/4, lgkm 8/4"


@cache
def work() -> tuple[tuple[Subject, tuple[Mutant, ...]], ...]:
    return tuple((subject, tuple(subject.mutants())) for subject in subjects())


@cache
def of_subject(name: str) -> tuple[Mutant, ...]:
    return next(mutants for subject, mutants in work() if subject.name == name)


@cache
def four_wave() -> CompiledSchedule:
    return compile_schedule(Pipeline4Wave(KernelGeometry(lgkm_per_load_a=4, lgkm_per_load_b=4)))


def unchanged(schedule: CompiledSchedule) -> Mutant:
    return Mutant(kind=Kind.SWAPPED, description="nothing changed", schedule=schedule)


def first(kind: Kind, wanted: Callable[[Mutant], bool] = lambda _: True) -> Mutant:
    return next(mutant for mutant in mutants_of(four_wave()) if mutant.kind is kind and wanted(mutant))


def says(*findings: Finding) -> Callable[[CompiledSchedule], Report]:
    """A proof that always says the same."""
    return lambda _: Report(findings=findings, certificate=None)


def race(witness: Witness | None) -> Finding:
    return Finding(code="R103", message="made up", witness=witness)


# The campaign itself


def test_the_full_campaign_has_5000_mutants_of_every_kind() -> None:
    counts = Counter(mutant.kind for _, mutants in work() for mutant in mutants)
    assert counts.total() >= command.FEWEST
    assert set(counts) == set(Kind)


def test_proof_and_executor_agree_on_a_sample() -> None:
    chosen = sampled(work(), SAMPLE)
    assert sum(len(mutants) for _, mutants in chosen) == SAMPLE
    assert {mutant.kind for _, mutants in chosen for mutant in mutants} == set(Kind)
    assert all(mutants for subject, mutants in chosen if not subject.same_as)
    judgements = [judge(mutant, subject.name) for subject, mutants in chosen for mutant in mutants]
    disagreed = [str(judgement) for judgement in judgements if judgement.outcome in command.WRONG]
    assert disagreed == []
    assert Counter(judgement.outcome for judgement in judgements)[Outcome.KILLED] > SAMPLE // 4


def test_a_sample_is_always_the_same() -> None:
    def descriptions() -> list[tuple[str, str]]:
        return [(subject.name, m.description) for subject, mutants in sampled(work(), 30) for m in mutants]

    assert descriptions() == descriptions()
    assert len(descriptions()) == 30


def test_a_schedule_with_the_entries_of_another_is_not_counted_again() -> None:
    same = {subject.name: subject.same_as for subject, _ in work() if subject.same_as}
    assert same[STAGGERED.replace("GREEDY", "CSP")] == STAGGERED
    assert all(not mutants for subject, mutants in work() if subject.same_as)


# The generator


def test_every_mutant_differs_from_its_subject_and_from_every_other() -> None:
    for subject, mutants in work():
        contents = [
            (m.schedule.prologue, m.schedule.kernel, m.schedule.epilogue, m.schedule.warp_stagger_index)
            for m in (unchanged(subject.schedule), *mutants)
        ]
        assert len(set(contents)) == len(contents)


def test_entries_stay_numbered_and_what_was_proved_is_dropped() -> None:
    for _, mutants in work():
        for mutant in mutants:
            schedule = mutant.schedule
            for entries in (schedule.prologue, schedule.kernel, schedule.epilogue):
                assert [entry.time_slot for entry in entries] == list(range(len(entries)))
            assert schedule.certificate is None


def test_the_second_group_falls_back_in_front_of_the_same_entry() -> None:
    """A wait or barrier that leaves the part in front of it takes a place away there."""
    (subject,) = [subject for subject, _ in work() if subject.name == STAGGERED]
    prologue = subject.schedule.prologue
    for index in range(len(prologue)):
        moved = replace(subject.schedule, warp_stagger_index=index)
        for mutant in mutants_of(moved):
            made = mutant.schedule
            if mutant.kind in (Kind.WAIT_DELETED, Kind.BARRIER_DELETED, Kind.WAIT_MOVED):
                behind = [entry.op for entry in made.prologue[made.warp_stagger_index :]]
                kept = [entry.op for entry in prologue[index:]]
                gone = len(kept) - len(behind)
                assert gone in (0, 1, -1)
                assert gone or behind == kept or mutant.kind is Kind.WAIT_MOVED
            else:
                assert made.warp_stagger_index == index


def test_an_unstaggered_schedule_stays_unstaggered() -> None:
    for mutant in mutants_of(four_wave()):
        assert mutant.schedule.warp_stagger_index == len(mutant.schedule.prologue) + 1


def test_a_boundary_lies_one_above_the_tokens_behind_an_op() -> None:
    """wait_vm(16) with loads of four tokens each covers what has 16 tokens behind it; 17 spares it, 21 the next."""
    waits = [m for m in mutants_of(four_wave()) if m.kind is Kind.WAIT_WEAKER_BY_AN_OP]
    assert "kernel #0 wait_vm(16) became wait_vm(21)" in {mutant.description for mutant in waits}


def test_a_wait_behind_the_loops_last_barrier_moves_behind_its_first() -> None:
    moved = {m.description: m.schedule for m in mutants_of(four_wave()) if m.kind is Kind.WAIT_MOVED}
    kernel = moved["kernel #46 wait_vm(16) moved behind the barrier at #2"].kernel
    assert [str(entry.op) for entry in kernel[:4]] == ["wait_vm(16)", "wait_lgkm(0)", "barrier", "wait_vm(16)"]
    assert len(kernel) == len(four_wave().kernel)


def test_a_barrier_is_skipped_only_where_there_are_two_groups() -> None:
    assert not [m for m in mutants_of(four_wave()) if m.kind is Kind.BARRIER_SKIPPED]
    skipped = [m for m in of_subject(STAGGERED) if m.kind is Kind.BARRIER_SKIPPED]
    groups = Counter(
        entry.group
        for mutant in skipped
        for entry in (*mutant.schedule.prologue, *mutant.schedule.kernel, *mutant.schedule.epilogue)
        if entry.group is not None
    )
    assert groups == {0: len(skipped) // 2, 1: len(skipped) // 2}


def test_swaps_that_cannot_matter_are_left_out() -> None:
    for mutant in (m for _, mutants in work() for m in mutants if m.kind is Kind.SWAPPED):
        one, other = mutant.description.split(" #", 1)[1].split(" ", 1)[1].split(" behind ")
        assert one != other
        assert not {one.split("(")[0], other.split("(")[0]} <= {"set_prio", "schedule_barrier"}


def test_only_fields_that_matter_change() -> None:
    """A single buffer's load counts its own tiles and fills one register: neither stage, subtile nor k say anything."""
    changed = [
        mutant.kind
        for mutant in mutants_of(compile_schedule(SingleBufferSchedule(3)))
        if mutant.kind in (Kind.STAGE, Kind.SUBTILE, Kind.K_OFFSET)
    ]
    compiled = compile_schedule(SingleBufferSchedule(3))
    entries = (*compiled.prologue, *compiled.kernel, *compiled.epilogue)
    fragments = sum(entry.op.role is OpRole.FRAGMENT_LOAD for entry in entries)
    assert changed == [Kind.SUBTILE] * 2 * fragments


def test_a_tail_takes_every_count_of_the_loop() -> None:
    tails = [m for m in mutants_of(four_wave()) if m.kind is Kind.TAIL_COUNT]
    counts = {e.op.wait_value for e in four_wave().kernel if e.op.tag == FrameworkTag.WAIT_VM}
    assert counts == {16}
    waits = [e for e in four_wave().epilogue if e.op.tag == FrameworkTag.WAIT_VM]
    assert len(tails) == len(waits)
    assert all(m.schedule.kernel == four_wave().kernel for m in tails)
    assert all(str(m.description).startswith(Phase.EPILOGUE.value.lower()) for m in tails)


# The judge


def test_a_clean_schedule_is_equivalent_to_itself() -> None:
    judgement = judge(unchanged(four_wave()))
    assert (judgement.outcome, judgement.shown, judgement.codes) == (Outcome.EQUIVALENT, None, ())


@pytest.mark.parametrize("kind", [Kind.BARRIER_DELETED, Kind.STAGE, Kind.K_OFFSET, Kind.TAIL_COUNT])
def test_what_goes_wrong_is_killed_and_a_proof_that_says_clean_misses_it(kind: Kind) -> None:
    mutant = first(kind, lambda mutant: not verify(mutant.schedule).clean)
    assert judge(mutant).outcome is Outcome.KILLED
    missed = judge(mutant, "four waves", proof=says())
    assert missed.outcome is Outcome.MISSED
    assert str(missed).startswith(f"missed: four waves: {mutant.description}\n   proof: clean\n   run: ")


def test_a_deadlock_is_missed_too() -> None:
    mutant = next(m for m in of_subject(STAGGERED) if m.kind is Kind.BARRIER_SKIPPED)
    assert judge(mutant).outcome is Outcome.KILLED
    assert "deadlock" in str(judge(mutant, proof=says()))
    assert judge(mutant, proof=says()).outcome is Outcome.MISSED


@pytest.mark.parametrize("code", ["V101", "B101"])
def test_an_error_that_nothing_shows_is_a_false_alarm(code: str) -> None:
    proof = says(Finding(code=code, message="made up"))
    assert judge(unchanged(four_wave()), proof=proof).outcome is Outcome.FALSE_ALARM


def test_a_witness_that_ends_well_is_a_false_alarm_even_if_something_else_goes_wrong() -> None:
    harmless = race(Witness(kind="WAR", trip_count=0, ahead=0, behind=0))
    assert judge(unchanged(four_wave()), proof=says(harmless)).outcome is Outcome.FALSE_ALARM
    later = first(Kind.WAIT_DELETED, lambda mutant: _first_trip(mutant) > 0)
    assert verify(later.schedule).errors
    judgement = judge(later, proof=says(*verify(later.schedule).errors, harmless))
    assert (judgement.outcome, judgement.silent) == (Outcome.FALSE_ALARM, (harmless,))
    assert "no replay bears out" in str(judgement)


def test_a_replay_that_goes_wrong_for_another_reason_bears_nothing_out() -> None:
    """The real race's witness with the ends of two ops that never meet."""
    mutant = first(Kind.BARRIER_DELETED, lambda mutant: not verify(mutant.schedule).clean)
    real = next(finding for finding in verify(mutant.schedule).errors if finding.witness is not None)
    assert judge(mutant, proof=says(real)).outcome is Outcome.KILLED
    load = replace(real.concerns[0], index=0, role="prologue, epoch 0: writes LDS A[0][0]")
    read = replace(real.concerns[1], index=8, role="kernel, epoch 5: reads LDS A[0][1]")
    made_up = replace(real, concerns=(load, read))
    judgement = judge(mutant, proof=says(made_up))
    assert (judgement.outcome, judgement.silent) == (Outcome.FALSE_ALARM, (made_up,))


def test_registers_without_a_wait_are_an_error_where_no_compiler_waits() -> None:
    mutants = of_subject("4-wave, lgkm 8/4, all waits planned")
    found = (judge(mutant) for mutant in mutants if mutant.kind is Kind.WAIT_DELETED)
    early = next(judgement for judgement in found if "R104" in judgement.codes)
    assert early.outcome is Outcome.KILLED
    assert judge(early.mutant, proof=says()).outcome is Outcome.MISSED


def _first_trip(mutant: Mutant) -> int:
    witnesses = [finding.witness for finding in verify(mutant.schedule).errors]
    return min((witness.trip_count for witness in witnesses if witness is not None), default=0)


def test_a_race_without_a_witness_is_a_false_alarm() -> None:
    mutant = first(Kind.BARRIER_DELETED, lambda mutant: not verify(mutant.schedule).clean)
    assert judge(mutant, proof=says(race(None))).outcome is Outcome.FALSE_ALARM


def test_a_broken_limit_alone_is_neither_but_excuses_nothing() -> None:
    limit = says(Finding(code="L101", message="made up"))
    assert judge(unchanged(four_wave()), proof=limit).outcome is Outcome.LIMIT
    mutant = first(Kind.BARRIER_DELETED, lambda mutant: not verify(mutant.schedule).clean)
    assert judge(mutant, proof=limit).outcome is Outcome.MISSED


# The command


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Subject:
    """The command on two schedules, of which the second has the entries of the first."""
    subject = next(subject for subject, _ in work())
    again = replace(subject, name="again", same_as=subject.name)
    monkeypatch.setattr(command, "subjects", lambda: iter((subject, again)))
    return subject


def test_the_command_prints_a_line_per_kind(small: Subject, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--sample", "5"]) == 0
    printed = capsys.readouterr()
    lines = [line.split("|")[1].strip() for line in printed.out.splitlines() if line.startswith("| ")]
    assert lines == ["mutation", *(kind.value for kind in Kind), "all"]
    assert "5 mutants of 1 schedules in " in printed.out
    assert f"not counted again: again, which has the entries of {small.name}\n" in printed.out
    assert printed.err.startswith(f"{small.name}: 5 mutants in ")


@pytest.mark.parametrize("outcome", command.WRONG)
def test_the_command_fails_when_proof_and_executor_disagree(
    outcome: Outcome, small: Subject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(mutant: Mutant, subject: str) -> Judgement:
        return Judgement(subject=subject, mutant=mutant, outcome=outcome, codes=(), shown=None)

    monkeypatch.setattr(command, "judge", wrong)
    assert command.main(["--sample", "1"]) == 1
    assert capsys.readouterr().err.startswith(f"{outcome.value}: ")


def test_the_command_fails_when_a_full_campaign_is_too_small(
    small: Subject, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([]) == 1
    assert command.main(["--sample", "3"]) == 0
    assert capsys.readouterr().err.count(small.name) == 2


def test_the_campaign_runs_what_it_says() -> None:
    assert campaign.TRIP_COUNTS == (0, 1, 2, 3, 5)
    assert [len(policy.runs()) for policy in campaign.POLICIES] == [1, 1, 200]
