"""What an unknown is in one wave: takes a symbol that waves don't share, gives it by what that wave has of its parts.

A wave's number, or'ed to an argument and compared with 0, is known to be false in all waves but the first; there it is
a question about the argument, which the whole workgroup shares.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from rota.prove.arithmetic import COMPARISONS
from rota.prove.evaluation import Evaluator
from rota.prove.lane_mask import Mask
from rota.prove.symbol import GROUP, Linear, Symbol, Value, linear, plus, times

_FOLLOWED = frozenset(
    {
        "+",
        "add",
        "sub",
        "mul",
        "shl",
        "shr",
        "sar",
        "and",
        "or",
        "xor",
        "andn2",
        "not",
        "min_u",
        "max_u",
        "min_i",
        "max_i",
    }
)


class OneWave:
    """Values of single waves; arrays with a row for each wave of the workgroup say what they are."""

    def __init__(self, one: Evaluator, waves: int) -> None:
        self._one, self._waves = one, waves
        self._known: dict[tuple[Symbol, int], Value] = {}

    def symbol(self, symbol: Symbol, wave: int) -> Value:
        """What a symbol is in that wave; itself if nothing else is known."""
        if symbol.spread == GROUP:
            return Linear(symbol, 1, 0)
        found = self._known.get((symbol, wave))
        if found is None:
            made = self._made(symbol, wave)
            found = self._known[symbol, wave] = Linear(symbol, 1, 0) if made is None else made
        return found

    def _made(self, symbol: Symbol, wave: int) -> Value | None:  # noqa: PLR0911
        op, args, one = symbol.op, symbol.args, self._one
        if op == "any" and isinstance(args[0], Mask):
            possible = one.masks.possible(args[0])
            if len(possible) != self._waves:
                return None
            return 0 if not possible[wave] else 1 if one.masks.certain(args[0])[wave] else None
        if op == "/" and isinstance(args[0], Symbol) and isinstance(args[1], int):
            return _divided(self.symbol(args[0], wave), args[1])
        if (op not in _FOLLOWED and op not in COMPARISONS) or args[-1] is not None:
            return None
        values = [self._value(each, wave) for each in args[:-1]]
        told = [each for each in values if each is not None]
        if len(told) < len(values):
            return None
        if op == "+":
            return plus(one.symbols, told[0], told[1])
        if op in COMPARISONS:
            return one.flag_of(one.compared(op, told[0], told[1]))
        result = one.compute(op, *told)
        if op == "and":  # such a symbol is counted in units of its mask
            mask = next((each for each in args[:2] if isinstance(each, int)), 1)
            return _divided(result, mask & -mask)
        return result

    def _value(self, key: Hashable, wave: int) -> Value | None:
        """The value of which the key is given."""
        if isinstance(key, int):
            return key
        if not isinstance(key, tuple):
            return None
        if len(key) == 3 and isinstance(key[0], Symbol):
            offset = self._value(key[2], wave)
            if offset is None or isinstance(offset, Linear):
                return None
            return plus(self._one.symbols, times(self.symbol(key[0], wave), key[1]), offset)
        shape, octets = key
        if shape != (self._waves, 1):
            return None
        return int(np.frombuffer(octets, np.int64)[wave])


def _divided(value: Value, by: int) -> Value | None:
    if by == 1:
        return value
    if isinstance(value, int):
        return value // by
    if isinstance(value, Linear) and isinstance(value.offset, int) and not value.scale % by and not value.offset % by:
        return linear(value.base, value.scale // by, value.offset // by)
    return None
