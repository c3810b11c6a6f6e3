"""Terms and conditions of 32 bits for z3, and the conditions of a path as such terms.

`BitVectors` and `has_no_solution` import z3 when they are used.  Effort is counted in z3's units, not in seconds, so
that every machine gives the same answer.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from operator import eq, lt, ne
from typing import Any

from rota.errors import ToolchainError
from rota.prove.decisions import Decided, Decisions, Event, Renamed
from rota.prove.guesses import Guesses
from rota.prove.symbol import GROUP, LANE, M32, Symbol

EFFORT = 1_000_000  # z3's units for one query: about a quarter of a second
Term = Any  # a bit-vector of 32 bits
Condition = Any
_BITS = 32


class Answer(enum.Enum):
    NEVER = "never"
    YES = "yes"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer and its effort; if it is yes, `value` evaluates a term in an example."""

    answer: Answer
    units: int = 0
    value: Callable[[Term], int] = lambda _: 0


def is_available() -> bool:
    return find_spec("z3") is not None


Sum = tuple[Mapping[Any, int], int]
"""A sum of multiples of unknown numbers, and a constant: it isn't negative."""


def has_no_solution(sums: Sequence[Sum], effort: int = EFFORT, *, fractions: bool = False) -> bool:
    """True if no whole numbers satisfy all sums; False if some do, or the effort is used up.

    With `fractions`, True if no fractions do, which is easier to find out.
    """
    if not is_available():
        raise ToolchainError.of(
            "T301", "bounds are proved by z3, which is not installed", fixes=("pip install 'rota[prove]'",)
        )
    import z3

    own = z3.Context()
    solver = z3.SolverFor("QF_LRA" if fractions else "QF_LIA", ctx=own)
    solver.set("rlimit", effort)
    make, value = (z3.Real, z3.RealVal) if fractions else (z3.Int, z3.IntVal)
    terms: dict[Any, Any] = {}
    for factors, constant in sums:
        total = value(constant, own)
        for name, factor in factors.items():
            if name not in terms:
                terms[name] = make(f"x{len(terms)}", own)
            total = total + factor * terms[name]
        solver.add(total >= 0)
    return bool(solver.check() == z3.unsat)


class BitVectors:
    def __init__(self) -> None:
        import z3

        self._z3, self._own = z3, z3.Context()  # its own, so that no other query changes an answer
        self._spent = 0
        self._ops = _operations(z3, self._own)
        self._conditions = {"eq": eq, "ne": ne, "lt_u": z3.ULT, "le_u": z3.ULE, "lt_i": lt}

    def constant(self, number: int) -> Term:
        return self._z3.BitVecVal(number, _BITS, self._own)

    def unknown(self, name: str, bits: int = M32) -> Term:  # a guess needs the bits
        """A term for an unknown number; the same name gives the same term."""
        return self._z3.BitVec(name, _BITS, self._own)

    def knows(self, op: str) -> bool:
        return op in self._ops

    def apply(self, op: str, *terms: Term) -> Term:
        """Apply an operation of `rota.prove.symbol`, or the carry of a scalar sum, by name."""
        return self._ops[op](*terms)

    def compare(self, op: str, one: Term, other: Term) -> Condition:
        return self._conditions[op](one, other)

    def flag(self, condition: Condition) -> Term:
        return self._z3.If(condition, self.constant(1), self.constant(0))

    def choose(self, condition: Condition, one: Term, other: Term) -> Term:
        return self._z3.If(condition, one, other)

    def quotient(self, product: Term, factor: int) -> Term | None:  # z3 finds it
        return None

    def pin(self, numbers: Mapping[str, int]) -> list[Condition]:
        """The conditions that unknowns are these numbers."""
        return [self.unknown(name) == self.constant(number) for name, number in numbers.items()]

    def ask(self, conditions: Sequence[Condition], effort: int = EFFORT) -> Reply:
        if not conditions:
            return Reply(answer=Answer.YES)
        solver = self._z3.SolverFor("QF_BV", ctx=self._own)
        solver.set("rlimit", max(effort, 1))
        solver.add(*conditions)
        found = solver.check()
        # z3 counts the effort of all queries together.
        spent = int(solver.statistics().get_key_value("rlimit count"))
        units, self._spent = spent - self._spent, spent
        if found != self._z3.sat:
            return Reply(answer=Answer.NEVER if found == self._z3.unsat else Answer.UNKNOWN, units=units)
        model = solver.model()

        def value(term: Term) -> int:
            return int(model.eval(term, model_completion=True).as_long())

        return Reply(answer=Answer.YES, units=units, value=value)


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
        # Whether a sum of 64 bits doesn't fit in 32.
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
        **dict.fromkeys(("s_add_u32", "s_addc_u32"), lambda a, b, c: over(wide(a) + wide(b) + wide(c), signed=False)),
        **dict.fromkeys(("s_sub_u32", "s_subb_u32"), lambda a, b, c: over(wide(a) - wide(b) - wide(c), signed=False)),
        "s_add_i32": lambda a, b, _: over(wide(a, signed=True) + wide(b, signed=True), signed=True),
        "s_sub_i32": lambda a, b, _: over(wide(a, signed=True) - wide(b, signed=True), signed=True),
        "choose": lambda flag, a, b: z3.If(flag != 0, a, b),
    }


# Paths.

_COMPARISONS = frozenset({"eq", "lt_u", "lt_i"})
LAUNCHED = frozenset({"argument", "workgroup", "kernarg", "packet", "memory", "buffer"})
"""Symbols that a launch decides: what it passes, and what memory holds."""
_OPERANDS = {"bfe_u": 3}  # the form with offset and width in one operand isn't modelled
_Key = tuple[Symbol, int | None, int | None]


# The conditions of a path.
#
# Every concrete execution of a path satisfies all of its conditions, so conditions that can't hold together rule the
# path out.  Each step must therefore claim no more than is the case:
#
# - A symbol's op and arguments are what an instruction computed.  An op that isn't modelled here becomes an
#   unconstrained unknown, and so does, each time anew, a value that differs between lanes and a table per wave.
# - A symbol made of arguments alone is one unknown for the whole launch: memory that scalar loads read doesn't change,
#   which the verdict names as an assumption.  Any other symbol has, for a wave, one value between two renamings (a
#   frame).  Wave sets only split within a frame, so a table's rows stay those of the same waves.
# - A renaming says what each new name was in the frame before; in the first frame names are free.
# - A widened counter keeps its value at the widening; afterwards only the way back to that state constrains it.
# - What the first state knows holds on every path that reaches it, since equal states know the same.


class PathTerms:
    """The conditions of one path.

    Each renaming of symbols on the path begins a new frame, in which the same name means another unknown.  `launched`
    are the terms that a launch decides, `guessed` the operations of symbols that can be anything.
    """

    def __init__(self, builder: BitVectors | Guesses, known: Decisions | None, events: Sequence[Event]) -> None:
        self.builder: Any = builder
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
            self._widened |= {(self._frame, symbol): counter for symbol, counter in event.counters.items()}

    def _assume(self, known: Decisions) -> None:
        for (condition, wave), holds in known.known.items():
            self._decide(condition, wave, holds=holds)
        for (base, wave), (first, length) in known.arcs.items():
            away = self.builder.apply("sub", self.symbol(base, 0, wave), self.builder.constant(first))
            self.conditions.append(self.builder.compare("le_u", away, self.builder.constant(length)))

    def _decide(self, condition: Symbol, wave: int | None, *, holds: bool) -> None:
        term = self.symbol(condition, self._frame, wave)
        self.conditions.append(self.builder.compare("ne" if holds else "eq", term, self.builder.constant(0)))

    def symbol(self, symbol: Symbol, frame: int, wave: int | None) -> Term:
        """The term of a symbol in a frame, for a wave if waves don't share it."""
        shift = 0
        while symbol.op == "name" and (old := self._renamed[frame].get(symbol)) is not None:
            symbol, shift, frame = old[0], shift + old[1] & M32, frame - 1
        term = self._find(symbol, frame, wave)
        return self.builder.apply("add", term, self.builder.constant(shift)) if shift else term

    def _find(self, symbol: Symbol, frame: int, wave: int | None) -> Term:
        if symbol.spread == LANE or (symbol.spread != GROUP and wave is None):
            self._fresh += 1
            self.guessed.add(symbol.op)
            anything = self.builder.unknown(f"any_{symbol.op}_{self._fresh}", symbol.bits & M32)
            self._limit(anything, symbol)
            return anything
        shared = symbol.spread == GROUP
        key = (symbol, None if shared and symbol.stable else frame, None if shared else wave)
        found = self._terms.get(key)
        if found is None:
            found = self._terms[key] = self._make(symbol, frame, wave, key)
        return found

    def _make(self, symbol: Symbol, frame: int, wave: int | None, key: _Key) -> Term:
        term = None if symbol.op in LAUNCHED else self._derive(symbol, frame, wave)
        if term is not None:
            return term
        term = self.builder.unknown(f"{symbol.op}_{symbol.number}_{key[1]}_{key[2]}", symbol.bits & M32)
        self._limit(term, symbol)
        if symbol.op in LAUNCHED and symbol.spread == GROUP and symbol.stable:
            self.launched[symbol] = term
        elif symbol.op == "wide" and (frame, symbol) in self._widened:
            unit, old, scale, anchor = self._widened[frame, symbol]
            was = self.builder.constant(anchor & M32)
            if old is not None:
                product = self.builder.apply("mul", self.symbol(old, frame, wave), self.builder.constant(scale & M32))
                was = self.builder.apply("add", product, was)
            if (quotient := self.builder.quotient(was, unit & M32)) is not None:
                term = quotient
            now = self.builder.apply("mul", term, self.builder.constant(unit & M32))
            self.conditions.append(self.builder.compare("eq", now, was))
        else:
            self.guessed.add(symbol.op)
        return term

    def _limit(self, term: Term, symbol: Symbol) -> None:
        if symbol.bits & M32 != M32:
            beyond = self.builder.apply("and", term, self.builder.constant(~symbol.bits & M32))
            self.conditions.append(self.builder.compare("eq", beyond, self.builder.constant(0)))

    def _derive(self, symbol: Symbol, frame: int, wave: int | None) -> Term | None:
        """The operation of a symbol on its operands; None if it isn't modelled."""
        op, args = symbol.op, symbol.args
        if op == "select" and isinstance(args[0], Symbol):
            one, other = (self.key(each, frame, wave) for each in args[1:3])
            test = self.builder.compare("ne", self.symbol(args[0], frame, wave), self.builder.constant(0))
            return self.builder.choose(test, one, other)
        if op == "+":
            return self.builder.apply("add", *(self.key(each, frame, wave) for each in args[:2]))
        if op == "/" and isinstance(args[0], Symbol) and isinstance(args[1], int):
            by = self.builder.constant(args[1].bit_length() - 1)
            return self.builder.apply("shr", self.symbol(args[0], frame, wave), by)
        if op in _COMPARISONS:
            one, other = (self.key(each, frame, wave) for each in args[:2])
            return self.builder.flag(self.builder.compare(op, one, other))
        if not self.builder.knows(op) or args[-1] is not None or len(args) - 1 != _OPERANDS.get(op, len(args) - 1):
            return None
        term = self.builder.apply(op, *(self.key(each, frame, wave) for each in args[:-1]))
        if op == "and":  # such a symbol counts in units of its mask's lowest bit
            mask = next((each for each in args[:2] if isinstance(each, int) and each), 1)
            term = self.builder.apply("shr", term, self.builder.constant((mask & -mask).bit_length() - 1))
        return term

    def key(self, key: object, frame: int, wave: int | None) -> Term:
        if isinstance(key, int):
            return self.builder.constant(key & M32)
        if isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], Symbol):
            base, scale, offset = key
            term = self.builder.apply("mul", self.symbol(base, frame, wave), self.builder.constant(scale & M32))
            return self.builder.apply("add", term, self.key(offset, frame, wave))
        self._fresh += 1
        return self.builder.unknown(f"any_table_{self._fresh}")
