from __future__ import annotations

from rota.compiler.loop import compile_loop
from rota.kernels.gemm import GEMM_SHAPES
from rota.order.stopping import Stop


def test_a_stopped_search_gives_a_proved_schedule_all_the_same() -> None:
    """The heuristic looks at every depth; one copy of each tile alone would have loads and reads take turns."""
    stop = Stop()
    stop.ask()
    with stop.governing():
        found = compile_loop(GEMM_SHAPES[2].loop())
    assert found.certificate is not None
    assert found.modulo is not None
    assert found.modulo.certificate.by == "ims"
    assert found.placement is not None
    assert dict(found.placement.copies)["A0"] > 1
