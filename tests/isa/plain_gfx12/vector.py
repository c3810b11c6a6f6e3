"""Vector instructions that are no function per lane: masks, carries, packed halves, pairs, lanes that meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.isa.plain import numbers as n
from tests.isa.plain.functions import Spec
from tests.isa.plain.machine import WIDTHS
from tests.isa.plain.numbers import Num
from tests.isa.plain_gfx12.conversions import SMALL, run_scaled
from tests.isa.plain_gfx12.functions import FUNCTIONS, ON_ITSELF, PACKED
from tests.isa.plain_gfx12.machine import (
    EXEC,
    LANES,
    M32,
    M64,
    VCC,
    Operand,
    State,
    Text,
    decoded,
    encoded,
    finished,
    loose_scalar,
    raw,
    scalar_bits,
    signed_bits,
    source,
    store,
    taken_apart,
    writes,
)
from tests.isa.plain_gfx12.quotient import QUOTIENTS

Run = Callable[[State, Text], None]
ORDERS = {
    "lt": "<", "eq": "=", "le": "<=", "gt": ">", "lg": "<>", "ge": ">=", "o": "<=>", "u": "?", "ne": "<>?",
    "nge": "<?", "nlg": "=?", "ngt": "<=?", "nle": ">?", "neq": "<>?", "nlt": "=>?",
}  # fmt: skip
"""Which outcomes of a comparison (less, equal, greater, unordered) an order accepts."""


def run_vector(text: str, state: State) -> None:
    """Runs one vector instruction, or both of a pair."""
    if " :: " in text:
        _run_pair(text, state)
        return
    parts = taken_apart(text)
    special = SPECIAL.get(parts.name) or QUOTIENTS.get(parts.name) or SMALL.get(parts.name)
    if special is not None:
        special(state, parts)
    elif parts.name.startswith("v_cvt_scalef32"):
        run_scaled(state, parts)
    elif parts.name.startswith("v_cmp"):
        _compare(state, parts)
    elif parts.name in PACKED or parts.name == "v_pk_fmac_f16":
        _packed(state, parts)
    else:
        run_function(state, parts)


def _run_pair(text: str, state: State) -> None:
    """Two instructions, each on the registers as they were before."""
    before, after = [row.copy() for row in state.v], dict[tuple[int, int], int]()
    loose = dict[tuple[int, int], Any]()
    for half in text.split(" :: "):
        state.loose.clear()
        run_vector(half.replace("v_dual_", "v_"), state)
        for row, lanes in enumerate(before):
            after |= {(row, lane): state.v[row][lane] for lane in LANES if state.v[row][lane] != lanes[lane]}
            state.v[row] = lanes.copy()
        loose |= state.loose
    for (row, lane), bits in after.items():
        state.v[row][lane] = bits
    state.loose = loose


def spec_of(name: str) -> Spec:
    return FUNCTIONS[ON_ITSELF.get(name, name)]


def run_function(state: State, text: Text) -> None:
    """An opcode that computes a function per lane."""
    name = {"v_fmamk": "v_fma", "v_fmaak": "v_fma"}.get(text.name[:7], text.name[:7]) + text.name[7:]
    spec, operands = spec_of(name), text.operands
    if text.name in ON_ITSELF:
        text = Text(text.name, text.encoding, (*operands, operands[0]), text.modifiers)
    results = {}
    for lane in LANES:
        if writes(state, text, lane):
            values = [source(state, text, place, kind, lane) for place, kind in enumerate(spec.sources, 1)]
            results[lane] = finished(spec.function(*values), spec.result, text)
    for lane, value in results.items():
        store(state, (operands[0], lane), value, spec.result, spec.ulps)


def _compare(state: State, text: Text) -> None:
    word, order, kind = text.name.split("_", 3)[1:]
    first = 0 if word == "cmpx" else 1
    held = 0
    for lane in LANES:
        if state.active(lane):
            a = source(state, text, first, kind, lane, first=9)
            if order == "class":
                asked = source(state, text, first + 1, "u16" if kind == "f16" else "u32", lane, first=9)
                held |= (asked >> _class_of(a, kind) & 1) << lane
            else:
                b = source(state, text, first + 1, kind, lane, first=9)
                held |= (compared(a, b) in ORDERS[order]) << lane
    state.s[EXEC if word == "cmpx" else text.operands[0].row] = held


def compared(a: Any, b: Any) -> str:
    if not isinstance(a, Num):
        return "<" if a < b else "=" if a == b else ">"
    if a.nan or b.nan:
        return "?"
    return "<" if n.below(a, b) else ">" if n.below(b, a) else "="


def _class_of(a: Num, kind: str) -> int:
    if a.nan:
        return 0 if a.kind == "snan" else 1
    if a.inf:
        return 2 if a.negative else 9
    if a.zero:
        return 5 if a.negative else 6
    normal = a.size >= n.power_of_two(2 - (1 << n.FORMATS[kind][0] - 1))
    return (3 if a.negative else 8) if normal else (4 if a.negative else 7)


def _carry(sign: int, *, swap: bool) -> Run:
    def run(state: State, text: Text) -> None:
        out, results = 0, {}
        into = scalar_bits(state, text.operands[4], "u32") if len(text.operands) > 4 else 0
        for lane in LANES:
            if writes(state, text, lane):
                a, b = (source(state, text, place, "u32", lane, first=2) for place in (2, 3))
                a, b = (b, a) if swap else (a, b)
                total = a + sign * (b + (into >> lane & 1))
                out |= int(total < 0 or total > M32) << lane
                results[lane] = total
        for lane, total in results.items():
            store(state, (text.operands[0], lane), total, "u32")
        _put_mask(state, text.operands[1], out)

    return run


def _put_mask(state: State, operand: Operand, bits: int) -> None:
    if operand.text != "null":
        state.s[operand.row] = bits


def _wide_product(sign: str) -> Run:
    def run(state: State, text: Text) -> None:
        out, results = 0, {}
        for lane in LANES:
            if state.active(lane):
                a, b = (source(state, text, place, f"{sign}32", lane, first=9) for place in (2, 3))
                total = a * b + source(state, text, 4, f"{sign}64", lane, first=9)
                results[lane] = total
                out |= (total >> 64 & 1) << lane
        for lane, total in results.items():
            store(state, (text.operands[0], lane), total & M64, "u64")
        _put_mask(state, text.operands[1], out)

    return run


def _select(kind: str) -> Run:
    def run(state: State, text: Text) -> None:
        mask = text.operands[3] if len(text.operands) > 3 else None
        which, results = state.s[VCC] if mask is None else scalar_bits(state, mask, "u32"), {}
        for lane in LANES:
            if writes(state, text, lane):
                results[lane] = source(state, text, 1 + (which >> lane & 1), kind, lane)
        for lane, bits in results.items():
            store(state, (text.operands[0], lane), bits, kind)

    return run


# Packed.


def _packed(state: State, text: Text) -> None:
    spec = PACKED.get(text.name) or PACKED["v_pk_fma_f16"]
    target = text.operands[0]
    operands = text.operands[1:] + (text.operands[:1] if text.name == "v_pk_fmac_f16" else ())
    out = {}
    for lane in LANES:
        if writes(state, text, lane):
            whole = 0
            for half in (0, 1):
                values = _halves(state, text, operands, (spec, half, lane))
                value = finished(spec.function(*values), spec.result, text)
                whole |= encoded(value, spec.result) << 16 * half
            out[lane] = whole
    for lane, whole in out.items():
        state.put(target.row, lane, whole)
        if spec.result in n.FORMATS:
            state.loose[target.row, lane] = [(0, spec.result, 0), (16, spec.result, 0)]


def _halves(state: State, text: Text, operands: tuple[Operand, ...], which: tuple[Spec, int, int]) -> list[Any]:
    """What one half of a packed instruction computes with."""
    spec, half, lane = which
    picks = text.bits("op_sel_hi", len(operands), 1) if half else text.bits("op_sel", len(operands))
    flips = text.bits("neg_hi" if half else "neg_lo", len(operands))
    out = []
    for operand, kind, pick, flip in zip(operands, spec.sources, picks, flips, strict=True):
        bits = raw(state, operand, kind, lane) >> 16 * pick & 0xFFFF
        out.append(decoded(bits ^ flip << 15, kind))
    return out


def _pair_of_floats(name: str) -> Run:
    """Scalar registers and constants give the same 32 bits to both (LLVM: replicated lower 32 bits)."""
    function = FUNCTIONS[f"v_{name}_f32"].function

    def run(state: State, text: Text) -> None:
        count, row, out = len(text.operands) - 1, text.operands[0].row, {}
        picks = text.bits("op_sel", count), text.bits("op_sel_hi", count, 1)
        flips = text.bits("neg_lo", count), text.bits("neg_hi", count)
        for lane in LANES:
            for half in (0, 1) if state.active(lane) else ():
                values = [
                    n.unpack(_element(state, operand, pick, lane) ^ flip << 31, "f32")
                    for operand, pick, flip in zip(text.operands[1:], picks[half], flips[half], strict=True)
                ]
                out[row + half, lane] = n.pack(finished(function(*values), "f32", text), "f32")
        for (place, lane), bits in out.items():
            state.put(place, lane, bits)
            state.loose[place, lane] = [(0, "f32", 0)]

    return run


def _element(state: State, operand: Operand, pick: int, lane: int) -> int:
    return state.v[operand.row + pick][lane] if operand.file == "v" else scalar_bits(state, operand, "f32") & M32


def _mix(short: str, target: str) -> Run:
    """Each source is a float32 or a half of a register; `target` is whole, low or high."""

    def run(state: State, text: Text) -> None:
        high, halved = text.bits("op_sel", 3), text.bits("op_sel_hi", 3)
        row, out = text.operands[0].row, {}
        for lane in LANES:
            if state.active(lane):
                values = []
                for operand, up, brief in zip(text.operands[1:], high, halved, strict=True):
                    bits = raw(state, operand, short if brief else "f32", lane)
                    value = n.unpack(bits >> 16 * up & 0xFFFF, short) if brief else n.unpack(bits, "f32")
                    value = value._replace(negative=False) if operand.bars else value
                    values.append(n.minus(value) if operand.negated else value)
                out[lane] = n.multiply_add(*values)
        form, shift = "f32" if target == "whole" else short, 16 if target == "high" else 0
        kept = {"whole": 0, "low": 0xFFFF_0000, "high": 0xFFFF}[target]
        for lane, value in out.items():
            shown = finished(value if form == "f32" else n.unpack(n.pack(value, "f32"), "f32"), form, text)
            bits = n.pack(shown, form) << shift | state.v[row][lane] & kept
            state.put(row, lane, bits)
            state.loose[row, lane] = [(shift, form, 0)]

    return run


def _dot(bits: int) -> Run:
    """Products of small integers, each side signed or not, and a sum."""

    def run(state: State, text: Text) -> None:
        signs, out = text.bits("neg_lo", 3), {}
        for lane in LANES:
            if state.active(lane):
                a, b = (raw(state, text.operands[place], "u32", lane) for place in (1, 2))
                total = decoded(raw(state, text.operands[3], "i32", lane), "i32")
                for place in range(0, 32, bits):
                    x, y = (each >> place & (1 << bits) - 1 for each in (a, b))
                    total += (n.signed(x, bits) if signs[0] else x) * (n.signed(y, bits) if signs[1] else y)
                out[lane] = finished(total, "i32", text)
        for lane, total in out.items():
            store(state, (text.operands[0], lane), total, "i32")

    return run


def _bitop(kind: str) -> Run:
    def run(state: State, text: Text) -> None:
        table, out = text.number("bitop3"), {}
        count = len(text.operands) - 1
        for lane in LANES:
            if writes(state, text, lane):
                values = [source(state, text, 1 + place, kind, lane) for place in range(count)] + [0] * (3 - count)
                out[lane] = sum(
                    (table >> sum((value >> i & 1) << 2 - place for place, value in enumerate(values)) & 1) << i
                    for i in range(WIDTHS[kind])
                )
        for lane, bits in out.items():
            store(state, (text.operands[0], lane), bits, kind)

    return run


def cut(a: Num, form: str) -> int:
    """Towards zero: the code below, if rounding went up."""
    code = n.pack(a, form)
    if a.nan or a.inf or a.zero:
        return code
    value = n.unpack(code, form)
    return code - 1 if value.inf or value.size > a.size else code


def _pair_of(form: str, convert: Callable[[Num, str], int] = n.pack) -> Run:
    """Two float32 as two of a shorter format."""

    def run(state: State, text: Text) -> None:
        row, out = text.operands[0].row, {}
        for lane in LANES:
            if writes(state, text, lane):
                low, high = (source(state, text, place, "f32", lane) for place in (1, 2))
                out[lane] = convert(low, form) | convert(high, form) << 16
        for lane, bits in out.items():
            state.put(row, lane, bits)
            state.loose[row, lane] = [(0, form, 0), (16, form, 0)]

    return run


# Lanes that meet.


def _read_lane(state: State, text: Text) -> None:
    lane = scalar_bits(state, text.operands[2], "u32") & 31
    state.s[text.operands[0].row] = raw(state, text.operands[1], "u32", lane)


def _read_first(state: State, text: Text) -> None:
    lane = next((lane for lane in LANES if state.active(lane)), 0)
    state.s[text.operands[0].row] = raw(state, text.operands[1], "u32", lane)


def _write_lane(state: State, text: Text) -> None:
    lane = scalar_bits(state, text.operands[2], "u32") & 31
    state.put(text.operands[0].row, lane, scalar_bits(state, text.operands[1], "u32"))


def _swap(kind: str) -> Run:
    def run(state: State, text: Text) -> None:
        one, two = text.operands
        for lane in LANES:
            if state.active(lane):
                first, second = (raw(state, each, kind, lane) for each in (one, two))
                store(state, (one, lane), second, kind)
                store(state, (two, lane), first, kind)

    return run


def _swap_rows(state: State, text: Text) -> None:
    """The upper sixteen lanes of the first register, and the lower sixteen of the second."""
    one, two = (each.row for each in text.operands)
    for lane in range(16):
        first, second = state.v[one][lane + 16], state.v[two][lane]
        state.put(one, lane + 16, second)
        state.put(two, lane, first)


def _permute(*, other_row: bool, by_lane: bool) -> Run:
    """Each lane takes the one that four bits name, of its sixteen lanes or of the others."""

    def run(state: State, text: Text) -> None:
        fetches, zeroes = text.bits("op_sel", 2)
        row, out = text.operands[0].row, {}
        for lane in LANES:
            if not state.active(lane):
                continue
            place = lane % 16
            if by_lane:
                chosen = raw(state, text.operands[2], "u32", lane) & 15
            else:
                half = scalar_bits(state, text.operands[2 + place // 8], "u32")
                chosen = half >> 4 * (place % 8) & 15
            taken = (lane & 16 ^ 16 * other_row) + chosen
            if fetches or state.active(taken):
                out[lane] = raw(state, text.operands[1], "u32", taken)
            elif zeroes:
                out[lane] = 0
        for lane, bits in out.items():
            state.put(row, lane, bits)

    return run


def _count(state: State, text: Text) -> None:
    """Bits of the mask before this lane; a wave has no upper ones."""
    out = {}
    for lane in LANES:
        if state.active(lane):
            mask = raw(state, text.operands[1], "u32", lane)
            before = 0 if "_hi_" in text.name else sum(mask >> place & 1 for place in range(lane))
            out[lane] = before + raw(state, text.operands[2], "u32", lane)
    for lane, total in out.items():
        store(state, (text.operands[0], lane), total, "u32")


def _by_scalars(kind: str, function: Callable[[Num], Num]) -> Run:
    """A transcendental function of a scalar register."""

    def run(state: State, text: Text) -> None:
        operand = text.operands[1]
        bits = signed_bits(scalar_bits(state, operand, kind), operand, WIDTHS[kind])
        value = finished(function(n.unpack(bits, kind)), kind, text)
        state.put_scalar(text.operands[0].row, n.pack(value, kind))
        state.loose_scalars[text.operands[0].row] = loose_scalar(kind, 1)

    return run


SPECIAL: dict[str, Run] = {
    "v_add_co_u32": _carry(1, swap=False), "v_add_co_ci_u32": _carry(1, swap=False),
    "v_sub_co_u32": _carry(-1, swap=False), "v_sub_co_ci_u32": _carry(-1, swap=False),
    "v_subrev_co_u32": _carry(-1, swap=True), "v_subrev_co_ci_u32": _carry(-1, swap=True),
    "v_mad_co_u64_u32": _wide_product("u"), "v_mad_co_i64_i32": _wide_product("i"),
    "v_cndmask_b32": _select("u32"), "v_cndmask_b16": _select("u16"),
    **{f"v_pk_{name}_f32": _pair_of_floats(name) for name in ("add", "mul", "fma")},
    "v_fma_mix_f32": _mix("f16", "whole"), "v_fma_mixlo_f16": _mix("f16", "low"),
    "v_fma_mixhi_f16": _mix("f16", "high"), "v_fma_mix_f32_bf16": _mix("bf16", "whole"),
    "v_fma_mixlo_bf16": _mix("bf16", "low"), "v_fma_mixhi_bf16": _mix("bf16", "high"),
    "v_dot4_i32_iu8": _dot(8), "v_dot8_i32_iu4": _dot(4),
    "v_bitop3_b32": _bitop("u32"), "v_bitop3_b16": _bitop("u16"), "v_bitop2_b32": _bitop("u32"),
    "v_cvt_pk_f16_f32": _pair_of("f16"), "v_cvt_pk_bf16_f32": _pair_of("bf16"),
    "v_cvt_pk_rtz_f16_f32": _pair_of("f16", cut),
    "v_readlane_b32": _read_lane, "v_readfirstlane_b32": _read_first, "v_writelane_b32": _write_lane,
    "v_swap_b32": _swap("u32"), "v_swap_b16": _swap("u16"), "v_permlane16_swap_b32": _swap_rows,
    "v_permlane16_b32": _permute(other_row=False, by_lane=False),
    "v_permlanex16_b32": _permute(other_row=True, by_lane=False),
    "v_permlane16_var_b32": _permute(other_row=False, by_lane=True),
    "v_permlanex16_var_b32": _permute(other_row=True, by_lane=True),
    "v_mbcnt_lo_u32_b32": _count, "v_mbcnt_hi_u32_b32": _count,
    **{f"v_s_{name}_{t}": _by_scalars(t, FUNCTIONS[f"v_{name}_{t}"].function)
       for name in ("exp", "log", "rcp", "rsq", "sqrt") for t in ("f16", "f32")},
}  # fmt: skip
