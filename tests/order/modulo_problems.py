"""Small modulo problems for the tests: takes short descriptions, gives `ModuloProblem`s; and Hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from rota.errors import GraphError
from rota.order.modulo.modulo_problem import ModuloEdge, ModuloOp, ModuloProblem, Resource, Use

ALU = Resource(name="alu", capacity=1)
PORT = Resource(name="port", capacity=2)


def op(name: str, *uses: Use, latency: int = 1) -> ModuloOp:
    return ModuloOp(name=name, latency=latency, uses=uses)


def on(resource: str, occupancy: int = 1, offset: int = 0) -> Use:
    return Use(resource=resource, occupancy=occupancy, offset=offset)


def edge(producer: int, consumer: int, delay: int | None = None, distance: int = 0) -> ModuloEdge:
    return ModuloEdge(producer=producer, consumer=consumer, delay=delay, distance=distance)


def problem(ops: list[ModuloOp], edges: list[ModuloEdge] | None = None, *resources: Resource) -> ModuloProblem:
    return ModuloProblem(ops=tuple(ops), edges=tuple(edges or ()), resources=resources or (ALU, PORT))


def crossed() -> ModuloProblem:
    """MII 3, but II 3 is infeasible: the cycle fixes two ops 3 apart, so that they meet on the ALU at every II of 3.

    a -> b takes 3; b -> a takes 0 within the next iteration, so at II 3 b starts exactly 3 after a.
    """
    return problem([op("a", on("alu")), op("b", on("alu"))], [edge(0, 1, 3), edge(1, 0, 0, 1)])


_USES = st.builds(on, st.sampled_from(["alu", "port"]), st.integers(1, 3), st.integers(0, 2))
_UNIT_USES = st.builds(on, st.sampled_from(["alu", "port"]))
_OPS = st.builds(
    lambda uses, latency: ModuloOp(name="op", latency=latency, uses=tuple(uses)),
    st.lists(st.one_of(_UNIT_USES, _USES), max_size=2),
    st.integers(0, 3),
)


@st.composite
def small_problems(draw: st.DrawFn, most_ops: int = 4) -> ModuloProblem:
    """Up to four ops with cycles, long and several uses, and delays of either sign; no impossible cycle."""
    ops = draw(st.lists(_OPS, min_size=1, max_size=most_ops))
    index = st.integers(0, len(ops) - 1)
    edges = draw(st.lists(st.tuples(index, index, st.integers(-2, 4), st.integers(0, 2)), max_size=6))
    chosen: list[ModuloEdge] = []
    for producer, consumer, delay, distance in edges:
        more = [*chosen, edge(producer, consumer, delay, distance)]
        try:
            problem(ops, more)
        except GraphError:
            continue
        chosen = more
    return problem(ops, chosen)
