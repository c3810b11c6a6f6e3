"""Waves that run in lockstep: what is known of their registers, and the memory ops that they have under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from rota.prove.lane_mask import Mask, Masks
from rota.prove.symbol import Value, of_waves

Bytes = tuple[int, ...]  # for each wave of a squad a number whose bit b stands for byte b of LDS


class Half(NamedTuple):
    """One half of a mask in a scalar register: 0 the low one, 1 the high one."""

    mask: Mask
    which: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LdsUse:
    """A use of LDS: by which operation, how (read, write, atomic or dma), and the bytes of each wave.

    Made by `Accesses` alone: equal ones are one.  If it isn't exact, it may use any of the bytes.  `again` tells a load
    to LDS from the same load earlier in a stretch between barriers, of other words perhaps.
    """

    number: int
    how: str
    bytes: Bytes
    exact: bool
    again: bool = False


class Accesses:
    """All accesses of a proof."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str, Bytes, bool, bool], LdsUse] = {}

    def make(self, number: int, how: str, octets: Bytes, *, exact: bool, again: bool = False) -> LdsUse:
        """The one access of that kind."""
        key = (number, how, octets, exact, again)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = LdsUse(number=number, how=how, bytes=octets, exact=exact, again=again)
        return found

    def of_waves(self, access: LdsUse, rows: list[int]) -> LdsUse:
        """That of some of the waves."""
        octets = tuple(access.bytes[row] for row in rows)
        return self.make(access.number, access.how, octets, exact=access.exact, again=access.again)


class Flight(NamedTuple):
    """A memory op under way: its operation, the registers that it fills, what it uses of LDS, and when it was issued.

    `also` are the operations that it is in other waves of its squad, which came by another copy of the code.

    `due` is how many younger ones were under way at the first barrier behind it: a wait for so many was due.  `wait` is
    the last wait before that `barrier`, `near` the last wait that would have covered it with a count one less.
    """

    number: int
    rows: int
    access: LdsUse | None
    epoch: int
    due: int = -1
    wait: int = -1
    near: int = -1
    barrier: int = -1
    also: tuple[int, ...] = ()

    @property
    def bare(self) -> bool:
        """Is it only counted, as a store is?"""
        return not self.rows and self.access is None

    @property
    def same(self) -> tuple[object, ...] | None:
        """All that decides what follows: not when it was issued, and of one that is only counted nothing."""
        return None if self.bare else (self.number, self.rows, self.access, self.also)


@dataclass(slots=True, kw_only=True, eq=False)
class Squad:
    """The waves, where they are, their registers, and their memory ops in the order of issue.

    `done` are accesses of this stretch between barriers that a wait has covered.  `waited` are the last waits for each
    counter.
    """

    waves: tuple[int, ...]
    at: int
    registers: dict[int, Value | Half]
    exec: Mask
    vm: tuple[Flight, ...] = ()
    ds: tuple[Flight, ...] = ()
    sm: tuple[Flight, ...] = ()
    flat: tuple[tuple[Flight, frozenset[str]], ...] = ()
    busy: int = 0
    done: dict[LdsUse, Flight] = field(default_factory=dict)
    waiting: bool = False
    ended: bool = False
    barriers: int = 0
    waited: tuple[int, int] = (-1, -1)

    def copy(self) -> Squad:
        """For another path."""
        return Squad(
            waves=self.waves,
            at=self.at,
            registers=dict(self.registers),
            exec=self.exec,
            vm=self.vm,
            ds=self.ds,
            sm=self.sm,
            flat=self.flat,
            busy=self.busy,
            done=dict(self.done),
            waiting=self.waiting,
            ended=self.ended,
            barriers=self.barriers,
            waited=self.waited,
        )

    def part(self, rows: list[int], masks: Masks, accesses: Accesses) -> Squad:
        """Some of the waves, on their own."""

        def kept(value: Value | Half) -> Value | Half:
            return (
                Half(masks.of_waves(value.mask, rows), value.which)
                if isinstance(value, Half)
                else of_waves(value, rows)
            )

        def access(each: LdsUse | None) -> LdsUse | None:
            return None if each is None else accesses.of_waves(each, rows)

        def flight(each: Flight) -> Flight:
            return each._replace(access=access(each.access))

        done: dict[LdsUse, Flight] = {}
        for each, before in self.done.items():
            one = access(each)
            if one is not None and any(one.bytes):
                done[one] = before._replace(access=one)
        return Squad(
            waves=tuple(self.waves[row] for row in rows),
            at=self.at,
            registers={row: kept(value) for row, value in self.registers.items()},
            exec=masks.of_waves(self.exec, rows),
            vm=tuple(map(flight, self.vm)),
            ds=tuple(map(flight, self.ds)),
            sm=self.sm,
            flat=tuple((flight(each), seen) for each, seen in self.flat),
            busy=self.busy,
            done=done,
            waiting=self.waiting,
            ended=self.ended,
            barriers=self.barriers,
            waited=self.waited,
        )

    def rest(self, masks: Masks) -> None:
        """Its waves have ended: of what they leave behind, only uses of LDS matter.

        Nobody is left to see what a read under way brings, so it is over with its wave: it counts in this stretch
        between barriers, and in none behind it.  A write lands whenever it does.
        """
        left = (*self.ds, *(each for each, _ in self.flat))
        for each in left:
            if each.access is not None and each.access.how == "read":
                self.done.setdefault(each.access, each._replace(rows=0))
        self.registers, self.exec, self.sm, self.busy = {}, masks.leaf((0,) * len(self.waves)), (), 0
        self.vm = tuple(each._replace(rows=0) for each in self.vm if each.access is not None)
        self.ds = tuple(each._replace(rows=0) for each in self.ds if _lands(each))
        self.flat = tuple((each._replace(rows=0), seen) for each, seen in self.flat if _lands(each))

    def reckon(self) -> None:
        """The registers that are waited for; the oldest ops that are only counted are not waited for by anybody."""
        self.busy = 0
        for name in ("vm", "ds"):
            queue = getattr(self, name)
            if queue and queue[0].bare:
                first = next((place for place, each in enumerate(queue) if not each.bare), len(queue))
                setattr(self, name, queue[first:])
        for each in (*self.vm, *self.ds, *self.sm):
            self.busy |= each.rows
        for each, _ in self.flat:
            self.busy |= each.rows


def _lands(flight: Flight) -> bool:
    """Does it change LDS?"""
    return flight.access is not None and flight.access.how != "read"
