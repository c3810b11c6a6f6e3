from __future__ import annotations

from rota import BlockSizing, PipelineConfig
from tests.findings.smallest import Small, reported


def test_blocks_with_no_room_left_keep_their_loads_and_are_reported() -> None:
    config = PipelineConfig(m_mmas=1, n_mmas=1, block_sizing=BlockSizing(heavy=4, light=2, max_globals=1))
    found = reported("P106", Small(pipeline=config))
    assert [dict(finding.evidence)["loads"] for finding in found] == [2, 2]
