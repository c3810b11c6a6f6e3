from __future__ import annotations

from rota import OpCost, OpDesc, OpRole, ResourceKind, TargetCostModel
from tests.findings.smallest import raised


def test_a_kernel_op_with_a_framework_tag_is_refused() -> None:
    finding = raised("D101", lambda: OpDesc.logical(128))
    assert ("got", 128) in finding.evidence
    assert finding.concerns[0].source is not None
    assert finding.concerns[0].source.file == __file__


def test_a_cost_model_may_not_price_framework_tags() -> None:
    cost = OpCost(resource=ResourceKind.LDS, latency=1, role=OpRole.FRAGMENT_LOAD)
    raised("D101", lambda: TargetCostModel({128: cost}))


def test_the_last_kernel_tag_is_accepted() -> None:
    assert OpDesc.logical(127).tag == 127
