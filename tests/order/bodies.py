"""Small bodies for the order tests: takes a line per op, gives a `LoopBody`; and random problems for Hypothesis."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from rota.order.acyclic.problem import UNLIMITED_VGPR, CostedOp, DepEdge, LoopBody, OrderProblem
from rota.pipeline.op import OpDesc
from rota.program.kinds import OpRole, ResourceKind

_KINDS = {
    "load": (OpRole.GLOBAL_LOAD, ResourceKind.GLOBAL_MEM),
    "frag": (OpRole.FRAGMENT_LOAD, ResourceKind.LDS),
    "mma": (OpRole.COMPUTE, ResourceKind.MMA_UNIT),
    "valu": (OpRole.VALU_COMPUTE, ResourceKind.VALU),
    "vcompute": (OpRole.COMPUTE, ResourceKind.VALU),
    "nop": (OpRole.NONE, ResourceKind.NONE),
    "sync": (OpRole.SYNC, ResourceKind.SCALAR),
}


def op(kind: str, latency: int = 0, define: int = 0, kill: int = 0) -> OpDesc:
    """One op by its kind, latency, and the registers it defines and frees."""
    role, resource = _KINDS[kind]
    return OpDesc(tag=1, role=role, resource=resource, latency=latency, vgpr_def=define, vgpr_kill=kill)


def body(ops: Sequence[CostedOp], *edges: tuple[int, int] | tuple[int, int, int]) -> LoopBody:
    """Ops with (producer, consumer) or (producer, consumer, distance) edges."""
    return LoopBody(ops, [DepEdge(edge[0], edge[1], loop_distance=edge[2] if len(edge) > 2 else 0) for edge in edges])


@st.composite
def problems(draw: st.DrawFn, most_ops: int = 7) -> OrderProblem:
    """Up to `most_ops` ops of all kinds; ops without latency, negative live counts and unfittable budgets included."""
    count = draw(st.integers(0, most_ops))
    kinds = st.sampled_from(("load", "frag", "mma", "mma", "valu", "vcompute", "nop"))
    registers = st.sampled_from((0, 0, 4, 8))
    ops = [
        op(draw(kinds), draw(st.sampled_from((0, 3, 8, 20))), draw(registers), draw(registers)) for _ in range(count)
    ]
    pairs = [(first, second) for second in range(count) for first in range(second)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=count, unique=True)) if pairs else []
    return OrderProblem(
        body=body(ops, *edges),
        partitions=draw(st.integers(1, 3)),
        max_globals=draw(st.integers(0, 2)),
        lds_contention_penalty=draw(st.sampled_from((0, 0, 2, 5, 30))),
        max_vgpr=draw(st.sampled_from((UNLIMITED_VGPR, 0, 4, 8, 12, 16, 24))),
    )
