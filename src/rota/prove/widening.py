"""The states of a proof, their canonical names, and how loops are widened.

Widening (Cousot and Cousot, 1977) replaces a loop counter by an unknown multiple of its step plus its value: low bits
stay known, and counters with the same step keep their distance.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from rota.prove.decisions import Arc, Decisions, Key as DecisionKey, Renamed, Widened
from rota.prove.evaluation import Evaluator
from rota.prove.named_barriers import NamedBarriers
from rota.prove.operation import rows_of
from rota.prove.rings import count_rounds, find_distance, find_ring, ring_of
from rota.prove.state import Half, LdsUse, Leaf, Mask, WaveSet, atoms_of
from rota.prove.symbol import (
    GROUP,
    LANE,
    M32,
    Linear,
    Plain,
    Symbol,
    Symbols,
    Value,
    key_of,
    linear,
    parts_of,
    plus,
    spread_of,
    times,
)

# Comparisons, expressed in the unknowns of another state.

Substitution = Callable[[Symbol, int], Value | None]
"""The value of an unstable symbol times a number, in another state; None if there is none."""
COMPARISONS = frozenset({"eq", "lt_u", "lt_i"})


def restate(evaluator: Evaluator, condition: Symbol, substitute: Substitution) -> bool | Linear | None:
    """A comparison with its unknowns substituted: whether it holds, or its flag; None if it can't be expressed."""
    if condition.op not in COMPARISONS:
        return None
    sides = [_restate_value(evaluator, side, substitute) for side in condition.args[:2]]
    if sides[0] is None or sides[1] is None:
        return None
    made = evaluator.compare_basic(condition.op, sides[0], sides[1])
    return made if isinstance(made, bool | Linear) else None


def holds_now(evaluator: Evaluator, condition: Symbol, substitute: Substitution, known: Decisions) -> bool | None:
    """Whether a comparison holds with its unknowns substituted; None if that isn't known."""
    made = restate(evaluator, condition, substitute)
    if not isinstance(made, Linear):
        return made
    decided = known.lookup(made.base) if made.base.spread == GROUP else None
    return None if decided is None else decided == (made.scale == 1)


def value_of(key: object) -> Value | None:
    """The value with that key; None if it is an array, or its offset is."""
    if isinstance(key, int):
        return key
    if isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], Symbol) and isinstance(key[2], int):
        return Linear(key[0], key[1], key[2])
    return None


def _restate_value(evaluator: Evaluator, key: object, substitute: Substitution) -> Value | None:
    value = value_of(key)
    if not isinstance(value, Linear) or value.base.stable:
        return value
    base, scale, symbols = value.base, value.scale, evaluator.symbols
    found = substitute(base, scale)
    if found is None and base.op in {"+", "mul"}:
        parts = [_restate_value(evaluator, each, substitute) for each in base.args[:2]]
        if parts[0] is not None and parts[1] is not None:
            made = plus(symbols, parts[0], parts[1]) if base.op == "+" else evaluator.compute("mul", parts[0], parts[1])
            found = times(made, scale)
    return None if found is None else plus(symbols, found, value.offset)


# States.


class SetShape(NamedTuple):
    """All of a wave set but its registers: `lanes` are those that execute, `queues` the memory ops in flight."""

    waves: tuple[int, ...]
    at: int
    behind: bool  # others have passed more barriers
    waiting: bool
    ended: bool
    signalled: bool
    named: NamedBarriers
    lanes: Mask
    queues: tuple[tuple[Hashable, ...], ...]


Shape = tuple[SetShape, ...]
Done = tuple[frozenset[tuple[LdsUse, Hashable]], ...]
"""The accesses of each wave set that a wait has covered, those that are late, and when they were issued."""
AGREED = 4  # barriers that one wave may pass after another and still make the same decision


@dataclass(slots=True, kw_only=True, eq=False)
class ProductState:
    """All waves of a workgroup on one path: wave sets, decisions, barriers passed (`epoch`), and earlier visits.

    `forks` counts decisions, `marked` those before the last checkpoint.  `resumed` is set while the path goes on from a
    checkpoint, `entry` is its entry among the seen states.
    """

    wave_sets: list[WaveSet]
    known: Decisions
    epoch: int = 0
    forks: int = 0
    marked: int = 0
    resumed: bool = False
    entry: object = None
    history: dict[Hashable, tuple[LoopVisit, ...]] = field(default_factory=dict)

    def copy(self) -> ProductState:
        wave_sets = [each.copy() for each in self.wave_sets]
        known, history = self.known.copy(), dict(self.history)
        return replace(self, wave_sets=wave_sets, known=known, history=history, resumed=False, entry=None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoopVisit:
    shape: tuple[Shape, Done]
    registers: tuple[dict[int, Value | Half], ...]
    known: Decisions
    forks: int


def shape_of(product: ProductState) -> tuple[Shape, Done]:
    """All of a state but registers and decisions; of barrier counts only which are smaller than others."""
    most = max(wave_set.barriers for wave_set in product.wave_sets)
    epoch = product.epoch
    done = tuple(
        frozenset((access, flight.issued_since(epoch)) for access, flight in each.items())
        for wave_set in product.wave_sets
        for each in (wave_set.covered, wave_set.late)
    )
    shape = tuple(
        SetShape(
            wave_set.waves,
            wave_set.at,
            wave_set.barriers < most,
            wave_set.waiting,
            wave_set.ended,
            wave_set.signalled,
            wave_set.named,
            wave_set.exec,
            tuple(
                tuple((each.identity, each.issued_since(epoch)) for each in queue) for queue in wave_set.queues.values()
            ),
        )
        for wave_set in product.wave_sets
    )
    return shape, done


def outline_of(shape: tuple[Shape, Done]) -> Hashable:
    """A shape without the lanes that execute; only whether the workgroup shares what decides them."""
    return tuple((*each[:7], each.lanes.shared, each.queues) for each in shape[0]), shape[1]


def register_key(value: Value | Half) -> Hashable:
    return ("half", value.mask, value.which) if isinstance(value, Half) else key_of(value)


@lru_cache(4096)
def row_set(rows: int) -> frozenset[int]:
    return frozenset(rows_of(rows))


# Canonical names.

Names = dict[Symbol, tuple[Symbol, int]]  # by old unknown: its new name and a shift, with old = name - shift


class Namer:
    """Gives the unknowns of a state canonical names, so that equal states look equal."""

    def __init__(
        self, evaluator: Evaluator, needed: Sequence[int], for_addresses: Sequence[int], kernarg_row: int
    ) -> None:
        self._evaluator, self._needed = evaluator, needed
        self._for_addresses, self._kernarg_row = for_addresses, kernarg_row
        self._arguments: dict[Symbol, frozenset[Symbol]] = {}
        self._joints: dict[Symbol, Value] = {}
        self._rounds: dict[Symbol, int] = {}

    def rename(self, product: ProductState) -> None:
        """Rename in place: drop dead registers and decisions, and number unknowns in the order of registers."""
        names: Names = {}
        self._rounds = self._count_rounds(product) if self._evaluator.symbols.has_rings else {}
        every: set[Symbol] = set()
        live: dict[int, set[Symbol]] = {}
        self._joints.clear()
        live_of: list[set[Symbol]] = []
        for wave_set in product.wave_sets:
            self._evaluator.symbols.row_waves = wave_set.waves
            alive: set[Symbol] = set()
            live_of.append(alive)
            live.update(dict.fromkeys(wave_set.waves, alive))
            wave_set.exec = self._rename_mask(wave_set.exec, names, alive)
        kept = [0 if wave_set.ended else self._needed[wave_set.at] for wave_set in product.wave_sets]
        found: list[dict[int, Value | Half]] = [{} for _ in product.wave_sets]
        for first in (True, False):  # what addresses depend on gets its names first
            for wave_set, needed, alive, rows in zip(product.wave_sets, kept, live_of, found, strict=True):
                self._evaluator.symbols.row_waves = wave_set.waves
                addresses = self._for_addresses[wave_set.at]
                wanted = row_set(needed & addresses if first else needed & ~addresses)
                for row in sorted(wanted.intersection(wave_set.registers)):
                    rows[row] = self._rename_value(wave_set.registers[row], names, alive)
        for wave_set, alive, rows in zip(product.wave_sets, live_of, found, strict=True):
            wave_set.registers = dict(sorted(rows.items()))
            every |= alive
        self._rename_decisions(product, names, every, live)

    def _count_rounds(self, product: ProductState) -> dict[Symbol, int]:
        """By how much the unknowns that count rounds of a ring have grown."""
        offsets: dict[Symbol, list[int]] = {}
        for wave_set in product.wave_sets:
            needed = 0 if wave_set.ended else self._needed[wave_set.at]
            for row, value in wave_set.registers.items():
                if needed >> row & 1 and isinstance(value, Linear) and isinstance(value.offset, int):
                    ring = ring_of(value.base)
                    if ring is not None and value.scale == ring.unit:
                        offsets.setdefault(value.base, []).append(value.offset)
        return {
            base: count_rounds(self._evaluator.symbols, base, ring, found, product.known)
            for base, found in offsets.items()
            if (ring := ring_of(base)) is not None
        }

    def _rename_value(self, value: Value | Half, names: Names, alive: set[Symbol]) -> Value | Half:
        if isinstance(value, Half):
            return Half(self._rename_mask(value.mask, names, alive), value.which)
        if not isinstance(value, Linear):
            return value
        base = value.base
        if base.stable:
            alive |= self._arguments_of(base)
            return value
        # Not a value that is picked from a picked one: such chains would grow with every iteration of a loop.
        if base.op == "select" or (
            base.op == "pick"
            and not any(isinstance(each, Linear) and each.base.op == "pick" for each in parts_of(base)[1:])
        ):
            joint = self._joints.get(base)
            if joint is None:
                chooser, *parts = parts_of(base)
                one, other = (self._plain(each, names, alive) for each in parts)
                if base.op == "pick":
                    here = self._evaluator.symbols.row_waves
                    self._evaluator.symbols.row_waves = base.row_waves or here  # the waves that it was made for
                    joint = self._evaluator.merge(self._rename_mask(chooser, names, alive), one, other)
                    self._evaluator.symbols.row_waves = here
                else:
                    joint = self._evaluator.select(self._name(chooser, 1, 0, names, alive)[0], one, other)
                self._joints[base] = joint
            return plus(self._evaluator.symbols, times(joint, value.scale), value.offset)
        # A comparison that the workgroup shares stays one: another wave may make the same later, and decide alike.
        named = self._rename_condition(base, names) if base.spread == GROUP else None
        if named is not None:
            condition, same = named
            alive |= self._arguments_of(condition)
            flag = linear(condition, 1 if same else -1, 0 if same else 1)
            return plus(self._evaluator.symbols, times(flag, value.scale), value.offset)
        new, shift = self._name(base, value.scale, value.offset, names, alive)
        return linear(new, value.scale, value.offset - value.scale * shift)

    def _plain(self, value: Value, names: Names, alive: set[Symbol]) -> Value:
        renamed = self._rename_value(value, names, alive)
        return 0 if isinstance(renamed, Half) else renamed

    def _name(self, base: Symbol, scale: int, offset: object, names: Names, alive: set[Symbol]) -> tuple[Symbol, int]:
        if base.stable:
            alive |= self._arguments_of(base)
            return base, 0
        found = names.get(base)
        if found is None:
            shift = offset // scale if isinstance(offset, int) and base.bits == M32 and scale < 1 << 31 else 0
            bits, ring = base.bits, ring_of(base)
            if ring is not None:
                shift = self._rounds.get(base, 0)
            if base.op == "pick":  # picked again and again from a sum, it may get a bit more each time
                bits = next(each for each in (0xFF, 0xFFFF, M32) if bits <= each) & -(bits & -bits)
            args = (len(names),) if ring is None else (len(names), ring)
            new = self._evaluator.symbols.make("name", args, spread=base.spread, bits=bits, depth=99)
            found = names[base] = (new, shift)
        alive.add(found[0])
        return found

    def _rename_mask(self, mask: Mask, names: Names, alive: set[Symbol]) -> Mask:
        if mask.leaf is not None:
            return mask
        renamed = {atom: self._name(atom, 1, 0, names, alive)[0] for atom in atoms_of(mask)}
        masks, waves = self._evaluator.masks, len(self._evaluator.masks.possible(mask))
        changed = {atom: masks.unknown(new, waves) for atom, new in renamed.items() if new is not atom}
        return masks.substitute(mask, changed) if changed else mask

    def _arguments_of(self, symbol: Symbol) -> frozenset[Symbol]:
        found = self._arguments.get(symbol)
        if found is None:
            parts = [self._arguments_of(each) for each in symbols_in(symbol.args)]
            found = self._arguments[symbol] = frozenset[Symbol]().union(*parts) if parts else frozenset({symbol})
        return found

    def _rename_decisions(  # noqa: C901
        self, product: ProductState, names: Names, every: set[Symbol], live: dict[int, set[Symbol]]
    ) -> None:
        """Keep the decisions about symbols that can still appear, by the wave that they are about."""
        reloads = {  # whether a wave may still load arguments
            wave: not wave_set.ended and bool(self._needed[wave_set.at] >> self._kernarg_row & 1)
            for wave_set in product.wave_sets
            for wave in wave_set.waves
        }
        any_reloads = any(reloads.values())
        old = product.known
        known = Decisions(old.trail, old.path)
        known.record(Renamed(names={new: (old_name, shift) for old_name, (new, shift) in names.items()}))

        def is_live(symbol: Symbol, wave: int | None) -> bool:
            if wave is None:
                return self._is_live(symbol, every, reloads=any_reloads)
            return self._is_live(symbol, live.get(wave, set()), reloads=reloads.get(wave, False))

        for key, holds in old.known.items():
            condition, wave = key
            if condition.stable:
                if is_live(condition, wave):
                    known.known[key] = holds
                    known.epochs[key] = old.epochs.get(key, 0)
            elif wave is None and len(product.wave_sets) > 1 and product.epoch - old.epochs.get(key, 0) <= AGREED:
                named = self._rename_condition(condition, names)
                if named is not None:
                    known.known[named[0], None] = holds == named[1]
                    known.epochs[named[0], None] = old.epochs.get(key, 0)
        for key, arc in old.arcs.items():
            base, wave = key
            if base.stable:
                if is_live(base, wave):
                    known.arcs[key] = arc
            elif base in names and (wave is None or names[base][0] in live.get(wave, ())):
                new, shift = names[base]
                known.arcs[new, wave] = ((arc[0] + shift) & M32, arc[1])
        for base, (new, shift) in names.items() if self._rounds else ():
            if (ring := ring_of(base)) is not None:
                before, now = (find_distance(self._evaluator.symbols, each, ring) for each in (base, new))
                if (found := old.arcs.get((before, None))) is not None:
                    known.arcs[now, None] = ((found[0] + ring.unit * shift) & M32, found[1])
        product.known = known

    def _rename_condition(self, condition: Symbol, names: Names) -> tuple[Symbol, bool] | None:
        """A comparison in the new names, and whether it is the same or the opposite; None if it can't be expressed."""

        def substitute(base: Symbol, scale: int) -> Value | None:
            if base in names:
                new, shift = names[base]
                return linear(new, scale, -scale * shift)
            joint = self._joints.get(base)
            return None if joint is None else times(joint, scale)

        made = restate(self._evaluator, condition, substitute)
        return (made.base, made.scale == 1) if isinstance(made, Linear) else None

    def _is_live(self, symbol: Symbol, alive: set[Symbol], *, reloads: bool) -> bool:
        arguments = self._arguments_of(symbol)
        return not arguments.isdisjoint(alive) or (reloads and any(each.op == "argument" for each in arguments))


def symbols_in(args: object) -> list[Symbol]:
    if isinstance(args, Symbol):
        return [args]
    if isinstance(args, tuple):
        return [symbol for each in args for symbol in symbols_in(each)]
    return atoms_of(args) if isinstance(args, Mask) else []


class LaneAddresses(NamedTuple):
    """The address in LDS that each lane gives, without the instruction's offset.

    With it the lanes of each wave that may be active, and those that surely are.
    """

    address: Value
    possible: Leaf
    certain: Leaf


class Recorder(Protocol):
    def record_checkpoint(self, product: ProductState, head: tuple[Hashable, ...], key: Hashable) -> None:
        """Record a checkpoint and the key of its state; at a loop head, `head` is the first wave that reached it."""
        ...

    def record_access(
        self, product: ProductState, wave_set: WaveSet, access: LdsUse, lanes: LaneAddresses | None = None
    ) -> None:
        """Record an LDS access that a wave set issues, and its lanes' addresses unless one job copies a tile."""
        ...


# Widening.

Bases = dict[tuple[Hashable, int], tuple[Symbol, int, int]]
"""By origin and step of a counter: the unknown that it became, the number that it counts from, and in what units."""


class Widener:
    visits_to_widen = 10
    """Visits of a loop head after which a counter that addresses depend on is widened, keeping its low bits."""
    visits_to_forget = 40  # visits after which whatever differs becomes unknown
    visits_if_decided = 600  # visits of a loop that needs no decision, before it is widened at all

    def __init__(self, evaluator: Evaluator, for_addresses: Sequence[int], period: int = 1) -> None:
        self._evaluator, self._for_addresses, self._period = evaluator, for_addresses, period

    def widen(self, product: ProductState, visits: tuple[LoopVisit, ...], shape: tuple[Shape, Done]) -> bool:
        """Widen the state in place against an earlier visit; True if it did."""
        count = len(visits)
        if not count or (visits[-1].forks == product.forks and count < self.visits_if_decided):
            return False
        often = count >= self.visits_to_widen
        for away, visit in enumerate(reversed(visits[-9:]), 1):
            alike = visit.shape == shape or (often and outline_of(visit.shape) == outline_of(shape))
            differing = self._compare(product, visit, masks=often) if alike else None
            if differing is None or (not differing and count < 4):  # with nothing, the decisions may still become equal
                continue
            places = [(product.wave_sets[number].at, row) for number, row, _ in differing]
            addressed = any(self._for_addresses[at] >> row & 1 for at, row in places)
            shifted = all(shift is not None for _, _, shift in differing)
            if (
                (not addressed and (shifted or count >= 3))
                or (often and away >= 8 and shifted)
                or count >= self.visits_to_forget
            ):
                self._widen(product, visit, differing)
                return True
        return False

    def _compare(
        self, product: ProductState, visit: LoopVisit, *, masks: bool
    ) -> list[tuple[int, int, int | None]] | None:
        """The registers that differ, by how much (None if not by a constant); None if masks differ and may not."""
        found: list[tuple[int, int, int | None]] = []
        for number, (wave_set, before) in enumerate(zip(product.wave_sets, visit.registers, strict=True)):
            if wave_set.registers.keys() != before.keys():
                return None
            for row, value in wave_set.registers.items():
                old = before[row]
                if isinstance(value, Half) or isinstance(old, Half):
                    if register_key(value) == register_key(old):
                        continue
                    if not (masks and isinstance(value, Half) and isinstance(old, Half)):
                        return None
                elif value is not old and key_of(value) != key_of(old):
                    shift = shift_between(value, old)
                    if shift is None and isinstance(value, Linear) and not value.base.stable:
                        return None  # more is unknown now than before
                    found.append((number, row, shift))
        return found

    def _widen(self, product: ProductState, visit: LoopVisit, differing: list[tuple[int, int, int | None]]) -> None:
        self._join_lanes(product, visit)
        bases, distances = self._find_ring(product, differing)
        fresh: dict[Hashable, Value] = {}  # registers that were equal before and are now stay equal
        for number, row, shift in differing:
            registers = product.wave_sets[number].registers
            value, before = registers[row], visit.registers[number][row]
            if isinstance(value, Half):
                continue
            if shift is None:
                spread = LANE if isinstance(before, Half) else max(spread_of(value), spread_of(before))
                alike = (register_key(value), register_key(before), product.wave_sets[number].waves if spread else ())
                if alike not in fresh:
                    parity = None if isinstance(before, Half) else join_parity(self._evaluator, before, value, "wide")
                    fresh[alike] = parity or self._evaluator.symbols.fresh("wide", spread)
                registers[row] = fresh[alike]
                continue
            registers[row] = widen_counter(self._evaluator.symbols, value, shift, bases)
        known = Decisions(product.known.trail, product.known.path)
        counters: dict[Symbol, tuple[int, Symbol | None, int, int]] = {}
        for (origin, _), (base, anchor, unit) in bases.items():
            old, scale = origin if isinstance(origin, tuple) else (None, 0)
            counters[base] = (unit, old, scale, anchor)
        known.record(Widened(counters=counters))
        known.known = {key: holds for key, holds in product.known.known.items() if visit.known.known.get(key) == holds}
        self._carry_over(product, known, bases)
        known.epochs |= {key: product.known.epochs[key] for key in known.known if key in product.known.epochs}
        known.arcs = {base: arc for base, arc in product.known.arcs.items() if visit.known.arcs.get(base) == arc}
        known.arcs |= distances
        product.known = known

    def _find_ring(
        self, product: ProductState, differing: list[tuple[int, int, int | None]]
    ) -> tuple[Bases, dict[DecisionKey, Arc]]:
        """An unknown that keeps remainders, if a counter has a limit that it hasn't reached, and how far that is."""
        for number, row, shift in differing:
            value = product.wave_sets[number].registers[row]
            if isinstance(value, int) and shift and (ring := find_ring(value, self._period, product.known)):
                self._evaluator.symbols.has_rings = True
                base = self._evaluator.symbols.fresh("wide", GROUP, ring.bits, ring).base
                distance, rest = find_distance(self._evaluator.symbols, base, ring), value % ring.unit
                widened = base, value - rest, ring.unit
                return {(None, shift): widened}, {(distance, None): (ring.arc[0], ring.arc[1] - rest)}
        return {}, {}

    def _join_lanes(self, product: ProductState, visit: LoopVisit) -> None:
        """Join the lanes that execute, and the masks in registers, with those of the visit where they differ."""
        joined: dict[Hashable, Value | Mask] = {}
        for wave_set, shape, before in zip(product.wave_sets, visit.shape[0], visit.registers, strict=True):
            waves = len(wave_set.waves)
            if wave_set.exec is not shape.lanes:
                wave_set.exec = join_masks(self._evaluator, shape.lanes, wave_set.exec, waves, joined)
            for row, value in wave_set.registers.items():
                old = before[row]
                if isinstance(value, Half) and isinstance(old, Half) and value != old:
                    mask = join_masks(self._evaluator, old.mask, value.mask, waves, joined)
                    wave_set.registers[row] = Half(mask, value.which)

    def _carry_over(self, product: ProductState, known: Decisions, bases: Bases) -> None:
        """Carry recent decisions about a counter over to its widened value: another wave may soon make the same."""
        old = product.known
        for (about, wave), holds in old.known.items():
            epoch = old.epochs.get((about, wave), 0)
            if wave is not None or about.op not in COMPARISONS or product.epoch - epoch > AGREED:
                continue
            for (origin, shift), (base, anchor, unit) in bases.items():
                difference = about.op == "eq"  # compares a difference with 0
                sides = [
                    _express(self._evaluator.symbols, side, origin, shift, (base, anchor, unit), difference=difference)
                    for side in about.args[: 1 if difference else 2]
                ] + [None] * difference
                if all(side is None for side in sides):
                    continue
                both = zip(about.args[:2], sides, strict=True)
                values = [value_of(side) if new is None else new for side, new in both]
                if values[0] is None or values[1] is None:
                    continue
                made = self._evaluator.compare_basic(about.op, values[0], values[1])
                if isinstance(made, Linear):
                    known.known[made.base, None] = holds == (made.scale == 1)
                    known.epochs[made.base, None] = epoch


_NEAR = 16  # steps within which a constant counts as one of a counter's values


def _express(
    symbols: Symbols, key: object, origin: Hashable, shift: int, widened: tuple[Symbol, int, int], *, difference: bool
) -> Value | None:
    """A side of a comparison, expressed by the widened counter; None if it isn't one of the counter's values."""
    base, anchor, unit = widened
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
        if origin is None and difference:  # the difference of the counter and an argument
            return plus(symbols, Linear(symbol, scale, 0), linear(base, sign * unit, sign * away))
        if origin == (symbol, sign * scale & M32):
            return linear(base, sign * unit, sign * away)
    return None


def shift_between(value: Value, old: Value) -> int | None:
    """By how much a value is larger than the old one; None if not by the same in all lanes."""
    if isinstance(value, Linear) != isinstance(old, Linear):
        return None
    if isinstance(value, Linear) and isinstance(old, Linear):
        return shift_between(value.offset, old.offset) if value.base is old.base and value.scale == old.scale else None
    away = (np.asarray(value) - np.asarray(old)) & M32
    return int(away.flat[0]) if bool((away == away.flat[0]).all()) else None


def join_parity(evaluator: Evaluator, old: Value, value: Value, op: str) -> Linear | None:
    """An unknown number with the low bits that both have, where phases of barriers may depend on them."""
    for unit in (8, 4, 2) if evaluator.symbols.keeps_parity else ():
        one, other = (evaluator.compute("and", each, unit - 1) for each in (old, value))
        if isinstance(one, int) and isinstance(other, int) and one == other:
            return Linear(evaluator.symbols.fresh(op, max(spread_of(old), spread_of(value))).base, unit, one)
    return None


def widen_counter(symbols: Symbols, value: Value, shift: int, bases: Bases) -> Value:
    """Replace a counter by an unknown multiple of its step plus what it was; `bases` keeps the unknown for others."""
    unit, spread = shift & -shift, GROUP
    origin: Hashable = None
    if isinstance(value, Linear):
        origin, spread = (value.base, value.scale), value.base.spread
        offset: Plain = value.offset
        unit = min(unit, value.scale & -value.scale)
    else:
        offset = value
    if (origin, shift) not in bases:
        least = offset if isinstance(offset, int) else int(np.min(offset))
        bases[origin, shift] = symbols.fresh("wide", spread).base, least - least % unit, unit
    base, anchor, unit = bases[origin, shift]
    return linear(base, unit, offset - anchor)


def join_masks(evaluator: Evaluator, old: Mask, new: Mask, waves: int, fresh: dict[Hashable, Value | Mask]) -> Mask:
    """A mask that may be either: the lanes that both certainly have, and any of those that one possibly has."""
    joint = fresh.get((old, new))
    if not isinstance(joint, Mask):
        masks = evaluator.masks
        possible = masks.leaf(masks.possible(masks.combine("or", old, new)))
        certain = masks.leaf(masks.certain(masks.combine("and", old, new)))
        atom = masks.unknown(evaluator.symbols.fresh("joint", LANE).base, waves)
        joint = fresh[old, new] = masks.combine("or", certain, masks.combine("and", possible, atom))
    return joint
