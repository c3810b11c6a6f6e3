from __future__ import annotations

from tests.audit import sabotage
from tests.emit.kernels import SMALL_MI300X, by_values


def test_a_matrix_instruction_that_takes_another_fragment_is_found() -> None:
    compiled, geometry = by_values(SMALL_MI300X)
    source = sabotage.source_of(compiled, geometry)
    wrong = sabotage.changed(source, sabotage.is_mfma, lambda line: line.replace("b[0][0]", "b[0][1]"))
    audit = sabotage.audited(compiled, geometry, wrong)
    assert {finding.code for finding in audit.findings} == {"I203"}
    finding = next(finding for finding in audit.findings if "mfma" in finding.concerns[1].label)
    assert ("due", "b[0][0][0]") in finding.evidence
    assert ("found", "b[0][1][0]") in finding.evidence
