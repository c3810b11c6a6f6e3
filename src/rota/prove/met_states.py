"""States met before: takes the state at a checkpoint, gives whether an earlier one covers it, or one that covers both.

Two states that differ in nothing but what was decided become one that has decided what both have: what is left of a
decision is in where waves are, what they have under way and in their registers.  Where many states differ in registers
that no address depends on, these become unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from rota.prove.conditions import Chronicle, forgetting
from rota.prove.decisions import Decisions, common
from rota.prove.evaluation import Evaluator
from rota.prove.product_state import Namer, ProductState, Shape, register_key
from rota.prove.state_matching import Registers, covers, generalise

Key = tuple[Hashable, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class _Entry:
    """A state: its number, registers, what it had decided, and itself as long as nobody has gone on from it."""

    number: int
    registers: Registers
    known: Decisions
    epoch: int
    waiting: ProductState | None


class MetStates:
    """All states of a proof, by where waves are, what is under way, and the registers that addresses depend on."""

    apart = 2
    """States with equal registers, of which some have been followed, that are kept apart by decisions."""
    growing = 2
    """How often states with equal registers are joined before what keeps growing in them is given up."""
    most = 12
    """States with equal addresses that are kept apart by other registers."""

    def __init__(self, one: Evaluator, namer: Namer, for_addresses: Sequence[int], chronicle: Chronicle) -> None:
        self._one, self._namer, self._for_addresses, self._chronicle = one, namer, for_addresses, chronicle
        self._groups: dict[Hashable, dict[Hashable, list[_Entry]]] = {}
        self._general: dict[Hashable, _Entry] = {}
        self._joined: Counter[Hashable] = Counter()

    def _place(self, product: ProductState, head: Key, shape: Shape) -> tuple[Hashable, Hashable]:
        keys = tuple(
            tuple((row, register_key(value)) for row, value in squad.registers.items()) for squad in product.squads
        )
        addresses = tuple(
            tuple(pair for pair in key if self._for_addresses[squad.at] >> pair[0] & 1)
            for key, squad in zip(keys, product.squads, strict=True)
        )
        return (head, shape, addresses), keys

    def covering(self, product: ProductState, head: Key, shape: Shape) -> int | None:
        """The number of a state that was met and covers this one; notes how it was come to."""
        return self._covering(product, *self._place(product, head, shape))

    def _covering(self, product: ProductState, place: Hashable, keys: Hashable) -> int | None:
        for each in self._groups.get(place, {}).get(keys, ()):
            if each.known.allows(product.known):
                self._chronicle.arrive(each.number, product.known.path)
                return each.number
        general = self._general.get(place)
        if general is not None and covers(self._one, general.registers, general.known, product):
            self._chronicle.arrive(general.number, forgetting(product.known.path))
            return general.number
        return None

    def arrive(self, product: ProductState, head: Key, shape: Shape) -> tuple[int, bool]:
        """The number of a state and whether to go on from it: it may have become more general, or others cover it."""
        place, keys = self._place(product, head, shape)
        found = self._covering(product, place, keys)
        if found is not None:
            return found, False
        group = self._groups.setdefault(place, {})
        alike = group.setdefault(keys, [])
        general = self._general.get(place)
        if general is not None:
            return self._under(general, product)
        for entry in alike:
            if entry.waiting is not None:
                self._chronicle.arrive(entry.number, product.known.path)
                known = common(product.known, entry.known, entry.epoch - product.epoch)
                self._chronicle.replace(entry.number, known)
                entry.waiting.known, entry.known = known, known.copy()
                return entry.number, False
        if len(alike) >= self.apart:
            often = self._joined[place, keys] >= self.growing
            self._joined[place, keys] += 1
            for entry in alike:
                product.known = common(entry.known, product.known, product.epoch - entry.epoch, settled=often)
            alike.clear()
        elif len(group) > self.most:
            last = next(each for each in group.values() if each)[-1]
            generalise(self._one, last.registers, last.known, last.epoch, product)
            self._namer.rename(product)
            self._general[place] = entry = self._entry(product)
            return entry.number, True
        entry = self._entry(product)
        alike.append(entry)
        return entry.number, True

    def _under(self, general: _Entry, product: ProductState) -> tuple[int, bool]:
        """The most general state of a place becomes more general: it doesn't cover a state."""
        generalise(self._one, general.registers, general.known, general.epoch, product)
        self._namer.rename(product)
        waiting = general.waiting
        if waiting is not None:
            self._chronicle.arrive(general.number, forgetting(product.known.path))
            for squad, new in zip(waiting.squads, product.squads, strict=True):
                squad.registers, squad.exec = new.registers, new.exec
            waiting.known = product.known.later(waiting.epoch - product.epoch)
            self._chronicle.replace(general.number, waiting.known)
        else:
            general.number = self._chronicle.begin(product.known)
            general.waiting = product
            product.entry = general
        general.registers = tuple(dict(squad.registers) for squad in product.squads)
        general.known, general.epoch = (waiting or product).known.copy(), (waiting or product).epoch
        return general.number, waiting is None

    def _entry(self, product: ProductState) -> _Entry:
        product.entry = _Entry(
            number=self._chronicle.begin(product.known),
            registers=tuple(dict(squad.registers) for squad in product.squads),
            known=product.known.copy(),
            epoch=product.epoch,
            waiting=product,
        )
        return product.entry

    @staticmethod
    def leave(product: ProductState) -> None:
        """Somebody goes on from that state: it can't become more general any more."""
        if isinstance(product.entry, _Entry):
            product.entry.waiting = None
        product.entry = None
