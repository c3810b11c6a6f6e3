"""Bounds that hold for every order: takes an `OrderProblem`, gives a register peak that none can undercut."""

from __future__ import annotations

from rota.order.acyclic.loop_body import LoopBody
from rota.order.acyclic.problem import OrderProblem


def ancestors(body: LoopBody) -> tuple[int, ...]:
    """For each op, all ops that must come before it within one iteration, as a bit mask."""
    masks = [0] * len(body.ops)
    growing = True
    while growing:  # twice through when the body lists producers before consumers, as most do
        growing = False
        for index, producers in enumerate(body.predecessors()):
            mask = 0
            for producer in producers:
                mask |= masks[producer] | 1 << producer
            growing = growing or mask != masks[index]
            masks[index] = mask
    return tuple(masks)


def peak_lower_bound(problem: OrderProblem) -> int:
    """The highest of three floors: an empty start, each op with the least that can be live before it, and the end.

    An op may free registers that came in from the iteration before, so the live count may fall below zero and an op's
    own registers alone are no floor.  Before an op stand its ancestors and the earlier partitions; of the ops that may
    stand on either side, only those that free more than they define can lower what it meets.
    """
    ops = problem.body.ops
    if not ops:
        return 0
    net = [op.vgpr_def - op.vgpr_kill for op in ops]
    part = [problem.partition_of(index) for index in range(len(ops))]
    masks = ancestors(problem.body)
    floors = [0]
    for index, op in enumerate(ops):
        live = op.vgpr_def
        for other in range(len(ops)):
            if masks[index] >> other & 1 or part[other] < part[index]:
                live += net[other]
            elif other != index and part[other] == part[index] and not masks[other] >> index & 1:
                live += min(net[other], 0)
        floors.append(live)
    has_successor = {producer for producers in problem.body.predecessors() for producer in producers}
    last = [op.vgpr_kill for i, op in enumerate(ops) if i not in has_successor and part[i] == part[-1]]
    floors.append(sum(net) + min(last, default=0))  # none where dependencies point back to an earlier part
    return max(floors)
