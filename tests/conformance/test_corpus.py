"""Replay of the reference's measured behaviour, one test per corpus file; the run ends with tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.as_recorded import FIELDS, compare_as_recorded
from tests.conformance.corpus import cases
from tests.conformance.replays import COMMAND, FILES, INTENDED, PAGES, tally, with_replays

pytestmark = pytest.mark.no_cover  # many cases: what they run is covered where it is tested by itself


@pytest.mark.parametrize("name", FILES)
def test_the_corpus_is_reproduced(name: str, record_property: Callable[[str, object], None]) -> None:
    found = tally(name)
    record_property("conformance", json.dumps(found))
    assert found["different"] == {}
    assert found["unexplained"] == []
    assert set(map(int, found["deviations"])) <= INTENDED


def test_every_deviation_has_a_field_that_shows_it() -> None:
    assert {number for field in FIELDS.values() for number in field.deviations} >= INTENDED


@pytest.mark.parametrize("page", PAGES, ids=["deviations.md", "seed.md"])
def test_what_the_documentation_says_of_the_replays_is_this(page: Path) -> None:
    assert with_replays(page, [tally(name) for name in FILES]) == page.read_text("utf-8"), COMMAND


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda case: case["kernel"].pop(), "kernel"),
        (lambda case: case["waits"].append(0), "counts"),
        (lambda case: case["kernel_deps"].pop(), "deps"),
        (lambda case: case["scheduled"]["order"].reverse(), "order"),
        (lambda case: case.update(asap=[]), "times"),
        (lambda case: case.update(warp_stagger_index=-1), "stagger"),
    ],
)
def test_what_differs_from_the_record_is_noticed(change: Callable[[dict[str, object]], object], field: str) -> None:
    case = json.loads(json.dumps(cases("ping_pong_grid")[0]))
    assert compare_as_recorded("ping_pong_grid", case)[field]
    change(case)
    assert not compare_as_recorded("ping_pong_grid", case)[field]


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
