"""The door to z3: takes terms of 32 bits and conditions on them, gives whether they can hold together, and how.

z3 is imported when a `BitVectors` is made, and nowhere else.  Its effort is counted in its own units, not in seconds,
so that the answer is the same on every machine.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from rota.prove.decisions import Decided, Decisions, Event, Renamed
from rota.prove.symbol import GROUP, LANE, M32, Symbol

EFFORT = 4_000_000
"""Units of z3 for one question: a second or so."""
Term = Any
"""A bit-vector of 32 bits."""
Condition = Any
_BITS = 32


class Answer(enum.Enum):
    """Can conditions hold together?"""

    NEVER = "never"
    YES = "yes"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, and the effort that it took; where it is yes, `value` gives a term's value in an example."""

    answer: Answer
    units: int = 0
    value: Callable[[Term], int] = lambda _: 0


def available() -> bool:
    """Is z3 installed?"""
    return find_spec("z3") is not None


class BitVectors:
    """Makes terms, and asks about them."""

    def __init__(self) -> None:
        import z3

        self._z3, self._own = z3, z3.Context()  # what others have asked before changes no answer
        self._spent = 0
        self._ops = _operations(z3, self._own)
        self._conditions = _conditions(z3)

    def constant(self, number: int) -> Term:
        """A known number."""
        return self._z3.BitVecVal(number, _BITS, self._own)

    def unknown(self, name: str) -> Term:
        """An unknown number; the same name is the same one."""
        return self._z3.BitVec(name, _BITS, self._own)

    def knows(self, op: str) -> bool:
        """Is there such an operation?"""
        return op in self._ops

    def apply(self, op: str, *terms: Term) -> Term:
        """An operation of `rota.prove.symbol`, or what a carry is, by name."""
        return self._ops[op](*terms)

    def holds(self, op: str, one: Term, other: Term) -> Condition:
        """A comparison: eq, ne, lt_u, le_u, lt_i."""
        return self._conditions[op](one, other)

    def flag(self, condition: Condition) -> Term:
        """1 where it holds, else 0."""
        return self._z3.If(condition, self.constant(1), self.constant(0))

    def either(self, condition: Condition, one: Term, other: Term) -> Term:
        """One term where it holds, else the other."""
        return self._z3.If(condition, one, other)

    def ask(self, conditions: Sequence[Condition], effort: int = EFFORT) -> Reply:
        """Can all of them hold together?"""
        if not conditions:
            return Reply(answer=Answer.YES)
        solver = self._z3.SolverFor("QF_BV", ctx=self._own)
        solver.set("rlimit", max(effort, 1))
        solver.add(*conditions)
        found = solver.check()
        units = self._units(solver)
        if found == self._z3.unsat:
            return Reply(answer=Answer.NEVER, units=units)
        if found != self._z3.sat:
            return Reply(answer=Answer.UNKNOWN, units=units)
        model = solver.model()
        return Reply(
            answer=Answer.YES, units=units, value=lambda term: int(model.eval(term, model_completion=True).as_long())
        )

    def _units(self, solver: Any) -> int:  # noqa: ANN401
        """What the last question took; z3 counts them all together."""
        before, self._spent = self._spent, int(solver.statistics().get_key_value("rlimit count"))
        return self._spent - before


def _conditions(z3: Any) -> dict[str, Callable[[Term, Term], Condition]]:  # noqa: ANN401  # the module
    return {
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt_u": z3.ULT,
        "le_u": z3.ULE,
        "lt_i": lambda a, b: a < b,
    }


def _operations(z3: Any, own: Any) -> dict[str, Callable[..., Term]]:  # noqa: ANN401  # the module
    def number(value: int) -> Term:
        return z3.BitVecVal(value, _BITS, own)

    def low(bits: Term) -> Term:
        return bits & number(31)

    def wide(term: Term, *, signed: bool = False) -> Term:
        return z3.SignExt(_BITS, term) if signed else z3.ZeroExt(_BITS, term)

    def high(term: Term) -> Term:
        return z3.Extract(2 * _BITS - 1, _BITS, term)

    def short(term: Term, bits: int, *, signed: bool = False) -> Term:
        part = z3.Extract(bits - 1, 0, term)
        return z3.SignExt(_BITS - bits, part) if signed else z3.ZeroExt(_BITS - bits, part)

    def chosen(condition: Condition) -> Term:
        return z3.If(condition, number(1), number(0))

    def over(whole: Term, *, signed: bool) -> Term:
        """Does a sum of 64 bits leave the 32 that it is for?"""
        return chosen(whole != wide(z3.Extract(_BITS - 1, 0, whole), signed=signed))

    def field(a: Term, offset: Term, width: Term) -> Term:
        return z3.LShR(a, low(offset)) & ((number(1) << low(width)) - 1)

    return {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "mulhi_u": lambda a, b: high(wide(a) * wide(b)),
        "mulhi_i": lambda a, b: high(wide(a, signed=True) * wide(b, signed=True)),
        "mul24": lambda a, b: short(a, 24) * short(b, 24),
        "mul24i": lambda a, b: short(a, 24, signed=True) * short(b, 24, signed=True),
        "shl": lambda a, b: a << low(b),
        "shr": lambda a, b: z3.LShR(a, low(b)),
        "sar": lambda a, b: a >> low(b),
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "andn2": lambda a, b: a & ~b,
        "orn2": lambda a, b: a | ~b,
        "nand": lambda a, b: ~(a & b),
        "nor": lambda a, b: ~(a | b),
        "xnor": lambda a, b: ~(a ^ b),
        "not": lambda a: ~a,
        "min_u": lambda a, b: z3.If(z3.ULT(a, b), a, b),
        "max_u": lambda a, b: z3.If(z3.ULT(a, b), b, a),
        "min_i": lambda a, b: z3.If(a < b, a, b),
        "max_i": lambda a, b: z3.If(a < b, b, a),
        "abs": lambda a: z3.If(a < 0, -a, a),
        "bfe_u": field,
        "sext8": lambda a: short(a, 8, signed=True),
        "sext16": lambda a: short(a, 16, signed=True),
        "s_add_u32": lambda a, b, c: over(wide(a) + wide(b) + wide(c), signed=False),
        "s_addc_u32": lambda a, b, c: over(wide(a) + wide(b) + wide(c), signed=False),
        "s_sub_u32": lambda a, b, c: over(wide(a) - wide(b) - wide(c), signed=False),
        "s_subb_u32": lambda a, b, c: over(wide(a) - wide(b) - wide(c), signed=False),
        "s_add_i32": lambda a, b, _: over(wide(a, signed=True) + wide(b, signed=True), signed=True),
        "s_sub_i32": lambda a, b, _: over(wide(a, signed=True) - wide(b, signed=True), signed=True),
        "choose": lambda flag, a, b: z3.If(flag != 0, a, b),
    }


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
