from __future__ import annotations

from rota.compiler.depth import among_depths
from rota.compiler.loop import compile_loop
from rota.kernels.gemm import GEMM_SHAPES
from rota.order.modulo_schedule import ModuloProof
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


def test_an_interval_is_least_only_if_no_other_depth_could_have_a_smaller_one() -> None:
    found = compile_loop(GEMM_SHAPES[2].loop()).modulo
    assert found is not None
    assert among_depths(found, found.ii) == found
    doubted = among_depths(found, found.ii - 1).certificate
    assert doubted.proof is ModuloProof.OPEN
    assert not doubted.optimal
    assert doubted.lower == found.ii - 1
