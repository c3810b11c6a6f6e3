"""A share of the drawn row kernels, and softmax of one to sixteen waves; `benchmarks.row_kernels` has them all."""

from __future__ import annotations

from random import Random

import pytest

from rota.prove.kernel_proof import prove_object
from tests.campaigns.machine_code.row_kernels import FAMILIES, compile_together, draw, judge

SUM, SOFTMAX = FAMILIES.index("sum"), FAMILIES.index("softmax")


def test_a_share_of_the_campaign() -> None:
    """The interpreter says what each kernel is; the proof says the same of the kernel and of its twin."""
    random = Random(2)
    outcomes = list(judge([draw(random, number, waves=2) for number in range(len(FAMILIES))]))
    assert [str(each) for each in outcomes if not each.confirmed or each.kind != "right"] == []
    assert len(outcomes) == 2 * len(FAMILIES)


@pytest.mark.parametrize("waves", [1, 2, 4, 16])
def test_rows_of_one_to_sixteen_waves(waves: int) -> None:
    random = Random(3)
    kernels = [draw(random, SUM, waves), draw(random, SOFTMAX + len(FAMILIES), waves)]
    code = compile_together(kernels)
    for kernel in kernels:
        right, wrong = (
            prove_object(code, kernel.title(wrong=is_wrong), block=kernel.block, witness=False)[0]
            for is_wrong in (False, True)
        )
        assert right.proved
        assert right.statistics.states < 150 * waves + 50
        assert {finding.code for finding in wrong.findings} >= {"I105" if waves == 1 else "I109"}
