"""A share of the mutants of hand-overs: what a launch finds, the proof finds."""

from __future__ import annotations

from random import Random

import pytest

from rota.prove.hand_overs import HandOverReport
from tests.campaigns.machine_code import hand_over_mutants
from tests.campaigns.machine_code.hand_over_mutants import judge, mutate
from tests.prove.hand_overs.kernels import KERNELS, NOTHING_HANDED_OVER, compiled

HANDED_OVER = sorted(KERNELS.keys() - NOTHING_HANDED_OVER)
MOST = 6


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("name", HANDED_OVER)
def test_what_a_launch_finds_is_proved(name: str) -> None:
    mutants = [changed for _, changed in mutate(compiled(name, "gfx950").instructions("k"))]
    assert "MISSED" not in [judge(name, "gfx950", each) for each in Random(name).sample(mutants, MOST)]


def test_a_proof_that_finds_nothing_misses_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_over_mutants, "find_hand_overs", lambda *_: HandOverReport(kernel="k"))
    mutants = [changed for kind, changed in mutate(compiled("flags", "gfx950").instructions("k")) if kind == "scope"]
    assert mutants
    assert {judge("flags", "gfx950", each) for each in mutants} == {"MISSED"}
