"""One state of two: takes registers and decisions of an earlier state and a later one, gives whether it covers it.

An earlier state covers a later one if its unknowns can be chosen so that it becomes the later one, and nothing that it
has decided is open there.  Where that fails, the registers in question become unknown, as few of them as possible.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from rota.prove.conditions import forgetting
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.lane_mask import Mask, atoms_of
from rota.prove.product_state import ProductState, register_key, symbols_in
from rota.prove.restatement import Stands, restated, told, value_of
from rota.prove.squad import Half
from rota.prove.symbol import LANE, M32, Linear, Symbol, Value, bits_of, key_of, linear, plus, spread_of, times
from rota.prove.widening import Bases, shift_between, stepped

Registers = tuple[dict[int, Value | Half], ...]


class StateMatch:
    """What the unknowns of an earlier state stand for in a later one, and the registers for which that fails."""

    def __init__(self, one: Evaluator, earlier: Registers, known: Decisions, product: ProductState) -> None:
        self._one, self._earlier, self._known, self._product = one, earlier, known, product
        self.bound: dict[Symbol, Value] = {}
        self.failing: list[tuple[int, int]] = []
        for squad in product.squads:
            self._same(squad.exec)
        rest = []
        for number, row, old, value in self.pairs():
            if register_key(old) == register_key(value):
                self._same(old)
            else:
                rest.append((number, row, old, value))
        for number, row, old, value in rest:
            if isinstance(old, Half) or isinstance(value, Half) or not self._stands(old, value):
                self.failing.append((number, row))

    def pairs(self) -> Iterator[tuple[int, int, Value | Half, Value | Half]]:
        """Registers by the number of their squad, with what they hold in both; one that nobody wrote as it started."""
        for number, (squad, before) in enumerate(zip(self._product.squads, self._earlier, strict=True)):
            for row in sorted(squad.registers.keys() | before.keys()):
                started = self._one.started(row)
                yield number, row, before.get(row, started), squad.registers.get(row, started)

    def _same(self, value: Value | Half | Mask) -> None:
        """All unknowns of a value stand for themselves."""
        if isinstance(value, Half):
            value = value.mask
        if isinstance(value, Mask):
            for atom in atoms_of(value):
                self._itself(atom)
        elif isinstance(value, Linear):
            self._itself(value.base)

    def _itself(self, symbol: Symbol) -> None:
        if symbol.stable or symbol in self.bound:
            return
        self.bound[symbol] = Linear(symbol, 1, 0)
        if symbol.op != "name":
            for part in symbols_in(symbol.args):
                self._itself(part)

    def _stands(self, old: Value, value: Value) -> bool:
        if not isinstance(old, Linear) or old.base.stable or old.base.op in {"select", "pick"}:
            return False
        away = plus(self._one.symbols, value, times(old.offset, M32))
        found = _divided(away, old.scale)
        if found is None or spread_of(found) > old.base.spread or bits_of(found) & ~old.base.bits:
            return False
        bound = self.bound.get(old.base)
        if bound is not None:
            return key_of(bound) == key_of(found)
        self.bound[old.base] = found
        return True

    def holds(self, key: Hashable, *, wanted: bool) -> bool:
        """Has the later state decided the same?"""
        condition, wave = key if isinstance(key, tuple) else (key, None)
        if not isinstance(condition, Symbol):
            return False
        if self._means_itself(condition):
            return self._product.known.decided(condition, wave) is wanted
        return wave is None and told(self._one, condition, self._meant, self._product.known) is wanted

    def _meant(self, base: Symbol, scale: int) -> Value | None:
        bound = self.bound.get(base)
        return None if bound is None else times(bound, scale)

    def _means_itself(self, symbol: Symbol) -> bool:
        if symbol.stable:
            return True
        if symbol.op == "name":
            bound = self.bound.get(symbol)
            return isinstance(bound, Linear) and bound.base is symbol and bound.scale == 1 and not np.any(bound.offset)
        return all(self._means_itself(each) for each in symbols_in(symbol.args))

    def within(self, key: Hashable, arc: tuple[int, int]) -> bool:
        """Is what an unknown stands for within that arc?"""
        base, wave = key if isinstance(key, tuple) else (key, None)
        value: Value | None = Linear(base, 1, 0) if base.stable else self.bound.get(base)
        if isinstance(value, int):
            return (value - arc[0]) & M32 <= arc[1]
        if isinstance(value, Linear) and value.scale == 1 and isinstance(value.offset, int):
            first, length = self._product.known.arc_of(value.base, wave)
            return ((first + value.offset - arc[0]) & M32) + length <= arc[1]
        return False

    @property
    def covers(self) -> bool:
        """Is every launch of the later state one of the earlier?"""
        return (
            not self.failing
            and all(self.holds(key, wanted=holds) for key, holds in self._known.known.items())
            and all(self.within(key, arc) for key, arc in self._known.arcs.items())
        )


def covers(one: Evaluator, earlier: Registers, known: Decisions, product: ProductState) -> bool:
    """Is every launch that a state stands for one of the earlier state?"""
    return StateMatch(one, earlier, known, product).covers


def generalise(one: Evaluator, earlier: Registers, known: Decisions, epoch: int, product: ProductState) -> None:
    """Makes a state so general, in place, that it stands for all launches of the earlier one, too."""
    match = StateMatch(one, earlier, known, product)
    made = Decisions()
    made.trail, made.path = product.known.trail, forgetting(product.known.path)
    for key, holds in known.known.items():
        if match.holds(key, wanted=holds):
            made.known[key] = holds
            made.when[key] = min(
                product.known.when.get(key, product.epoch), known.when.get(key, epoch) + product.epoch - epoch
            )
    made.arcs = {key: arc for key, arc in known.arcs.items() if match.within(key, arc)}
    failing = set(match.failing)
    fresh: dict[Hashable, Value | Mask] = {}
    bases: Bases = {}
    for number, row, old, value in list(match.pairs()):
        squad = product.squads[number]
        squad.registers[row] = (
            _joint(one, old, value, len(squad.waves), fresh, bases) if (number, row) in failing else old
        )
    _carry_over(one, known, product.known, made, fresh)
    product.known = made


def _carry_over(
    one: Evaluator, earlier: Decisions, later: Decisions, made: Decisions, fresh: dict[Hashable, Value | Mask]
) -> None:
    """What both have decided about values that have become one unknown is told of that."""
    for pair, joint in fresh.items():
        if not isinstance(joint, Linear) or not isinstance(pair, tuple):
            continue
        old, new = (value_of(each) for each in pair)
        if old is None or new is None:
            continue
        for known, value in ((earlier, old), (later, new)):
            if not isinstance(value, Linear) or value.base.stable:
                continue
            for condition, holds in known.known.items():
                about = restated(one, condition, _becomes(value, joint)) if isinstance(condition, Symbol) else None
                if not isinstance(about, Linear):
                    continue
                wanted = holds == (about.scale == 1)
                if all(
                    told(one, about.base, _becomes(joint, was), state) is wanted
                    for was, state in ((old, earlier), (new, later))
                ):
                    made.known[about.base] = wanted
                    made.when[about.base] = later.when.get(condition, 0)


def _becomes(value: Linear, other: Value) -> Stands:
    """A value without offset is another one now."""

    def stands(base: Symbol, scale: int) -> Value | None:
        return times(other, scale // value.scale) if base is value.base and not scale % value.scale else None

    return stands


def _joint(  # noqa: PLR0917
    one: Evaluator,
    old: Value | Half,
    value: Value | Half,
    waves: int,
    fresh: dict[Hashable, Value | Mask],
    bases: Bases,
) -> Value | Half:
    """A value that is either of two."""
    pair = (register_key(old), register_key(value))
    if isinstance(old, Half) and isinstance(value, Half) and old.which == value.which:
        masks = one.masks
        chosen = fresh.get((old.mask, value.mask))
        if not isinstance(chosen, Mask):
            possible = masks.leaf(masks.possible(masks.combine("or", old.mask, value.mask)))
            certain = masks.leaf(masks.certain(masks.combine("and", old.mask, value.mask)))
            atom = masks.unknown(one.symbols.fresh("joint", LANE).base, waves)
            chosen = masks.combine("or", certain, masks.combine("and", possible, atom))
            fresh[old.mask, value.mask] = chosen
        return Half(chosen, value.which)
    if isinstance(old, Half) or isinstance(value, Half):
        found = fresh.get(pair)
        if found is None or isinstance(found, Mask):
            found = fresh[pair] = one.symbols.fresh("joint", LANE)
        return found
    shift = shift_between(value, old)
    if shift is not None:
        return stepped(one.symbols, value, shift, bases)
    bits = M32 if isinstance(old, Linear) else bits_of(old) | bits_of(value)
    away = _offset(value, old) if bits == M32 else 0  # registers that are as far apart as they were share their unknown
    old, value = (plus(one.symbols, each, -away & M32) for each in (old, value))
    pair = (key_of(old), key_of(value))
    found = fresh.get(pair)
    if found is None or isinstance(found, Mask):
        found = fresh[pair] = one.symbols.fresh("joint", max(spread_of(old), spread_of(value)), bits)
    return plus(one.symbols, found, away)


def _offset(*values: Value) -> int:
    """What is added to the first unknown among values."""
    found = [each.offset for each in values if isinstance(each, Linear)]
    return found[0] if found and isinstance(found[0], int) else 0


def _divided(value: Value, scale: int) -> Value | None:
    """What times a scale is the value, if that is known."""
    if scale == 1:
        return value
    if scale & (scale - 1):
        return None
    if isinstance(value, Linear):
        if value.scale % scale or np.any(np.asarray(value.offset) % scale):
            return None
        return linear(value.base, value.scale // scale, value.offset // scale)
    if np.any(np.asarray(value) % scale):
        return None
    return value // scale
