"""A path as conditions on bit-vectors: takes a state and stretches from there on, gives what must hold on that path.

Every concrete execution that goes this path satisfies all conditions, so that conditions which can't hold together
rule the path out.  That is so since each step says no more than is the case:

- A symbol's op and arguments are what an instruction computed.  An op that isn't known here becomes an unknown about
  which nothing is said, and so does, each time anew, a value that differs from lane to lane and a table of numbers per
  wave.  The bits that may be one are what the proof itself relies on.
- Symbols made of arguments alone are one unknown for the whole launch: memory that scalar loads read doesn't change,
  which the verdict names as an assumption.  All others have, for a wave, one value between two renamings: the *frame*
  counts these.  Waves only part within a frame, so that a table's rows stay those of the same waves.
- A renaming says what each new name was in the frame before; in the first frame names are free.
- A widened counter is, where it is widened, what it was; from then on only the way back to that state says more.
- What the first state knows holds on every path that comes to it, since it is part of what makes states equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rota.prove.bit_vectors import BitVectors, Condition, Term
from rota.prove.conditions import Decided, Event, Renamed
from rota.prove.decisions import Decisions
from rota.prove.symbol import GROUP, LANE, M32, Symbol

_COMPARED = frozenset({"eq", "lt_u", "lt_i"})
LAUNCHED = frozenset({"argument", "workgroup", "kernarg", "packet", "memory", "buffer"})
"""Unknowns that a launch decides: what it passes, and what memory holds."""
_TAKES = {"bfe_u": 3}  # another form gives offset and width in one
_Key = tuple[Symbol, int | None, int | None]


class PathTerms:
    """Encodes one path."""

    def __init__(self, make: BitVectors, known: Decisions | None, events: Sequence[Event]) -> None:
        self.make = make
        self.conditions: list[Condition] = []
        self.launched: dict[Symbol, Term] = {}
        self.guessed: set[str] = set()
        self._renamed: list[Mapping[Symbol, tuple[Symbol, int]]] = [{}]
        self._widened: dict[tuple[int, Symbol], tuple[int, Symbol | None, int, int]] = {}
        self._terms: dict[_Key, Term] = {}
        self._fresh = 0
        if known is not None:
            self._assume(known)
        for event in events:
            self._follow(event)

    @property
    def _frame(self) -> int:
        return len(self._renamed) - 1

    def _follow(self, event: Event) -> None:
        if isinstance(event, Decided):
            self._decide(event.condition, event.wave, holds=event.holds)
        elif isinstance(event, Renamed):
            self._renamed.append(event.names)
        else:
            self._widened |= {(self._frame, symbol): told for symbol, told in event.counters.items()}

    def _assume(self, known: Decisions) -> None:
        for about, holds in known.known.items():
            condition, wave = _of_wave(about)
            self._decide(condition, wave, holds=holds)
        for about, (first, length) in known.arcs.items():
            base, wave = _of_wave(about)
            away = self.make.apply("sub", self.symbol(base, 0, wave), self.make.constant(first))
            self.conditions.append(self.make.holds("le_u", away, self.make.constant(length)))

    def _decide(self, condition: Symbol, wave: int | None, *, holds: bool) -> None:
        term = self.symbol(condition, self._frame, wave)
        self.conditions.append(self.make.holds("ne" if holds else "eq", term, self.make.constant(0)))

    # Terms.

    def symbol(self, symbol: Symbol, frame: int, wave: int | None) -> Term:
        """An unknown of a wave, as it is in a frame."""
        shift = 0
        while symbol.op == "name" and (old := self._renamed[frame].get(symbol)) is not None:
            symbol, shift, frame = old[0], shift + old[1] & M32, frame - 1
        term = self._known_by(symbol, frame, wave)
        return self.make.apply("add", term, self.make.constant(shift)) if shift else term

    def _known_by(self, symbol: Symbol, frame: int, wave: int | None) -> Term:
        if symbol.spread == LANE or (symbol.spread != GROUP and wave is None):
            return self._anything(symbol)
        shared = symbol.spread == GROUP
        key = (symbol, None if shared and symbol.stable else frame, None if shared else wave)
        found = self._terms.get(key)
        if found is None:
            found = self._terms[key] = self._symbol(symbol, frame, wave, key)
        return found

    def _symbol(self, symbol: Symbol, frame: int, wave: int | None, key: _Key) -> Term:
        term = None if symbol.op in LAUNCHED else self._made(symbol, frame, wave)
        if term is not None:
            return term
        term = self.make.unknown(f"{symbol.op}_{symbol.number}_{key[1]}_{key[2]}")
        self._limit(term, symbol)
        if symbol.op in LAUNCHED and symbol.spread == GROUP and symbol.stable:
            self.launched[symbol] = term
        elif symbol.op == "wide" and (frame, symbol) in self._widened:
            self._counted(term, self._widened[frame, symbol], frame, wave)
        else:
            self.guessed.add(symbol.op)
        return term

    def _limit(self, term: Term, symbol: Symbol) -> None:
        if symbol.bits & M32 != M32:
            beyond = self.make.apply("and", term, self.make.constant(~symbol.bits & M32))
            self.conditions.append(self.make.holds("eq", beyond, self.make.constant(0)))

    def _counted(self, term: Term, told: tuple[int, Symbol | None, int, int], frame: int, wave: int | None) -> None:
        unit, old, scale, anchor = told
        was = self.make.constant(anchor & M32)
        if old is not None:
            product = self.make.apply("mul", self.symbol(old, frame, wave), self.make.constant(scale & M32))
            was = self.make.apply("add", product, was)
        now = self.make.apply("mul", term, self.make.constant(unit & M32))
        self.conditions.append(self.make.holds("eq", now, was))

    def _anything(self, symbol: Symbol) -> Term:
        self._fresh += 1
        self.guessed.add(symbol.op)
        term = self.make.unknown(f"any_{symbol.op}_{self._fresh}")
        self._limit(term, symbol)
        return term

    def _made(self, symbol: Symbol, frame: int, wave: int | None) -> Term | None:
        """What an operation makes of its arguments; None if nothing is known of it."""
        op, args = symbol.op, symbol.args
        if op == "select" and isinstance(args[0], Symbol):
            one, other = (self.key(each, frame, wave) for each in args[1:3])
            test = self.make.holds("ne", self.symbol(args[0], frame, wave), self.make.constant(0))
            return self.make.either(test, one, other)
        if op == "+":
            return self.make.apply("add", *(self.key(each, frame, wave) for each in args[:2]))
        if op == "/" and isinstance(args[0], Symbol) and isinstance(args[1], int):
            by = self.make.constant(args[1].bit_length() - 1)
            return self.make.apply("shr", self.symbol(args[0], frame, wave), by)
        if op in _COMPARED:
            one, other = (self.key(each, frame, wave) for each in args[:2])
            return self.make.flag(self.make.holds(op, one, other))
        if not self.make.knows(op) or args[-1] is not None or len(args) - 1 != _TAKES.get(op, len(args) - 1):
            return None
        term = self.make.apply(op, *(self.key(each, frame, wave) for each in args[:-1]))
        if op == "and":  # of a mask with zeros below, the proof keeps what is above them
            mask = next((each for each in args[:2] if isinstance(each, int) and each), 1)
            term = self.make.apply("shr", term, self.make.constant((mask & -mask).bit_length() - 1))
        return term

    def key(self, key: object, frame: int, wave: int | None) -> Term:
        """A value of which the key is given."""
        if isinstance(key, int):
            return self.make.constant(key & M32)
        if isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], Symbol):
            base, scale, offset = key
            term = self.make.apply("mul", self.symbol(base, frame, wave), self.make.constant(scale & M32))
            return self.make.apply("add", term, self.key(offset, frame, wave))
        self._fresh += 1
        return self.make.unknown(f"any_table_{self._fresh}")


def _of_wave(about: Any) -> tuple[Symbol, int | None]:  # noqa: ANN401  # what a path decides about
    """A condition, and the wave that it is about if waves don't share it."""
    return about if isinstance(about, tuple) else (about, None)
