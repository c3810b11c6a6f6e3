"""A share of the mutants of kernels that are proved: none that goes outside, or meets another workgroup, is proved."""

from __future__ import annotations

from random import Random

import pytest

from rota.prove.footprint import known_sums
from tests.campaigns.machine_code.memory_mutants import Subject, assemble, is_proved, judge, list_subjects, mutate

SUBJECTS = {each.name: each for each in list_subjects()}
MOST = 4


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("name", SUBJECTS)
def test_no_wrong_mutant_is_proved(name: str) -> None:
    subject, random = SUBJECTS[name], Random(name)
    facts, lines = assemble(subject)
    mutants = [changed for _, changed in mutate(lines)]
    found = [judge(facts, changed, subject, random) for changed in random.sample(mutants, MOST)]
    assert "MISSED" not in found


def test_a_judge_that_proves_everything_misses_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    """The executions tell: without its arithmetic, the proof lets wrong mutants through."""
    subject = SUBJECTS["inside: a guard"]
    facts, lines = assemble(subject)
    assert is_proved(facts, "\n".join(lines) + "\n", subject)
    monkeypatch.setattr(known_sums, "has_no_solution", lambda *_, **__: True)
    found = [judge(facts, changed, subject, Random(0)) for _, changed in mutate(lines)]
    assert "MISSED" in found


def test_subjects_are_of_both_kinds() -> None:
    assert {each.apart for each in SUBJECTS.values()} == {True, False}
    assert all(isinstance(each, Subject) for each in SUBJECTS.values())
