"""Scalar instructions of gfx12 on plain integers and exact numbers, and how they are drawn.

What older machines have, too, is computed by the table of `tests.isa.plain.scalar`, under its new name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

from tests.isa.plain import numbers as n
from tests.isa.plain.functions import REALS
from tests.isa.plain.machine import WIDTHS
from tests.isa.plain.numbers import Num
from tests.isa.plain.scalar import TABLE as OLD, Scalar
from tests.isa.plain_gfx12.functions import FLOATING
from tests.isa.plain_gfx12.machine import (
    EXEC,
    M0,
    M32,
    M64,
    Operand,
    State,
    Text,
    decoded,
    encoded,
    loose_scalar,
    raw,
    scalar_bits,
    signed_bits,
    taken_apart,
)
from tests.isa.plain_gfx12.vector import ORDERS, compared, cut

_RENAMED = {
    "s_add_co_u32": "s_add_u32", "s_sub_co_u32": "s_sub_u32", "s_add_co_i32": "s_add_i32", "s_sub_co_i32": "s_sub_i32",
    "s_add_co_ci_u32": "s_addc_u32", "s_sub_co_ci_u32": "s_subb_u32", "s_addk_co_i32": "s_addk_i32",
    "s_clz_i32_u32": "s_flbit_i32_b32", "s_clz_i32_u64": "s_flbit_i32_b64", "s_cls_i32": "s_flbit_i32",
    "s_cls_i32_i64": "s_flbit_i32_i64", "s_ctz_i32_b32": "s_ff1_i32_b32", "s_ctz_i32_b64": "s_ff1_i32_b64",
    **{f"s_{name}_not1_b{w}": f"s_{name}n2_b{w}" for name in ("and", "or") for w in (32, 64)},
}  # fmt: skip
_GONE = ("s_ff", "s_flbit", "s_cmpk", "s_andn2", "s_orn2", "s_add_", "s_sub_", "s_addc", "s_subb", "s_addk")
INTEGERS: dict[str, Scalar] = {
    **{name: each for name, each in OLD.items() if not name.startswith(_GONE)},
    **{name: OLD[old] for name, old in _RENAMED.items()},
    "s_add_nc_u64": Scalar(64, 64, 64, lambda a, b, s, d: (a + b & M64, None)),
    "s_sub_nc_u64": Scalar(64, 64, 64, lambda a, b, s, d: (a - b & M64, None)),
    "s_mul_u64": Scalar(64, 64, 64, lambda a, b, s, d: (a * b & M64, None)),
    "s_pack_hl_b32_b16": Scalar(32, 32, 32, lambda a, b, s, d: (a // 65536 + b % 65536 * 65536, None)),
}


class Real(NamedTuple):
    """Types of the result and of the sources, and the function."""

    result: str
    sources: tuple[str, ...]
    function: Callable[..., Any]


def _reals() -> dict[str, Real]:
    found: dict[str, Real] = {}
    for t in ("f16", "f32"):
        for name in ("add", "sub", "mul"):
            found[f"s_{name}_{t}"] = Real(t, (t, t), REALS[f"v_{name}_{t}"].function)
        for name in ("min_num", "max_num", "minimum", "maximum"):
            found[f"s_{name}_{t}"] = Real(t, (t, t), FLOATING[f"v_{name}_{t}"].function)
        for name in ("ceil", "floor", "trunc", "rndne"):
            found[f"s_{name}_{t}"] = Real(t, (t,), FLOATING[f"v_{name}_{t}"].function)
        for name in ("fmac", "fmamk", "fmaak"):
            found[f"s_{name}_{t}"] = Real(t, (t, t, t), n.multiply_add)
    for gone in ("s_fmamk_f16", "s_fmaak_f16"):
        del found[gone]
    return found | {
        "s_cvt_f32_i32": Real("f32", ("i32",), n.number),
        "s_cvt_f32_u32": Real("f32", ("u32",), n.number),
        "s_cvt_i32_f32": Real("i32", ("f32",), lambda a: _integer(a, -(2**31), 2**31 - 1)),
        "s_cvt_u32_f32": Real("u32", ("f32",), lambda a: _integer(a, 0, M32)),
        "s_cvt_f16_f32": Real("f16", ("f32",), lambda a: a),
        "s_cvt_f32_f16": Real("f32", ("f16",), lambda a: a),
        "s_cvt_hi_f32_f16": Real("f32", ("u32",), lambda a: n.unpack(a >> 16, "f16")),
        "s_cvt_pk_rtz_f16_f32": Real("u32", ("f32", "f32"), lambda a, b: cut(a, "f16") | cut(b, "f16") << 16),
    }


def _integer(a: Num, low: int, high: int) -> int:
    if a.nan:
        return 0
    value = Fraction(low if a.negative else high) if a.inf else a.value
    return max(low, min(math.trunc(value), high))


FLOATS = _reals()
COMPARES = {f"s_cmp_{order}_{t}": (order, t) for order in ORDERS for t in ("f16", "f32") if order != "ne"}
_KINDS = ("and", "or", "xor", "nand", "nor", "xnor", "and_not0", "and_not1", "or_not0", "or_not1")
SAVES = {
    **{f"s_{kind}_saveexec_b{w}": (kind, w) for kind in _KINDS for w in (32, 64)},
    **{f"s_{kind}_wrexec_b{w}": (kind, w) for kind in ("and_not0", "and_not1") for w in (32, 64)},
}
MOVES = ("s_movrels_b32", "s_movrels_b64", "s_movreld_b32", "s_movreld_b64")
SCALARS = (*INTEGERS, *FLOATS, *COMPARES, *SAVES, *MOVES)


def run_scalar(text: str, state: State) -> None:
    """Runs one scalar instruction."""
    parts = taken_apart(text)
    if parts.name in SAVES:
        _save(state, parts)
    elif parts.name in MOVES:
        _move(state, parts)
    elif parts.name in FLOATS:
        _compute(state, parts)
    elif parts.name in COMPARES:
        order, kind = COMPARES[parts.name]
        a, b = (_number(state, each, kind) for each in parts.operands)
        state.scc = int(compared(a, b) in ORDERS[order])
    else:
        _of_bits(state, parts)


def _of_bits(state: State, text: Text) -> None:
    spec = INTEGERS[text.name]
    operands = list(text.operands)
    target = operands.pop(0) if spec.result else None
    old = 0 if target is None else _bits(state, target, spec.result)
    first = _bits(state, operands[0], spec.first)
    second = _bits(state, operands[1], spec.second) if spec.second else 0
    result, scc = spec.function(first, second, state.scc, old)
    if target is not None:
        state.put_scalar(target.row, result, spec.result)
    if scc is not None:
        state.scc = scc


def _bits(state: State, operand: Operand, width: int) -> int:
    return scalar_bits(state, operand, "u64" if width == 64 else "u32") & (1 << width) - 1


def _number(state: State, operand: Operand, kind: str) -> Any:
    bits = scalar_bits(state, operand, kind)
    return decoded(signed_bits(bits, operand, WIDTHS[kind]), kind)


def _compute(state: State, text: Text) -> None:
    spec, target = FLOATS[text.name], text.operands[0]
    operands = text.operands[1:] + (text.operands[:1] if "fmac" in text.name else ())
    values = [_number(state, each, kind) for each, kind in zip(operands, spec.sources, strict=True)]
    state.put_scalar(target.row, encoded(spec.function(*values), spec.result))
    if spec.result in n.FORMATS:
        state.loose_scalars[target.row] = loose_scalar(spec.result, 0)
    if text.name == "s_cvt_pk_rtz_f16_f32":
        state.loose_scalars[target.row] = [(0, "f16", 0), (16, "f16", 0)]


def _save(state: State, text: Text) -> None:
    """By bits: what the mask and EXEC make of each other; the first is the mask."""
    kind, width = SAVES[text.name]
    target, mask = text.operands[0], _bits(state, text.operands[1], width)
    before = raw(state, Operand("s", EXEC, width // 32, -1, "", negated=False, bars=False), f"u{width}", 0)
    full = (1 << width) - 1
    first = ~mask & full if kind.endswith("not0") else mask
    second = ~before & full if kind.endswith("not1") else before
    result = {
        "and": first & second, "or": first | second, "xor": first ^ second, "nand": ~(first & second) & full,
        "nor": ~(first | second) & full, "xnor": ~(first ^ second) & full,
    }[kind.partition("_")[0]]  # fmt: skip
    state.put_scalar(target.row, result if "wrexec" in text.name else before, width)
    state.put_scalar(EXEC, result, width)
    state.scc = int(result != 0)


def _move(state: State, text: Text) -> None:
    target, source = text.operands
    width, index = int(text.name[-2:]), state.s[M0]
    if "movrels" in text.name:
        joined = state.s[source.row + index] | state.s[source.row + index + 1] << 32
        state.put_scalar(target.row, joined & (1 << width) - 1, width)
    else:
        state.put_scalar(target.row + index, _bits(state, source, width), width)


# Drawing.


def _named(first: int, width: int) -> str:
    return f"s[{first}:{first + 1}]" if width == 64 else f"s{first}"


def _target(random: Random, width: int) -> str:
    masks = ("vcc", "exec") if width == 64 else ("vcc_lo", "exec_lo", "vcc_hi", "m0")
    return _named(8, width) if random.random() < 0.7 else random.choice(masks)


def _anything(random: Random, first: int, width: int, *, literal: bool) -> str:
    choice = random.random()
    if choice < 0.6:
        return _named(first, width)
    if choice < 0.75:
        return str(random.randrange(-16, 65))
    if choice < 0.85:
        return "vcc" if width == 64 else random.choice(("vcc_lo", "vcc_hi", "m0"))
    if not literal:
        return "1.0"
    return hex(random.getrandbits(random.choice((31, width))) | 256)


def scalar_text(random: Random, name: str) -> str:
    """A text of a scalar opcode."""
    if name in SAVES:
        width = SAVES[name][1]
        mask = random.choice((_named(2, width), "vcc" if width == 64 else "vcc_lo", "-1"))
        return f"{name} {_named(8, width)}, {mask}"
    if name in MOVES:
        return f"{name} s[8:9], s[2:3]" if name.endswith("64") else f"{name} s8, s2"
    if name in FLOATS or name in COMPARES:
        return _float_text(random, name)
    spec = INTEGERS[name]
    texts = [_target(random, spec.result)] if spec.result else []
    literal = True
    for place, width in ((2, spec.first), (4, spec.second)):
        if width == 16:
            texts.append(hex(random.getrandbits(16)))
        elif width:
            texts.append(_anything(random, place, width, literal=literal))
            literal &= not texts[-1].startswith("0x")
    return f"{name} {', '.join(texts)}"


_CONSTANTS = ("0.5", "-1.0", "2.0", "-4.0", "1.0", "0")


def _float_text(random: Random, name: str) -> str:
    kinds = FLOATS[name].sources if name in FLOATS else (COMPARES[name][1],) * 2
    sources = [f"s{2 * place}" for place in range(len(kinds) - ("fmac" in name))]
    if "fmamk" in name or "fmaak" in name:
        sources[1 if "fmamk" in name else 2] = hex(random.getrandbits(31) | 1 << 30)
    elif random.random() < 0.3:
        place = random.randrange(len(sources))
        literal = hex(random.getrandbits(15 if kinds[place] == "f16" else 31) | 0x4100)
        sources[place] = random.choice((*_CONSTANTS, literal)) if kinds[place][0] == "f" else "37"
    return f"{name} {', '.join((['s8'] if name in FLOATS else []) + sources)}"
