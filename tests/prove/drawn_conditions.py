"""Kernels with drawn conditions: takes a seed, gives a kernel that races where one condition holds and another doesn't.

What it computes is simulated here for small arguments, by code that shares nothing with the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

M32 = 0xFFFF_FFFF
State = dict[str, int]


def signed(number: int) -> int:
    return (number & M32) - ((number & M32) >> 31 << 32)


OPS: dict[str, Callable[[int, int], int]] = {
    "s_and_b32": lambda a, b: a & b,
    "s_xor_b32": lambda a, b: a ^ b,
    "s_lshr_b32": lambda a, b: (a & M32) >> (b & 31),
    "s_lshl_b32": lambda a, b: a << (b & 31),
    "s_ashr_i32": lambda a, b: signed(a) >> (b & 31),
    "s_mul_i32": lambda a, b: a * b,
    "s_add_i32": lambda a, b: a + b,
    "s_sub_i32": lambda a, b: a - b,
    "s_min_i32": lambda a, b: min(signed(a), signed(b)),
    "s_max_u32": lambda a, b: max(a & M32, b & M32),
    "s_bfe_u32": lambda a, b: (a & M32) >> (b & 31) & ((1 << (b >> 16)) - 1),
}
TESTS: dict[str, Callable[[int, int], bool]] = {
    "s_cmp_eq_u32": lambda a, b: a & M32 == b & M32,
    "s_cmp_lg_u32": lambda a, b: a & M32 != b & M32,
    "s_cmp_lt_i32": lambda a, b: signed(a) < signed(b),
    "s_cmp_gt_u32": lambda a, b: a & M32 > b & M32,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Two operations on arguments and the loop's counter, and a test."""

    ops: tuple[tuple[str, str, str, str], ...]
    test: tuple[str, str, str]

    @property
    def text(self) -> str:
        lines = [f"{op} {to}, {a}, {b}" for op, to, a, b in self.ops]
        return "\n".join((*lines, "{} {}, {}".format(*self.test)))

    def holds(self, state: State) -> bool:
        state = dict(state)
        for op, to, a, b in self.ops:
            state[to] = OPS[op](_value(state, a), _value(state, b)) & M32
        return TESTS[self.test[0]](_value(state, self.test[1]), _value(state, self.test[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A kernel's text, and what it does."""

    start: str
    step: int
    apart: Condition
    reads: Condition

    @property
    def text(self) -> str:
        return f"""
        s_load_dwordx2 s[4:5], s[0:1], 0x0
        v_lshlrev_b32_e32 v1, 2, v0
        v_xor_b32_e32 v2, 0x100, v1
        s_waitcnt lgkmcnt(0)
        s_mov_b32 s6, {self.start}
        ds_write_b32 v1, v0
        s_waitcnt lgkmcnt(0)
        again:
        s_add_i32 s6, s6, {self.step}
        s_cmp_lt_i32 s6, s4
        s_cbranch_scc1 again
        {self.apart.text}
        s_cbranch_scc0 past
        s_barrier
        past:
        {self.reads.text}
        s_cbranch_scc0 out
        ds_read_b32 v3, v2
        s_waitcnt lgkmcnt(0)
        out:
        s_nop 0
        """

    def races(self, k: int, n: int) -> bool:
        state = {"s4": k & M32, "s5": n & M32}
        state["s6"] = _value(state, self.start)
        while True:
            state["s6"] = state["s6"] + self.step & M32
            if not signed(state["s6"]) < signed(state["s4"]):
                break
        return not self.apart.holds(state) and self.reads.holds(state)


def _value(state: State, name: str) -> int:
    return state[name] if name in state else int(name)


def drawn(seed: int) -> Drawn:
    """One for each seed."""
    random = Random(f"conditions {seed}")

    def condition() -> Condition:
        ops = []
        for number in range(random.choice((1, 1, 2))):
            op = random.choice([*OPS])
            a = "s7" if number else random.choice(("s4", "s5", "s6"))
            b = str(random.choice((1, 2, 3, 4, 6)))
            if op == "s_bfe_u32":
                b = str(random.choice((1, 2)) << 16 | random.choice((0, 1)))
            elif op not in {"s_lshr_b32", "s_lshl_b32", "s_ashr_i32"} and random.random() < 0.4:
                b = random.choice(("s4", "s5", "s6"))
            ops.append((op, "s7", a, b))
        other = random.choice(("0", "1", "2", "3", "s4", "s6"))
        return Condition(ops=tuple(ops), test=(random.choice([*TESTS]), "s7", other))

    start, apart, reads = random.choice(("0", "0", "1", "s5")), condition(), condition()
    if random.random() < 0.7:  # both about the same: then some can't be
        more = (random.choice(("s_and_b32", "s_lshr_b32", "s_mul_i32")), "s7", "s7", str(random.choice((1, 2, 3, 6))))
        test = ("s_cmp_eq_u32", "s7", str(random.choice((0, 1, 2, 3, 6))))
        reads = Condition(ops=(*apart.ops, more), test=test)
    return Drawn(start=start, step=random.choice((1, 2, 3, 4)), apart=apart, reads=reads)
