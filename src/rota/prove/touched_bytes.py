"""Finds the bytes of LDS that operations access.

An address is known, or it is counted from an origin that the whole workgroup shares, or data is free to choose it, or
only its bounds are known.  Two accesses from one origin are as far apart as what is added to it, wherever it is:

- `g + x` and `g + y` are the same byte if `x` and `y` are.
- `(g + x) & m` and `(g + y) & m`, where `m` keeps neighbouring bits, are the same if `x & m` and `y & m` are: both turn
  a ring of places by `g`.  Bytes at a place of the ring stay there if they fit between it and the next one.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from rota.prove.decisions import Arc, ArcLookup, Decisions, Span, Spans, hull, iterate_leaves
from rota.prove.operation import Operation
from rota.prove.state import ANY, Accesses, LdsUse, Leaf, Mask, Masks, OwnPlaces, WaveSet
from rota.prove.symbol import GROUP, LOADED, M32, Lanes, Linear, Symbol, Symbols, Value, key_of

_MOST_RELATIVE = 1 << 18  # bytes from an origin
_MOST_PLACES = 1 << 16  # of a wave, of which each is marked


def _hold_any(symbol: Symbol) -> Arc:
    return 0, min(symbol.bits, M32)


class Outside(NamedTuple):
    """A byte outside of LDS; in doubt if an unknown mask decides whether the lane executes."""

    place: int
    in_doubt: bool


class TouchedBytes:
    """The bytes of LDS that operations access, cached by address and active lanes."""

    def __init__(self, size: int, masks: Masks, symbols: Symbols) -> None:
        self.size, self.masks, self._symbols = size, masks, symbols
        self.accesses = Accesses()
        self._known: dict[Hashable, tuple[LdsUse, Outside | None]] = {}
        self._inside: dict[Hashable, bool] = {}  # addresses that stay inside of LDS on every path
        self._one_wave: dict[Hashable, tuple[int, int | None]] = {}
        self._own: dict[Hashable, bool] = {}

    def find(
        self, operation: Operation, how: str, address: Value, active: Mask, stride: int = 0
    ) -> tuple[LdsUse, Outside | None]:
        """The access by lanes that may be active, `stride` bytes apart, and its first byte outside of LDS if known."""
        unknown = isinstance(address, Linear)  # its symbol may have rows of other waves as well
        rows = self._symbols.row_waves if unknown else ()
        key = (operation.number, operation.extents, key_of(address), active, rows)
        if key in self._known:
            return self._known[key]
        outside: Outside | None = None
        lanes = self.masks.possible(active)
        origin: Hashable = 0
        relative: tuple[int, ...] = ()
        if isinstance(address, Linear):
            octets = self._reach(operation, address, active, stride)
            origin, relative = self._find_relative(operation, address, lanes, stride)
        else:
            waves, size = len(lanes), self.masks.lanes
            places: Lanes = np.broadcast_to(np.asarray(address, np.int64), (waves, size)) + stride * np.arange(size)
            found = [self._find_inside(operation, self._choose(places[wave], lanes[wave])) for wave in range(waves)]
            octets = tuple(used for used, _ in found)
            beyond = next(((wave, place) for wave, (_, place) in enumerate(found) if place is not None), None)
            if beyond is not None:
                wave, place = beyond
                certain = self._find_inside(operation, self._choose(places[wave], self.masks.certain(active)[wave]))[1]
                outside = Outside(place, certain is None and any(not atom.stable for atom in active.atoms))
        exact = active.leaf is not None and not unknown
        use = self.accesses.make(operation.number, how, octets, exact=exact, origin=origin, relative=relative)
        self._known[key] = use, outside
        return use, outside

    def find_own_places(self, operation: Operation, address: Value, active: Mask) -> OwnPlaces | None:
        """The lanes that a mask lets access LDS, if no two of them share a byte."""
        if isinstance(address, Linear) or active.leaf is not None or len(operation.extents) > 1:
            return None
        key = (key_of(address), operation.extents)
        if key not in self._own:
            rows = np.sort(
                np.broadcast_to(np.asarray(address, np.int64), (len(self.masks.possible(active)), self.masks.lanes))
            )
            self._own[key] = bool(np.all(np.diff(rows, axis=1) >= operation.extents[0][1]))
        return OwnPlaces(key, active) if self._own[key] else None

    def _reach(self, operation: Operation, address: Linear, active: Mask, stride: int) -> tuple[int, ...]:
        """The bytes that an unknown address may be at, for each wave."""
        lanes = self.masks.possible(active)
        offsets = np.broadcast_to(np.asarray(address.offset, np.int64), (len(lanes), self.masks.lanes))
        offsets = offsets + stride * np.arange(self.masks.lanes)
        low, high = _bounds(Linear(address.base, 1, 0), active)
        reached = []
        for row, mask in zip(offsets, lanes, strict=True):
            starts = np.unique(self._choose(row, mask))
            if not starts.size:  # no lane of this wave is active
                reached.append(0)
                continue
            if (high - low + 1) * len(starts) <= _MOST_PLACES:
                places = (np.arange(low, high + 1) * address.scale)[:, None] + starts
                reached.append(self._find_inside(operation, places.reshape(-1))[0])
                continue
            extent = _extent(Linear(address.base, address.scale, starts), active, operation)
            first, last = extent if extent is not None else (0, self.size)  # all bytes between the bounds
            reached.append((1 << min(last, self.size)) - (1 << min(first, self.size)))
        return tuple(reached)

    def _find_relative(
        self, operation: Operation, address: Linear, lanes: Leaf, stride: int
    ) -> tuple[Hashable, tuple[int, ...]]:
        """The origin of an unknown address, and the bytes of each wave from there; no origin if it isn't shared."""
        if is_any(address.base):
            return ANY, ()
        found = find_origin(address, operation.extents, self._symbols.row_waves)
        if found is None or (stride and found.turns):
            return None, ()
        places = found.places + stride * np.arange(self.masks.lanes)
        least = int(places.min()) + min(offset for offset, _ in operation.extents)
        most = int(places.max()) + max(offset + size for offset, size in operation.extents)
        if least < 0 or most > _MOST_RELATIVE:
            return None, ()
        rows = np.broadcast_to(places, (len(lanes), self.masks.lanes))
        chosen = (self._choose(row, mask) for row, mask in zip(rows, lanes, strict=True))
        return found.key, tuple(_pack(_list_bytes(operation, each), most) for each in chosen)

    def _choose(self, row: Lanes, mask: int) -> Lanes:
        chosen: Lanes = row[self.masks.lanes_of((mask,))[0]]
        return chosen

    def _find_inside(self, operation: Operation, addresses: Lanes) -> tuple[int, int | None]:
        """The bytes of LDS at these addresses, and the first one outside."""
        key = (operation.extents, addresses.tobytes())
        found = self._one_wave.get(key)
        if found is None:
            places = _list_bytes(operation, addresses) & M32
            inside = places < self.size
            outside = None if inside.all() else int(places[~inside][0])
            found = self._one_wave[key] = _pack(places[inside], self.size), outside
        return found

    def find_bounds_outside(  # noqa: PLR0917
        self, operation: Operation, address: Value, wave_set: WaveSet, active: Mask, known: Decisions, stride: int = 0
    ) -> Span | None:
        """The bounds of an unknown address that may be outside of LDS; None if it stays inside."""
        if not isinstance(address, Linear) or not any(self.masks.possible(active)):
            return None
        key = (operation.number, operation.extents, key_of(address), active)
        if key not in self._inside:
            self._inside[key] = self._is_inside(address, active, operation, stride)
        if self._inside[key]:
            return None

        def look_up_arc(symbol: Symbol) -> Arc:
            if symbol.spread == GROUP:
                return known.arc_of(symbol)
            return functools.reduce(hull, (known.arc_of(symbol, wave) for wave in wave_set.waves))

        inside = self._is_inside(address, active, operation, stride, look_up_arc)
        return None if inside else _bounds(address, active, look_up_arc)

    def _is_inside(
        self, address: Linear, active: Mask, operation: Operation, stride: int, held: ArcLookup = _hold_any
    ) -> bool:
        extent = _extent(address, active, operation, held)
        return extent is not None and extent[1] + stride * (self.masks.lanes - 1) <= self.size


def _extent(address: Linear, active: Mask, operation: Operation, held: ArcLookup = _hold_any) -> Span | None:
    """The first byte and the one after the last; None if a sum may wrap, and so reach any byte.

    The offset of the first byte is part of the sum: what is below 0 without it, wraps and comes back.
    """
    near = min(offset for offset, _ in operation.extents)
    far = max(offset + size for offset, size in operation.extents)
    first, start = _bounds(Linear(address.base, address.scale, address.offset + near & M32), active, held)
    last = start + far - near
    return (first, last) if last <= M32 + 1 else None


def _bounds(address: Linear, active: Mask, held: ArcLookup = _hold_any) -> Span:
    found = [Spans(arcs, held).value(address) for arcs, part in iterate_leaves(active, {}) if any(part.leaf or ())]
    return (min(low for low, _ in found), max(high for _, high in found)) if found else (0, 0)


class SharedOrigin(NamedTuple):
    """What addresses are counted from, and where they are from there; `turns` if it turns a ring."""

    key: Hashable
    places: Lanes
    turns: bool = False


def find_origin(address: Linear, extents: tuple[tuple[int, int], ...], waves: tuple[int, ...]) -> SharedOrigin | None:
    """The origin of an address that these waves compute; None if they don't share one."""
    base, offset = address.base, address.offset
    if base.spread == GROUP:
        return SharedOrigin((base, address.scale), np.atleast_2d(np.asarray(offset, np.int64))) if base.stable else None
    if base.op != "and" or not isinstance(offset, int):
        return None
    inner, mask = base.args[:2]
    if not isinstance(mask, int):
        inner, mask = mask, inner
    turned = _read_key(inner, base.row_waves, waves)
    if not isinstance(mask, int) or turned is None:
        return None
    centre, factor, away = turned
    unit, step = mask & -mask, address.scale
    start = (offset + min(first for first, _ in extents)) // step * step
    last = max(offset + first + size for first, size in extents)
    if not (_is_ring(mask // unit + 1, step) and _no_carry(away, unit) and last - start <= step):
        return None
    places = (away & mask) // unit * step + offset - start
    return SharedOrigin((centre, factor, mask, step, start), places, turns=True)


def _is_ring(places: int, step: int) -> bool:
    return not places & (places - 1) and places * step <= M32 + 1


def _no_carry(away: Lanes, unit: int) -> bool:
    """True if bits below those that the mask keeps never carry into them, whatever is turned by."""
    return not np.any(away % unit)


def is_any(symbol: Symbol) -> bool:
    """True if a load from global memory gives a number, shifted and masked by constants alone.

    Memory that a launch is free to fill can make it any number of its bits.  What LDS holds the kernel itself computes.
    """
    if symbol.bits & (symbol.bits + 1):  # not every number up to the largest
        return False
    if symbol.op == LOADED:
        return True
    if symbol.op not in {"and", "shr"}:
        return False
    value, by = symbol.args[:2]
    if symbol.op == "and" and isinstance(value, int):
        value, by = by, value
    return isinstance(by, int) and isinstance(value, tuple) and isinstance(value[0], Symbol) and is_any(value[0])


def _read_key(key: Hashable, rows: tuple[int, ...], waves: tuple[int, ...]) -> tuple[Symbol, int, Lanes] | None:
    """The value with that key, if it is a symbol of the workgroup plus numbers: these are of the waves that `rows` are.

    Its rows are the same in all waves if it doesn't say whose they are.
    """
    if not isinstance(key, tuple) or len(key) != 3 or not isinstance(key[0], Symbol):
        return None
    centre, factor, away = key
    if centre.spread != GROUP or not centre.stable:
        return None
    if isinstance(away, int):
        return centre, factor, np.array([[away]], np.int64)
    shape, octets = away
    numbers: Lanes = np.frombuffer(octets, np.int64).reshape(shape)
    if not rows:
        return centre, factor, numbers[:1]
    return (centre, factor, numbers[[rows.index(wave) for wave in waves]]) if {*waves} <= {*rows} else None


def _list_bytes(operation: Operation, places: Lanes) -> Lanes:
    """The bytes that an operation accesses from each of these places on."""
    parts = [(places[:, None] + (offset + np.arange(count))).reshape(-1) for offset, count in operation.extents]
    return np.concatenate(parts)


def _pack(places: Lanes, size: int) -> int:
    used = np.zeros(size, np.uint8)
    used[places] = 1
    return int.from_bytes(np.packbits(used, bitorder="little").tobytes(), "little")
