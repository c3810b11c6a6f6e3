"""What a path has decided about unknowns, and the bounds of values that follow.

A comparison of an unknown with a constant, signed or not, holds on an arc of the circle of 32-bit numbers.  So one arc
per unknown keeps all that such comparisons say, wrap-around included (wrapped intervals: Navas et al., 2012).  All
other conditions are remembered as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from rota.isa.opcodes import is_sdwa, opcode_named
from rota.prove.state import Mask
from rota.prove.symbol import LANE, M32, Linear, Plain, Symbol, Value, parts_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decided:
    """The path takes a condition as true or false, for one wave or for the whole workgroup."""

    condition: Symbol
    holds: bool
    wave: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Renamed:
    """A checkpoint renames unknowns: each new name is an old unknown plus a number."""

    names: Mapping[Symbol, tuple[Symbol, int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Widened:
    """Widening replaces counters: unit * new unknown = scale * old unknown (if any) + anchor."""

    counters: Mapping[Symbol, tuple[int, Symbol | None, int, int]]


Event = Decided | Renamed | Widened
Chain = tuple["Chain | None", Event] | None
"""Events since a state, the last one first, so that paths share their beginnings."""
Path = tuple[int, Chain]  # the number of the last state, and the events since
START: Path = (0, None)


def events_of(chain: Chain) -> list[Event]:
    found: list[Event] = []
    while chain is not None:
        chain, event = chain
        found.append(event)
    return found[::-1]


@dataclass(slots=True, kw_only=True, eq=False)
class StateGraph:
    """The states of a proof by number (the start is 0), and the paths to each, the one that came first at the front."""

    arrivals: list[list[Path]] = field(default_factory=lambda: [[]])
    known: list[Decisions | None] = field(default_factory=lambda: [None])

    def add_state(self, known: Decisions) -> int:
        number = len(self.arrivals)
        self.arrivals.append([known.path])
        known.path = (number, None)
        self.known.append(known.copy())
        return number

    def add_arrival(self, number: int, path: Path) -> None:
        self.arrivals[number].append(path)

    def weaken(self, number: int, known: Decisions) -> None:
        """Replace what is known in a state from which no path has gone on yet."""
        known.path = (number, None)
        self.known[number] = known.copy()


def forget_names(path: Path) -> Path:
    """The path, after which names mean new unknowns that nothing relates to the old ones."""
    return path[0], (path[1], Renamed(names={}))


Arc = tuple[int, int]  # the first number of an arc, and how many follow
Key = tuple[Symbol, int | None]  # an unknown, and the wave if waves don't share it
_TOP = 0x8000_0000


class Decisions:
    """The conditions and arcs of one path, the barriers passed at each decision (`epochs`), and all events (`path`)."""

    __slots__ = ("arcs", "epochs", "known", "path", "trail")

    def __init__(self, trail: tuple[str, ...] = (), path: Path = START) -> None:
        self.trail, self.path = trail, path
        self.known: dict[Key, bool] = {}
        self.arcs: dict[Key, Arc] = {}
        self.epochs: dict[Key, int] = {}

    def copy(self) -> Decisions:
        other = Decisions(self.trail, self.path)
        other.known, other.arcs, other.epochs = dict(self.known), dict(self.arcs), dict(self.epochs)
        return other

    def record(self, event: Event) -> None:
        self.path = (self.path[0], (self.path[1], event))

    def lookup(self, condition: Symbol, wave: int | None = None) -> bool | None:
        """Whether a condition holds, for one wave if waves don't share it; None if the path hasn't decided it."""
        if (found := self.known.get((condition, wave))) is not None:
            return found
        if (test := arc_where(condition)) is None:
            return None
        base, wanted = test
        held = self.arc_of(base, wave)
        return True if _is_within(held, wanted) else False if are_disjoint(held, wanted) else None

    def arc_of(self, base: Symbol, wave: int | None = None) -> Arc:
        return self.arcs.get((base, wave), (0, min(base.bits, M32)))

    def is_implied_by(self, other: Decisions) -> bool:
        return all(other.lookup(*key) is holds for key, holds in self.known.items()) and all(
            _is_within(other.arc_of(*key), arc) for key, arc in self.arcs.items()
        )

    def decide(self, condition: Symbol, *, holds: bool, epoch: int, wave: int | None = None) -> None:
        self.record(Decided(condition=condition, holds=holds, wave=wave))
        self.known[condition, wave], self.epochs[condition, wave] = holds, epoch
        if (test := arc_where(condition)) is not None:
            base, arc = test
            self.arcs[base, wave] = intersect(self.arc_of(base, wave), arc if holds else complement(arc))


def join_decisions(earlier: Decisions, other: Decisions, later: int, *, drop_changed: bool = False) -> Decisions:
    """What both paths have decided; the other's state was reached so many barriers `later`."""
    joined = Decisions(other.trail, other.path)
    for first, second in ((earlier, other), (other, earlier)):
        for key, holds in first.known.items():
            if key not in joined.known and second.lookup(*key) is holds:
                joined.known[key] = holds
                epoch = earlier.epochs.get(key, 0) + later
                joined.epochs[key] = min(epoch, other.epochs.get(key, epoch))
    for key in (each for each in earlier.arcs if each in other.arcs):  # in their order: z3's effort depends on it
        arc = hull(earlier.arcs[key], other.arcs[key])
        # Joined again and again, an arc would grow a little each time: `drop_changed` ends that.
        if arc[1] < M32 and (not drop_changed or earlier.arcs[key] == other.arcs[key]):
            joined.arcs[key] = arc
    return joined


# Arcs.


def complement(arc: Arc) -> Arc:
    return (arc[0] + arc[1] + 1) & M32, M32 - 1 - arc[1]


def hull(one: Arc, other: Arc) -> Arc:
    found = []
    for first, then in ((one, other), (other, one)):
        away = (then[0] - first[0]) & M32
        found.append((first[0], min(max(first[1], away + then[1]), M32)))
    return min(found, key=lambda arc: arc[1])


def arc_where(condition: Symbol) -> tuple[Symbol, Arc] | None:  # noqa: PLR0911
    """The unknown that a condition compares with a constant, and the arc on which it holds; None for others."""
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
    if value[1] == M32 and not arc[1]:  # offset - unknown == number
        return value[0], ((value[2] - arc[0]) & M32, 0)
    return (value[0], ((arc[0] - value[2]) & M32, arc[1])) if value[1] == 1 else None


def _is_within(held: Arc, wanted: Arc) -> bool:
    start = (held[0] - wanted[0]) & M32
    return start + held[1] <= wanted[1]


def are_disjoint(held: Arc, wanted: Arc) -> bool:
    start = (wanted[0] - held[0]) & M32
    return start > held[1] and start + wanted[1] <= M32


def intersect(held: Arc, wanted: Arc) -> Arc:
    """An arc that contains all numbers in both; the shorter of the two if these are two pieces."""
    if _is_within(held, wanted):
        return held
    if _is_within(wanted, held):
        return wanted
    start = (wanted[0] - held[0]) & M32
    if start <= held[1]:  # wanted begins inside held
        if start + wanted[1] > M32:  # and wraps around to it again
            return held if held[1] <= wanted[1] else wanted
        return wanted[0], held[1] - start
    return held[0], (wanted[0] + wanted[1] - held[0]) & M32


# Spans: bounds of values, derived from the operations that made their unknowns.

Span = tuple[int, int]  # the least and the largest number that a value may be
Arcs = Mapping[Symbol, Arc]  # arcs of unknowns in the lanes in question
ArcLookup = Callable[[Symbol], Arc]  # the arc of an unknown in all lanes
ALL = (0, M32)
_WIDTH = 32
_DEPTH, _CHOICE = 12, 5  # operations that are looked through, and as how many a choice counts, since choices branch


def iterate_leaves(mask: Mask, arcs: Arcs) -> Iterator[tuple[Arcs, Mask]]:
    """Every leaf of a mask, with what the comparisons on the way to it say of unknowns."""
    if mask.leaf is not None:
        yield arcs, mask
    elif mask.atom is not None and mask.high is not None and mask.low is not None:
        for part, holds in ((mask.high, True), (mask.low, False)):
            if (refined := _assume(mask.atom, arcs, holds=holds)) is not None:
                yield from iterate_leaves(part, refined)


def _assume(condition: Symbol, arcs: Arcs, *, holds: bool) -> Arcs | None:
    """The arcs if a condition holds or doesn't; None if that can't be."""
    if (test := arc_where(condition)) is None:
        return arcs
    base, arc = test
    wanted, before = arc if holds else complement(arc), arcs.get(base, ALL)
    return None if are_disjoint(before, wanted) else {**arcs, base: intersect(before, wanted)}


class Spans:
    """Derives the spans of values, given arcs of unknowns."""

    def __init__(self, arcs: Arcs, held: ArcLookup) -> None:
        self._arcs, self._held = arcs, held
        self._known: dict[Symbol, Span] = {}

    def value(self, value: Value, depth: int = _DEPTH) -> Span:
        if not isinstance(value, Linear):
            return plain_span(value)
        return _scale(self.symbol(value.base, depth), value.scale, plain_span(value.offset))

    def symbol(self, symbol: Symbol, depth: int) -> Span:
        found = self._known.get(symbol)
        if found is None:
            held, derived = self._held(symbol), self._derive(symbol, depth - 1) if depth else ALL
            first, length = intersect(held, self._arcs.get(symbol, ALL))
            low, high = (first, first + length) if first + length <= M32 else ALL  # an arc that wraps is no span
            low, high = max(low, derived[0]), min(high, derived[1])
            found = self._known[symbol] = (low, high) if low <= high else derived  # a contradiction: no lane gets here
        return found

    def _derive(self, symbol: Symbol, depth: int) -> Span:  # noqa: C901, PLR0911, PLR0912
        op, args = symbol.op, symbol.args
        if op in {"select", "pick"}:
            return self._derive_choice(symbol, depth - _CHOICE) if depth >= _CHOICE else ALL
        if op == "/" and isinstance(args[0], Symbol) and isinstance(args[1], int):
            low, high = self.symbol(args[0], depth)
            return low // args[1], high // args[1]
        if op == "first":  # EXEC speaks of the lanes that are active now, not of the lane that was read
            shared = {each: span for each, span in self._arcs.items() if each.spread != LANE}
            return Spans(shared, self._held)._key(args[0], depth)  # noqa: SLF001
        spans = [self._key(each, depth) for each in args]
        if op == "+":
            return _unless_wrapped(spans[0][0] + spans[1][0], spans[0][1] + spans[1][1])
        if op in {"mul", "mul24"} and (op == "mul" or max(spans[0][1], spans[1][1]) < 1 << 24):
            return _unless_wrapped(spans[0][0] * spans[1][0], spans[0][1] * spans[1][1])
        if op == "mulhi_u":
            return spans[0][0] * spans[1][0] >> 32, spans[0][1] * spans[1][1] >> 32
        if op in {"or", "xor"}:
            return 0, (1 << max(spans[0][1], spans[1][1]).bit_length()) - 1
        if op == "shr" and isinstance(args[1], int):
            return spans[0][0] >> (args[1] & 31), spans[0][1] >> (args[1] & 31)
        if op == "sar" and isinstance(args[1], int):
            low, high = _to_signed(spans[0])
            return _to_unsigned((low >> (args[1] & 31), high >> (args[1] & 31)))
        if op in {"min_u", "max_u"}:
            return _pick(op, spans[:2])
        if op in {"min_i", "max_i"}:
            return _to_unsigned(_pick(op, [_to_signed(each) for each in spans[:2]]))
        spec = opcode_named(op)  # of an instruction that isn't modelled, else of nothing
        if spec.root == "med3" and spec.type in {"u32", "i32"}:
            three = spans[:3]
            return _median(three) if spec.type == "u32" else _to_unsigned(_median([*map(_to_signed, three)]))
        if is_sdwa(op):
            return _derive_sdwa(spec.name, args, spans)
        if spec.words[:1] == ("mbcnt",):
            return _unless_wrapped(spans[1][0], spans[1][1] + 32)
        return ALL

    def _derive_choice(self, symbol: Symbol, depth: int) -> Span:
        # Each value counts only where it is chosen: the chooser may be what bounds it.
        chooser, one, other = parts_of(symbol)
        if isinstance(chooser, Mask):
            found = [*iterate_leaves(chooser, self._arcs)]
            chosen = [(one, arcs) for arcs, part in found if any(part.leaf or ())]
            chosen += [(other, arcs) for arcs, part in found if not part.is_full]
        else:
            refined = [_assume(chooser, self._arcs, holds=holds) for holds in (True, False)]
            chosen = [(each, arcs) for each, arcs in zip((one, other), refined, strict=True) if arcs is not None]
        spans = [Spans(arcs, self._held).value(each, depth) for each, arcs in chosen]
        return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else ALL

    def _key(self, key: Hashable, depth: int) -> Span:
        if isinstance(key, int):
            return key, key
        if isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], Symbol):
            return _scale(self.symbol(key[0], depth), key[1], self._key(key[2], depth))
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], bytes):
            numbers = np.frombuffer(key[1], np.int64)
            return int(numbers.min()), int(numbers.max())
        return ALL


def plain_span(value: Plain) -> Span:
    return (value, value) if isinstance(value, int) else (int(value.min()), int(value.max()))


def _scale(span: Span, scale: int, offset: Span) -> Span:
    """The span of scale * value + offset, reading scale and offset as negative if that keeps it from wrapping."""
    for factor, below in product((scale, scale - M32 - 1), (0, M32 + 1)):
        if below and offset[0] < _TOP:
            continue
        ends = sorted((factor * span[0], factor * span[1]))
        low, high = ends[0] + offset[0] - below, ends[1] + offset[1] - below
        if low >= 0 and high <= M32:
            return low, high
    return ALL


def _unless_wrapped(low: int, high: int) -> Span:
    return (low, high) if high <= M32 else ALL


def _to_signed(span: Span) -> Span:
    if span[1] < _TOP:
        return span
    return (span[0] - M32 - 1, span[1] - M32 - 1) if span[0] >= _TOP else (-_TOP, _TOP - 1)


def _to_unsigned(span: Span) -> Span:
    if span[0] >= 0:
        return span
    return (span[0] + M32 + 1, span[1] + M32 + 1) if span[1] < 0 else ALL


def _pick(op: str, spans: list[Span]) -> Span:
    pick = min if op in {"min_u", "min_i"} else max
    return pick(low for low, _ in spans), pick(high for _, high in spans)


def _median(spans: list[Span]) -> Span:
    return sorted(low for low, _ in spans)[1], sorted(high for _, high in spans)[1]


def _derive_sdwa(op: str, args: tuple[Hashable, ...], spans: list[Span]) -> Span:
    extra = args[-1]
    if not isinstance(extra, tuple) or extra[1]:  # negated operands
        return ALL
    modifiers = {each.partition(":")[0]: each.partition(":")[2] for each in extra[2]}
    chosen = [modifiers[key] for key in ("src0_sel", "src1_sel") if key in modifiers]
    make = _PARTS.get((op, len(chosen)))
    if modifiers.get("dst_sel") != "DWORD" or make is None:
        return ALL
    taken = []
    for part, span in zip(chosen, spans[-1 - len(chosen) : -1], strict=True):  # the target may come before them
        kind, _, place = part.partition("_")
        most = {"BYTE": 0xFF, "WORD": 0xFFFF}.get(kind, M32)
        taken.append(span if span[1] <= most and place in {"", "0"} else (0, most))
    return make(*taken)


_PARTS: dict[tuple[str, int], Callable[..., Span]] = {
    ("v_mov_b32", 1): lambda one: one,
    ("v_add_u32", 2): lambda one, other: _unless_wrapped(one[0] + other[0], one[1] + other[1]),
    ("v_lshlrev_b32", 2): lambda by, a: _unless_wrapped(a[0] << by[0], a[1] << by[1]) if by[1] < _WIDTH else ALL,
    ("v_and_b32", 2): lambda one, other: (0, min(one[1], other[1])),
    ("v_or_b32", 2): lambda one, other: (0, (1 << max(one[1], other[1]).bit_length()) - 1),
}


# Conditions as the author of a kernel would write them.

_INFIX = {"mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr_u": ">>"}
_SIGNS = {"eq": ("==", "!="), "lt_i": ("<", ">="), "lt_u": ("<", ">=")}
_MIRRORED = {"<": ">", ">=": "<="}
_DEEPEST = 4  # operations inside each other that a reader still follows


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """Spells conditions: arguments have the names of the notes, by their offset; `flat` if the block has one axis."""

    names: Mapping[int, str] = field(default_factory=dict)
    flat: bool = False

    def describe(self, condition: Symbol, *, holds: bool, place: str) -> str:
        """What a path decides at an instruction; only its place if there are no words for the condition."""
        found = self._spell(condition, holds=holds)
        return f"a condition {'holds' if holds else 'fails'} at {place}" if found is None else f"{found} at {place}"

    def _spell(self, condition: Symbol, *, holds: bool) -> str | None:
        if condition.op in _SIGNS:
            return self._spell_comparison(condition, _SIGNS[condition.op][not holds])
        mask = condition.args[0] if condition.op == "any" else None
        if not isinstance(mask, Mask) or mask.atom is None or mask.high is None or mask.low is None:
            return None
        lanes = "some lane" if holds else "no lane"
        if mask.atom.op == "left":
            return f"{lanes} goes on in the loop"
        if mask.high.leaf is None or mask.low.leaf is None or any(mask.high.leaf) == any(mask.low.leaf):
            return None
        inner = self._spell(mask.atom, holds=any(mask.high.leaf))
        return None if inner is None else f"{lanes} has {inner}"

    def _spell_comparison(self, condition: Symbol, sign: str) -> str | None:
        first, second = condition.args[:2]
        if condition.op == "eq" and second == 0 and isinstance(first, tuple) and isinstance(first[-1], int):
            first, second = (*first[:-1], 0), -first[-1] & M32  # rows == 5 instead of rows - 5 == 0
        one, other = (self._term(each, signed=condition.op != "lt_u") for each in (first, second))
        if one is None or other is None:
            return None
        if isinstance(condition.args[0], int):  # as people write it
            return f"{other} {_MIRRORED.get(sign, sign)} {one}"
        return f"{one} {sign} {other}"

    def _term(self, key: Hashable, *, signed: bool = False, depth: int = 0) -> str | None:
        if isinstance(key, int):
            return str(key - (1 << 32) if signed and key >= _TOP else key)
        if depth > _DEEPEST or not isinstance(key, tuple):
            return None
        if len(key) == 2 and isinstance(key[1], bytes):  # an array
            return self._lanes(*key)
        base, scale, offset = key
        name = self._symbol(base, depth)
        more = self._term(offset, signed=True, depth=depth + 1) if offset != 0 else ""
        if name is None or more is None:
            return None
        factor = scale - (1 << 32) if scale >= _TOP else scale
        text = {1: name, -1: f"-{name}"}.get(factor, f"{factor} * {name}")
        if not more:
            return text
        return f"{text} - {more[1:]}" if more.startswith("-") else f"{text} + {more}"

    def _symbol(self, symbol: Symbol, depth: int) -> str | None:
        if symbol.op == "argument":
            return self.names.get(symbol.args[0]) if isinstance(symbol.args[0], int) else None
        if symbol.op == "workgroup":
            return f"blockIdx.{symbol.args[0]}"
        if symbol.op in _INFIX:
            parts = [self._term(each, depth=depth + 1) for each in symbol.args if each is not None]
            return None if None in parts else f"({f' {_INFIX[symbol.op]} '.join(map(str, parts))})"
        return None

    def _lanes(self, shape: tuple[int, ...], octets: bytes) -> str | None:
        rows = np.frombuffer(octets, np.int64).reshape(shape)
        first = rows[:, :1]
        if not self.flat or shape[1] == 1 or (rows != first + np.arange(shape[1])).any() or (first % shape[1]).any():
            return None
        return "threadIdx.x"
