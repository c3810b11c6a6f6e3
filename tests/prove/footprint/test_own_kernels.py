"""Whole kernels that rota emits stay inside for every problem that their launcher accepts; a share of the campaign."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest

from rota.emit.whole.whole_host import THE_GRID, Condition, _conditions
from rota.emit.whole.whole_options import parse_options
from rota.emit.gemm.gemm_plan import gemm_plan
from rota.prove.footprint.bounds import Reach
from tests.campaigns.machine_code.own_kernel_bounds import KERNELS, LAUNCHES, count_inside, promised
from tests.campaigns.whole.whole_kernels import LOOPS, loop_of, shape_of

pytestmark = pytest.mark.thorough  # compiles, and asks z3 for seconds

_, SPLITS, SUM = LAUNCHES


@pytest.mark.parametrize("launch", [SPLITS, SUM], ids=lambda each: each.name)
def test_every_access_is_proved(launch) -> None:  # type: ignore[no-untyped-def]
    given = promised("bf16", launch)
    judged = given.judge()
    assert {each.reach for each in judged} == {Reach.INSIDE}
    assert len(judged) > 10
    assert given.accesses.refused == ()
    verbs = {(each.access.pointer, each.access.verb) for each in judged}
    assert verbs >= ({("A", "read"), ("B", "read"), ("partial", "write")} if launch is SPLITS else {("D", "write")})


@pytest.mark.parametrize("words", [THE_GRID, "the sums of splits have less than 2^32 runs of columns"])
def test_without_what_is_promised_nothing_is_proved(words: str) -> None:
    inside, count = count_inside(promised("bf16", SUM).judge(without=words))
    assert inside < count
