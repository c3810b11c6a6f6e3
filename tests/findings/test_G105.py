from __future__ import annotations

from rota.order.modulo.modulo_problem import ModuloOp, ModuloProblem, Resource, Use
from tests.findings.smallest import raised


def test_an_unknown_resource_is_refused_and_the_nearest_one_named() -> None:
    dot = ModuloOp(name="dot", uses=(Use(resource="MMA_unit", occupancy=4),))
    finding = raised("G105", lambda: ModuloProblem(ops=(dot,), resources=(Resource(name="MMA unit"),)))
    assert "MMA_unit" in finding.message
    assert [concern.index for concern in finding.concerns] == [0]
    assert ["MMA unit" in fix for fix in finding.fixes] == [True, True]
