"""A share of hipBLASLt's own tables, proved; `python -m benchmarks.hand_made` goes through all of them."""

from __future__ import annotations

import gzip
import json

import pytest

from rota.errors import Severity
from rota.lift.hipblaslt import Reading, lower_table
from rota.lift.schedule_table import ScheduleTable, read_table
from rota.targets.registry import device_named
from rota.verify.prove import verify
from tests.campaigns.schedules.hand_made import READINGS, Needed, judged, needed, titles
from tests.lift.small_table import BARRIER, small, wait
from tests.shared import shared

pytestmark = pytest.mark.no_cover  # many cases: what they run is covered where it is tested by itself

DEVICE = device_named("mi355x")
_SHARE = (
    "128x192x64_16bit_TN",
    "224x128x64_16bit_NN",
    "96x256x64_16bit_NN",
    "96x256x64_16bit_TN",
    "128x128x32_TF32_plr1_NT",
    "128x128x32_TF32_TN",
    "256x240x64_16bit_TN",
)
"""One code path and two, plain and transposed reads, packs, an order of its own, TF32 with and without swaps, 4 x 1."""


@pytest.fixture(scope="module")
def tables() -> dict[str, ScheduleTable]:
    with gzip.open(shared("loops/hipblaslt_cms_gfx950.json.gz"), "rt") as file:
        return {table.title: table for table in map(read_table, json.load(file))}


def test_all_can_be_told_apart(tables: dict[str, ScheduleTable]) -> None:
    assert len(tables) == len(titles(tables.values())) == 78


@pytest.mark.parametrize("title", _SHARE)
def test_proved_as_written(tables: dict[str, ScheduleTable], title: str) -> None:
    assert judged(tables[title], DEVICE).needs == READINGS[0].name


def test_a_wait_that_does_not_fit(tables: dict[str, ScheduleTable]) -> None:
    """Two waits for 18 on a counter of 15, and a last tile whose waits count reads that it doesn't issue."""
    table = tables["192x320x64_16bit_NT"]
    found = verify(lower_table(table, DEVICE)).findings
    assert {each.code for each in found if each.severity is Severity.ERROR} == {"L101", "R104"}
    full = verify(lower_table(table, DEVICE, Reading(full_counter=True))).findings
    assert {each.code for each in full if each.severity is Severity.ERROR} == {"R104"}
    assert verify(lower_table(table, DEVICE, Reading(full_counter=True, full_waits_last=True))).certificate


def test_the_order_of_the_matrix_instructions_matters(tables: dict[str, ScheduleTable]) -> None:
    table = tables["256x256x128_8bit_TN"]
    found = {each.code for each in verify(lower_table(table, DEVICE)).findings if each.severity is Severity.ERROR}
    assert found == {"R104", "V106"}
    assert judged(table, DEVICE).needs == "if fragments are multiplied in four blocks"


def test_what_is_needed_of_waits_and_barriers() -> None:
    """Of two waits in a row the weaker, and of two barriers one, can be left out."""
    syncs = [wait(lds=0), wait(lds=2), wait(lds=0), BARRIER, BARRIER, wait(memory=4), BARRIER]
    table = read_table(small({"SYNC": [[-1, 2, 2, 2, 2, 6, 6]]}, sync=syncs))
    assert needed(table, DEVICE, Reading()) == Needed(3, 2, 4, 3, 3)
