"""The state of all waves together: takes where they are and what is known, gives it by canonical names, or widened.

At a checkpoint unknowns that are not made of arguments alone get new names, in the order in which registers show them,
and a loop's counter is counted from its own value: what the new names don't say is forgotten, so a state that was met
before covers all that can follow.  Where only counters differ from an earlier visit, they are widened: to an unknown
multiple of their step, so that low bits stay known.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.lane_mask import Mask, atoms_of
from rota.prove.squad import Half, Squad
from rota.prove.symbol import LANE, M32, Linear, Symbol, Symbols, Value, key_of, linear, plus, spread_of, times

Shape = tuple[Hashable, ...]
_AGREED = 2  # barriers that one wave may be behind another and still come to the same decision


@dataclass(slots=True, kw_only=True, eq=False)
class Product:
    """All squads, what the path has decided, the barriers passed, and what earlier checkpoints looked like."""

    squads: list[Squad]
    known: Decisions
    epoch: int = 0
    forks: int = 0
    history: dict[Hashable, tuple[Visit, ...]] = field(default_factory=dict)

    def copy(self) -> Product:
        """For another path."""
        squads = [each.copy() for each in self.squads]
        return Product(
            squads=squads, known=self.known.copy(), epoch=self.epoch, forks=self.forks, history=dict(self.history)
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Visit:
    """What a checkpoint looked like: all but the registers, the registers, and how many decisions were made before."""

    shape: Shape
    registers: tuple[dict[int, Value | Half], ...]
    known: Decisions
    forks: int


def shape_of(product: Product) -> Shape:
    """All of a state but registers and decisions."""
    return tuple(
        (
            squad.waves, squad.at, squad.waiting, squad.ended, squad.exec, tuple(each.same for each in squad.vm),
            tuple(each.same for each in squad.ds), tuple(each.same for each in squad.sm),
            tuple((each.same, seen) for each, seen in squad.flat), frozenset(squad.done),
        )
        for squad in product.squads
    )  # fmt: skip


def key_of_state(product: Product, shape: Shape) -> Hashable:
    """Equal for equal states."""
    registers = tuple(tuple((row, _key(squad.registers[row])) for row in sorted(squad.registers)) for squad in product.squads)
    known = product.known
    decided = frozenset((about, holds, _age(about, known, product.epoch)) for about, holds in known.known.items())
    return shape, registers, decided, frozenset(known.arcs.items())


def _age(about: Hashable, known: Decisions, epoch: int) -> int:
    """How long ago something was decided that will be forgotten."""
    condition = about[0] if isinstance(about, tuple) else about
    return 0 if isinstance(condition, Symbol) and condition.stable else epoch - known.when.get(about, epoch)


def _key(value: Value | Half) -> Hashable:
    return ("half", value.mask, value.which) if isinstance(value, Half) else key_of(value)


class Namer:
    """Gives a state's unknowns their canonical names."""

    def __init__(self, one: Evaluator, needed: Sequence[int], kernarg_row: int) -> None:
        self._one, self._needed, self._kernarg_row = one, needed, kernarg_row
        self._leaves: dict[Symbol, frozenset[Symbol]] = {}
        self._joints: dict[Symbol, Value] = {}

    def rename(self, product: Product) -> None:
        """Changes a state in place: dead registers and decisions go, unknowns get names."""
        names: dict[Symbol, tuple[Symbol, int]] = {}
        every: set[Symbol] = set()
        living: dict[int, set[Symbol]] = {}
        self._joints.clear()
        for squad in product.squads:
            alive: set[Symbol] = set()
            living.update(dict.fromkeys(squad.waves, alive))
            needed = 0 if squad.ended else self._needed[squad.at]
            squad.registers = {
                row: value for row, value in sorted(squad.registers.items()) if needed >> row & 1
            }
            for row, value in squad.registers.items():
                squad.registers[row] = self._renamed(value, names, alive)
            squad.exec = self._mask(squad.exec, names, alive)
            every |= alive
        self._forget(product, names, every, living)

    def _renamed(self, value: Value | Half, names: dict[Symbol, tuple[Symbol, int]], alive: set[Symbol]) -> Value | Half:
        if isinstance(value, Half):
            return Half(self._mask(value.mask, names, alive), value.which)
        if not isinstance(value, Linear):
            return value
        base = value.base
        if base.stable:
            alive |= self.leaves(base)
            return value
        if base.op == "select" or (base.op == "pick" and not _nested(base)):
            joint = self._joints.get(base)
            if joint is None:
                chooser, one, other = base.args[3]  # type: ignore[misc]
                one, other = (self._renamed(each, names, alive) for each in (one, other))
                if base.op == "pick":
                    joint = self._one.merged(self._mask(chooser, names, alive), one, other)
                else:
                    joint = self._one.select(self._named(chooser, 1, 0, names, alive)[0], one, other)
                self._joints[base] = joint
            return plus(self._one.symbols, times(joint, value.scale), value.offset)
        new, shift = self._named(base, value.scale, value.offset, names, alive)
        return linear(new, value.scale, value.offset - value.scale * shift)

    def _named(
        self, base: Symbol, scale: int, offset: object, names: dict[Symbol, tuple[Symbol, int]], alive: set[Symbol]
    ) -> tuple[Symbol, int]:
        if base.stable:
            alive |= self.leaves(base)
            return base, 0
        found = names.get(base)
        if found is None:
            shift = offset // scale if isinstance(offset, int) and base.bits == M32 and scale < 1 << 31 else 0
            new = self._one.symbols.make("name", (len(names),), spread=base.spread, bits=base.bits, depth=99)
            found = names[base] = (new, shift)
        alive.add(found[0])
        return found

    def _mask(self, mask: Mask, names: dict[Symbol, tuple[Symbol, int]], alive: set[Symbol]) -> Mask:
        if mask.leaf is not None:
            return mask
        turned = {atom: self._named(atom, 1, 0, names, alive)[0] for atom in atoms_of(mask)}
        if all(atom is new for atom, new in turned.items()):
            return mask
        return self._one.masks.renamed(mask, turned)

    def leaves(self, symbol: Symbol) -> frozenset[Symbol]:
        """The arguments that a symbol is made of."""
        found = self._leaves.get(symbol)
        if found is None:
            parts = list(_symbols_in(symbol.args))
            found = frozenset({symbol}) if not parts else frozenset().union(*(self.leaves(each) for each in parts))
            self._leaves[symbol] = found
        return found

    def _forget(
        self, product: Product, names: dict[Symbol, tuple[Symbol, int]], every: set[Symbol], living: dict[int, set[Symbol]]
    ) -> None:
        """Keeps the decisions about what can be met again, by the wave that they are about."""
        again = {
            wave: not squad.ended and bool(self._needed[squad.at] >> self._kernarg_row & 1)
            for squad in product.squads
            for wave in squad.waves
        }
        anywhere = any(again.values())
        known, old = Decisions(), product.known
        known.trail = old.trail

        def lives(symbol: Symbol, wave: int | None) -> bool:
            if wave is None:
                return self._lives(symbol, every, again=anywhere)
            return self._lives(symbol, living[wave], again=again[wave])

        for key, holds in old.known.items():
            condition, wave = key if isinstance(key, tuple) else (key, None)
            if not isinstance(condition, Symbol):
                continue
            if condition.stable:
                if lives(condition, wave):
                    known.known[key] = holds
                    known.when[key] = old.when.get(key, 0)
            elif wave is None and len(product.squads) > 1 and product.epoch - old.when.get(key, 0) <= _AGREED:
                named = self._condition(condition, names)
                if named is not None:
                    known.known[named[0]] = holds == named[1]
                    known.when[named[0]] = old.when.get(key, 0)
        for key, arc in old.arcs.items():
            base, wave = key if isinstance(key, tuple) else (key, None)
            if base.stable:
                if lives(base, wave):
                    known.arcs[key] = arc
            elif base in names and (wave is None or names[base][0] in living[wave]):
                new, shift = names[base]
                known.arcs[new if wave is None else (new, wave)] = ((arc[0] + shift) & M32, arc[1])
        product.known = known

    def _condition(self, condition: Symbol, names: dict[Symbol, tuple[Symbol, int]]) -> tuple[Symbol, bool] | None:
        """A comparison by the new names, if they say it, and whether it is the same or the contrary."""
        if condition.op not in {"eq", "lt_u", "lt_i"}:
            return None
        sides = [self._again(side, names) for side in condition.args[:2]]
        if sides[0] is None or sides[1] is None:
            return None
        made = self._one.compared(condition.op, sides[0], sides[1])
        return (made.base, made.scale == 1) if isinstance(made, Linear) else None

    def _again(self, key: object, names: dict[Symbol, tuple[Symbol, int]]) -> Value | None:
        """A value, of which the key is given, by the new names."""
        if isinstance(key, int):
            return key
        if not isinstance(key, tuple) or len(key) != 3 or not isinstance(key[2], int) or not isinstance(key[0], Symbol):
            return None
        base, scale, offset = key
        if base.stable:
            return Linear(base, scale, offset)
        if base in names:
            new, shift = names[base]
            return linear(new, scale, offset - scale * shift)
        joint = self._joints.get(base)
        if joint is not None:
            return plus(self._one.symbols, times(joint, scale), offset)
        if base.op != "+":
            return None
        parts = [self._again(each, names) for each in base.args[:2]]
        if parts[0] is None or parts[1] is None:
            return None
        total = plus(self._one.symbols, parts[0], parts[1])
        return plus(self._one.symbols, times(total, scale), offset)

    def _lives(self, symbol: Symbol, alive: set[Symbol], *, again: bool) -> bool:
        leaves = self.leaves(symbol)
        return not leaves.isdisjoint(alive) or (again and any(each.op == "argument" for each in leaves))


def _nested(base: Symbol) -> bool:
    """Is a value picked from one that was picked before?  Chains of these would grow with every round of a loop."""
    _, one, other = base.args[3]  # type: ignore[misc]
    return any(isinstance(each, Linear) and each.base.op == "pick" for each in (one, other))


def _symbols_in(args: object) -> list[Symbol]:
    found: list[Symbol] = []
    if isinstance(args, Symbol):
        found.append(args)
    elif isinstance(args, tuple):
        for each in args:
            found += _symbols_in(each)
    elif isinstance(args, Mask):
        found += atoms_of(args)
    return found


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

    def widen(self, product: Product, visits: tuple[Visit, ...], shape: Shape) -> bool:
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
            if (not addressed and (shifted or count >= 3)) or (count >= self.patience and away >= 8 and shifted) or count >= self.despair:
                self._apply(product, visit, differing)
                return True
        return False

    def _differing(self, product: Product, visit: Visit) -> list[tuple[int, int, int | None]] | None:
        """The registers that differ, with how far, None if not by a constant; None if masks differ."""
        found: list[tuple[int, int, int | None]] = []
        for number, (squad, before) in enumerate(zip(product.squads, visit.registers, strict=True)):
            if squad.registers.keys() != before.keys():
                return None
            for row, value in squad.registers.items():
                old = before[row]
                if isinstance(value, Half) or isinstance(old, Half):
                    if _key(value) != _key(old):
                        return None
                elif value is not old and key_of(value) != key_of(old):
                    shift = _shift(value, old)
                    if shift is None and isinstance(value, Linear) and not value.base.stable:
                        return None  # more is unknown now than it was then
                    found.append((number, row, shift))
        return found

    def _apply(self, product: Product, visit: Visit, differing: list[tuple[int, int, int | None]]) -> None:
        self.widened += 1
        bases: dict[tuple[Hashable, int], tuple[Symbol, int]] = {}
        for number, row, shift in differing:
            registers = product.squads[number].registers
            value = registers[row]
            if isinstance(value, Half):
                continue
            if shift is None:
                before = visit.registers[number][row]
                spread = LANE if isinstance(before, Half) else max(spread_of(value), spread_of(before))
                registers[row] = self._one.symbols.fresh("wide", spread)
                continue
            unit, origin, offset, spread = shift & -shift, None, value, 0
            if isinstance(value, Linear):
                origin, offset, spread = (value.base, value.scale), value.offset, value.base.spread
                unit = min(unit, value.scale & -value.scale)
            if (origin, shift) not in bases:
                least = offset if isinstance(offset, int) else int(np.min(offset))
                bases[origin, shift] = self._one.symbols.fresh("wide", spread).base, least - least % unit
            base, anchor = bases[origin, shift]
            registers[row] = linear(base, unit, offset - anchor)
        known = Decisions()
        known.trail = product.known.trail
        known.known = {key: holds for key, holds in product.known.known.items() if visit.known.known.get(key) == holds}
        self._carry_over(product, known, bases)
        known.when |= {key: product.known.when[key] for key in known.known if key in product.known.when}
        known.arcs = {base: arc for base, arc in product.known.arcs.items() if visit.known.arcs.get(base) == arc}
        product.known = known


    def _carry_over(
        self, product: Product, known: Decisions, bases: dict[tuple[Hashable, int], tuple[Symbol, int]]
    ) -> None:
        """What was decided lately about a counter's value is told of the widened counter: it holds where it came from."""
        old = product.known
        for about, holds in old.known.items():
            when = old.when.get(about, 0)
            if not isinstance(about, Symbol) or about.op not in {"eq", "lt_u", "lt_i"} or product.epoch - when > _AGREED:
                continue
            for (origin, shift), (base, anchor) in bases.items():
                difference = about.op == "eq"  # of which the second side is 0
                sides = [
                    _counted(self._one.symbols, side, origin, shift, base, anchor, difference=difference)
                    for side in about.args[: 1 if difference else 2]
                ] + [None] * difference
                if all(side is None for side in sides):
                    continue
                values = [_value_of(side) if new is None else new for side, new in zip(about.args[:2], sides, strict=True)]
                if values[0] is None or values[1] is None:
                    continue
                made = self._one.compared(about.op, values[0], values[1])
                if isinstance(made, Linear):
                    known.known[made.base] = holds == (made.scale == 1)
                    known.when[made.base] = when


_NEAR = 16  # steps of a counter within which a constant is taken for one of its values


def _value_of(key: object) -> Value | None:
    if isinstance(key, int):
        return key
    if isinstance(key, tuple) and len(key) == 3 and isinstance(key[2], int):
        return Linear(key[0], key[1], key[2])
    return None


def _counted(
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
            return linear(base, sign * (unit if unit < scale & -scale else scale & -scale), sign * away)
    return None


def _shift(value: Value, old: Value) -> int | None:
    """How much larger a value is, the same in all lanes."""
    if isinstance(value, Linear) != isinstance(old, Linear):
        return None
    if isinstance(value, Linear) and isinstance(old, Linear):
        return _shift(value.offset, old.offset) if value.base is old.base and value.scale == old.scale else None
    away = (np.asarray(value) - np.asarray(old)) & M32
    return int(away.flat[0]) if bool((away == away.flat[0]).all()) else None
