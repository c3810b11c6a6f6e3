"""Vector opcodes that are no function per lane: takes an instruction taken apart and a state, changes the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.isa.plain import numbers as n
from tests.isa.plain.functions import REALS, Spec
from tests.isa.plain.machine import (
    FUNCTIONS,
    LANES,
    ON_ITSELF,
    PACKED,
    State,
    Text,
    clamped,
    inner,
    raw,
    register,
    rounded,
    run_function,
    source,
    store,
    taken_apart,
    writes,
)
from tests.isa.plain.numbers import Num
from tests.isa.plain.quotient import QUOTIENTS
from tests.isa.plain.small import SMALL, run_scaled

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
ORDERS = {
    "lt": "<", "eq": "=", "le": "<=", "gt": ">", "lg": "<>", "ge": ">=", "o": "<=>", "u": "?", "ne": "<>?",
    "nge": "<?", "nlg": "=?", "ngt": "<=?", "nle": ">?", "neq": "<>?", "nlt": "=>?", "f": "",
    "t": "<=>?", "tru": "<=>?",
}  # fmt: skip
"""Which outcomes of a comparison (less, equal, greater, unordered) an order accepts."""


def run_vector(text: str, state: State) -> None:
    """Runs one vector instruction."""
    parts = taken_apart(text)
    name = parts.name
    if name in SPECIAL:
        SPECIAL[name](state, parts)
    elif name.startswith("v_cvt_scalef32"):
        run_scaled(state, parts)
    elif name.startswith("v_cmp"):
        _compare(state, parts)
    elif name in ON_ITSELF:
        run_function(state, parts, FUNCTIONS[ON_ITSELF[name]], accumulates=True)
    elif name in PACKED:
        _packed(state, parts, PACKED[name])
    else:
        run_function(state, parts, FUNCTIONS["v_fma_f32" if name in {"v_fmamk_f32", "v_fmaak_f32"} else name])


def _row(text: str) -> int:
    place = register(text)
    assert place is not None
    return place[1]


def _compare(state: State, text: Text) -> None:
    word, order, kind = text.name.split("_", 3)[1:]
    bits = 0
    for lane in LANES:
        if state.active(lane):
            a = source(state, text, 0, kind, lane)
            if order == "class":
                held = source(state, text, 1, "u32", lane) >> _class_of(a, kind) & 1
            else:
                b = source(state, text, 1, kind, lane)
                held = _outcome(a, b) in ORDERS[order]
            bits |= held << lane
    state.put_mask(_row(text.operands[0]), bits)
    if word == "cmpx":
        state.put_mask(126, bits)


def _outcome(a: Any, b: Any) -> str:
    if not isinstance(a, Num):
        return "<" if a < b else "=" if a == b else ">"
    if a.nan or b.nan:
        return "?"
    return "<" if n.below(a, b) else ">" if n.below(b, a) else "="


def _class_of(a: Num, kind: str) -> int:
    if a.nan:
        return 0 if a.kind == "snan" else 1
    exponents = n.FORMATS[kind][0]
    if a.inf:
        return 2 if a.negative else 9
    if a.zero:
        return 5 if a.negative else 6
    normal = a.size >= n.power_of_two(2 - (1 << exponents - 1))
    return (3 if a.negative else 8) if normal else (4 if a.negative else 7)


def _carry(sign: int, swap: bool) -> Callable[[State, Text], None]:
    def run(state: State, text: Text) -> None:
        out, spec = 0, Spec("u32", (), int)
        into = state.mask(_row(text.operands[4])) if len(text.operands) > 4 else 0
        results = {}
        for lane in LANES:
            if state.active(lane):
                a, b = (source(state, text, place, "u32", lane, first=2) for place in (0, 1))
                a, b = (b, a) if swap else (a, b)
                total = a + sign * (b + (into >> lane & 1))
                out |= int(total < 0 or total > M32) << lane
                results[lane] = total
        for lane, total in results.items():
            store(state, text, lane, total, spec)
        state.put_mask(_row(text.operands[1]), out)

    return run


def _wide_product(kind: str) -> Callable[[State, Text], None]:
    def run(state: State, text: Text) -> None:
        out, results = 0, {}
        for lane in LANES:
            if state.active(lane):
                a, b = (source(state, text, place, f"{kind}32", lane, first=2) for place in (0, 1))
                total = a * b + source(state, text, 2, f"{kind}64", lane, first=2)
                results[lane] = total
                out |= (total >> 64 & 1) << lane
        for lane, total in results.items():
            state.put(_row(text.operands[0]), lane, total & M64, 64)
        state.put_mask(_row(text.operands[1]), out)

    return run


def _select(state: State, text: Text) -> None:
    which, results = state.mask(_row(text.operands[3])), {}
    for lane in LANES:
        if writes(state, text, lane):
            place = which >> lane & 1
            name, negated, bars, _ = inner(text.operands[1 + place])
            if negated or bars:
                bits = raw(state, name, "f32", lane)
                bits = bits & 0x7FFF_FFFF if bars else bits
                results[lane] = bits ^ (negated << 31)
            else:
                results[lane] = source(state, text, place, "u32", lane)
    for lane, bits in results.items():
        store(state, text, lane, bits, Spec("u32", (), int))


def _packed(state: State, text: Text, spec: Spec) -> None:
    kinds = spec.sources if spec.result != "f32" else ("f16",) * 3
    result = "f16" if spec.result == "f32" else spec.result
    operands = text.operands[1:] + (text.operands[:1] if "fmac" in text.name else ())
    picks = text.bits("op_sel", len(kinds)), text.bits("op_sel_hi", len(kinds), 1)
    flips = text.bits("neg_lo", len(kinds)), text.bits("neg_hi", len(kinds))
    out = {}
    for lane in LANES:
        if state.active(lane):
            whole, loose = 0, []
            for half in (0, 1):
                values = []
                for operand, kind, pick, flip in zip(operands, kinds, picks[half], flips[half], strict=True):
                    bits = raw(state, operand, kind, lane) >> 16 * pick & 0xFFFF ^ flip << 15
                    values.append(n.unpack(bits, kind) if kind in n.FORMATS else bits)
                    if kind == "i16":
                        values[-1] = n.signed(bits, 16)
                value = spec.function(*values)
                small = Spec(result, (), int)
                value = clamped(rounded(value, result), small) if "clamp" in text.modifiers else value
                bits = n.pack(value, result) if isinstance(value, Num) else value & 0xFFFF
                whole |= bits << 16 * half
                loose += [(16 * half, result, 0)] if result in n.FORMATS else []
            out[lane] = whole, loose
    row = _row(text.operands[0])
    for lane, (whole, loose) in out.items():
        state.put(row, lane, whole)
        state.loose[row, lane] = loose


def _pair_of_floats(name: str) -> Callable[[State, Text], None]:
    function = REALS[f"v_{name}_f32"].function

    def run(state: State, text: Text) -> None:
        count, row, out = len(text.operands) - 1, _row(text.operands[0]), {}
        picks = text.bits("op_sel", count), text.bits("op_sel_hi", count, 1)
        flips = text.bits("neg_lo", count), text.bits("neg_hi", count)
        for lane in LANES:
            for half in (0, 1):
                if state.active(lane):
                    values = [
                        n.unpack(_element(state, operand, pick, lane) ^ flip << 31, "f32")
                        for operand, pick, flip in zip(text.operands[1:], picks[half], flips[half], strict=True)
                    ]
                    value = rounded(function(*values), "f32")
                    value = clamped(value, Spec("f32", (), int)) if "clamp" in text.modifiers else value
                    out[row + half, lane] = n.pack(value, "f32")
        for (place, lane), bits in out.items():
            state.put(place, lane, bits)
            state.loose[place, lane] = [(0, "f32", 0)]

    return run


def _element(state: State, operand: str, pick: int, lane: int) -> int:
    place = register(operand)
    if place is None:
        return raw(state, operand, "f32", lane)
    bank, first = place
    return state.s[first + pick] if bank == "s" else state.v[first + pick][lane]


def _pair_moved(state: State, text: Text) -> None:
    picks, row = text.bits("op_sel", 2), _row(text.operands[0])
    out = {
        (row + part, lane): _element(state, text.operands[1 + part], picks[part], lane)
        for part in (0, 1)
        for lane in LANES
        if state.active(lane)
    }
    for (place, lane), bits in out.items():
        state.put(place, lane, bits)


def _mix(state: State, text: Text) -> None:
    high, halved = text.bits("op_sel", 3), text.bits("op_sel_hi", 3)
    row, out = _row(text.operands[0]), {}
    for lane in LANES:
        if state.active(lane):
            values = []
            for place in range(3):
                name, negated, bars, _ = inner(text.operands[1 + place])
                bits = raw(state, name, "f32", lane)
                value = n.unpack(bits >> 16 * high[place] & 0xFFFF, "f16") if halved[place] else n.unpack(bits, "f32")
                value = value._replace(negative=False) if bars else value
                values.append(n.minus(value) if negated else value)
            out[lane] = rounded(n.multiply_add(*values), "f32")
    for lane, value in out.items():
        form = "f32" if text.name == "v_fma_mix_f32" else "f16"
        shown = clamped(rounded(value, form), Spec(form, (), int)) if "clamp" in text.modifiers else value
        shift = 16 if "mixhi" in text.name else 0
        bits, old = n.pack(shown, form) << shift, state.v[row][lane]
        kept = 0 if form == "f32" else old & (0xFFFF if shift else 0xFFFF_0000)
        state.put(row, lane, bits | kept)
        state.loose[row, lane] = [(shift, form, 0)]


def _dot2(kind: str) -> Callable[[State, Text], None]:
    def run(state: State, text: Text) -> None:
        row = _row(text.operands[0])
        operands = text.operands[1:] + (text.operands[:1] if "2c" in text.name else ())
        out = {}
        for lane in LANES:
            if state.active(lane):
                a, b = (raw(state, each, "u32", lane) for each in operands[:2])
                total = n.unpack(raw(state, operands[2], "f32", lane), "f32")
                for shift in (0, 16):
                    parts = (n.unpack(each >> shift & 0xFFFF, kind) for each in (a, b))
                    total = n.plus(total, n.times(*parts))
                out[lane] = n.pack(total, "f32")
        for lane, bits in out.items():
            state.put(row, lane, bits)
            state.loose[row, lane] = [(0, "f32", 1)]

    return run


def _lane_moves(state: State, text: Text) -> None:
    name, operands = text.name, text.operands
    if name == "v_readfirstlane_b32":
        lane = next((lane for lane in LANES if state.active(lane)), 0)
        state.s[_row(operands[0])] = raw(state, operands[1], "u32", lane)
    elif name == "v_readlane_b32":
        state.s[_row(operands[0])] = raw(state, operands[1], "u32", raw(state, operands[2], "u32", 0) & 63)
    elif name == "v_writelane_b32":
        state.put(_row(operands[0]), raw(state, operands[2], "u32", 0) & 63, raw(state, operands[1], "u32", 0))
    elif name == "v_swap_b32":
        one, two = map(_row, operands)
        for lane in LANES:
            if state.active(lane):
                first, second = state.v[one][lane], state.v[two][lane]
                state.put(one, lane, second)
                state.put(two, lane, first)
    else:
        rows = 16 if "16_swap" in name else 32
        one, two = map(_row, operands)
        for lane in LANES:
            if lane // rows % 2 == 0:
                first, second = state.v[one][lane + rows], state.v[two][lane]
                state.put(one, lane + rows, second)
                state.put(two, lane, first)


def _count(state: State, text: Text) -> None:
    start, out = (32 if "_hi_" in text.name else 0), {}
    for lane in LANES:
        if state.active(lane):
            mask = raw(state, text.operands[1], "u32", lane)
            found = sum(mask >> place & 1 for place in range(32) if place + start < lane)
            out[lane] = found + raw(state, text.operands[2], "u32", lane)
    for lane, total in out.items():
        state.put(_row(text.operands[0]), lane, total & M32)


def _bitop(state: State, text: Text) -> None:
    table, kind = int(text.modifiers["bitop3"], 16), "u16" if text.name.endswith("16") else "u32"

    def function(a: int, b: int, c: int) -> int:
        return sum(
            (table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(int(kind[1:]))
        )

    run_function(state, text, Spec(kind, (kind,) * 3, function, halves=kind == "u16"))


def _pack_halves(state: State, text: Text) -> None:
    spec = Spec("u32", ("u16", "u16"), lambda a, b: a | b << 16)
    run_function(state, text, spec)


def _pairs_of(form: str, *, towards_zero: bool = False) -> Callable[[State, Text], None]:
    """Two float32 as two of a shorter format."""

    def run(state: State, text: Text) -> None:
        row, out = _row(text.operands[0]), {}
        for lane in LANES:
            if writes(state, text, lane):
                pair = [source(state, text, place, "f32", lane) for place in (0, 1)]
                codes = [_cut(each, form) if towards_zero else n.pack(each, form) for each in pair]
                out[lane] = codes[0] | codes[1] << 16
        for lane, bits in out.items():
            state.put(row, lane, bits)
            state.loose[row, lane] = [(0, form, 0), (16, form, 0)]

    return run


def _cut(a: Num, form: str) -> int:
    """Towards zero: the code below, if rounding went up."""
    code = n.pack(a, form)
    if a.nan or a.inf or a.zero:
        return code
    value = n.unpack(code, form)
    return code - 1 if value.inf or value.size > a.size else code


SPECIAL: dict[str, Callable[[State, Text], None]] = {
    **QUOTIENTS, **SMALL,
    "v_add_co_u32": _carry(1, False), "v_addc_co_u32": _carry(1, False),
    "v_sub_co_u32": _carry(-1, False), "v_subb_co_u32": _carry(-1, False),
    "v_subrev_co_u32": _carry(-1, True), "v_subbrev_co_u32": _carry(-1, True),
    "v_mad_u64_u32": _wide_product("u"), "v_mad_i64_i32": _wide_product("i"),
    "v_cndmask_b32": _select, "v_pk_mov_b32": _pair_moved,
    **{f"v_pk_{name}_f32": _pair_of_floats(name) for name in ("add", "mul", "fma")},
    **dict.fromkeys(("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"), _mix),
    "v_dot2_f32_f16": _dot2("f16"), "v_dot2c_f32_f16": _dot2("f16"),
    "v_dot2_f32_bf16": _dot2("bf16"), "v_dot2c_f32_bf16": _dot2("bf16"),
    **dict.fromkeys(
        ("v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32", "v_swap_b32", "v_permlane16_swap_b32",
         "v_permlane32_swap_b32"), _lane_moves),
    "v_mbcnt_lo_u32_b32": _count, "v_mbcnt_hi_u32_b32": _count,
    "v_bitop3_b32": _bitop, "v_bitop3_b16": _bitop,
    "v_pack_b32_f16": _pack_halves,
    "v_cvt_pk_f16_f32": _pairs_of("f16"), "v_cvt_pk_bf16_f32": _pairs_of("bf16"),
    "v_cvt_pkrtz_f16_f32": _pairs_of("f16", towards_zero=True),
}  # fmt: skip
