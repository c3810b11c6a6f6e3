from __future__ import annotations

from rota import compile_loop
from tests.findings.smallest import raised
from tests.findings.test_L106 import gemm


def test_a_tile_that_more_is_written_into_than_it_holds_is_refused() -> None:
    finding = raised("L108", lambda: compile_loop(gemm(size=4095)))
    assert finding.evidence == (("bytes written", 4096), ("bytes of the tile", 4095))
    assert compile_loop(gemm(size=4096)).certificate is not None
