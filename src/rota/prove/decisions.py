"""What a path has decided: takes conditions on unknowns, gives whether they follow from what was decided before.

A comparison of an argument with a constant holds for an arc of the circle of 32-bit numbers, whether it is signed or
not, so an arc per argument says all that such comparisons have told, with every wrap-around.  All other conditions are
remembered as they are.
"""

from __future__ import annotations

from collections.abc import Hashable

from rota.prove.conditions import START, Decided, Event, Path
from rota.prove.symbol import M32, Symbol

Arc = tuple[int, int]  # its first number, and how many follow
_TOP = 0x8000_0000


class Decisions:
    """Conditions and arcs of one path; `when` is the number of barriers before each condition was decided.

    `path` is all that happened on the way, whether it is still known or forgotten.
    """

    __slots__ = ("arcs", "known", "path", "trail", "when")

    def __init__(self) -> None:
        self.known: dict[Hashable, bool] = {}
        self.arcs: dict[Hashable, Arc] = {}  # by unknown, or by unknown and wave
        self.trail: tuple[str, ...] = ()
        self.path: Path = START
        self.when: dict[Hashable, int] = {}

    def copy(self) -> Decisions:
        """For another path."""
        other = Decisions()
        other.known, other.arcs, other.trail = dict(self.known), dict(self.arcs), self.trail
        other.when = dict(self.when)
        other.path = self.path
        return other

    def happened(self, event: Event) -> None:
        """Adds to the path."""
        self.path = (self.path[0], (self.path[1], event))

    def later(self, barriers: int) -> Decisions:
        """The same, decided so many barriers later."""
        other = self.copy()
        other.when = {key: when + barriers for key, when in self.when.items()}
        return other

    def decided(self, condition: Symbol, wave: int | None = None) -> bool | None:
        """Whether a condition holds, if that is known; of one that waves don't share, for one wave."""
        found = self.known.get(condition if wave is None else (condition, wave))
        if found is not None:
            return found
        test = arc_of(condition)
        if test is None:
            return None
        base, wanted = test
        held = self.arc_of(base, wave)
        if _inside(held, wanted):
            return True
        return False if apart(held, wanted) else None

    def arc_of(self, base: Symbol, wave: int | None = None) -> Arc:
        """The numbers that an unknown may be."""
        return self.arcs.get(base if wave is None else (base, wave), (0, min(base.bits, M32)))

    def allows(self, other: Decisions) -> bool:
        """Does the other hold all of these?"""
        for key, holds in self.known.items():
            condition, wave = key if isinstance(key, tuple) else (key, None)
            if other.known.get(key) is not holds and (
                not isinstance(condition, Symbol) or other.decided(condition, wave) is not holds
            ):
                return False
        return all(_inside(_held(other, key), arc) for key, arc in self.arcs.items())

    def decide(self, condition: Symbol, *, holds: bool, epoch: int, wave: int | None = None) -> None:
        """Remembers what a path takes a condition for."""
        self.happened(Decided(condition=condition, holds=holds, wave=wave))
        about = condition if wave is None else (condition, wave)
        self.known[about], self.when[about] = holds, epoch
        test = arc_of(condition)
        if test is None:
            return
        base, (first, length) = test
        wanted = (first, length) if holds else others((first, length))
        key = base if wave is None else (base, wave)
        held = self.arcs.get(key, (0, min(base.bits, M32)))
        self.arcs[key] = both(held, wanted)


def common(one: Decisions, other: Decisions, later: int, *, settled: bool = False) -> Decisions:
    """What both have decided; the second was made so many barriers later.

    If `settled`, an arc that differs is given up: joined again and again it would grow a little each time.
    """
    both = Decisions()
    both.trail, both.path = other.trail, other.path
    for first, second in ((one, other), (other, one)):
        for key, holds in first.known.items():
            condition, wave = key if isinstance(key, tuple) else (key, None)
            if key in both.known or not isinstance(condition, Symbol):
                continue
            if second.known.get(key) is holds or second.decided(condition, wave) is holds:
                both.known[key] = holds
                whens = [each for each in (one.when.get(key, 0) + later, other.when.get(key)) if each is not None]
                both.when[key] = min(whens)
    for key in one.arcs.keys() & other.arcs.keys():
        arc = hull(one.arcs[key], other.arcs[key])
        if arc[1] < M32 and (not settled or one.arcs[key] == other.arcs[key]):
            both.arcs[key] = arc
    return both


def others(arc: Arc) -> Arc:
    """All numbers that are not in it."""
    return (arc[0] + arc[1] + 1) & M32, M32 - 1 - arc[1]


def _held(known: Decisions, key: Hashable) -> Arc:
    base, wave = key if isinstance(key, tuple) else (key, None)
    return known.arc_of(base, wave) if isinstance(base, Symbol) else (0, M32)


def hull(one: Arc, other: Arc) -> Arc:
    """The shorter of the two arcs from the beginning of one to the end of the other that hold both."""
    found = []
    for first, then in ((one, other), (other, one)):
        away = (then[0] - first[0]) & M32
        found.append((first[0], min(max(first[1], away + then[1]), M32)))
    return min(found, key=lambda arc: arc[1])


def arc_of(condition: Symbol) -> tuple[Symbol, Arc] | None:  # noqa: PLR0911
    """The unknown that a condition compares with a constant, and the arc in which it holds."""
    if condition.op not in {"eq", "lt_u", "lt_i"}:
        return None
    one, other = condition.args[0], condition.args[1]
    if isinstance(one, tuple) and isinstance(other, int):
        if other == (_TOP if condition.op == "lt_i" else 0) and condition.op != "eq":
            return None
        first = {"eq": other, "lt_u": 0, "lt_i": _TOP}[condition.op]
        arc = (first, (other - 1 - first) & M32 if condition.op != "eq" else 0)
        value = one
    elif isinstance(other, tuple) and isinstance(one, int) and condition.op != "eq":
        last = M32 if condition.op == "lt_u" else _TOP - 1
        if one == last:
            return None
        arc, value = ((one + 1) & M32, (last - one - 1) & M32), other
    else:
        return None
    if len(value) != 3 or not isinstance(value[2], int) or not isinstance(value[0], Symbol):
        return None
    if value[1] == M32 and not arc[1]:  # what is left when it is taken from a number is the one number
        return value[0], ((value[2] - arc[0]) & M32, 0)
    if value[1] != 1:
        return None
    return value[0], ((arc[0] - value[2]) & M32, arc[1])


def _inside(held: Arc, wanted: Arc) -> bool:
    start = (held[0] - wanted[0]) & M32
    return start + held[1] <= wanted[1]


def apart(held: Arc, wanted: Arc) -> bool:
    """Is no number in both?"""
    start = (wanted[0] - held[0]) & M32
    return start > held[1] and start + wanted[1] <= M32


def both(held: Arc, wanted: Arc) -> Arc:
    """An arc that holds all numbers in both; one of them where these are two pieces."""
    if _inside(held, wanted):
        return held
    if _inside(wanted, held):
        return wanted
    start = (wanted[0] - held[0]) & M32
    if start <= held[1]:  # wanted begins inside held
        if start + wanted[1] > M32:  # and comes round to it again
            return held if held[1] <= wanted[1] else wanted
        return wanted[0], held[1] - start
    return held[0], (wanted[0] + wanted[1] - held[0]) & M32
