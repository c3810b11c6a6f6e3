from __future__ import annotations

from rota import PipelineConfig
from tests.findings.smallest import raised


def test_partitions_that_do_not_come_back_to_stage_0_are_refused() -> None:
    finding = raised("D106", lambda: PipelineConfig(depth=3, num_partitions=4))
    assert finding.fixes == ("num_partitions=6",)
    assert PipelineConfig(depth=3, num_partitions=6).stage_of_partition(5) == 2


def test_more_stages_than_k_offsets_are_refused() -> None:
    finding = raised("D106", lambda: PipelineConfig(depth=4, num_partitions=4))
    assert "K_NEXT" in finding.message
