"""Which bytes of LDS an op uses: takes addresses of lanes, gives a number per wave whose bit b stands for byte b.

An address that comes from data is between two bounds: those of what it is made of (`rota.prove.span`), and those that
the comparisons in EXEC leave to the lanes that are active.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable

import numpy as np

from rota.prove.decisions import Arc, Decisions, hull
from rota.prove.lane_mask import Mask, Masks, lanes_of
from rota.prove.operation import Operation
from rota.prove.span import Held, Span, span_of, ways
from rota.prove.squad import Accesses, LdsUse, Squad
from rota.prove.symbol import GROUP, M32, Lanes, Linear, Symbol, Value, key_of

_LANES = 64


class TouchedBytes:
    """Byte masks of one kernel; the same addresses give the same mask at once."""

    def __init__(self, size: int, masks: Masks) -> None:
        self.size, self.masks = size, masks
        self.accesses = Accesses()
        self._known: dict[Hashable, tuple[LdsUse, int | None]] = {}
        self._kept: dict[Hashable, bool] = {}  # addresses that stay inside, whatever a path has decided
        self._one_wave: dict[Hashable, tuple[int, int | None]] = {}

    def everything(self, operation: Operation, how: str, waves: int) -> LdsUse:
        """An access that may be anywhere."""
        return self.accesses.make(operation.number, how, ((1 << self.size) - 1,) * waves, exact=False)

    def of(self, operation: Operation, how: str, address: Value, active: Mask, stride: int = 0) -> LdsUse:
        """The access of an op at an address, of the lanes that may be active; with a stride, of lane after lane."""
        key = (operation.number, key_of(address), active)
        if key not in self._known:
            self._known[key] = self._of(operation, how, address, active, stride)
        return self._known[key][0]

    def stray(self, operation: Operation, address: Value, active: Mask) -> int | None:
        """The first byte outside of LDS of an access that `of` was asked about, if its address is known."""
        return self._known[operation.number, key_of(address), active][1]

    def _of(
        self, operation: Operation, how: str, address: Value, active: Mask, stride: int
    ) -> tuple[LdsUse, int | None]:
        lanes = self.masks.possible(active)
        exact = active.leaf is not None
        if isinstance(address, Linear):
            octets = self._range(address, operation, active, stride)
            return self.accesses.make(operation.number, how, octets, exact=False), None
        waves = len(lanes)
        spread: Lanes = np.broadcast_to(np.asarray(address, np.int64), (waves, _LANES)) + stride * np.arange(_LANES)
        found = [self._wave(operation, spread[wave], lanes[wave]) for wave in range(waves)]
        octets = tuple(used for used, _ in found)
        stray = next((place for _, place in found if place is not None), None)
        return self.accesses.make(operation.number, how, octets, exact=exact), stray

    def _wave(self, operation: Operation, spread: Lanes, lanes: int) -> tuple[int, int | None]:
        key = (operation.spots, spread.tobytes(), lanes)
        found = self._one_wave.get(key)
        if found is not None:
            return found
        chosen, stray = spread[lanes_of((lanes,))[0]], None
        used = np.zeros(self.size, np.uint8)
        for offset, size in operation.spots:
            places = ((chosen[:, None] + (offset + np.arange(size))) & M32).reshape(-1)
            inside = places < self.size
            if not inside.all():
                stray = int(places[~inside][0]) if stray is None else stray
                places = places[inside]
            used[places] = 1
        octets = int.from_bytes(np.packbits(used, bitorder="little").tobytes(), "little")
        self._one_wave[key] = octets, stray
        return octets, stray

    def _range(self, address: Linear, operation: Operation, active: Mask, stride: int) -> tuple[int, ...]:
        """All bytes between the least and the most that an unknown address can be."""
        lanes = self.masks.possible(active)
        found = _spread(_bounds(address, active), operation, stride)
        first, last = found if found is not None else (0, self.size)
        octets = (1 << min(last, self.size)) - (1 << min(first, self.size))
        return tuple(octets if each else 0 for each in lanes)

    def beyond(
        self, operation: Operation, address: Value, squad: Squad, known: Decisions, stride: int = 0
    ) -> Span | None:
        """Where an unknown address may be if it may be outside of LDS; None if it is known to stay inside."""
        active = squad.exec
        if not isinstance(address, Linear) or not any(self.masks.possible(active)):
            return None
        key = (operation.number, key_of(address), active)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = self._inside(_bounds(address, active), operation, stride)
        if kept:
            return None

        def held(symbol: Symbol) -> Arc:
            if symbol.spread == GROUP:
                return known.arc_of(symbol)
            return functools.reduce(hull, (known.arc_of(symbol, wave) for wave in squad.waves))

        bounds = _bounds(address, active, held)
        return None if self._inside(bounds, operation, stride) else bounds

    def _inside(self, bounds: Span, operation: Operation, stride: int) -> bool:
        found = _spread(bounds, operation, stride)
        return found is not None and found[1] <= self.size


def _spread(bounds: Span, operation: Operation, stride: int) -> Span | None:
    """From the first byte to behind the last one; None if a sum may wrap, and so come to any byte."""
    first = bounds[0] + min(offset for offset, _ in operation.spots)
    last = bounds[1] + max(offset + size for offset, size in operation.spots) + stride * (_LANES - 1)
    return (first, last) if first >= 0 and last <= M32 + 1 else None


def _bits(symbol: Symbol) -> Arc:
    return 0, min(symbol.bits, M32)


def _bounds(address: Linear, active: Mask, held: Held = _bits) -> Span:
    """The least and the most that the address is in any lane that is active."""
    found = [span_of(address, arcs, held) for arcs, leaf in ways(active, {}) if any(leaf)]
    return (min(low for low, _ in found), max(high for _, high in found)) if found else (0, 0)
