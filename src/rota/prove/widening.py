"""Counters of loops: takes a state and earlier visits of a loop, gives it with unknown multiples instead of numbers.

Only what differs by a constant is widened, to a multiple of that constant plus what it was: low bits stay known, and
counters that count alike stay apart by what they were.  What was decided lately about a counter is told of the widened
one, since another wave may come to the same decision a little later.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from rota.prove.conditions import Widened
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.product_state import AGREED, LoopVisit, ProductState, Shape, register_key
from rota.prove.restatement import value_of
from rota.prove.squad import Half
from rota.prove.symbol import LANE, M32, Linear, Plain, Symbol, Symbols, Value, key_of, linear, plus, spread_of

Bases = dict[tuple[Hashable, int], tuple[Symbol, int]]
"""By origin and step: the unknown that a counter became, and the number that it is counted from."""


class Widener:
    """Widens the counters of loops."""

    patience = 10
    """Visits after which a counter that addresses depend on is widened, keeping its low bits."""
    despair = 40
    """Visits after which whatever differs is taken for unknown."""
    concrete = 600
    """Visits of a loop whose end was never in doubt."""

    def __init__(self, one: Evaluator, for_addresses: Sequence[int]) -> None:
        self._one, self._for_addresses = one, for_addresses
        self.widened = 0

    def widen(self, product: ProductState, visits: tuple[LoopVisit, ...], shape: Shape) -> bool:
        """Widens the state in place against an earlier visit; says whether it did."""
        count = len(visits)
        if not count or (visits[-1].forks == product.forks and count < self.concrete):
            return False
        for away, visit in enumerate(reversed(visits[-9:]), 1):
            if visit.shape != shape:
                continue
            differing = self._differing(product, visit)
            if differing is None:
                continue
            if not differing and count < 4:  # what was decided may yet be the same next time
                continue
            addressed = any(
                self._for_addresses[product.squads[number].at] >> row & 1 for number, row, shift in differing
            )
            shifted = all(shift is not None for _, _, shift in differing)
            if (
                (not addressed and (shifted or count >= 3))
                or (count >= self.patience and away >= 8 and shifted)
                or count >= self.despair
            ):
                self._apply(product, visit, differing)
                return True
        return False

    def _differing(self, product: ProductState, visit: LoopVisit) -> list[tuple[int, int, int | None]] | None:
        """The registers that differ, with how far, None if not by a constant; None if masks differ."""
        found: list[tuple[int, int, int | None]] = []
        for number, (squad, before) in enumerate(zip(product.squads, visit.registers, strict=True)):
            if squad.registers.keys() != before.keys():
                return None
            for row, value in squad.registers.items():
                old = before[row]
                if isinstance(value, Half) or isinstance(old, Half):
                    if register_key(value) != register_key(old):
                        return None
                elif value is not old and key_of(value) != key_of(old):
                    shift = shift_between(value, old)
                    if shift is None and isinstance(value, Linear) and not value.base.stable:
                        return None  # more is unknown now than it was then
                    found.append((number, row, shift))
        return found

    def _apply(self, product: ProductState, visit: LoopVisit, differing: list[tuple[int, int, int | None]]) -> None:
        self.widened += 1
        bases: Bases = {}
        fresh: dict[Hashable, Value] = {}  # registers that were equal then and are equal now stay equal
        for number, row, shift in differing:
            registers = product.squads[number].registers
            value = registers[row]
            if isinstance(value, Half):
                continue
            if shift is None:
                before = visit.registers[number][row]
                spread = LANE if isinstance(before, Half) else max(spread_of(value), spread_of(before))
                alike = (register_key(value), register_key(before), product.squads[number].waves if spread else ())
                if alike not in fresh:
                    fresh[alike] = self._one.symbols.fresh("wide", spread)
                registers[row] = fresh[alike]
                continue
            registers[row] = stepped(self._one.symbols, value, shift, bases)
        known = Decisions()
        known.trail, known.path = product.known.trail, product.known.path
        known.happened(_event(bases))
        known.known = {key: holds for key, holds in product.known.known.items() if visit.known.known.get(key) == holds}
        self._carry_over(product, known, bases)
        known.when |= {key: product.known.when[key] for key in known.known if key in product.known.when}
        known.arcs = {base: arc for base, arc in product.known.arcs.items() if visit.known.arcs.get(base) == arc}
        product.known = known

    def _carry_over(self, product: ProductState, known: Decisions, bases: Bases) -> None:
        """What was decided lately about a counter's value is told of the widened one: it holds where it came from."""
        old = product.known
        for about, holds in old.known.items():
            when = old.when.get(about, 0)
            if not isinstance(about, Symbol) or about.op not in {"eq", "lt_u", "lt_i"} or product.epoch - when > AGREED:
                continue
            for (origin, shift), (base, anchor) in bases.items():
                difference = about.op == "eq"  # of which the second side is 0
                sides = [
                    _counted(self._one.symbols, side, origin, shift, base, anchor, difference=difference)
                    for side in about.args[: 1 if difference else 2]
                ] + [None] * difference
                if all(side is None for side in sides):
                    continue
                values = [
                    value_of(side) if new is None else new for side, new in zip(about.args[:2], sides, strict=True)
                ]
                if values[0] is None or values[1] is None:
                    continue
                made = self._one.compared(about.op, values[0], values[1])
                if isinstance(made, Linear):
                    known.known[made.base] = holds == (made.scale == 1)
                    known.when[made.base] = when


def _event(bases: Bases) -> Widened:
    counters: dict[Symbol, tuple[int, Symbol | None, int, int]] = {}
    for (origin, shift), (base, anchor) in bases.items():
        unit, old, scale = shift & -shift, None, 0
        if isinstance(origin, tuple):
            old, scale = origin
            unit = min(unit, scale & -scale)
        counters[base] = (unit, old, scale, anchor)
    return Widened(counters=counters)


_NEAR = 16  # steps of a counter within which a constant is taken for one of its values


def _counted(  # noqa: PLR0917
    symbols: Symbols, key: object, origin: Hashable, shift: int, base: Symbol, anchor: int, *, difference: bool
) -> Value | None:
    """A value that a comparison names, by the widened counter it came from; None if it isn't one of its values."""
    unit = shift & -shift
    step = min(shift, -shift & M32)

    def near(number: int) -> int | None:
        away = (number - anchor) & M32
        return away if min(away, -away & M32) <= _NEAR * step else None

    if isinstance(key, int):
        away = near(key) if origin is None else None
        return None if away is None else linear(base, unit, away)
    if not isinstance(key, tuple) or len(key) != 3 or not isinstance(key[2], int):
        return None
    symbol, scale, offset = key
    for sign in (1, -1):
        away = near(sign * offset & M32)
        if away is None:
            continue
        if origin is None and difference:  # of the counter and an argument
            return plus(symbols, Linear(symbol, scale, 0), linear(base, sign * unit, sign * away))
        if origin == (symbol, sign * scale & M32):
            return linear(base, sign * (min(scale & -scale, unit)), sign * away)
    return None


def shift_between(value: Value, old: Value) -> int | None:
    """How much larger a value is, the same in all lanes."""
    if isinstance(value, Linear) != isinstance(old, Linear):
        return None
    if isinstance(value, Linear) and isinstance(old, Linear):
        return shift_between(value.offset, old.offset) if value.base is old.base and value.scale == old.scale else None
    away = (np.asarray(value) - np.asarray(old)) & M32
    return int(away.flat[0]) if bool((away == away.flat[0]).all()) else None


def stepped(symbols: Symbols, value: Value, shift: int, bases: Bases) -> Value:
    """What a value becomes that differs from an earlier one by a constant: an unknown multiple of it, plus what it was.

    Values of one origin and step share their unknown, which `bases` keeps with the number that it is counted from.
    """
    unit, spread = shift & -shift, 0
    origin: Hashable = None
    if isinstance(value, Linear):
        origin, spread = (value.base, value.scale), value.base.spread
        offset: Plain = value.offset
        unit = min(unit, value.scale & -value.scale)
    else:
        offset = value
    if (origin, shift) not in bases:
        least = offset if isinstance(offset, int) else int(np.min(offset))
        bases[origin, shift] = symbols.fresh("wide", spread).base, least - least % unit
    base, anchor = bases[origin, shift]
    return linear(base, unit, offset - anchor)
