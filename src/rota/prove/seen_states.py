"""When a state of a proof stands for another, and how states are joined that differ too often."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from rota.prove.decisions import Decisions, Key as DecisionKey, StateGraph, forget_names, join_decisions
from rota.prove.evaluation import Evaluator
from rota.prove.rings import ring_of
from rota.prove.state import Half, InFlight, LdsUse, Mask, Queues, WaveSet, atoms_of, covers_queue, join_queues
from rota.prove.symbol import LANE, M32, Linear, Symbol, Value, bits_of, divide, key_of, plus, spread_of, times
from rota.prove.widening import (
    COMPARISONS,
    Bases,
    Done,
    Namer,
    ProductState,
    Shape,
    Substitution,
    holds_now,
    join_masks,
    join_parity,
    register_key,
    restate,
    row_set,
    shape_of,
    shift_between,
    symbols_in,
    value_of,
    widen_counter,
)

Registers = tuple[dict[int, Value | Half], ...]


class StateMatch:
    """Binds the unknowns of an earlier state to values of a later one; `failing` are registers that don't fit."""

    def __init__(self, evaluator: Evaluator, earlier: Registers, known: Decisions, product: ProductState) -> None:
        self._evaluator, self._earlier, self._known, self._product = evaluator, earlier, known, product
        self.bound: dict[Symbol, Value] = {}
        self.failing: list[tuple[int, int]] = []
        self._masks: dict[tuple[int, Symbol], Mask] = {}
        for wave_set in product.wave_sets:
            self._bind_to_itself(wave_set.exec)
        rest = []
        for number, row, old, value in self.pairs():
            if register_key(old) == register_key(value):
                self._bind_to_itself(old)
            else:
                rest.append((number, row, old, value))
        halves = []
        for number, row, old, value in rest:  # numbers first: an atom that is one isn't bound to a mask
            if isinstance(old, Half):
                halves.append((number, row, old, value))
            elif not self._bind(old, self._number(number, value)):
                self.failing.append((number, row))
        for number, row, old, value in halves:
            fits = isinstance(value, Half) and value.which == old.which and self._bind_mask(number, old, value)
            if not fits:
                self.failing.append((number, row))

    def pairs(self) -> Iterator[tuple[int, int, Value | Half, Value | Half]]:
        for number, (wave_set, before) in enumerate(zip(self._product.wave_sets, self._earlier, strict=True)):
            for row in sorted(wave_set.registers.keys() | before.keys()):
                initial = self._evaluator.make_initial(row)
                yield number, row, before.get(row, initial), wave_set.registers.get(row, initial)

    def _bind_to_itself(self, value: Value | Half | Mask) -> None:
        if isinstance(value, Half):
            value = value.mask
        if isinstance(value, Mask):
            for atom in atoms_of(value):
                self._bind_symbol(atom)
        elif isinstance(value, Linear):
            self._bind_symbol(value.base)

    def _bind_symbol(self, symbol: Symbol) -> None:
        if symbol.stable or symbol in self.bound:
            return
        self.bound[symbol] = Linear(symbol, 1, 0)
        if symbol.op != "name":
            for part in symbols_in(symbol.args):
                self._bind_symbol(part)

    def _bind(self, old: Value, value: Value) -> bool:
        if not isinstance(old, Linear) or old.base.stable or old.base.op in {"select", "pick"} or ring_of(old.base):
            return False
        if old.base.op in COMPARISONS:  # its operands decide it
            flag = restate(self._evaluator, old.base, self._substitute)
            if flag is None:
                return False
            made = times(flag if isinstance(flag, Linear) else int(flag), old.scale)
            return key_of(plus(self._evaluator.symbols, made, old.offset)) == key_of(value)
        away = plus(self._evaluator.symbols, value, times(old.offset, M32))
        found = divide(away, old.scale)
        if found is None or spread_of(found) > old.base.spread or bits_of(found) & ~old.base.bits:
            return False
        bound = self.bound.get(old.base)
        if bound is not None:
            return key_of(bound) == key_of(found)
        self.bound[old.base] = found
        return True

    def _number(self, number: int, value: Value | Half) -> Value:
        self._evaluator.symbols.row_waves = self._product.wave_sets[number].waves
        return self._evaluator.read_half(value) if isinstance(value, Half) else value

    def _bind_mask(self, number: int, old: Half, new: Half) -> bool:
        """Bind the one atom of a mask that is still free, so that the old mask becomes the new one.

        An atom differs by lane, so that it may become any mask; each wave set has lanes of its own, and so a mask.
        """
        masks, mask = self._evaluator.masks, new.mask
        known, free = dict[Symbol, Mask](), list[Symbol]()
        for atom in atoms_of(old.mask):
            found = self._masks.get((number, atom))
            if found is not None:
                known[atom] = found
            elif not self._is_unchanged(atom):
                free.append(atom)
        if len(free) > 1 or any(atom.spread != LANE or atom in self.bound for atom in free):
            return False
        for atom in free:
            waves = len(self._product.wave_sets[number].waves)
            high, low = (
                masks.substitute(old.mask, known | {atom: masks.leaf((lanes,) * waves)}) for lanes in (masks.all, 0)
            )
            known[atom] = masks.combine("xor", mask, masks.combine("andn2", low, high))
        if masks.substitute(old.mask, known) is not mask:
            return False
        self._masks |= {(number, atom): known[atom] for atom in free}
        return True

    def holds(self, key: DecisionKey, *, wanted: bool) -> bool:
        condition, wave = key
        if self._is_unchanged(condition):
            return self._product.known.lookup(condition, wave) is wanted
        return wave is None and holds_now(self._evaluator, condition, self._substitute, self._product.known) is wanted

    def _substitute(self, base: Symbol, scale: int) -> Value | None:
        return times(self.bound[base], scale) if base in self.bound else None

    def _is_unchanged(self, symbol: Symbol) -> bool:
        if symbol.stable:
            return True
        if symbol.op == "name":
            bound = self.bound.get(symbol)
            return isinstance(bound, Linear) and bound.base is symbol and bound.scale == 1 and not np.any(bound.offset)
        return all(self._is_unchanged(each) for each in symbols_in(symbol.args))

    def is_within(self, key: DecisionKey, arc: tuple[int, int]) -> bool:
        base, wave = key
        value: Value | None = Linear(base, 1, 0) if self._is_unchanged(base) else self.bound.get(base)
        if isinstance(value, int):
            return (value - arc[0]) & M32 <= arc[1]
        if isinstance(value, Linear) and value.scale == 1 and isinstance(value.offset, int):
            first, length = self._product.known.arc_of(value.base, wave)
            return ((first + value.offset - arc[0]) & M32) + length <= arc[1]
        return False

    @property
    def covers(self) -> bool:
        """True if the earlier state includes every launch of the later one."""
        return (
            not self.failing
            and all(self.holds(key, wanted=holds) for key, holds in self._known.known.items())
            and all(self.is_within(key, arc) for key, arc in self._known.arcs.items())
        )


def generalise(evaluator: Evaluator, earlier: Registers, known: Decisions, epoch: int, product: ProductState) -> None:
    """Join the earlier state into a state in place, so that it includes the launches of both."""
    match = StateMatch(evaluator, earlier, known, product)
    made = Decisions(product.known.trail, forget_names(product.known.path))
    for key, holds in known.known.items():
        if match.holds(key, wanted=holds):
            made.known[key] = holds
            before = known.epochs.get(key, epoch) + product.epoch - epoch
            made.epochs[key] = min(product.known.epochs.get(key, product.epoch), before)
    made.arcs = {key: arc for key, arc in known.arcs.items() if match.is_within(key, arc)}
    failing = set(match.failing)
    fresh: dict[Hashable, Value | Mask] = {}
    bases: Bases = {}
    for number, row, old, value in list(match.pairs()):
        wave_set = product.wave_sets[number]
        if (number, row) in failing:
            wave_set.registers[row] = _join_values(evaluator, old, value, len(wave_set.waves), fresh, bases)
        else:
            wave_set.registers[row] = old
    _carry_over(evaluator, known, product.known, made, fresh)
    product.known = made


def _carry_over(
    evaluator: Evaluator, earlier: Decisions, later: Decisions, made: Decisions, fresh: dict[Hashable, Value | Mask]
) -> None:
    """Carry over what both states have decided about values that became one unknown."""
    for pair, joint in fresh.items():
        if not isinstance(joint, Linear) or not isinstance(pair, tuple):
            continue
        old, new = (value_of(each) for each in pair)
        if old is None or new is None:
            continue
        for known, value in ((earlier, old), (later, new)):
            if not isinstance(value, Linear) or value.base.stable:
                continue
            for (condition, wave), holds in known.known.items():
                about = restate(evaluator, condition, _substitute_for(value, joint)) if wave is None else None
                if not isinstance(about, Linear):
                    continue
                wanted = holds == (about.scale == 1)
                if all(
                    holds_now(evaluator, about.base, _substitute_for(joint, was), state) is wanted
                    for was, state in ((old, earlier), (new, later))
                ):
                    made.known[about.base, None] = wanted
                    made.epochs[about.base, None] = later.epochs.get((condition, None), 0)


def _substitute_for(value: Linear, other: Value) -> Substitution:
    def substitute(base: Symbol, scale: int) -> Value | None:
        return times(other, scale // value.scale) if base is value.base and not scale % value.scale else None

    return substitute


def _join_values(  # noqa: PLR0917
    evaluator: Evaluator,
    old: Value | Half,
    value: Value | Half,
    waves: int,
    fresh: dict[Hashable, Value | Mask],
    bases: Bases,
) -> Value | Half:
    if isinstance(old, Half) and isinstance(value, Half) and old.which == value.which:
        return Half(join_masks(evaluator, old.mask, value.mask, waves, fresh), value.which)
    if isinstance(old, Half) or isinstance(value, Half):
        pair = (register_key(old), register_key(value))
        found = fresh.get(pair)
        if found is None or isinstance(found, Mask):
            found = fresh[pair] = evaluator.symbols.fresh("joint", LANE)
        return found
    if (shift := shift_between(value, old)) is not None:
        return widen_counter(evaluator.symbols, value, shift, bases)
    pair = (key_of(old), key_of(value))
    if pair not in fresh and (joint := join_parity(evaluator, old, value, "joint")) is not None:
        fresh[pair] = joint
    if isinstance(known := fresh.get(pair), Linear) and known.scale > 1:
        return known
    bits = bits_of(old)
    if not isinstance(old, Linear):
        bits |= bits_of(value)
    elif old.base.op != "pick" or bits_of(value) & ~bits:  # bits that grow with every join would never end
        bits = M32
    # Registers that keep their distance share their unknown.
    first = next((each.offset for each in (value, old) if isinstance(each, Linear)), 0)
    away = first if bits == M32 and isinstance(first, int) else 0
    old, value = (plus(evaluator.symbols, each, -away & M32) for each in (old, value))
    pair = (key_of(old), key_of(value))
    found = fresh.get(pair)
    if found is None or isinstance(found, Mask):
        found = fresh[pair] = evaluator.symbols.fresh("joint", max(spread_of(old), spread_of(value)), bits)
    return plus(evaluator.symbols, found, away)


# Seen states.

Key = tuple[Hashable, ...]


class _Memory(NamedTuple):
    """What a wave set has in flight, and which of its accesses a wait has covered."""

    queues: Queues
    covered: dict[LdsUse, InFlight]
    late: dict[LdsUse, InFlight]

    @classmethod
    def of(cls, wave_set: WaveSet) -> Self:
        return cls(wave_set.queues, dict(wave_set.covered), dict(wave_set.late))

    def since(self, epoch: int) -> _Memory:
        """The same, with epochs counted from another one."""
        queues = {by: tuple(each.since(epoch) for each in queue) for by, queue in self.queues.items()}
        covered, late = (
            {access: flight.since(epoch) for access, flight in each.items()} for each in (self.covered, self.late)
        )
        return _Memory(queues, covered, late)


def _keep_memory(product: ProductState) -> tuple[_Memory, ...]:
    return tuple(map(_Memory.of, product.wave_sets))


def _take_memory(wave_set: WaveSet, memory: _Memory) -> None:
    wave_set.queues, wave_set.covered, wave_set.late = memory
    wave_set.update_pending()


def _join_done(one: dict[LdsUse, InFlight], other: dict[LdsUse, InFlight]) -> dict[LdsUse, InFlight]:
    """The accesses of both; the later issue of one that both have, which fewer barriers order."""
    return one | {
        access: flight
        if access not in one
        else flight.order_like(one[access])
        if flight.epoch >= one[access].epoch
        else one[access].order_like(flight)
        for access, flight in other.items()
    }


@dataclass(slots=True, kw_only=True, eq=False)
class _Entry:
    """A seen state; `waiting` is the state itself while no path has gone on from it."""

    number: int
    registers: Registers
    memory: tuple[_Memory, ...]
    known: Decisions
    epoch: int
    done: Done
    waiting: ProductState | None
    joins_memory: bool = False  # a general state of which only some paths have made the accesses

    def covers_memory(self, product: ProductState, done: Done) -> bool:
        """True if the state has the accesses that are done, and may have the memory ops in flight."""
        if not self.joins_memory:
            return True  # it is looked for only by states with the same
        now = product.epoch
        return _include(self.done, done) and all(
            covers_queue([each.since(self.epoch) for each in queue], [each.since(now) for each in wave_set.queues[by]])
            for memory, wave_set in zip(self.memory, product.wave_sets, strict=True)
            for by, queue in memory.queues.items()
            if by.in_order
        )


class _Place(NamedTuple):
    """Where a state is looked for: among those alike, among those with such masks, and among all of its group."""

    group: Hashable
    outline: Hashable  # the registers, with nothing of lane masks but where they are
    idle: Hashable  # the group, with nothing of accesses that are done or in flight, counted in order
    alike: Hashable  # all but decisions and accesses that are done
    keys: Hashable
    done: Done

    @property
    def general(self) -> tuple[Hashable, ...]:
        """Where a general state may be that covers it."""
        return self.group, self.outline, self.idle


def _outline(key: Hashable) -> Hashable:
    if isinstance(key, tuple) and isinstance(key[1], Mask):
        return key[2], key[1].shared
    return key


def _include(more: Done, done: Done) -> bool:
    return all(one >= other for one, other in zip(more, done, strict=True))


class SeenStates:
    """All states of a proof, by place: shape, and the registers that addresses depend on."""

    max_alike = 2  # states of equal registers and different decisions, before they are joined
    max_joins = 2  # joins of such states, before arcs that still change are dropped
    max_places = 12  # states of one place with different registers, before one general state replaces them
    max_memory = 4  # groups that differ in accesses done and in flight, before one general state replaces them,
    explodes = 32  # once some place had so many: a pipeline has a few, and what may be in flight would tell less of it
    max_masks = 2  # those of them that differ in lane masks alone, before one general state replaces these

    def __init__(self, evaluator: Evaluator, namer: Namer, for_addresses: Sequence[int], graph: StateGraph) -> None:
        self._evaluator, self._namer, self._for_addresses, self._graph = evaluator, namer, for_addresses, graph
        self._groups: dict[Hashable, dict[Hashable, list[_Entry]]] = {}
        self._outlined: defaultdict[Hashable, list[_Entry]] = defaultdict(list)
        self._alike: defaultdict[Hashable, list[_Entry]] = defaultdict(list)
        self._idle: defaultdict[Hashable, dict[Hashable, _Entry]] = defaultdict(dict)
        self._has_exploded = False
        self._general: dict[Hashable, _Entry] = {}
        self._joined: Counter[Hashable] = Counter()

    def _place(self, product: ProductState, head: Key, shape: tuple[Shape, Done]) -> _Place:
        keys = tuple(
            tuple((row, register_key(value)) for row, value in wave_set.registers.items())
            for wave_set in product.wave_sets
        )
        wanted = [row_set(self._for_addresses[wave_set.at]) for wave_set in product.wave_sets]
        addresses = tuple(
            tuple([pair for pair in key if pair[0] in rows]) for key, rows in zip(keys, wanted, strict=True)
        )
        halves = any(isinstance(value, Half) for wave_set in product.wave_sets for value in wave_set.registers.values())
        outline = tuple(tuple((row, _outline(key)) for row, key in each) for each in keys) if halves else keys
        group = (head, shape, addresses)
        unordered = tuple(
            tuple(ops for by, ops in zip(wave_set.queues, each.queues, strict=True) if not by.in_order)
            for wave_set, each in zip(product.wave_sets, shape[0], strict=True)
        )
        idle = (head, tuple(each[:-1] for each in shape[0]), unordered, addresses)
        return _Place(group, (group, outline), idle, (head, shape[0], keys), keys, shape[1])

    def find_covering(self, product: ProductState, head: Key, shape: tuple[Shape, Done]) -> int | None:
        """The number of a seen state that covers this one, to which the path is added; None if there is none."""
        return self._find_covering(product, self._place(product, head, shape))

    def _find_covering(self, product: ProductState, place: _Place) -> int | None:
        for each in self._alike[place.alike]:
            if each.known.is_implied_by(product.known) and _include(each.done, place.done):
                self._graph.add_arrival(each.number, product.known.path)
                return each.number
        for where in place.general:
            general = self._general.get(where)
            if general is None or not general.covers_memory(product, place.done):
                continue
            if StateMatch(self._evaluator, general.registers, general.known, product).covers:
                self._graph.add_arrival(general.number, forget_names(product.known.path))
                return general.number
        return None

    def arrive(self, product: ProductState, head: Key, shape: tuple[Shape, Done]) -> tuple[int, bool]:
        """Add a state: its number, and whether to go on from it.  Joining may make it more general."""
        place = self._place(product, head, shape)
        if (found := self._find_covering(product, place)) is not None:
            return found, False
        group = self._groups.setdefault(place.group, {})
        alike = group.setdefault(place.keys, [])
        general = next((self._general[where] for where in place.general if where in self._general), None)
        if general is not None:
            return self._extend_general(general, product)
        if (number := self._join_waiting(product, place, alike)) is not None:
            return number, False
        if len(alike) >= self.max_alike:
            often = self._joined[place.group, place.keys] >= self.max_joins
            self._joined[place.group, place.keys] += 1
            for entry in alike:
                later = product.epoch - entry.epoch
                product.known = join_decisions(entry.known, product.known, later, drop_changed=often)
            alike.clear()
        elif (too_many := self._find_too_many(place)) is not None:
            where, last = too_many
            joins_memory = where == place.idle
            self._generalise(last, product, joins_memory=joins_memory)
            done = shape_of(product)[1] if joins_memory else place.done
            self._general[where] = entry = self._add_entry(product, done)
            entry.joins_memory = joins_memory
            return entry.number, True
        entry = self._add_entry(product, place.done)
        for entries in (alike, self._outlined[place.outline], self._alike[place.alike]):
            entries.append(entry)
        self._idle[place.idle][place.group] = entry
        return entry.number, True

    def _find_too_many(self, place: _Place) -> tuple[Hashable, _Entry] | None:
        """Where states differ so often that one general state replaces them, and the last of them."""
        group = self._groups[place.group]
        if len(group) > self.max_places and (filled := [each for each in group.values() if each]):
            return place.group, filled[0][-1]  # lists are emptied where states are joined, all of them at times
        if len(others := self._outlined[place.outline]) >= self.max_masks:
            return place.outline, others[-1]
        busy = self._idle[place.idle]
        self._has_exploded |= len(busy) >= self.explodes
        if self._has_exploded and len(busy) >= self.max_memory:
            return place.idle, [*busy.values()][-1]
        return None

    def _generalise(self, entry: _Entry, product: ProductState, *, joins_memory: bool) -> None:
        """Join a seen state into a state in place: registers, decisions, and memory ops in flight if they differ."""
        generalise(self._evaluator, entry.registers, entry.known, entry.epoch, product)
        if joins_memory:
            for before, wave_set in zip(entry.memory, product.wave_sets, strict=True):
                then = before.since(entry.epoch)
                now = _Memory.of(wave_set).since(product.epoch)
                queues = {
                    by: join_queues(then.queues[by], queue) if by.in_order else queue
                    for by, queue in now.queues.items()
                }
                covered, late = _join_done(then.covered, now.covered), _join_done(then.late, now.late)
                _take_memory(wave_set, _Memory(queues, covered, late).since(-product.epoch))
        self._namer.rename(product)

    def _join_waiting(self, product: ProductState, place: _Place, alike: list[_Entry]) -> int | None:
        """Join a state into one from which no path has gone on yet: that one's number, None if there is none."""
        for entry in alike:
            if entry.waiting is not None and entry.done == place.done:
                self._graph.add_arrival(entry.number, product.known.path)
                known = join_decisions(product.known, entry.known, entry.epoch - product.epoch)
                self._graph.weaken(entry.number, known)
                entry.waiting.known, entry.known = known, known.copy()
                return entry.number
        for entry in self._alike[place.alike]:  # one with fewer accesses, which this state covers: it takes its place
            covers = product.known.is_implied_by(entry.known) and _include(place.done, entry.done)
            if entry.waiting is not None and covers:
                self._graph.add_arrival(entry.number, product.known.path)
                self._graph.weaken(entry.number, product.known)
                entry.waiting.wave_sets, entry.waiting.epoch = product.wave_sets, product.epoch
                entry.waiting.known, entry.known = product.known, product.known.copy()
                entry.epoch, entry.done, entry.memory = product.epoch, place.done, _keep_memory(product)
                return entry.number
        return None

    def _extend_general(self, general: _Entry, product: ProductState) -> tuple[int, bool]:
        self._generalise(general, product, joins_memory=general.joins_memory)
        waiting = general.waiting
        if waiting is not None:
            self._graph.add_arrival(general.number, forget_names(product.known.path))
            for wave_set, new in zip(waiting.wave_sets, product.wave_sets, strict=True):
                wave_set.registers, wave_set.exec = new.registers, new.exec
                if general.joins_memory:
                    _take_memory(wave_set, _Memory.of(new).since(product.epoch - waiting.epoch))
            later, waiting.known = waiting.epoch - product.epoch, product.known.copy()
            waiting.known.epochs = {key: when + later for key, when in product.known.epochs.items()}
            self._graph.weaken(general.number, waiting.known)
        else:
            general.number = self._graph.add_state(product.known)
            general.waiting = product
            product.entry = general
        general.registers = tuple(dict(wave_set.registers) for wave_set in product.wave_sets)
        general.known, general.epoch = (waiting or product).known.copy(), (waiting or product).epoch
        if general.joins_memory:
            general.memory, general.done = _keep_memory(waiting or product), shape_of(product)[1]
        return general.number, waiting is None

    def _add_entry(self, product: ProductState, done: Done) -> _Entry:
        product.entry = _Entry(
            number=self._graph.add_state(product.known),
            registers=tuple(dict(wave_set.registers) for wave_set in product.wave_sets),
            memory=_keep_memory(product),
            known=product.known.copy(),
            epoch=product.epoch,
            done=done,
            waiting=product,
        )
        return product.entry

    @staticmethod
    def close(product: ProductState) -> None:
        """Close a state from which a path goes on: it can't become more general any more."""
        if isinstance(product.entry, _Entry):
            product.entry.waiting = None
        product.entry = None
