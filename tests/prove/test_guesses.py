"""Guessed launches: the arithmetic is z3's, ordinary numbers come first, and z3 has the last word."""

from __future__ import annotations

import numpy as np
import pytest

from rota.prove.bit_vectors import Answer, BitVectors, PathTerms
from rota.prove.causes import UNDECIDED, EvidenceLevel
from rota.prove.decisions import Decided, StateGraph, Widened
from rota.prove.evaluation import Evaluator
from rota.prove.guesses import Guesses
from rota.prove.symbol import Linear, Value, times
from rota.prove.verdict import Budget, Meter
from rota.prove.witness import Feasibility
from tests.prove.test_feasibility import executed
from tests.prove.written import evidence

ONE = Evaluator(64)
A, B = ONE.symbols.argument("argument", 0), ONE.symbols.argument("argument", 4)
_THREE = ("s_add_u32", "s_addc_u32", "s_sub_u32", "s_subb_u32", "s_add_i32", "s_sub_i32", "bfe_u", "choose")
_ONE = ("not", "abs", "sext8", "sext16")
_NUMBERS = (0, 1, 5, 31, 0x7FFF, 0x8000, 0xFF_FFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)


def decide(kind: str, one: Value, other: Value, *, holds: bool = True) -> Decided:
    made = ONE.compare(kind, "i", one, other)
    assert isinstance(made, Linear)
    return Decided(condition=made.base, holds=holds, wave=None)


@pytest.mark.parametrize("op", [
    "add", "sub", "mul", "mulhi_u", "mulhi_i", "mul24", "mul24i", "shl", "shr", "sar", "and", "or", "xor", "andn2",
    "orn2", "nand", "nor", "xnor", "min_u", "max_u", "min_i", "max_i", *_ONE, *_THREE,
])  # fmt: skip
def test_an_operation_gives_what_z3_gives(op: str) -> None:
    exact, guesses = BitVectors(), Guesses()
    assert exact.knows(op)
    assert guesses.knows(op)
    draw = np.random.default_rng(1)
    for _ in range(60):
        numbers = draw.choice(_NUMBERS, 3).tolist()
        numbers[2] &= 1 if op.startswith("s_") else 31  # a carry
        terms = [*map(exact.constant, numbers)][: 1 if op in _ONE else 3 if op in _THREE else 2]
        own = [*map(guesses.constant, numbers)][: len(terms)]
        same = exact.compare("eq", exact.apply(op, *terms), exact.constant(int(guesses.apply(op, *own))))
        assert exact.ask([same]).answer is Answer.YES, numbers


def test_ordinary_numbers_come_first() -> None:
    guesses = Guesses()
    terms = PathTerms(guesses, None, [decide("lt", Linear(A.base, 1, 0), 300, holds=False), decide("lt", B, 2000)])
    found = guesses.find(terms.conditions)
    assert found is not None
    size, other = found.values()
    assert size >= 300
    assert size % 64 == 0
    assert other < 2000


def test_a_widened_counter_is_divided_not_guessed() -> None:
    wide = ONE.symbols.fresh("wide", 0)
    assert isinstance(wide, Linear)
    for unit, anchor, right in ((6, 42, 7), (12, 36, 3), (1, 9, 9)):
        widened = Widened(counters={wide.base: (unit, None, 0, anchor)})
        for number, holds in ((right, True), (right + 1, False)):
            guesses, then = Guesses(), decide("eq", times(wide, 2), 2 * number)
            found = guesses.find(PathTerms(guesses, None, [widened, then]).conditions)
            assert (found is not None) is holds


def test_z3_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, path = StateGraph(), decide("lt", A, 5)
    asked = Feasibility(graph, BitVectors(), Meter(Budget()))
    events = [path, decide("lt", A, 5, holds=False)]
    monkeypatch.setattr(Guesses, "find", lambda *_: {f"argument_{A.base.number}_None_None": 3})
    builder = asked._builder
    for asked_for, answer in (([path], Answer.YES), (events, Answer.NEVER)):
        pinned = builder.pin(asked._guess(0, asked_for))
        assert pinned
        assert builder.ask([*PathTerms(builder, None, asked_for).conditions, *pinned]).answer is answer


def test_a_guess_answers_where_z3_is_given_nothing() -> None:
    """The product of three unknowns: a thousand of z3's units are enough to check a guess."""
    names = [f"argument_{each.base.number}_None_None" for each in (A, B)]
    product = ONE.compute("mul", ONE.compute("mulhi_u", A, B), ONE.compute("mul", A, B))
    made = ONE.compare("lt", "u", 0x1234_5678, product)
    assert isinstance(made, Linear)
    exact, guesses = BitVectors(), Guesses()
    event = Decided(condition=made.base, holds=True, wave=None)
    found = guesses.find(PathTerms(guesses, None, [event]).conditions)
    assert found is not None
    assert {*found} <= {*names}
    reply = exact.ask([*PathTerms(exact, None, [event]).conditions, *exact.pin(found)], 1_000)
    assert reply.answer is Answer.YES


_QUOTIENT = """
s_load_dword s4, s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
v_xor_b32_e32 v2, 0x100, v1
s_waitcnt lgkmcnt(0)
{quotient}
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
s_cmp_eq_u32 s4, 0x12345
s_cbranch_scc0 out
ds_read_b32 v3, v2
s_waitcnt lgkmcnt(0)
out:
s_nop 0
"""
_CONVERTED = """
v_cvt_f32_u32_e32 v4, s4
v_mul_f32_e32 v4, 0, v4
v_cvt_u32_f32_e32 v4, v4
s_nop 4
v_readfirstlane_b32 s4, v4
s_nop 4
"""


def test_a_path_that_depends_on_a_result_that_no_launch_decides_is_undecided() -> None:
    """What a conversion gives isn't modelled; here it never gives what the path asks for."""
    verdict = executed(_QUOTIENT.format(quotient=_CONVERTED))
    assert verdict.level is EvidenceLevel.UNDECIDED
    assert "v_cvt_u32_f32" in str(evidence(verdict, "I109")[UNDECIDED])
    assert executed(_QUOTIENT.format(quotient="")).level is EvidenceLevel.SHOWN
