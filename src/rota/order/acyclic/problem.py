"""The ordering problem and its answer: takes a body and budgets, gives `OrderProblem`; schedulers give `Ordering`.

Problem, algorithm and check are separate: this module holds the values, `evaluate` measures an order, `check_ordering`
re-checks what a scheduler returned, and each algorithm is a `Scheduler` of its own.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Protocol

from rota.check import check_ints, check_types
from rota.order.acyclic.loop_body import LoopBody
from rota.printing import NamedMember, Pasted

UNLIMITED_VGPR = 999999


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OrderProblem(Pasted):
    """Order the ops of one iteration.

    With several `partitions` the body is cut evenly and no op leaves its part.  `max_globals` bounds the global loads
    between two computes (0: no bound); `max_vgpr` the registers live at any point; `lds_contention_penalty` is the
    least distance between the starts of two ops that use the LDS port.
    """

    body: LoopBody
    partitions: int = 1
    max_globals: int = 0
    lds_contention_penalty: int = 0
    max_vgpr: int = UNLIMITED_VGPR

    def __post_init__(self) -> None:
        check_types(self, {"body": LoopBody})
        check_ints(self, ("partitions",), least=1)
        check_ints(self, ("max_globals", "lds_contention_penalty", "max_vgpr"))

    def partition_of(self, index: int) -> int:
        """Which even part of the body list an op stands in."""
        return ((index + 1) * self.partitions - 1) // len(self.body.ops)


class SchedulingStrategy(NamedMember, enum.StrEnum):
    """The orders that ship with rota. Each name is looked up in `order.acyclic.registry`, as third-party names are."""

    IDENTITY = "IDENTITY"
    GREEDY = "GREEDY"
    CSP = "CSP"


class Proof(NamedMember):
    """What is known about an order's quality."""

    OPTIMAL = "optimal"  # no order has a smaller makespan, and none of that makespan a smaller peak
    FEASIBLE = "feasible"  # the time limit ended the search; `bound` is the best lower bound found
    NONE = "none"  # a heuristic or the body's own order


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OrderCertificate(Pasted):
    """How good an order is, in the model of `order.acyclic.evaluate`."""

    proof: Proof
    bound: int
    vgpr_bound: int
    by: str
    seconds: float = field(default=0.0, compare=False)  # equal schedules stay equal, however long they took
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Ordering(Pasted):
    """An order of the body's ops, its makespan and register peak, and what is proved about them."""

    order: tuple[int, ...]
    makespan: int
    vgpr_peak: int
    certificate: OrderCertificate

    @property
    def gap(self) -> int:
        """Cycles between the makespan and the proved bound."""
        return self.makespan - self.certificate.bound


class Scheduler(Protocol):
    """Anything that turns an `OrderProblem` into an `Ordering`; found by name in `order.acyclic.registry`."""

    def order(self, problem: OrderProblem) -> Ordering:
        """An order of all ops, or an `OrderError`."""
        ...
