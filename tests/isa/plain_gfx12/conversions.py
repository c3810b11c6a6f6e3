"""Conversions from and to floats of 8 bits and fewer, by lists of all their values."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.isa.plain import numbers as n
from tests.isa.plain.machine import WIDTHS
from tests.isa.plain.numbers import Num
from tests.isa.plain.small import FORMATS, code_of, value_of
from tests.isa.plain_gfx12.machine import LANES, M32, Operand, State, Text, raw, signed_bits, source, store, writes

Run = Callable[[State, Text], None]
BITS = {"f32": 32, "f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
_MANTISSA = {"f32": 23, "f16": 10, "bf16": 7}


def form_of(name: str) -> str:
    return f"{name} ocp" if name in {"fp8", "bf8"} else name


def _half(operand: Operand) -> int:
    return 16 * (operand.half == 1)


def _write(state: State, operand: Operand, out: dict[int, int], shown: tuple[int, int, str]) -> None:
    """Puts a part of a register, at a shift and of a width, made of numbers of a format."""
    shift, width, form = shown
    each = BITS[form.partition(" ")[0]]
    for lane, bits in out.items():
        kept = state.v[operand.row][lane] & ~((1 << width) - 1 << shift)
        state.put(operand.row, lane, bits << shift | kept)
        state.loose[operand.row, lane] = [(shift + place, form, 0) for place in range(0, width, each)]


def _number(state: State, operand: Operand, kind: str, lane: int) -> Num:
    return n.unpack(signed_bits(raw(state, operand, kind, lane), operand, WIDTHS[kind]), kind)


def _to_pair(name: str, source: str) -> Run:
    """Two numbers as two codes in a half of a register."""

    def run(state: State, text: Text) -> None:
        form, target, out = form_of(name), text.operands[0], {}
        for lane in LANES:
            if state.active(lane):
                if source == "f32":
                    pair = [_number(state, each, "f32", lane) for each in text.operands[1:]]
                else:
                    bits = raw(state, text.operands[1], "u32", lane)
                    pair = [n.unpack(bits >> shift & 0xFFFF, "f16") for shift in (0, 16)]
                out[lane] = code_of(pair[0], form) | code_of(pair[1], form) << 8
        _write(state, target, out, (_half(target), 16, form))

    return run


def _to_byte(name: str, source: str) -> Run:
    """One number, rounded by chance, into the byte that is chosen."""

    def run(state: State, text: Text) -> None:
        form, target, out = form_of(name), text.operands[0], {}
        spare = _MANTISSA[source] - FORMATS[form].mantissa
        for lane in LANES:
            if state.active(lane):
                value, seed = _number(state, text.operands[1], source, lane), raw(state, text.operands[2], "u32", lane)
                out[lane] = code_of(value, form, seed >> 32 - spare, spare)
        _write(state, target, out, (8 * text.number("byte_sel"), 8, form))

    return run


def _from_byte(name: str, target: str) -> Run:
    def run(state: State, text: Text) -> None:
        form, out = form_of(name), {}
        for lane in LANES:
            if writes(state, text, lane):
                bits = source(state, text, 1, "u32", lane) >> 8 * text.number("byte_sel")
                out[lane] = value_of(bits & 0xFF, form)
        for lane, value in out.items():
            store(state, (text.operands[0], lane), value, target)

    return run


def _from_pair(name: str, target: str) -> Run:
    def run(state: State, text: Text) -> None:
        form, row, out = form_of(name), text.operands[0].row, {}
        for lane in LANES:
            if writes(state, text, lane):
                bits = raw(state, text.operands[1], "u16", lane)
                out[lane] = [n.pack(value_of(bits >> shift & 0xFF, form), target) for shift in (0, 8)]
        for lane, (low, high) in out.items():
            if target == "f32":
                state.put(row, lane, low)
                state.put(row + 1, lane, high)
                state.loose[row, lane] = state.loose[row + 1, lane] = [(0, "f32", 0)]
            else:
                state.put(row, lane, low | high << 16)
                state.loose[row, lane] = [(0, "f16", 0), (16, "f16", 0)]

    return run


_SCALED = re.compile(r"v_cvt_scalef32_(sr_)?pk(8|16)_([a-z]+\d+)_([a-z]+\d+)$")


def run_scaled(state: State, text: Text) -> None:
    """Eight or sixteen numbers, divided by a power of two, as small ones; by chance or to the nearest."""
    found = _SCALED.match(text.name)
    assert found is not None
    noisy, count, to, of = found[1], int(found[2]), found[3], found[4]
    target, taken, form = text.operands[0].row, text.operands[1], form_of(to)
    spare = _MANTISSA[of] - FORMATS[form].mantissa
    out = {}
    for lane in LANES:
        if state.active(lane):
            power = raw(state, text.operands[-1], "u32", lane) >> 23 & 0xFF
            seed = raw(state, text.operands[2], "u32", lane) if noisy else 0
            joined, whole = state.wide(taken.row, lane, 32 * taken.size), 0
            for number in range(count):
                value = n.unpack(joined >> number * BITS[of] & (1 << BITS[of]) - 1, of)
                value = _divided(value, power)
                code = code_of(value, form, seed >> 32 - spare, spare) if noisy else code_of(value, form)
                whole |= code << number * BITS[to]
                seed = (seed << 1 & M32) ^ (197 if seed >> 31 else 0)
            out[lane] = whole
    for lane, whole in out.items():
        for part in range(count * BITS[to] // 32):
            state.put(target + part, lane, whole >> 32 * part & M32)
            if 32 % BITS[to] == 0:
                state.loose[target + part, lane] = [(place, form, 0) for place in range(0, 32, BITS[to])]


def _divided(value: Num, power: int) -> Num:
    if power == 255:
        return n.NAN._replace(negative=value.negative)
    if value.nan or value.inf:
        return value
    return value._replace(size=value.size / n.power_of_two(power - 127))


SMALL: dict[str, Run] = {
    **{f"v_cvt_pk_{name}_{of}": _to_pair(name, of) for name in ("fp8", "bf8") for of in ("f32", "f16")},
    **{f"v_cvt_sr_{name}_{of}": _to_byte(name, of) for name in ("fp8", "bf8") for of in ("f32", "f16")},
    **{f"v_cvt_{to}_{name}": _from_byte(name, to) for name in ("fp8", "bf8") for to in ("f32", "f16")},
    **{f"v_cvt_pk_{to}_{name}": _from_pair(name, to) for name in ("fp8", "bf8") for to in ("f32", "f16")},
}
SCALED = tuple(
    f"v_cvt_scalef32_{noisy}pk{count}_{to}_{of}"
    for noisy in ("", "sr_")
    for count, names in ((8, ("fp8", "bf8", "fp4")), (16, ("fp6", "bf6")))
    for to in names
    for of in ("f32", "f16", "bf16")
)
