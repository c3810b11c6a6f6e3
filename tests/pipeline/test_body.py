from __future__ import annotations

from rota import KOffsetKind, PipelineBody


def test_ops_stand_in_the_order_of_the_calls() -> None:
    body = PipelineBody()
    body.load(0, channel=1, stage=1, subtile=2, k_offset=KOffsetKind.K1).store(1).barrier()
    body.fan(2, lambda b, tile: b.frag(2, subtile=tile))
    body.grid(3, 2, 2)
    assert len(body) == 9
    assert [str(op) for op in body.build()] == [
        "tag 0 s1 t2 k1",
        "tag 1 s0 t0",
        "barrier",
        "tag 2 s0 t0",
        "tag 2 s0 t1",
        *(f"tag 3 s{row} t{column}" for row in range(2) for column in range(2)),
    ]


def test_the_authors_line_is_the_call_not_the_builder() -> None:
    (op,) = PipelineBody().load(0).build()
    assert op.source is not None
    assert op.source.file == __file__
