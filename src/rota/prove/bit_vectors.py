"""The door to z3: takes terms of 32 bits and conditions on them, gives whether they can hold together, and how.

z3 is imported when a `BitVectors` is made, and nowhere else.  Its effort is counted in its own units, not in seconds,
so that the answer is the same on every machine.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

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
        """An operation of `rota.prove.arithmetic`, or what a carry is, by name."""
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
