from __future__ import annotations

from rota import OpDesc, SingleBufferSchedule, SingleBufferTag, annotate_ops, compile_schedule
from tests.findings.smallest import raised


class Unstored(SingleBufferSchedule):
    """Loads channel 1 twice a trip and stores only channel 0."""

    def build_body(self) -> tuple[OpDesc, ...]:
        unwanted = annotate_ops([OpDesc.logical(SingleBufferTag.LOAD_DRAM, channel=1)], self.target.cost_model)
        return (*super().build_body(), *unwanted, *unwanted)


def test_a_register_load_that_nobody_stores_is_refused() -> None:
    finding = raised("P116", lambda: compile_schedule(Unstored(2)))
    assert finding.concerns[0].label == "load_dram s0 t0"
    assert finding.concerns[0].index == 8
    assert ("channel of the load", 1) in finding.evidence
    assert ("channels of the stores", "0") in finding.evidence
