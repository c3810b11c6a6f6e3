"""Proof and executor agree on a sample of mutants, and the campaign would notice if they didn't."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from rota import Finding, KernelGeometry, Phase, Pipeline4Wave, SingleBufferSchedule, compile_schedule, verify
from rota.errors import Witness
from rota.kernels.gemm import GEMM_SHAPES
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.values.compile_loop import compile_loop
from rota.verify.report import Report
from tests.campaigns.schedules import mutants as command
from tests.mutation import campaign
from tests.mutation.campaign import Judgement, Outcome, Subject, judge, sampled, subjects
from tests.mutation.mutants import Kind, Mutant, mutants_of
from tests.wording.golden import mentions, worded

pytestmark = pytest.mark.no_cover  # a campaign, thousands of times the same lines

SAMPLE = 60
STAGGERED = "ping-pong GREEDY, max_globals 1, vm 4/4, lgkm 8/4"


@cache
def work() -> tuple[tuple[Subject, tuple[Mutant, ...]], ...]:
    return tuple((subject, tuple(subject.mutants())) for subject in subjects())


@cache
def of_subject(name: str) -> tuple[Mutant, ...]:
    return next(mutants for subject, mutants in work() if subject.name == name)


@cache
def four_wave() -> LoweredProgram:
    return compile_schedule(Pipeline4Wave(KernelGeometry(lgkm_per_load_a=4, lgkm_per_load_b=4))).lowered


def unchanged(program: LoweredProgram) -> Mutant:
    return Mutant(kind=Kind.SWAPPED, description="nothing changed", program=program)


def first(kind: Kind, wanted: Callable[[Mutant], bool] = lambda _: True) -> Mutant:
    return next(mutant for mutant in mutants_of(four_wave()) if mutant.kind is kind and wanted(mutant))


def says(*findings: Finding) -> Callable[[LoweredProgram], Report]:
    """A proof that always says the same."""
    return lambda _: Report(findings=findings, certificate=None)


def race(witness: Witness | None) -> Finding:
    return Finding("R103", "made up", witness=witness)


# The campaign itself


def test_the_full_campaign_has_6000_mutants_of_every_kind() -> None:
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
            (m.program.prologue, m.program.kernel, m.program.epilogue) for m in (unchanged(subject.program), *mutants)
        ]
        assert len(set(contents)) == len(contents)


def test_entries_stay_numbered() -> None:
    for _, mutants in work():
        for mutant in mutants:
            for phase in Phase:
                listed = [entry for entry in mutant.program.phase(phase) if entry.listed]
                assert [entry.time_slot for entry in listed] == list(range(len(listed)))
                assert all(entry.phase is phase for entry in mutant.program.phase(phase))


def test_a_mutant_differs_in_one_entry_or_two_neighbours_of_one_phase() -> None:
    for subject, mutants in work():
        for mutant in mutants:
            differ = [phase for phase in Phase if content(mutant.program, phase) != content(subject.program, phase)]
            assert len(differ) == 1, mutant.description
            before, after = (content(program, differ[0]) for program in (subject.program, mutant.program))
            changed = sum((Counter(before) - Counter(after)).values()), sum((Counter(after) - Counter(before)).values())
            if mutant.kind in (Kind.WAIT_DELETED, Kind.BARRIER_DELETED):
                assert changed == (1, 0)
            elif mutant.kind in (Kind.SWAPPED, Kind.WAIT_MOVED):
                assert changed == (0, 0)
            else:
                assert changed == (1, 1)


def content(program: LoweredProgram, phase: Phase) -> list[object]:
    return [(entry.op.name, entry.effect, entry.roles) for entry in program.phase(phase)]


def test_a_boundary_lies_one_above_the_tokens_behind_an_op() -> None:
    """wait_vm(16) with loads of four tokens each covers what has 16 tokens after it; 17 spares it, 21 the next."""
    waits = [m for m in mutants_of(four_wave()) if m.kind is Kind.WAIT_WEAKER_BY_AN_OP]
    assert "kernel[0] wait_vm(16) became wait_vm(21)" in {mutant.description for mutant in waits}


def test_a_wait_behind_the_loops_last_barrier_moves_behind_its_first() -> None:
    moved = {m.description: m.program for m in mutants_of(four_wave()) if m.kind is Kind.WAIT_MOVED}
    kernel = moved["kernel[46] wait_vm(16) moved behind kernel[2] barrier"].kernel
    assert [str(entry.op) for entry in kernel[:4]] == ["wait_vm(16)", "wait_lgkm(0)", "barrier", "wait_vm(16)"]
    assert len(kernel) == len(four_wave().kernel)


def test_an_entry_is_skipped_only_where_there_are_two_roles() -> None:
    skips = (Kind.BARRIER_SKIPPED, Kind.ENTRY_SKIPPED)
    assert not [m for m in mutants_of(four_wave()) if m.kind in skips]
    (subject,) = [subject for subject, _ in work() if subject.name == STAGGERED]
    for kind in skips:
        skipped = [m for m in of_subject(STAGGERED) if m.kind is kind]
        entries = [entry for entry in subject.program.entries if entry.roles is None and matters(entry.op.kind)]
        barriers = [entry.op.kind is OpKind.BARRIER for entry in entries]
        assert len(skipped) == 2 * barriers.count(kind is Kind.BARRIER_SKIPPED)
        assert sum("group 0" in mutant.description for mutant in skipped) == len(skipped) // 2


def matters(kind: OpKind) -> bool:
    return kind not in (OpKind.FENCE, OpKind.PRIORITY, OpKind.HINT, OpKind.NOTHING)


def test_swaps_that_cannot_matter_are_left_out() -> None:
    for mutant in (m for _, mutants in work() for m in mutants if m.kind is Kind.SWAPPED):
        one, other = mutant.description.split("] ", 1)[1].split(" behind ")
        assert one != other
        assert not {one.split("(")[0], other.split("(")[0]} <= {"set_prio", "schedule_barrier"}


def test_a_place_becomes_another_that_the_program_has() -> None:
    """A single buffer's tile has one copy and one part: only registers can be others, each of its slices."""
    program = compile_schedule(SingleBufferSchedule(3)).lowered
    changed = [m for m in mutants_of(program) if m.kind in (Kind.COPY, Kind.PART, Kind.K_OFFSET)]
    touching = [entry.op.kind for entry in program.entries if entry.op.kind in (OpKind.LDS_READ, OpKind.MMA)]
    assert len(changed) == 2 * len(touching)
    assert {mutant.kind for mutant in changed} == {Kind.COPY}


def test_versions_move_with_their_places() -> None:
    for mutant in mutants_of(compile_loop(GEMM_SHAPES[0].loop(instructions=False)).lowered):
        for entry in mutant.program.entries:
            assert tuple(place for place, _ in entry.effect.wants) == entry.effect.reads
            assert tuple(place for place, _ in entry.effect.makes) == entry.effect.writes[: len(entry.effect.makes)]


def test_a_tail_takes_every_count_of_the_loop() -> None:
    tails = [m for m in mutants_of(four_wave()) if m.kind is Kind.TAIL_COUNT]

    def waits(phase: Phase) -> list[int]:
        effects = [entry.effect for entry in four_wave().phase(phase)]
        return [e.wait_value for e in effects if e.kind is OpKind.WAIT and e.counter == "vmcnt"]

    assert set(waits(Phase.KERNEL)) == {16}
    assert len(tails) == len(waits(Phase.EPILOGUE))
    assert all(m.program.kernel == four_wave().kernel for m in tails)
    assert all(str(m.description).startswith(Phase.EPILOGUE.value.lower()) for m in tails)


# The judge


def test_a_clean_schedule_is_equivalent_to_itself() -> None:
    judgement = judge(unchanged(four_wave()))
    assert (judgement.outcome, judgement.shown, judgement.codes) == (Outcome.EQUIVALENT, None, ())


@pytest.mark.parametrize("kind", [Kind.BARRIER_DELETED, Kind.COPY, Kind.K_OFFSET, Kind.TAIL_COUNT])
def test_what_goes_wrong_is_killed_and_a_proof_that_says_clean_misses_it(kind: Kind) -> None:
    mutant = first(kind, lambda mutant: not verify(mutant.program).clean)
    assert judge(mutant).outcome is Outcome.KILLED
    missed = judge(mutant, "four waves", proof=says())
    assert missed.outcome is Outcome.MISSED
    assert mentions(worded(str(missed)), mutant.description)


def test_a_deadlock_is_missed_too() -> None:
    mutant = next(m for m in of_subject(STAGGERED) if m.kind is Kind.BARRIER_SKIPPED)
    assert judge(mutant).outcome is Outcome.KILLED
    assert "deadlock" in str(judge(mutant, proof=says()))
    assert judge(mutant, proof=says()).outcome is Outcome.MISSED


@pytest.mark.parametrize("code", ["V101", "B101"])
def test_an_error_that_nothing_shows_is_a_false_alarm(code: str) -> None:
    proof = says(Finding(code, "made up"))
    assert judge(unchanged(four_wave()), proof=proof).outcome is Outcome.FALSE_ALARM


def test_a_witness_that_ends_well_is_a_false_alarm_even_if_something_else_goes_wrong() -> None:
    harmless = race(Witness(kind="WAR", trip_count=0, ahead=0, behind=0))
    assert judge(unchanged(four_wave()), proof=says(harmless)).outcome is Outcome.FALSE_ALARM
    later = first(Kind.WAIT_DELETED, lambda mutant: _first_trip(mutant) > 0)
    assert verify(later.program).errors
    judgement = judge(later, proof=says(*verify(later.program).errors, harmless))
    assert (judgement.outcome, judgement.silent) == (Outcome.FALSE_ALARM, (harmless,))
    worded(str(judgement))


def test_a_replay_that_goes_wrong_for_another_reason_bears_nothing_out() -> None:
    """The real race's witness with the ends of two ops that never meet."""
    mutant = first(Kind.BARRIER_DELETED, lambda mutant: not verify(mutant.program).clean)
    real = next(finding for finding in verify(mutant.program).errors if finding.witness is not None)
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
    witnesses = [finding.witness for finding in verify(mutant.program).errors]
    return min((witness.trip_count for witness in witnesses if witness is not None), default=0)


def test_a_race_without_a_witness_is_a_false_alarm() -> None:
    mutant = first(Kind.BARRIER_DELETED, lambda mutant: not verify(mutant.program).clean)
    assert judge(mutant, proof=says(race(None))).outcome is Outcome.FALSE_ALARM


def test_a_broken_limit_alone_is_neither_but_excuses_nothing() -> None:
    limit = says(Finding("L101", "made up"))
    assert judge(unchanged(four_wave()), proof=limit).outcome is Outcome.LIMIT
    mutant = first(Kind.BARRIER_DELETED, lambda mutant: not verify(mutant.program).clean)
    assert judge(mutant, proof=limit).outcome is Outcome.MISSED


# The command


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Subject:
    """The command on two programs, of which the second has the entries of the first."""
    subject = next(subject for subject, _ in work())
    again = replace(subject, name="again", same_as=subject.name)
    monkeypatch.setattr(command, "subjects", lambda: iter((subject, again)))
    return subject


def test_the_command_prints_a_line_per_kind(small: Subject, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--sample", "5"]) == 0
    printed = capsys.readouterr()
    lines = [line.split("|")[1].strip() for line in printed.out.splitlines() if line.startswith("| ")]
    assert lines == ["mutation", *(kind.value for kind in Kind), "all"]
    assert "5 mutants of 1 programs in " in printed.out
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
