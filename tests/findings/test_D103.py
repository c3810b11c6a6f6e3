from __future__ import annotations

from rota import OpDesc, annotate_ops, mi355x_target
from tests.findings.smallest import raised


def test_an_op_without_a_cost_is_refused_with_its_line() -> None:
    finding = raised("D103", lambda: annotate_ops([OpDesc.logical(99)], mi355x_target().cost_model))
    assert "tag 99" in finding.message
    assert finding.concerns[0].source is not None
    assert finding.concerns[0].source.file == __file__


def test_changing_the_cost_of_an_unknown_tag_is_refused() -> None:
    raised("D103", lambda: mi355x_target().cost_model.with_cost(99, latency=1))
