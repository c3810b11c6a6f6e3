"""Bounds of unknown numbers: takes a value, gives the least and the most that it can be, of what it is made of.

A span is of whole numbers without wrap-around.  A sum that may wrap says nothing, so it has the span of all numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import product

import numpy as np

from rota.prove.decisions import Arc, apart, arc_of, both, others
from rota.prove.lane_mask import ALL64, Leaf, Mask
from rota.prove.symbol import LANE, M32, Linear, Plain, Symbol, Value, parts_of

Span = tuple[int, int]
"""The least and the most."""
Arcs = Mapping[Symbol, Arc]
"""What is known of unknowns in the lanes in question."""
Held = Callable[[Symbol], Arc]
"""What is known of an unknown everywhere."""
ALL = (0, M32)
_TOP = 1 << 31
_WIDTH = 32
_DEPTH, _CHOICE = 12, 5  # how far back it is asked, and how much of that a choice takes, of which there may be many
_MIDDLE = re.compile(r"^v_med3_(?P<sign>[ui])32")
_COUNTED = re.compile(r"^v_mbcnt_(?:lo|hi)_u32_b32")


def span_of(value: Value, arcs: Arcs, held: Held) -> Span:
    """Of a value, in all its lanes and waves."""
    return _Spans(arcs, held).value(value, _DEPTH)


def ways(mask: Mask, arcs: Arcs) -> Iterator[tuple[Arcs, Leaf]]:
    """What the comparisons of a mask say of unknowns, for every way to a leaf, and the leaf."""
    if mask.leaf is not None:
        yield arcs, mask.leaf
    elif mask.atom is not None and mask.high is not None and mask.low is not None:
        for part, holds in ((mask.high, True), (mask.low, False)):
            if (told := _told(mask.atom, arcs, holds=holds)) is not None:
                yield from ways(part, told)


def _told(condition: Symbol, arcs: Arcs, *, holds: bool) -> Arcs | None:
    """What is known if a condition holds or doesn't; None if that can't be."""
    test = arc_of(condition)
    if test is None:
        return arcs
    base, arc = test
    told, before = arc if holds else others(arc), arcs.get(base, ALL)
    return None if apart(before, told) else {**arcs, base: both(before, told)}


class _Spans:
    """Spans under one set of conditions."""

    def __init__(self, arcs: Arcs, held: Held) -> None:
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
            first, length = both(held, self._arcs.get(symbol, ALL))
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
            found = [*ways(chooser, self._arcs)]
            chosen = [(one, arcs) for arcs, leaf in found if any(leaf)]
            chosen += [(other, arcs) for arcs, leaf in found if any(lanes != ALL64 for lanes in leaf)]
        else:
            told = [_told(chooser, self._arcs, holds=holds) for holds in (True, False)]
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
