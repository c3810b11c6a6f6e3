"""The evaluation model: takes a body and an order, gives makespan and register peak; also lower bounds for any order.

An op starts when its distance-0 predecessors have finished.  MMA unit and VALU each run one op at a time, beside each
other.  With a penalty p, ops on the LDS port (LDS and global memory) start at least p after the port op before them.
Registers: live += def, peak, live -= kill, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rota.check import expect
from rota.errors import Finding, OrderError
from rota.order.acyclic.loop_body import LoopBody
from rota.program.kinds import ResourceKind

SERIAL_UNITS = (ResourceKind.MMA_UNIT, ResourceKind.VALU)
LDS_PORT = (ResourceKind.LDS, ResourceKind.GLOBAL_MEM)


class Evaluation(NamedTuple):
    """What an order costs."""

    makespan: int
    vgpr_peak: int


def evaluate_order(body: LoopBody, order: Sequence[int], lds_contention_penalty: int = 0) -> Evaluation:
    """Makespan and register peak of `order`; a predecessor that comes later in the order is ignored."""
    before = expect("the body", body, LoopBody).predecessors()
    if sorted(order) != list(range(len(body.ops))):
        raise OrderError(
            Finding(
                code="O101",
                message=f"{list(order)!r} is not an order of {len(body.ops)} ops",
                evidence=(("given", len(order)), ("ops", len(body.ops))),
            )
        )
    finish: dict[int, int] = {}
    unit_free = dict.fromkeys(SERIAL_UNITS, 0)
    port_free = live = peak = makespan = 0
    for index in order:
        op = body.ops[index]
        start = max((finish[p] for p in before[index] if p in finish), default=0)
        if op.resource in unit_free:
            start = max(start, unit_free[op.resource])
            unit_free[op.resource] = start + op.latency
        elif lds_contention_penalty and op.resource in LDS_PORT:
            start = max(start, port_free)
            port_free = start + lds_contention_penalty
        finish[index] = start + op.latency
        makespan = max(makespan, finish[index])
        live += op.vgpr_def
        peak = max(peak, live)
        live -= op.vgpr_kill
    return Evaluation(makespan, peak)


def makespan_lower_bound(body: LoopBody, lds_contention_penalty: int = 0) -> int:
    """No order is shorter than its longest chain, its busiest serial unit, or its port ops one penalty apart.

    The last port op needs only its own latency, not another penalty: counting n penalties would not be a bound.
    """
    asap = expect("the body", body, LoopBody).compute_asap()
    bounds = [start + op.latency for start, op in zip(asap, body.ops, strict=True)]
    for unit in SERIAL_UNITS:
        users = [index for index, op in enumerate(body.ops) if op.resource is unit]
        if users:
            bounds.append(min(asap[i] for i in users) + sum(body.ops[i].latency for i in users))
    port = [op for op in body.ops if op.resource in LDS_PORT]
    if port and lds_contention_penalty:
        bounds.append((len(port) - 1) * lds_contention_penalty + min(op.latency for op in port))
    return max(bounds, default=0)
