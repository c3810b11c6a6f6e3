"""Replay of the reference's measured behaviour, one test per corpus file; the run ends with a table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest

from tests.conformance.compare import Comparison, compare_case
from tests.conformance.compare_generic import (
    compare_four_wave_scheduler,
    compare_halves,
    compare_odd,
    compare_optimal,
    compare_penalty,
    compare_single_buffer,
)
from tests.conformance.corpus import DOUBLE_BUFFER_FILES, Case, cases

pytestmark = pytest.mark.no_cover  # many cases: what they run is covered where it is tested by itself

FILES: dict[str, Callable[[Case], Comparison]] = {
    **dict.fromkeys(DOUBLE_BUFFER_FILES, compare_case),
    "single_buffer": compare_single_buffer,
    "four_wave_schedulers": compare_four_wave_scheduler,
    "generic_optimal": compare_optimal,
    "generic_penalty": compare_penalty,
    "generic_halves": compare_halves,
    "generic_odd": compare_odd,
}

INTENDED = {2, 3, 12, 13, 14, 15, 16, 17, 18, 23, 24, 26}


@pytest.mark.parametrize("name", FILES)
def test_the_corpus_is_reproduced(name: str, record_property: Callable[[str, object], None]) -> None:
    results = [FILES[name](case) for case in cases(name)]
    deviations = Counter(number for result in results for number in result.deviations)
    different = {result.case["id"]: result.different for result in results if result.different}
    record_property(
        "conformance",
        json.dumps(
            {
                "file": name,
                "cases": len(results),
                "fields": sum(result.fields for result in results),
                "exact": sum(not result.deviations and not result.different for result in results),
                "equal": sum(bool(result.deviations) and not result.different for result in results),
                "deviations": dict(sorted(deviations.items())),
                "different": len(different),
            }
        ),
    )
    assert not different
    assert set(deviations) <= INTENDED


def test_every_recorded_case_is_replayed() -> None:
    assert {name: len(cases(name)) for name in FILES} == {
        "four_wave": 202,
        "four_wave_schedulers": 6,
        "ping_pong_grid": 144,
        "ping_pong_features": 422,
        "ping_pong_sizing": 108,
        "ping_pong_random": 150,
        "ping_pong_csp": 26,
        "custom_bodies": 194,
        "single_buffer": 65,
        "generic_optimal": 130,
        "generic_penalty": 40,
        "generic_halves": 90,
        "generic_odd": 11,
    }
