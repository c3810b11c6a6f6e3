"""The machine a program runs on: counters, memories and limits, each fact with its source.

A device (`rota.targets`) is such a machine with rates, times and an instruction set.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from rota.check import bad_field, check_elements, check_types
from rota.errors import DeclarationError, did_you_mean
from rota.program.kinds import OpKind

LANES = 64
"""Lanes of a wave: what a declared op moves, it moves for all of them."""


class Confidence(enum.Enum):
    """How well a fact is known."""

    DOCUMENTED = "documented"
    COMPILER_MODEL = "compiler model"
    MEASURED_BY_THIRD_PARTY = "measured by third party"
    REPORTED = "reported"  # by the press or a database, of what the maker said
    ESTIMATE = "estimate"


class Fact(NamedTuple):
    """A number about the hardware and where it comes from."""

    value: int
    unit: str
    confidence: Confidence
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A counter of a wave's memory ops in flight.

    `holds` is the most tokens it can hold; a wait for that many or more waits for nothing. `counts` are the kinds of op
    that it tracks. A counter that isn't `in_order` says nothing about which op completed until it is 0.
    """

    name: str
    holds: Fact
    counts: frozenset[OpKind]
    in_order: bool = True

    def __post_init__(self) -> None:
        check_types(self, {"name": str, "holds": Fact, "counts": frozenset, "in_order": bool})

    @property
    def largest_wait(self) -> int:
        """The weakest wait that still waits."""
        return self.holds.value - 1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Machine:
    """Facts of one device that bound what a program may do.

    With a `split_barrier` a wave arrives with one instruction and waits with another; without, one does both.

    That vmcnt counts down in the order of issue is documented, but has been questioned publicly for DMAs into LDS that
    run past the end of their buffer on gfx950: `doubting` gives the same machine without that order.
    """

    name: str
    arch: str
    counters: tuple[Counter, ...]
    lds_bytes: Fact
    vgprs_per_lane: Fact
    waves_per_workgroup: Fact
    dma_width: Fact
    split_barrier: bool = False

    def __post_init__(self) -> None:
        check_types(self, {"name": str, "arch": str, "split_barrier": bool})
        check_elements("counters", self.counters, Counter)
        tracked = [kind for counter in self.counters for kind in counter.counts]
        for kind in tracked:
            if tracked.count(kind) > 1:
                raise bad_field(self, "counters", kind.word, "every kind of op on at most one counter")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} ({self.arch})>"  # all of its facts would fill a screen

    def counter(self, name: str) -> Counter:
        for each in self.counters:
            if each.name == name:
                return each
        raise DeclarationError.of(
            "D105",
            f"{self.name} has no counter {name!r}",
            fixes=did_you_mean(name, [each.name for each in self.counters]),
        )

    def counter_of(self, kind: OpKind) -> str | None:
        """The name of the counter that tracks ops of a kind."""
        return next((each.name for each in self.counters if kind in each.counts), None)

    def no_wait(self, counter: str) -> int:
        """The count that encodes "do not wait"; also how many tokens the counter can hold."""
        return self.counter(counter).holds.value

    def largest_wait(self, counter: str) -> int:
        """The weakest wait that still waits."""
        return self.counter(counter).largest_wait

    def counts_in_order(self, counter: str) -> bool:
        """True if the oldest op on the counter is always the next to complete."""
        return self.counter(counter).in_order

    def doubting(self, counter: str) -> Self:
        """The same machine, with no order among the ops on a counter."""
        self.counter(counter)
        changed = tuple(replace(each, in_order=each.in_order and each.name != counter) for each in self.counters)
        return replace(self, counters=changed)

    def doubting_dmas(self) -> Self:
        """The same machine, with no order among its DMAs; refused where it tracks none, since nothing would change."""
        counter = self.counter_of(OpKind.DMA)
        if counter is None:
            message = f"{self.name} counts no DMAs, so that there is no order among them to doubt"
            raise DeclarationError.of("D105", message)
        return self.doubting(counter)
