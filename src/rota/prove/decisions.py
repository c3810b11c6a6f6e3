"""What a path has decided: takes conditions on unknowns, gives whether they follow from what was decided before.

A comparison of an argument with a constant holds for an arc of the circle of 32-bit numbers, whether it is signed or
not, so an arc per argument says all that such comparisons have told, with every wrap-around.  All other conditions are
remembered as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from rota.prove.state import ALL64, Leaf, Mask
from rota.prove.symbol import LANE, M32, Linear, Plain, Symbol, Value, parts_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decided:
    """A path takes a condition for true or false: of one wave, or of the whole workgroup."""

    condition: Symbol
    holds: bool
    wave: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Renamed:
    """Each new name is an old unknown plus a number."""

    names: Mapping[Symbol, tuple[Symbol, int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Widened:
    """Each new unknown, times a number, is an old one times a number (or nothing) plus a number."""

    counters: Mapping[Symbol, tuple[int, Symbol | None, int, int]]


Event = Decided | Renamed | Widened
Chain = tuple["Chain | None", Event] | None
"""Events since a state, the last one first: paths share what they have in common."""
Path = tuple[int, Chain]
"""The number of the last state, and what happened since."""
START: Path = (0, None)


def events_of(chain: Chain) -> list[Event]:
    """In the order in which they happened."""
    found: list[Event] = []
    while chain is not None:
        chain, event = chain
        found.append(event)
    found.reverse()
    return found


@dataclass(slots=True, kw_only=True, eq=False)
class StateGraph:
    """All states in the order in which they were met first, the start being number 0.

    `arrivals` has, for each state, the ways to it: the first one is that of the path that met it first.
    """

    arrivals: list[list[Path]] = field(default_factory=lambda: [[]])
    known: list[Decisions | None] = field(default_factory=lambda: [None])

    def add_state(self, known: Decisions) -> int:
        """Notes a new state, from which the path goes on, and gives its number."""
        number = len(self.arrivals)
        self.arrivals.append([known.path])
        known.path = (number, None)
        self.known.append(known.copy())
        return number

    def add_arrival(self, number: int, path: Path) -> None:
        """Notes one more way by which a state is come to."""
        self.arrivals[number].append(path)

    def weaken(self, number: int, known: Decisions) -> None:
        """A state that nobody has gone on from knows less now."""
        known.path = (number, None)
        self.known[number] = known.copy()


def forget_names(path: Path) -> Path:
    """The path, at whose end all names are given anew, and nothing is said of what they were."""
    return path[0], (path[1], Renamed(names={}))


Arc = tuple[int, int]  # its first number, and how many follow
_TOP = 0x8000_0000


class Decisions:
    """Conditions and arcs of one path; `when` is the number of barriers before each condition was decided.

    `path` is all that happened on the way, whether it is still known or forgotten.
    """

    __slots__ = ("arcs", "epochs", "known", "path", "trail")

    def __init__(self) -> None:
        self.known: dict[Hashable, bool] = {}
        self.arcs: dict[Hashable, Arc] = {}  # by unknown, or by unknown and wave
        self.trail: tuple[str, ...] = ()
        self.path: Path = START
        self.epochs: dict[Hashable, int] = {}

    def copy(self) -> Decisions:
        """For another path."""
        other = Decisions()
        other.known, other.arcs, other.trail = dict(self.known), dict(self.arcs), self.trail
        other.epochs = dict(self.epochs)
        other.path = self.path
        return other

    def record(self, event: Event) -> None:
        """Adds to the path."""
        self.path = (self.path[0], (self.path[1], event))

    def shift_epochs(self, barriers: int) -> Decisions:
        """The same, decided so many barriers later."""
        other = self.copy()
        other.epochs = {key: when + barriers for key, when in self.epochs.items()}
        return other

    def lookup(self, condition: Symbol, wave: int | None = None) -> bool | None:
        """Whether a condition holds, if that is known; of one that waves don't share, for one wave."""
        found = self.known.get(condition if wave is None else (condition, wave))
        if found is not None:
            return found
        test = arc_where(condition)
        if test is None:
            return None
        base, wanted = test
        held = self.arc_of(base, wave)
        if _inside(held, wanted):
            return True
        return False if are_disjoint(held, wanted) else None

    def arc_of(self, base: Symbol, wave: int | None = None) -> Arc:
        """The numbers that an unknown may be."""
        return self.arcs.get(base if wave is None else (base, wave), (0, min(base.bits, M32)))

    def is_implied_by(self, other: Decisions) -> bool:
        """Does the other hold all of these?"""
        for key, holds in self.known.items():
            condition, wave = key if isinstance(key, tuple) else (key, None)
            if other.known.get(key) is not holds and (
                not isinstance(condition, Symbol) or other.lookup(condition, wave) is not holds
            ):
                return False
        return all(_inside(_held(other, key), arc) for key, arc in self.arcs.items())

    def decide(self, condition: Symbol, *, holds: bool, epoch: int, wave: int | None = None) -> None:
        """Remembers what a path takes a condition for."""
        self.record(Decided(condition=condition, holds=holds, wave=wave))
        about = condition if wave is None else (condition, wave)
        self.known[about], self.epochs[about] = holds, epoch
        test = arc_where(condition)
        if test is None:
            return
        base, (first, length) = test
        wanted = (first, length) if holds else complement((first, length))
        key = base if wave is None else (base, wave)
        held = self.arcs.get(key, (0, min(base.bits, M32)))
        self.arcs[key] = intersect(held, wanted)


def join_decisions(one: Decisions, other: Decisions, later: int, *, settled: bool = False) -> Decisions:
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
            if second.known.get(key) is holds or second.lookup(condition, wave) is holds:
                both.known[key] = holds
                whens = [each for each in (one.epochs.get(key, 0) + later, other.epochs.get(key)) if each is not None]
                both.epochs[key] = min(whens)
    for key in one.arcs.keys() & other.arcs.keys():
        arc = hull(one.arcs[key], other.arcs[key])
        if arc[1] < M32 and (not settled or one.arcs[key] == other.arcs[key]):
            both.arcs[key] = arc
    return both


def complement(arc: Arc) -> Arc:
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


def arc_where(condition: Symbol) -> tuple[Symbol, Arc] | None:  # noqa: PLR0911
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


def are_disjoint(held: Arc, wanted: Arc) -> bool:
    """Is no number in both?"""
    start = (wanted[0] - held[0]) & M32
    return start > held[1] and start + wanted[1] <= M32


def intersect(held: Arc, wanted: Arc) -> Arc:
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


Span = tuple[int, int]
"""The least and the most."""
Arcs = Mapping[Symbol, Arc]
"""What is known of unknowns in the lanes in question."""
ArcLookup = Callable[[Symbol], Arc]
"""What is known of an unknown everywhere."""
ALL = (0, M32)
_WIDTH = 32
_DEPTH, _CHOICE = 12, 5  # how far back it is asked, and how much of that a choice takes, of which there may be many
_MIDDLE = re.compile(r"^v_med3_(?P<sign>[ui])32")
_COUNTED = re.compile(r"^v_mbcnt_(?:lo|hi)_u32_b32")


def span_of(value: Value, arcs: Arcs, held: ArcLookup) -> Span:
    """Of a value, in all its lanes and waves."""
    return _Spans(arcs, held).value(value, _DEPTH)


def iterate_leaves(mask: Mask, arcs: Arcs) -> Iterator[tuple[Arcs, Leaf]]:
    """What the comparisons of a mask say of unknowns, for every way to a leaf, and the leaf."""
    if mask.leaf is not None:
        yield arcs, mask.leaf
    elif mask.atom is not None and mask.high is not None and mask.low is not None:
        for part, holds in ((mask.high, True), (mask.low, False)):
            if (told := _assume(mask.atom, arcs, holds=holds)) is not None:
                yield from iterate_leaves(part, told)


def _assume(condition: Symbol, arcs: Arcs, *, holds: bool) -> Arcs | None:
    """What is known if a condition holds or doesn't; None if that can't be."""
    test = arc_where(condition)
    if test is None:
        return arcs
    base, arc = test
    told, before = arc if holds else complement(arc), arcs.get(base, ALL)
    return None if are_disjoint(before, told) else {**arcs, base: intersect(before, told)}


class _Spans:
    """Spans under one set of conditions."""

    def __init__(self, arcs: Arcs, held: ArcLookup) -> None:
        self._arcs, self._held = arcs, held
        self._known: dict[Symbol, Span] = {}

    def value(self, value: Value, depth: int) -> Span:
        """Of a number, of lanes, or of an unknown with its scale and offset."""
        if not isinstance(value, Linear):
            return plain_span(value)
        return _scaled(self.symbol(value.base, depth), value.scale, plain_span(value.offset))

    def symbol(self, symbol: Symbol, depth: int) -> Span:
        """Of an unknown."""
        found = self._known.get(symbol)
        if found is None:
            held, made = self._held(symbol), self._made(symbol, depth - 1) if depth else ALL
            first, length = intersect(held, self._arcs.get(symbol, ALL))
            low, high = (first, first + length) if first + length <= M32 else ALL  # an arc that goes round is no span
            low, high = max(low, made[0]), min(high, made[1])
            found = self._known[symbol] = (low, high) if low <= high else made  # a contradiction: no lane comes here
        return found

    def _made(self, symbol: Symbol, depth: int) -> Span:  # noqa: C901, PLR0911, PLR0912
        op, args = symbol.op, symbol.args
        if op in {"select", "pick"}:
            return self._either(symbol, depth - _CHOICE) if depth >= _CHOICE else ALL
        if op == "/" and isinstance(args[0], Symbol) and isinstance(args[1], int):
            low, high = self.symbol(args[0], depth)
            return low // args[1], high // args[1]
        if op == "first":  # what EXEC says of the lanes that are active now says nothing of the lane that was read
            shared = {each: span for each, span in self._arcs.items() if each.spread != LANE}
            return _Spans(shared, self._held)._key(args[0], depth)  # noqa: SLF001
        spans = [self._key(each, depth) for each in args]
        if op == "+":
            return _whole(spans[0][0] + spans[1][0], spans[0][1] + spans[1][1])
        if op in {"mul", "mul24"} and (op == "mul" or max(spans[0][1], spans[1][1]) < 1 << 24):
            return _whole(spans[0][0] * spans[1][0], spans[0][1] * spans[1][1])
        if op == "mulhi_u":
            return spans[0][0] * spans[1][0] >> 32, spans[0][1] * spans[1][1] >> 32
        if op in {"or", "xor"}:
            return 0, (1 << max(spans[0][1], spans[1][1]).bit_length()) - 1
        if op == "shr" and isinstance(args[1], int):
            return spans[0][0] >> (args[1] & 31), spans[0][1] >> (args[1] & 31)
        if op in {"min_u", "max_u"}:
            return _picked(op, spans[:2])
        if op in {"min_i", "max_i"}:
            return _unsigned(_picked(op, [_signed(each) for each in spans[:2]]))
        if (found := _MIDDLE.match(op)) is not None:
            return _middle(spans[:3]) if found["sign"] == "u" else _unsigned(_middle([*map(_signed, spans[:3])]))
        if op.endswith("_sdwa"):
            return _of_parts(op, args, spans)
        if _COUNTED.match(op):
            return _whole(spans[1][0], spans[1][1] + 32)
        return ALL

    def _either(self, symbol: Symbol, depth: int) -> Span:
        """Of two values, each where it is chosen: what chooses may be what bounds it."""
        chooser, one, other = parts_of(symbol)
        if isinstance(chooser, Mask):
            found = [*iterate_leaves(chooser, self._arcs)]
            chosen = [(one, arcs) for arcs, leaf in found if any(leaf)]
            chosen += [(other, arcs) for arcs, leaf in found if any(lanes != ALL64 for lanes in leaf)]
        else:
            told = [_assume(chooser, self._arcs, holds=holds) for holds in (True, False)]
            chosen = [(each, arcs) for each, arcs in zip((one, other), told, strict=True) if arcs is not None]
        spans = [_Spans(arcs, self._held).value(each, depth) for each, arcs in chosen]
        return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else ALL

    def _key(self, key: Hashable, depth: int) -> Span:
        """Of the value that a key stands for."""
        if isinstance(key, int):
            return key, key
        if isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], Symbol):
            return _scaled(self.symbol(key[0], depth), key[1], self._key(key[2], depth))
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], bytes):
            numbers = np.frombuffer(key[1], np.int64)
            return int(numbers.min()), int(numbers.max())
        return ALL


def plain_span(value: Plain) -> Span:
    """Of what is known."""
    return (value, value) if isinstance(value, int) else (int(value.min()), int(value.max()))


def _scaled(span: Span, scale: int, offset: Span) -> Span:
    """Of a product and a sum, with either factor and summand as a number below zero, if one reading doesn't wrap."""
    for factor, below in product((scale, scale - M32 - 1), (0, M32 + 1)):
        if below and offset[0] < _TOP:
            continue
        ends = sorted((factor * span[0], factor * span[1]))
        low, high = ends[0] + offset[0] - below, ends[1] + offset[1] - below
        if low >= 0 and high <= M32:
            return low, high
    return ALL


def _whole(low: int, high: int) -> Span:
    return (low, high) if high <= M32 else ALL


def _signed(span: Span) -> Span:
    """As numbers with a sign."""
    if span[1] < _TOP:
        return span
    return (span[0] - M32 - 1, span[1] - M32 - 1) if span[0] >= _TOP else (-_TOP, _TOP - 1)


def _unsigned(span: Span) -> Span:
    if span[0] >= 0:
        return span
    return (span[0] + M32 + 1, span[1] + M32 + 1) if span[1] < 0 else ALL


def _picked(op: str, spans: list[Span]) -> Span:
    pick = min if op.startswith("min") else max
    return pick(low for low, _ in spans), pick(high for _, high in spans)


def _middle(spans: list[Span]) -> Span:
    """Of the one in the middle of three."""
    return sorted(low for low, _ in spans)[1], sorted(high for _, high in spans)[1]


def _of_parts(op: str, args: tuple[Hashable, ...], spans: list[Span]) -> Span:
    """Of an instruction that takes bytes or halves of its operands (SDWA) and gives a whole register."""
    extra = args[-1]
    if not isinstance(extra, tuple) or extra[1]:  # operands with a sign
        return ALL
    modifiers = {each.partition(":")[0]: each.partition(":")[2] for each in extra[2]}
    chosen = [modifiers[key] for key in ("src0_sel", "src1_sel") if key in modifiers]
    make = _PARTS.get((op.removesuffix("_sdwa"), len(chosen)))
    if modifiers.get("dst_sel") != "DWORD" or make is None:
        return ALL
    taken = []
    for part, span in zip(chosen, spans[-1 - len(chosen) : -1], strict=True):  # the target may stand before them
        kind, _, place = part.partition("_")
        most = {"BYTE": 0xFF, "WORD": 0xFFFF}.get(kind, M32)
        taken.append(span if span[1] <= most and place in {"", "0"} else (0, most))
    return make(*taken)


def _shifted(by: Span, span: Span) -> Span:
    return _whole(span[0] << by[0], span[1] << by[1]) if by[1] < _WIDTH else ALL


_PARTS: dict[tuple[str, int], Callable[..., Span]] = {
    ("v_mov_b32", 1): lambda one: one,
    ("v_add_u32", 2): lambda one, other: _whole(one[0] + other[0], one[1] + other[1]),
    ("v_lshlrev_b32", 2): _shifted,
    ("v_and_b32", 2): lambda one, other: (0, min(one[1], other[1])),
    ("v_or_b32", 2): lambda one, other: (0, (1 << max(one[1], other[1]).bit_length()) - 1),
}
