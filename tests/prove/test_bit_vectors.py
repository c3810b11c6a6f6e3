"""What z3 is told of an operation is what the proof computes."""

from __future__ import annotations

from random import Random

import pytest

from rota.prove.bit_vectors import Answer, BitVectors
from rota.prove.symbol import ARITHMETIC, COMPARISONS

EDGES = (0, 1, 2, 31, 32, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)
TAKES = {"not": 1, "abs": 1, "sext8": 1, "sext16": 1, "bfe_u": 3}
KNOWN = sorted(op for op in ARITHMETIC if BitVectors().knows(op))


def drawn(count: int, seed: str) -> list[tuple[int, ...]]:
    random = Random(seed)
    edges = [tuple(random.choice(EDGES) for _ in range(count)) for _ in range(20)]
    return [*edges, *(tuple(random.getrandbits(32) for _ in range(count)) for _ in range(10))]


def value(make: BitVectors, term: object) -> int:
    result = make.unknown("result")
    reply = make.ask([make.compare("eq", result, term)])
    assert reply.answer is Answer.YES
    return reply.value(result)


def test_most_of_the_arithmetic_is_known() -> None:
    assert len(KNOWN) > 25


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("op", KNOWN)
def test_an_operation_is_the_same(op: str) -> None:
    make = BitVectors()
    for numbers in drawn(TAKES.get(op, 2), op):
        told = make.apply(op, *map(make.constant, numbers))
        assert value(make, told) == ARITHMETIC[op](*numbers) & 0xFFFF_FFFF, numbers


@pytest.mark.parametrize("op", sorted(COMPARISONS))
def test_a_comparison_is_the_same(op: str) -> None:
    make = BitVectors()
    for one, other in drawn(2, op):
        told = make.flag(make.compare(op, make.constant(one), make.constant(other)))
        assert value(make, told) == COMPARISONS[op](one, other)


def carry(op: str, a: int, b: int, c: int) -> bool:
    if op.endswith("i32"):
        a, b, c = a - (a >> 31 << 32), b - (b >> 31 << 32), 0
        total = a + b if "add" in op else a - b
        return not -(1 << 31) <= total < 1 << 31
    total = a + b + c if "add" in op else a - b - c
    return not 0 <= total < 1 << 32


@pytest.mark.parametrize("op", ["s_add_u32", "s_addc_u32", "s_sub_u32", "s_subb_u32", "s_add_i32", "s_sub_i32"])
def test_a_carry_is_what_the_sum_does_not_hold(op: str) -> None:
    make = BitVectors()
    for a, b, c in drawn(3, op):
        last = c & 1 if op in {"s_addc_u32", "s_subb_u32"} else 0
        told = make.apply(op, *map(make.constant, (a, b, last)))
        assert value(make, told) == carry(op, a, b, last), (a, b, last)


def test_a_choice_is_by_its_flag() -> None:
    make = BitVectors()
    for flag in (0, 1):
        told = make.apply("choose", *map(make.constant, (flag, 7, 9)))
        assert value(make, told) == (7 if flag else 9)


def test_what_cannot_be_is_never() -> None:
    make = BitVectors()
    one = make.unknown("one")
    assert make.ask([make.compare("lt_u", one, make.constant(0))]).answer is Answer.NEVER
    assert make.ask([]).answer is Answer.YES
