"""Scalar instructions on plain integers, bit by bit: takes assembly text and a state, changes the state."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tests.isa.plain.machine import State, inner, raw, register, taken_apart
from tests.isa.plain.numbers import signed

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
# (a, b, scc, old destination) -> (result, scc or None)
Function = Callable[[int, int, int, int], tuple[int, int | None]]


class Scalar(NamedTuple):
    """Bits of the result and of the sources, and the function; no bits, no such operand."""

    result: int
    first: int
    second: int
    function: Function


def _bits(value: int, width: int) -> list[int]:
    return [value >> place & 1 for place in range(width)]


def _number(bits: list[int]) -> int:
    return sum(bit << place for place, bit in enumerate(bits))


def _some(result: int, width: int) -> tuple[int, int]:
    result &= (1 << width) - 1
    return result, int(result != 0)


def _find(bits: list[int], wanted: int) -> int:
    return bits.index(wanted) if wanted in bits else M32


def _sign_run(value: int, width: int) -> int:
    bits = _bits(value, width)[::-1]
    return next((place for place, bit in enumerate(bits) if bit != bits[0]), M32)


def _overflows(total: int) -> tuple[int, int]:
    return total & M32, int(total != signed(total & M32, 32))


def _field(a: int, b: int, width: int, *, sign: bool) -> tuple[int, int]:
    bits = _bits(a, width)[b & width - 1 :][: b >> 16 & 0x7F]
    value = _number(bits)
    size = b >> 16 & 0x7F
    if sign and bits and len(bits) == size and bits[-1]:
        value -= 1 << size
    return _some(value, width)


def _logic(name: str, width: int) -> Function:
    table = {"and": "0001", "or": "0111", "xor": "0110", "andn2": "0010", "orn2": "1011", "nand": "1110", "nor": "1000",
             "xnor": "1001"}[name]  # fmt: skip

    def run(a: int, b: int, _: int, __: int) -> tuple[int, int]:
        pairs = zip(_bits(a, width), _bits(b, width), strict=True)
        return _some(_number([int(table[2 * x + y]) for x, y in pairs]), width)

    return run


def _quads(a: int, width: int) -> list[int]:
    return [int(any(_bits(a, width)[place : place + 4])) for place in range(0, width, 4)]


def _masked(width: int) -> Function:
    return lambda a, b, s, d: ((((1 << (a & width - 1)) - 1) << (b & width - 1)) & (1 << width) - 1, None)


def _shifted_sum(factor: int) -> Function:
    return lambda a, b, s, d: ((a * factor + b) & M32, int(a * factor + b > M32))


TABLE: dict[str, Scalar] = {
    "s_movk_i32": Scalar(32, 16, 0, lambda a, b, s, d: (signed(a, 16) & M32, None)),
    "s_cmovk_i32": Scalar(32, 16, 0, lambda a, b, s, d: (signed(a, 16) & M32 if s else d, None)),
    "s_addk_i32": Scalar(32, 16, 0, lambda a, b, s, d: _overflows(signed(d, 32) + signed(a, 16))),
    "s_mulk_i32": Scalar(32, 16, 0, lambda a, b, s, d: (signed(d, 32) * signed(a, 16) & M32, None)),
    "s_sext_i32_i8": Scalar(32, 32, 0, lambda a, b, s, d: (signed(a & 0xFF, 8) & M32, None)),
    "s_sext_i32_i16": Scalar(32, 32, 0, lambda a, b, s, d: (signed(a & 0xFFFF, 16) & M32, None)),
    "s_abs_i32": Scalar(32, 32, 0, lambda a, b, s, d: _some(-signed(a, 32) if a >> 31 else a, 32)),
    "s_bitreplicate_b64_b32": Scalar(
        64, 32, 0, lambda a, b, s, d: (_number([bit for bit in _bits(a, 32) for _ in (0, 1)]), None)),
    "s_add_u32": Scalar(32, 32, 32, lambda a, b, s, d: ((a + b) & M32, int(a + b > M32))),
    "s_sub_u32": Scalar(32, 32, 32, lambda a, b, s, d: ((a - b) & M32, int(a < b))),
    "s_add_i32": Scalar(32, 32, 32, lambda a, b, s, d: _overflows(signed(a, 32) + signed(b, 32))),
    "s_sub_i32": Scalar(32, 32, 32, lambda a, b, s, d: _overflows(signed(a, 32) - signed(b, 32))),
    "s_addc_u32": Scalar(32, 32, 32, lambda a, b, s, d: ((a + b + s) & M32, int(a + b + s > M32))),
    "s_subb_u32": Scalar(32, 32, 32, lambda a, b, s, d: ((a - b - s) & M32, int(a < b + s))),
    "s_min_i32": Scalar(32, 32, 32, lambda a, b, s, d: (
        min(signed(a, 32), signed(b, 32)) & M32, int(signed(a, 32) < signed(b, 32)))),
    "s_max_i32": Scalar(32, 32, 32, lambda a, b, s, d: (
        max(signed(a, 32), signed(b, 32)) & M32, int(signed(a, 32) > signed(b, 32)))),
    "s_min_u32": Scalar(32, 32, 32, lambda a, b, s, d: (min(a, b), int(a < b))),
    "s_max_u32": Scalar(32, 32, 32, lambda a, b, s, d: (max(a, b), int(a > b))),
    "s_mul_i32": Scalar(32, 32, 32, lambda a, b, s, d: (a * b & M32, None)),
    "s_mul_hi_u32": Scalar(32, 32, 32, lambda a, b, s, d: (a * b >> 32, None)),
    "s_mul_hi_i32": Scalar(32, 32, 32, lambda a, b, s, d: (signed(a, 32) * signed(b, 32) >> 32 & M32, None)),
    "s_absdiff_i32": Scalar(32, 32, 32, lambda a, b, s, d: _some(
        abs(signed((a - b) & M32, 32)), 32)),
    "s_bfm_b32": Scalar(32, 32, 32, _masked(32)),
    "s_bfm_b64": Scalar(64, 32, 32, _masked(64)),
    "s_bfe_u32": Scalar(32, 32, 32, lambda a, b, s, d: _field(a, b, 32, sign=False)),
    "s_bfe_i32": Scalar(32, 32, 32, lambda a, b, s, d: _field(a, b, 32, sign=True)),
    "s_bfe_u64": Scalar(64, 64, 32, lambda a, b, s, d: _field(a, b, 64, sign=False)),
    "s_bfe_i64": Scalar(64, 64, 32, lambda a, b, s, d: _field(a, b, 64, sign=True)),
    "s_pack_ll_b32_b16": Scalar(32, 32, 32, lambda a, b, s, d: (a % 65536 + b % 65536 * 65536, None)),
    "s_pack_lh_b32_b16": Scalar(32, 32, 32, lambda a, b, s, d: (a % 65536 + b // 65536 * 65536, None)),
    "s_pack_hh_b32_b16": Scalar(32, 32, 32, lambda a, b, s, d: (a // 65536 + b // 65536 * 65536, None)),
    "s_ashr_i32": Scalar(32, 32, 32, lambda a, b, s, d: _some(signed(a, 32) >> (b & 31), 32)),
    "s_ashr_i64": Scalar(64, 64, 32, lambda a, b, s, d: _some(signed(a, 64) >> (b & 63), 64)),
    **{f"s_lshl{k}_add_u32": Scalar(32, 32, 32, _shifted_sum(2**k)) for k in (1, 2, 3, 4)},
}  # fmt: skip


def _of_width(w: int) -> dict[str, Scalar]:
    """Opcodes that there are for 32 and 64 bits."""
    sign_run = "s_flbit_i32" if w == 32 else "s_flbit_i32_i64"
    doubled: Function = lambda a, b, s, d: _some(_number([bit for bit in _quads(a, w) for _ in range(4)]), w)  # noqa: E731
    return {
        f"s_mov_b{w}": Scalar(w, w, 0, lambda a, b, s, d: (a, None)),
        f"s_cmov_b{w}": Scalar(w, w, 0, lambda a, b, s, d: (a if s else d, None)),
        f"s_not_b{w}": Scalar(w, w, 0, lambda a, b, s, d: _some(~a, w)),
        f"s_brev_b{w}": Scalar(w, w, 0, lambda a, b, s, d: (_number(_bits(a, w)[::-1]), None)),
        f"s_wqm_b{w}": Scalar(w, w, 0, doubled),
        f"s_quadmask_b{w}": Scalar(w, w, 0, lambda a, b, s, d: _some(_number(_quads(a, w)), w)),
        f"s_bcnt0_i32_b{w}": Scalar(32, w, 0, lambda a, b, s, d: _some(_bits(a, w).count(0), 32)),
        f"s_bcnt1_i32_b{w}": Scalar(32, w, 0, lambda a, b, s, d: _some(_bits(a, w).count(1), 32)),
        f"s_ff0_i32_b{w}": Scalar(32, w, 0, lambda a, b, s, d: (_find(_bits(a, w), 0), None)),
        f"s_ff1_i32_b{w}": Scalar(32, w, 0, lambda a, b, s, d: (_find(_bits(a, w), 1), None)),
        f"s_flbit_i32_b{w}": Scalar(32, w, 0, lambda a, b, s, d: (_find(_bits(a, w)[::-1], 1), None)),
        sign_run: Scalar(32, w, 0, lambda a, b, s, d: (_sign_run(a, w), None)),
        f"s_bitset0_b{w}": Scalar(w, 32, 0, lambda a, b, s, d: (d & ~(1 << a % w), None)),
        f"s_bitset1_b{w}": Scalar(w, 32, 0, lambda a, b, s, d: (d | 1 << a % w, None)),
        f"s_bitcmp0_b{w}": Scalar(0, w, 32, lambda a, b, s, d: (0, 1 - (a >> b % w & 1))),
        f"s_bitcmp1_b{w}": Scalar(0, w, 32, lambda a, b, s, d: (0, a >> b % w & 1)),
        f"s_cselect_b{w}": Scalar(w, w, w, lambda a, b, s, d: (a if s else b, None)),
        f"s_lshl_b{w}": Scalar(w, w, 32, lambda a, b, s, d: _some(a << b % w, w)),
        f"s_lshr_b{w}": Scalar(w, w, 32, lambda a, b, s, d: _some(a >> b % w, w)),
        **{
            f"s_{name}_b{w}": Scalar(w, w, w, _logic(name, w))
            for name in ("and", "or", "xor", "andn2", "orn2", "nand", "nor", "xnor")
        },
    }


def _of_order(order: str, test: Callable[[int, int], bool]) -> dict[str, Scalar]:
    """Comparisons."""
    return {
        f"s_cmp_{order}_i32": Scalar(0, 32, 32, lambda a, b, s, d: (0, int(test(signed(a, 32), signed(b, 32))))),
        f"s_cmp_{order}_u32": Scalar(0, 32, 32, lambda a, b, s, d: (0, int(test(a, b)))),
        f"s_cmpk_{order}_i32": Scalar(0, 32, 16, lambda a, b, s, d: (0, int(test(signed(a, 32), signed(b, 16))))),
        f"s_cmpk_{order}_u32": Scalar(0, 32, 16, lambda a, b, s, d: (0, int(test(a, b)))),
        f"s_cmp_{order}_u64": Scalar(0, 64, 64, lambda a, b, s, d: (0, int(test(a, b)))),
    }


_TESTS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "lg": lambda a, b: a != b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
}  # fmt: skip
TABLE |= {**_of_width(32), **_of_width(64)}
for _order, _test in _TESTS.items():
    TABLE |= {
        name: spec for name, spec in _of_order(_order, _test).items() if _order in {"eq", "lg"} or "u64" not in name
    }
SAVES = {
    **{f"s_{name}_saveexec_b64": name for name in ("and", "or", "xor", "andn2", "orn2", "nand", "nor", "xnor")},
    "s_andn1_saveexec_b64": "andn1", "s_orn1_saveexec_b64": "orn1", "s_andn1_wrexec_b64": "andn1",
    "s_andn2_wrexec_b64": "andn2",
}  # fmt: skip
MOVES = ("s_movrels_b32", "s_movrels_b64", "s_movreld_b32", "s_movreld_b64")
SCALARS = (*TABLE, *SAVES, *MOVES)


def run_scalar(text: str, state: State) -> None:
    """Runs one scalar instruction."""
    parts = taken_apart(text)
    if parts.name in SAVES:
        _save(state, parts.name, parts.operands)
        return
    if parts.name in MOVES:
        _move(state, parts.name, parts.operands)
        return
    spec = TABLE[parts.name]
    operands = list(parts.operands)
    place = register(operands[0]) if spec.result else None
    old = _value(state, operands.pop(0), spec.result) if spec.result else 0
    first = _value(state, operands[0], spec.first)
    second = _value(state, operands[1], spec.second) if spec.second else 0
    result, scc = spec.function(first, second, state.scc, old)
    if place is not None:
        _put(state, place[1], result, spec.result)
    if scc is not None:
        state.scc = scc


def _put(state: State, first: int, value: int, width: int) -> None:
    state.s[first] = value & M32
    if width == 64:
        state.s[first + 1] = value >> 32


def _value(state: State, text: str, width: int) -> int:
    bits = raw(state, inner(text)[0] if text[0] in "sve" else text, "u64" if width == 64 else "u32", 0)
    return bits & 0xFFFF if width == 16 else bits


def _save(state: State, name: str, operands: tuple[str, ...]) -> None:
    place = register(operands[0])
    assert place is not None
    kind, mask, before = SAVES[name], _value(state, operands[1], 64), state.exec
    if kind.endswith("n1"):
        result, _ = _logic(kind.replace("n1", "n2"), 64)(before, mask, 0, 0)
    else:
        result, _ = _logic(kind, 64)(mask, before, 0, 0)
    state.put_mask(place[1], result if "wrexec" in name else before)
    state.put_mask(126, result)
    state.scc = int(result != 0)


def _move(state: State, name: str, operands: tuple[str, ...]) -> None:
    target, source = (register(each) for each in operands)
    assert target is not None
    assert source is not None
    wide = 64 if name.endswith("64") else 32
    index = state.s[124]
    if "movrels" in name:
        moved = state.s[source[1] + index] | state.s[source[1] + index + 1] << 32
        _put(state, target[1], moved & (M64 if wide == 64 else M32), wide)
    else:
        _put(state, target[1] + index, _value(state, operands[1], wide), wide)


def scalar_text(random: Random, name: str) -> str:
    """A text of a scalar opcode."""
    if name in SAVES:
        return f"{name} s[8:9], {random.choice(('s[2:3]', 'vcc', '-1'))}"
    if name in MOVES:
        return f"{name} s[8:9], s[2:3]" if name.endswith("64") else f"{name} s8, s2"
    spec = TABLE[name]
    texts = ["s[8:9]" if spec.result == 64 else "s8"] if spec.result else []
    literals = 0
    for place, width in ((2, spec.first), (4, spec.second)):
        if width == 16:
            texts.append(hex(random.getrandbits(16)))
        elif width:
            choice = random.random()
            register_text = f"s[{place}:{place + 1}]" if width == 64 else f"s{place}"
            text = (
                register_text
                if choice < 0.6 or (name.startswith("s_cmpk"))
                else random.choice(
                    (
                        str(random.randrange(-16, 65)),
                        "1.0",
                        "vcc" if width == 64 else "vcc_hi",
                        hex(random.getrandbits(31) | 256),
                    )
                )
            )
            literals += text.startswith("0x")
            texts.append(register_text if text.startswith("0x") and literals > 1 else text)
    return f"{name} {', '.join(texts)}"
