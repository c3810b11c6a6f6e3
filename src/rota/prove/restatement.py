"""Comparisons of other unknowns: takes a condition and what its unknowns are now, gives what it says of these."""

from __future__ import annotations

from collections.abc import Callable

from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.symbol import GROUP, Linear, Symbol, Value, plus, times

Stands = Callable[[Symbol, int], Value | None]
"""What an unknown that isn't made of arguments alone, times a number, is now; None if nothing says so."""
_COMPARED = frozenset({"eq", "lt_u", "lt_i"})


def restated(one: Evaluator, condition: Symbol, stands: Stands) -> bool | Linear | None:
    """A comparison of what its unknowns are now: whether it holds, or its flag; None if they don't say it."""
    if condition.op not in _COMPARED:
        return None
    sides = [_restated(one, side, stands) for side in condition.args[:2]]
    if sides[0] is None or sides[1] is None:
        return None
    made = one.compared(condition.op, sides[0], sides[1])
    return made if isinstance(made, bool | Linear) else None


def told(one: Evaluator, condition: Symbol, stands: Stands, known: Decisions) -> bool | None:
    """Whether a comparison holds of what its unknowns are now, if that is known."""
    made = restated(one, condition, stands)
    if not isinstance(made, Linear):
        return made
    decided = known.decided(made.base) if made.base.spread == GROUP else None
    return None if decided is None else decided == (made.scale == 1)


def value_of(key: object) -> Value | None:
    """The value, the same in all lanes but for its unknown, of which a key is given."""
    if isinstance(key, int):
        return key
    if isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], Symbol) and isinstance(key[2], int):
        return Linear(key[0], key[1], key[2])
    return None


def _restated(one: Evaluator, key: object, stands: Stands) -> Value | None:
    value = value_of(key)
    if not isinstance(value, Linear) or value.base.stable:
        return value
    base, scale, symbols = value.base, value.scale, one.symbols
    found = stands(base, scale)
    if found is None and base.op in {"+", "mul"}:
        parts = [_restated(one, each, stands) for each in base.args[:2]]
        if parts[0] is not None and parts[1] is not None:
            made = plus(symbols, parts[0], parts[1]) if base.op == "+" else one.compute("mul", parts[0], parts[1])
            found = times(made, scale)
    return None if found is None else plus(symbols, found, value.offset)
