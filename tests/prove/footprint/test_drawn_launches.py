"""Launches that show an access outside: of wrong kernels one is found, of right ones none is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rota.errors import Finding, Severity
from rota.isa.binary.toolchain import find_toolchain
from rota.prove.footprint.accesses import accesses_of
from rota.prove.footprint.bounds import Reach, judge_bounds, parse_contract, report_bounds
from rota.prove.footprint.drawn_launches import contract_of_launch, show_outside
from tests.prove.footprint.test_inside import HEAD, TWINS, Twins, source


def found(twins: Twins, body: str, *, doubted: bool = False) -> tuple[Finding, ...]:
    code = find_toolchain().compile(source(twins.takes, body), "gfx950")
    kernel = accesses_of(code)
    contract = parse_contract(kernel, twins.extents, twins.ranges, twins.where)
    judged = judge_bounds(kernel, contract)
    if doubted:
        judged = tuple(replace(each, reach=Reach.UNDECIDED, side="after its end") for each in judged)
    return show_outside(code, kernel, judged, contract, report_bounds(judged))


@pytest.mark.parametrize("name", TWINS)
def test_a_wrong_kernel_is_shown_to_go_outside(name: str) -> None:
    findings = found(TWINS[name], TWINS[name].wrong)
    shown = [each for each in findings if dict(each.evidence)["level"] == "shown"]
    assert {(each.code, each.severity) for each in shown} == {("I502", Severity.ERROR)}
    assert all({"for example", "where"} <= dict(each.evidence).keys() for each in shown)


@pytest.mark.parametrize("name", TWINS)
def test_no_launch_takes_a_right_kernel_outside(name: str) -> None:
    findings = found(TWINS[name], TWINS[name].right, doubted=True)
    assert findings
    assert {dict(each.evidence)["level"] for each in findings} == {"undecided"}


@pytest.mark.parametrize(("count", "reach"), [(128, Reach.INSIDE), (127, Reach.UNDECIDED)])
def test_one_launch_is_a_contract(count: int, reach: Reach) -> None:
    """Two workgroups of 64 write 128 words; the array has one less, or not."""
    twins = TWINS["a guard"]
    kernel = accesses_of(find_toolchain().compile(source(twins.takes, twins.right), "gfx950"))
    contract = contract_of_launch(kernel, [np.zeros(count, np.float32), np.uint32(128)], (2, 1, 1), (64, 1, 1))
    assert {each.reach for each in judge_bounds(kernel, contract)} == {reach}


@pytest.mark.parametrize(("block", "level"), [(64, None), (65, "shown")])
def test_a_launch_says_how_many_work_items_there_are(block: int, level: str | None) -> None:
    """The kernel takes up to 256; a number that is negative is a word like others."""
    text = HEAD.replace("{block}, {block}", "1, 256") + "float* x, int n) { if (n < 0) x[T(x)] = n; }"
    code = find_toolchain().compile(text, "gfx950")
    kernel = accesses_of(code)
    contract = contract_of_launch(kernel, [np.zeros(64, np.float32), -1], (1,), (block,))
    judged = judge_bounds(kernel, contract)
    findings = show_outside(code, kernel, judged, contract, report_bounds(judged))
    assert [dict(each.evidence)["level"] for each in findings] == ([] if level is None else [level])
