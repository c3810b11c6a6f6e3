"""How loads and stores fill registers: takes the last part of an opcode, gives a `Width`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIZES = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "byte": 1, "short": 2}
_WORDS = ("dword", "dwordx2", "dwordx3", "dwordx4")
_LOADS = frozenset(
    (
        *_WORDS,
        *(sign + name for sign in "us" for name in ("byte", "short")),
        *(name + half for name in ("ubyte", "sbyte", "short") for half in ("_d16", "_d16_hi")),
    )
)
_STORES = frozenset((*_WORDS, "byte", "short", "byte_d16_hi", "short_d16_hi"))
_HIGH = np.uint32(0xFFFF_0000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """Bytes per lane, and which part of a register they fill or come from."""

    size: int
    signed: bool
    half: bool  # the other half of the register stays
    high: bool

    def registers(self, octets: NDArray[np.uint8], old: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Rows by lanes, from lanes by bytes."""
        if self.size >= 4:
            return octets.view(np.uint32).T
        kind = np.dtype(f"<{'i' if self.signed else 'u'}{self.size}")
        value: NDArray[np.uint32] = octets.view(kind)[:, 0].astype(np.int32).view(np.uint32)
        if self.half:
            low, high = (old, value << np.uint32(16)) if self.high else (value, old)
            value = low & ~_HIGH | high & _HIGH
        return value[None]

    def stored(self, registers: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """Lanes by bytes, from rows by lanes; more bytes than are stored if a lane has less than a word."""
        values = np.ascontiguousarray(registers.T)
        return (values >> np.uint32(16) if self.high else values).view(np.uint8)


def width_of(verb: str, text: str) -> Width | None:
    """The width of that name, such as dwordx2 or sbyte_d16_hi, if there is a load or store, the verb, of it."""
    if text not in (_LOADS if verb == "load" else _STORES):
        return None
    name, _, half = text.partition("_")
    plain = name if name in _SIZES else name[1:]
    return Width(
        size=_SIZES[plain],
        signed=name in {"sbyte", "sshort"},
        half=bool(half) and verb == "load",
        high=half == "d16_hi",
    )
