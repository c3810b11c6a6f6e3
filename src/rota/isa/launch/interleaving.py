"""In which order waves run, and when their memory ops land.

The vocabulary is that of `rota.execute.clock`, on instructions instead of schedule entries.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from random import Random
from typing import TypeVar

T = TypeVar("T")

CoreFault = tuple[int, int, int]
"""What the native core ran into: the number of its code, and both instructions, -1 if there is only one."""
Wants = Callable[[Sequence[CoreFault]], bool]  # whether faults are worth an explanation
_LONGEST_TURN = 400
_LAST = 1 << 16  # after all waves that are not said to be
_SHARE_AT_ISSUE, _SHARE_BETWEEN = 0.25, 0.15


class Landing(enum.Enum):
    """When a memory op lands, between its issue and the wait that covers it."""

    LATEST = "latest"  # when a wait demands it
    EARLIEST = "earliest"  # when it is issued
    ANY = "any"  # drawn by the seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Interleaving:
    """The order in which waves and workgroups run, and when memory ops land.

    Without a seed a wave runs to its next barrier or its end before another one starts; waves in `ahead` run first,
    those in `behind` last. A seed draws turns of random length and shuffles the workgroups.
    """

    label: str
    ahead: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    landing: Landing = Landing.LATEST
    seed: int | None = None
    last_first: bool = False

    def order_workgroups(self, workgroups: Sequence[T]) -> list[T]:
        order = [*workgroups]
        if self.last_first:
            order.reverse()
        elif self.seed is not None:
            Random(f"{self.seed} workgroups").shuffle(order)  # noqa: S311  # reproducible, not secret
        return order

    def rank(self, wave: int) -> int:
        """Without a seed, the wave with the least rank runs first."""
        if wave in self.ahead:
            return self.ahead.index(wave) - len(self.ahead)
        if wave in self.behind:
            return _LAST + self.behind.index(wave)
        return wave

    def driver(self, workgroup: int) -> Driver:
        return Driver(self, Random(f"{self.seed} {workgroup}"))  # noqa: S311  # reproducible, not secret


class Driver:
    def __init__(self, interleaving: Interleaving, random: Random) -> None:
        self._interleaving = interleaving
        self._random = random
        self._draws = interleaving.seed is not None

    def turn(self, runnable: Sequence[int]) -> tuple[int, int | None]:
        """A wave and the number of instructions it may execute; None is without limit."""
        if self._draws:
            return self._random.choice(runnable), 1 + int(_LONGEST_TURN * self._random.random() ** 4)
        return min(runnable, key=self._interleaving.rank), None

    def at_issue(self) -> Callable[[], bool]:
        """A function that says whether the next memory op lands when it is issued."""
        if self._interleaving.landing is Landing.ANY:
            return lambda: self._random.random() < _SHARE_AT_ISSUE
        lands = self._interleaving.landing is Landing.EARLIEST
        return lambda: lands

    def between(self) -> bool:
        return self._interleaving.landing is Landing.ANY and self._random.random() < _SHARE_BETWEEN


LATEST = Interleaving(label="latest")
EARLIEST = Interleaving(label="earliest", landing=Landing.EARLIEST)


def ahead(wave: int) -> Interleaving:
    return Interleaving(label=f"wave {wave} ahead", ahead=(wave,))


def behind(wave: int) -> Interleaving:
    return Interleaving(label=f"wave {wave} behind", behind=(wave,))


def backwards(waves: int) -> Interleaving:
    return Interleaving(label="backwards", ahead=tuple(reversed(range(waves))), last_first=True)


def draw_order(seed: int, landing: Landing = Landing.ANY) -> Interleaving:
    return Interleaving(label=f"seed {seed}, {landing.value}", landing=landing, seed=seed)


def interleavings(waves: int, seeds: int) -> tuple[Interleaving, ...]:
    """Latest, earliest and backwards, every wave ahead and behind, and seeds, half of them landing late."""
    single = (*map(ahead, range(1, waves)), *map(behind, range(waves - 1)))
    drawn = (draw_order(seed, Landing.LATEST if seed % 2 else Landing.ANY) for seed in range(seeds))
    return (LATEST, EARLIEST, backwards(waves), *single, *drawn)


def some_interleavings(waves: int, number: int, seed: int = 0) -> tuple[Interleaving, ...]:
    """`number` orders: latest, earliest and backwards, then by turns seeds and single waves ahead or behind."""
    single = chain.from_iterable((ahead(wave), behind(wave - 1)) for wave in range(waves - 1, 0, -1))
    seeds = (draw_order(each, Landing.LATEST if each % 2 else Landing.ANY) for each in count(seed))
    found = [LATEST, EARLIEST, backwards(waves)]
    while len(found) < number:
        found.append(next(seeds))
        found.extend(islice(single, 1))
    return tuple(found[:number])
