"""The state of all waves together: takes where they are and what is known, gives it by canonical names, or widened.

At a checkpoint unknowns that are not made of arguments alone get new names, in the order in which registers show them,
and a loop's counter is counted from its own value: what the new names don't say is forgotten, so a state that was met
before covers all that can follow.  Where only counters differ from an earlier visit, they are widened: to an unknown
multiple of their step, so that low bits stay known.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from rota.prove.conditions import Renamed
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.lane_mask import Mask, atoms_of
from rota.prove.restatement import restated
from rota.prove.squad import Half, Squad
from rota.prove.symbol import M32, Linear, Symbol, Value, key_of, linear, parts_of, plus, times

Shape = tuple[Hashable, ...]
AGREED = 4
"""Barriers that one wave may be behind another and still come to the same decision."""


@dataclass(slots=True, kw_only=True, eq=False)
class ProductState:
    """All squads, what the path has decided, the barriers passed, and what earlier checkpoints looked like.

    `forks` counts decisions, `marked` those before the last checkpoint.
    """

    squads: list[Squad]
    known: Decisions
    epoch: int = 0
    forks: int = 0
    marked: int = 0
    resumed: bool = False
    entry: object = None
    history: dict[Hashable, tuple[LoopVisit, ...]] = field(default_factory=dict)

    def copy(self) -> ProductState:
        """For another path."""
        squads = [each.copy() for each in self.squads]
        return ProductState(
            squads=squads,
            known=self.known.copy(),
            epoch=self.epoch,
            forks=self.forks,
            marked=self.marked,
            history=dict(self.history),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoopVisit:
    """What a checkpoint looked like: all but the registers, the registers, and how many decisions were made before."""

    shape: Shape
    registers: tuple[dict[int, Value | Half], ...]
    known: Decisions
    forks: int


def shape_of(product: ProductState) -> Shape:
    """All of a state but registers and decisions; of barriers, who has come to fewer than others."""
    most = max(squad.barriers for squad in product.squads)
    return tuple(
        (
            squad.waves, squad.at, squad.barriers < most,
            squad.waiting, squad.ended, squad.exec, tuple(each.same for each in squad.vm),
            tuple(each.same for each in squad.ds), tuple(each.same for each in squad.sm),
            tuple((each.same, seen) for each, seen in squad.flat), frozenset(squad.done),
        )
        for squad in product.squads
    )  # fmt: skip


def register_key(value: Value | Half) -> Hashable:
    """Equal for equal contents."""
    return ("half", value.mask, value.which) if isinstance(value, Half) else key_of(value)


class Namer:
    """Gives a state's unknowns their canonical names."""

    def __init__(self, one: Evaluator, needed: Sequence[int], for_addresses: Sequence[int], kernarg_row: int) -> None:
        self._one, self._needed, self._for_addresses, self._kernarg_row = one, needed, for_addresses, kernarg_row
        self._leaves: dict[Symbol, frozenset[Symbol]] = {}
        self._joints: dict[Symbol, Value] = {}

    def rename(self, product: ProductState) -> None:
        """Changes a state in place: dead registers and decisions go, unknowns get names."""
        names: dict[Symbol, tuple[Symbol, int]] = {}
        every: set[Symbol] = set()
        living: dict[int, set[Symbol]] = {}
        self._joints.clear()
        alive_of: list[set[Symbol]] = []
        for squad in product.squads:  # what addresses depend on gets its names first
            self._one.symbols.company = squad.waves
            alive: set[Symbol] = set()
            alive_of.append(alive)
            living.update(dict.fromkeys(squad.waves, alive))
            squad.exec = self._mask(squad.exec, names, alive)
        kept = [0 if squad.ended else self._needed[squad.at] for squad in product.squads]
        found: list[dict[int, Value | Half]] = [{} for _ in product.squads]
        for first in (True, False):
            for squad, needed, alive, rows in zip(product.squads, kept, alive_of, found, strict=True):
                self._one.symbols.company = squad.waves
                wanted = needed & self._for_addresses[squad.at] if first else needed & ~self._for_addresses[squad.at]
                for row in sorted(squad.registers):
                    if wanted >> row & 1:
                        rows[row] = self._renamed(squad.registers[row], names, alive)
        for squad, alive, rows in zip(product.squads, alive_of, found, strict=True):
            squad.registers = dict(sorted(rows.items()))
            every |= alive
        self._forget(product, names, every, living)

    def _renamed(
        self, value: Value | Half, names: dict[Symbol, tuple[Symbol, int]], alive: set[Symbol]
    ) -> Value | Half:
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
                chooser, one, other = parts_of(base)
                one, other = (self._plain(each, names, alive) for each in (one, other))
                if base.op == "pick":
                    here = self._one.symbols.company
                    self._one.symbols.company = base.company or here  # its rows are those of whom it was made for
                    joint = self._one.merged(self._mask(chooser, names, alive), one, other)
                    self._one.symbols.company = here
                else:
                    joint = self._one.select(self._named(chooser, 1, 0, names, alive)[0], one, other)
                self._joints[base] = joint
            return plus(self._one.symbols, times(joint, value.scale), value.offset)
        new, shift = self._named(base, value.scale, value.offset, names, alive)
        return linear(new, value.scale, value.offset - value.scale * shift)

    def _plain(self, value: Value, names: dict[Symbol, tuple[Symbol, int]], alive: set[Symbol]) -> Value:
        renamed = self._renamed(value, names, alive)
        return 0 if isinstance(renamed, Half) else renamed

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
            parts = list(symbols_in(symbol.args))
            found = frozenset({symbol}) if not parts else frozenset().union(*(self.leaves(each) for each in parts))
            self._leaves[symbol] = found
        return found

    def _forget(  # noqa: C901
        self,
        product: ProductState,
        names: dict[Symbol, tuple[Symbol, int]],
        every: set[Symbol],
        living: dict[int, set[Symbol]],
    ) -> None:
        """Keeps the decisions about what can be met again, by the wave that they are about."""
        again = {
            wave: not squad.ended and bool(self._needed[squad.at] >> self._kernarg_row & 1)
            for squad in product.squads
            for wave in squad.waves
        }
        anywhere = any(again.values())
        known, old = Decisions(), product.known
        known.trail, known.path = old.trail, old.path
        known.happened(Renamed(names={new: (old_name, shift) for old_name, (new, shift) in names.items()}))

        def lives(symbol: Symbol, wave: int | None) -> bool:
            if wave is None:
                return self._lives(symbol, every, again=anywhere)
            return self._lives(symbol, living.get(wave, set()), again=again.get(wave, False))

        for key, holds in old.known.items():
            condition, wave = key if isinstance(key, tuple) else (key, None)
            if not isinstance(condition, Symbol):
                continue
            if condition.stable:
                if lives(condition, wave):
                    known.known[key] = holds
                    known.when[key] = old.when.get(key, 0)
            elif wave is None and len(product.squads) > 1 and product.epoch - old.when.get(key, 0) <= AGREED:
                named = self._condition(condition, names)
                if named is not None:
                    known.known[named[0]] = holds == named[1]
                    known.when[named[0]] = old.when.get(key, 0)
        for key, arc in old.arcs.items():
            base, wave = key if isinstance(key, tuple) else (key, None)
            if base.stable:
                if lives(base, wave):
                    known.arcs[key] = arc
            elif base in names and (wave is None or names[base][0] in living.get(wave, ())):
                new, shift = names[base]
                known.arcs[new if wave is None else (new, wave)] = ((arc[0] + shift) & M32, arc[1])
        product.known = known

    def _condition(self, condition: Symbol, names: dict[Symbol, tuple[Symbol, int]]) -> tuple[Symbol, bool] | None:
        """A comparison by the new names, if they say it, and whether it is the same or the contrary."""

        def stands(base: Symbol, scale: int) -> Value | None:
            if base in names:
                new, shift = names[base]
                return linear(new, scale, -scale * shift)
            joint = self._joints.get(base)
            return None if joint is None else times(joint, scale)

        made = restated(self._one, condition, stands)
        return (made.base, made.scale == 1) if isinstance(made, Linear) else None

    def _lives(self, symbol: Symbol, alive: set[Symbol], *, again: bool) -> bool:
        leaves = self.leaves(symbol)
        return not leaves.isdisjoint(alive) or (again and any(each.op == "argument" for each in leaves))


def _nested(base: Symbol) -> bool:
    """Is a value picked from one that was picked before?  Chains of these would grow with every round of a loop."""
    _, one, other = parts_of(base)
    return any(isinstance(each, Linear) and each.base.op == "pick" for each in (one, other))


def symbols_in(args: object) -> list[Symbol]:
    """The symbols that a symbol is made of."""
    found: list[Symbol] = []
    if isinstance(args, Symbol):
        found.append(args)
    elif isinstance(args, tuple):
        for each in args:
            found += symbols_in(each)
    elif isinstance(args, Mask):
        found += atoms_of(args)
    return found
