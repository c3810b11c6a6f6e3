"""The quick question gives the answer of the whole proof."""

from __future__ import annotations

from rota.lift.hipblaslt import lower_table
from rota.lift.schedule_table import read_table
from rota.targets.registry import device_named
from rota.verify.prove import holds, verify
from tests.lift.small_table import remove_sync, small


def test_it_says_what_the_proof_says() -> None:
    table, device = read_table(small()), device_named("mi355x")
    programs = [lower_table(table, device), *(lower_table(remove_sync(table, n), device) for n in range(5))]
    answers = [holds(program) for program in programs]
    assert answers == [verify(program).certificate is not None for program in programs]
    assert answers[0]
    assert not all(answers)
