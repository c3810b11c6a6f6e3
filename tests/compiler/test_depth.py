from __future__ import annotations

import pytest

from rota import GFX950, verify
from rota.compiler.depth import among_depths, depths_that_fit
from rota.compiler.loop import compile_loop
from rota.declare.loop import Loop
from rota.declare.values import Home, LoopOp, LoopSpec, Read, Value, Work
from rota.errors import GraphError
from rota.graph.loop_problem import modulo_problem
from rota.graph.timing import least_copies, time_loop
from rota.kernels.gemm import GEMM_SHAPES
from rota.order.modulo_schedule import ModuloProof
from rota.order.stopping import Stop
from rota.targets.timing import timing_of
from tests.findings.smallest import raised


def test_a_stopped_search_gives_a_proved_schedule_all_the_same() -> None:
    """The heuristic looks at every depth; one copy of each tile alone would have loads and reads take turns."""
    stop = Stop()
    stop.ask()
    with stop.governing():
        found = compile_loop(GEMM_SHAPES[2].loop(instructions=False))
    assert found.certificate is not None
    assert found.modulo is not None
    assert found.modulo.certificate.by == "ims"
    assert found.placement is not None
    assert dict(found.placement.copies)["A0"] > 1


def test_an_interval_is_least_only_if_no_other_depth_could_have_a_smaller_one() -> None:
    found = compile_loop(GEMM_SHAPES[2].loop(instructions=False)).modulo
    assert found is not None
    assert among_depths(found, found.ii) == found
    doubted = among_depths(found, found.ii - 1).certificate
    assert doubted.proof is ModuloProof.OPEN
    assert not doubted.optimal
    assert doubted.lower == found.ii - 1


def reads_older_versions() -> Loop:
    """b of an op's own iteration, and an older c, where c is made of an older b: each alone does with fewer copies."""
    loop = Loop("older", waves=4)
    tile = loop.tile("A", size=4096)
    loop.load(tile, moved=4096)
    b = loop.fragment("b", tile, registers=1)
    c = loop.valu("c", [Read(value=b, distance=2)], registers=1)
    loop.valu("d", [b, Read(value=c, distance=1)], registers=1)
    return loop


def test_older_versions_need_copies_of_their_own() -> None:
    assert least_copies(reads_older_versions().build()) == {"A": 1, "b": 2, "c": 1, "d": 1}
    compiled = compile_loop(reads_older_versions().build())
    assert compiled.placement is not None
    assert dict(compiled.placement.copies)["b"] >= 2
    assert verify(compiled).clean


def test_copies_that_leave_no_order_are_passed_over() -> None:
    spec = reads_older_versions().build()
    times = time_loop(spec, timing_of(GFX950))
    with pytest.raises(GraphError, match="G103"):
        modulo_problem(spec, times, least_copies(spec))
    assert all(modulo_problem(spec, times, copies) for copies in depths_that_fit(spec, GFX950, times))


def test_a_circle_of_the_authors_own_is_reported_all_the_same() -> None:
    values = tuple(Value(name=name, home=Home.REGISTERS, size=1) for name in "pq")
    ops = tuple(
        LoopOp(name=f"make_{made}", work=Work.VALU, reads=(Read(value=used),), writes=(made,))
        for made, used in ("pq", "qp")
    )
    raised("G103", lambda: compile_loop(LoopSpec(name="circle", waves=4, values=values, ops=ops)))
