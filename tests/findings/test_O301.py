from __future__ import annotations

from rota.order.modulo.modulo_problem import ModuloEdge, ModuloOp, ModuloProblem, Resource, Use
from rota.order.modulo.scheduler import ModuloScheduler
from tests.findings.smallest import raised
from tests.wording.golden import mentions

ON_ALU = (Use(resource="alu"),)
ALU, PORT = Resource(name="alu"), Resource(name="port")

# At II 3 the cycle holds `second` exactly 3 slots after `first`: both need the ALU in the same slot modulo 3.
OPS = (ModuloOp(name="first", uses=ON_ALU), ModuloOp(name="second", uses=ON_ALU), ModuloOp(name="other", uses=ON_ALU))
CIRCLE = (
    ModuloEdge(producer=0, consumer=1, delay=3),
    ModuloEdge(producer=1, consumer=0, delay=0, distance=1),
    ModuloEdge(producer=1, consumer=2, delay=5),
)
PROBLEM = ModuloProblem(ops=OPS, edges=CIRCLE, resources=(ALU, PORT))


def test_an_impossible_interval_is_refused_with_the_smallest_set_of_constraints() -> None:
    finding = raised("O301", lambda: ModuloScheduler().schedule_at(PROBLEM, 3))
    evidence = dict(finding.evidence)
    assert mentions(evidence["limit alu"], "3 of 3")
    assert mentions(evidence["carried edge"], "#1 second", "#0 first", 3)
    assert str(evidence["smallest set"]).startswith("yes")
    assert "limit port" not in evidence


def test_one_slot_more_is_enough() -> None:
    assert ModuloScheduler().schedule(PROBLEM).ii == 4


def test_below_the_bound_no_search_is_needed() -> None:
    finding = raised("O301", lambda: ModuloScheduler(time_limit=0).schedule_at(PROBLEM, 2))
    assert [mentions(fix, 3) for fix in finding.fixes] == [True]


def test_what_fits_at_no_interval_is_said_so() -> None:
    tied = (ModuloEdge(producer=0, consumer=1, delay=0), ModuloEdge(producer=1, consumer=0, delay=0))
    raised("O301", lambda: ModuloScheduler().schedule(ModuloProblem(ops=OPS[:2], edges=tied, resources=(ALU,))))
