from __future__ import annotations

from rota import compile_schedule
from rota.simulate.predict import predict
from tests.findings.smallest import Small, raised


def test_cycles_of_a_body_in_tiles_need_a_shape() -> None:
    finding = raised("D109", lambda: predict(compile_schedule(Small())))
    assert "TileShape" in finding.fixes[0]
