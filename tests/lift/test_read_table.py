"""Malformed tables end in T302, those that no rule covers in T303."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota.errors import EmissionError
from rota.lift.hipblaslt import lower_table
from rota.lift.schedule_table import read_table
from rota.targets.registry import device_named
from tests.lift.small_table import Document, small, tf32, wait
from tests.wording.golden import worded

DEVICE = device_named("mi355x")


def refused(document: object) -> tuple[str, str]:
    """The code and the message that a table ends in."""
    with pytest.raises(EmissionError) as caught:
        lower_table(read_table(document), DEVICE)
    (finding,) = caught.value.findings
    return finding.code, finding.message


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "it is list; expected an object"),
        ({}, "it has no field name"),
        (small(name=1), "expected text"),
        (small(name="_get_schedule_64x64x64_2bit"), "known elements"),
        (small(layout="XX"), "expected one of TN"),
        (small(tile=[64, 64]), "expected 3 integers"),
        (small(tile=[64, 64, 0]), "expected an integer from 1"),
        (small(tile=[64, 48, 64]), "not a multiple of 32"),
        (small(num_mfma=9), "9 matrix instructions; its tile needs 8"),
        (small(num_mfma=True), "expected an integer"),
        (small(num_mfma=8.5), "expected an integer"),
        (small(mfma_reorder=[0, 0, 1, 2, 3, 4, 5, 6]), "no permutation"),
        (small(swap_gr=1), "true or false"),
        (small(streams={"LRX0": [[0]]}), "unknown stream 'LRX0'"),
        (small(streams={"LRA0": [[0, 0], [0, 0]]}), "one list, or one for each of 1 code paths"),
        (small(streams={"LRA0": [[0, 8]]}), "issued after 8"),
        (small(streams={"LRA0": [[0, -2]]}), "expected an integer from -1"),
        (small(streams={"LRA0": [0]}), "expected a list"),
        (small(streams={"LRA0": None}), "no reads LRA0"),
        (small(streams={"SYNC": [[0]]}), "SYNC has 1 positions for 5"),
        (small({"LRA0": [[0, 0], [0]]}, code_paths=2), "1 and 2 instructions, depending on the path"),
        (small({"SYNC": [[-1, 2, 2, 6, 6], [-1, 2, 2, 6, 6]]}, code_paths=2), "its contents do not"),
        (small(streams=None) | {"streams": []}, "streams is '[]'; expected an object"),
        (small(sync=[{"op": "s_nop"}] * 5), "expected s_waitcnt or s_barrier"),
        (small(sync=["s_barrier"] * 5), "expected s_waitcnt or s_barrier"),
        (small(sync=[wait() | {"vscnt": 0}] * 5), "stores nothing"),
        (small(code_paths=3), "3 code paths for 4 waves"),
    ],
)
def test_malformed(document: object, said: str) -> None:
    code, message = refused(document)
    assert code == "T302"
    assert said in message


def _without_packs() -> Document:
    document = tf32()
    for name in ("PackA0", "PackB0"):
        del document["streams"][name]
    return document


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (small(tile=[64, 64, 96], num_mfma=12), "3 steps of K"),
        (small({"LRA1": None, "LRB1": None}), "up to number 0"),
        (small({"LRA0": [[0, 0, 0]], "LRA1": [[6, 6, 6]]}), "3 reads and 0 packs for 2 fragments"),
        (small({"LRB0": [[]]}), "0 reads"),
        (small({"GRA": [[3, 3, 3]]}), "loads come in pairs"),
        (small({"GRA": [[]]}), "loads come in pairs"),
        (small({"GRIncA": [[4] * 9]}), "loads before GRIncA is complete"),
        (small({"GRA": [[3, 3, 5, 5]]}), "there is one address register"),
        (small({"LRSA": [[]]}), "doesn't move exactly once per trip"),
        (small({"LWSA": None, "LWSB": None}), "doesn't move exactly once per trip"),
        (small({"PackA0": [[2] * 3], "PackA1": [[-1] * 3]}), "3 packs"),
        (small({"PackA0": [[2]], "LRA0": [[0]], "PackA1": [[-1]], "LRA1": [[6]]}), "1 packs for 1 reads"),
        (small({"PackA0": [[2] * 5], "PackA1": [[-1] * 5]}), "5 packs"),
        (
            small(
                {"PackA0": [[2] * 8], "LRA0": [[0] * 8], "PackA1": [[-1] * 8, [7] * 8], "LRA1": [[6] * 8]}, code_paths=2
            ),
            "in one code path and after it in another",
        ),
        (_without_packs(), "0 packs"),
        (tf32(packs=11), "a fragment takes 24 packs or 10"),
    ],
)
def test_not_covered(document: object, said: str) -> None:
    code, message = refused(document)
    assert code == "T303"
    assert said in message


def test_a_machine_without_counters() -> None:
    with pytest.raises(EmissionError, match="T303") as caught:
        lower_table(read_table(small()), replace(DEVICE, counters=(), queues=()))
    worded(caught.value.findings[0])
