from __future__ import annotations

from rota import (
    DeclarativeSchedule,
    KOffsetKind,
    PipelineBody,
    PipelineConfig,
    annotate_ops,
    compile_schedule,
    mi355x_target,
)
from tests.findings.smallest import TAGS, Small, reported


def test_a_load_in_front_of_the_read_of_its_tile_is_reported() -> None:
    body = PipelineBody()
    for stage, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
        body.frag(TAGS.MMA_LOAD_A, channel=0, stage=stage)
        body.frag(TAGS.MMA_LOAD_B, channel=1, stage=stage)
        body.load(TAGS.LOAD_B, channel=1, stage=stage, subtile=1, k_offset=k)  # one block too early
        body.compute(TAGS.MMA, column=0)
        body.frag(TAGS.MMA_LOAD_B, channel=1, stage=stage, subtile=1)
        body.load(TAGS.LOAD_A, channel=0, stage=stage, k_offset=k)
        body.load(TAGS.LOAD_B, channel=1, stage=stage, k_offset=k)
        body.compute(TAGS.MMA, column=1)
    ops = annotate_ops(body.build(), mi355x_target().cost_model)
    found = reported("P107", Small(ops=ops, pipeline=PipelineConfig(m_mmas=1, n_mmas=2)))
    assert [finding.concerns[0].label for finding in found] == ["load_b s0 t1 k0", "load_b s1 t1 k1"]


def test_the_shipped_ping_pong_has_none() -> None:
    assert not [finding for finding in compile_schedule(DeclarativeSchedule()).findings if finding.code == "P107"]
