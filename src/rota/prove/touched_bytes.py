"""Which bytes of LDS an op uses: takes addresses of lanes, gives a number per wave whose bit b stands for byte b."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from rota.prove.lane_mask import Leaf, Mask, Masks, lanes_of
from rota.prove.operation import Operation
from rota.prove.squad import Accesses, LdsUse
from rota.prove.symbol import M32, Lanes, Linear, Plain, Value, highest, key_of, lowest

_LANES = 64


class TouchedBytes:
    """Byte masks of one kernel; the same addresses give the same mask at once."""

    def __init__(self, size: int, masks: Masks) -> None:
        self.size, self.masks = size, masks
        self.accesses = Accesses()
        self.outside: dict[int, int] = {}  # operations with the first address outside
        self._known: dict[Hashable, LdsUse] = {}
        self._one_wave: dict[Hashable, int] = {}

    def everything(self, operation: Operation, how: str, waves: int) -> LdsUse:
        """An access that may be anywhere."""
        return self.accesses.make(operation.number, how, ((1 << self.size) - 1,) * waves, exact=False)

    def of(self, operation: Operation, how: str, address: Value, active: Mask, stride: int = 0) -> LdsUse:
        """The access of an op at an address, of the lanes that may be active; with a stride, of lane after lane."""
        key = (operation.number, key_of(address), active)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._of(operation, how, address, active, stride)
        return found

    def _of(self, operation: Operation, how: str, address: Value, active: Mask, stride: int) -> LdsUse:
        lanes = self.masks.possible(active)
        exact = active.leaf is not None
        if isinstance(address, Linear):
            octets = self._range(address, operation, lanes, stride)
            return self.accesses.make(operation.number, how, octets, exact=False)
        waves = len(lanes)
        spread: Lanes = np.broadcast_to(np.asarray(address, np.int64), (waves, _LANES)) + stride * np.arange(_LANES)
        octets = tuple(self._wave(operation, spread[wave], lanes[wave]) for wave in range(waves))
        return self.accesses.make(operation.number, how, octets, exact=exact)

    def _wave(self, operation: Operation, spread: Lanes, lanes: int) -> int:
        key = (operation.spots, spread.tobytes(), lanes)
        found = self._one_wave.get(key)
        if found is not None and operation.number not in self.outside:
            return found
        chosen = spread[lanes_of((lanes,))[0]]
        used = np.zeros(self.size, np.uint8)
        for offset, size in operation.spots:
            places = ((chosen[:, None] + (offset + np.arange(size))) & M32).reshape(-1)
            inside = places < self.size
            if not inside.all():
                self.outside.setdefault(operation.number, int(places[~inside][0]))
                places = places[inside]
            used[places] = 1
        found = self._one_wave[key] = int.from_bytes(np.packbits(used, bitorder="little").tobytes(), "little")
        return found

    def _range(self, address: Linear, operation: Operation, lanes: Leaf, stride: int) -> tuple[int, ...]:
        """All bytes between the least and the most that an unknown address can be."""
        high = highest(address)
        everything = (1 << self.size) - 1
        if high is None:
            return tuple(everything if each else 0 for each in lanes)
        first = lowest(address) + min(offset for offset, _ in operation.spots)
        last = high + max(offset + size for offset, size in operation.spots) + stride * (_LANES - 1)
        octets = (1 << min(last, self.size)) - (1 << min(first, self.size))
        return tuple(octets if each else 0 for each in lanes)


def short_m0(value: Value) -> Value:
    """M0 as loads to LDS take it where 16 bits name all LDS of the machine."""
    if isinstance(value, Linear):
        most = highest(value)
        return value if most is None or most <= 0xFFFF else Linear(value.base, value.scale, M32)  # anywhere
    masked: Plain = value & 0xFFFF
    return masked
