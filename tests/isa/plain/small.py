"""Floats of 8 bits and fewer, without NumPy: takes values, gives codes, by listing all values of a format.

A format is a list of its values in the order of their codes; rounding looks for the two neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from tests.isa.plain import numbers as n
from tests.isa.plain.machine import LANES, State, Text, inner, raw, register
from tests.isa.plain.numbers import Num


class Small(NamedTuple):
    """Exponent and mantissa bits, bias, the largest code of a number, and what overflow, infinity and NaN become."""

    exponent: int
    mantissa: int
    bias: int
    largest: int
    over: int
    nan: int
    signless: bool  # one NaN, one zero


FORMATS = {
    "fp8 ocp": Small(4, 3, 7, 0x7E, 0x7F, 0x7F, False), "bf8 ocp": Small(5, 2, 15, 0x7B, 0x7C, 0x7F, False),
    "fp8 fnuz": Small(4, 3, 8, 0x7F, 0x80, 0x80, True), "bf8 fnuz": Small(5, 2, 16, 0x7F, 0x80, 0x80, True),
    "fp6": Small(2, 3, 1, 0x1F, 0x1F, 0x1F, False), "bf6": Small(3, 2, 3, 0x1F, 0x1F, 0x1F, False),
    "fp4": Small(2, 1, 1, 7, 7, 7, False),
}  # fmt: skip
_WIDE = {"f16": (10, 16), "bf16": (7, 16), "f32": (23, 32)}


def form_of(name: str, arch: str) -> str:
    return f"{name} {'fnuz' if arch == 'gfx942' else 'ocp'}" if name in {"fp8", "bf8"} else name


@cache
def values(form: str) -> tuple[Fraction, ...]:
    """The values of the codes without sign, and one more: what would follow the largest."""
    small = FORMATS[form]
    out = []
    for code in range(small.largest + 2):
        power, fraction = divmod(code, 1 << small.mantissa)
        size = Fraction(fraction + (1 << small.mantissa if power else 0))
        out.append(size * n.power_of_two(max(power, 1) - small.bias - small.mantissa))
    return tuple(out)


def value_of(code: int, form: str) -> Num:
    small = FORMATS[form]
    sign_bit = small.exponent + small.mantissa
    negative, rest = bool(code >> sign_bit & 1), code & (1 << sign_bit) - 1
    if small.signless and code == small.nan:
        return n.NAN
    if rest > small.largest:
        infinite = rest == small.over and small.over != small.nan
        return n.infinite(negative=negative) if infinite else n.NAN._replace(negative=negative)
    return Num(negative=negative, size=values(form)[rest])


def code_of(num: Num, form: str, noise: int | None = None, spare: int = 0) -> int:
    """The code of a value: the nearest one, or stochastically the one above."""
    small = FORMATS[form]
    code = small.nan if num.nan else small.over if num.inf else _rounded(num.size, form, noise, spare)
    if small.signless and code in {0, small.nan}:
        return code
    return code | num.negative << small.exponent + small.mantissa


def _rounded(size: Fraction, form: str, noise: int | None, spare: int) -> int:
    small, known = FORMATS[form], values(form)
    if size >= known[-1]:
        return small.over
    low = max(code for code, value in enumerate(known) if value <= size)
    if size == known[low] and noise is None:
        return low
    part = (size - known[low]) / (known[low + 1] - known[low])
    if noise is None:
        up = part > Fraction(1, 2) or (part == Fraction(1, 2) and low % 2 == 1)
    else:
        up = int(part * (1 << spare)) + noise >= 1 << spare
    code = low + up
    return small.over if code > small.largest else code


def is_small_nan(code: int, form: str) -> bool:
    return form in FORMATS and value_of(code, form).nan


_NAME = re.compile(r"v_cvt_scalef32_(sr_)?(?:(2xpk16|pk32|pk)_)?([a-z]+\d+)_([a-z]+\d+)$")
_BITS = {"f32": 32, "f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}


def run_scaled(state: State, text: Text) -> None:
    """A v_cvt_scalef32 instruction."""
    found = _NAME.match(text.name)
    assert found is not None
    noisy, many, to, of = found.groups()
    count = {"2xpk16": 32, "pk32": 32, "pk": 2, None: 1}[many]
    chosen = text.bits("op_sel", 4)
    chosen = chosen if len(chosen) == 4 else [chosen[0], chosen[1], 0, chosen[2]]
    sources = text.operands[1 : -2 if noisy else -1]
    rows = [_row(each) for each in sources]
    target = _row(text.operands[0])
    out = {}
    for lane in LANES:
        if not state.active(lane):
            continue
        power = raw(state, text.operands[-1], "f32", lane) >> 23 & 0xFF
        seed = raw(state, text.operands[-2], "u32", lane) if noisy else 0
        whole = 0
        for number in range(count):
            bits = _source_bits(state, (rows, of, many, chosen), number, count, lane)
            form = form_of(of, state.arch)
            value = n.unpack(bits, of) if of in n.FORMATS else value_of(bits, form)
            code = _converted(value, power, of, form_of(to, state.arch), seed if noisy else None)
            whole |= code << number * _BITS[to]
            seed = (seed << 1 & 0xFFFF_FFFF) ^ (197 if seed >> 31 else 0)
        out[lane] = whole
    width = count * _BITS[to]
    shift = 16 * chosen[3] if width == 16 else 8 * (2 * chosen[3] + chosen[2]) if width < 32 else 0
    for lane, whole in out.items():
        for part in range(max(1, width // 32)):
            kept = state.v[target + part][lane] & ~((1 << width) - 1 << shift) if width < 32 else 0
            state.put(target + part, lane, (whole >> 32 * part << shift & 0xFFFF_FFFF) | kept)
            each, form = _BITS[to], form_of(to, state.arch)
            if 32 % each == 0:
                spots = range(0, min(width, 32), each)
                state.loose[target + part, lane] = [(shift + spot, form, 0) for spot in spots]


def _source_bits(
    state: State, form: tuple[list[int], str, str | None, list[int]], number: int, count: int, lane: int
) -> int:
    rows, of, many, chosen = form
    width = _BITS[of]
    if many == "2xpk16":
        return state.v[rows[number % 2] + number // 2][lane]
    if of in {"fp8", "bf8", "fp4"}:
        part = 16 * chosen[0] if count * width == 16 else 8 * (chosen[0] + 2 * chosen[1])
        return state.v[rows[0]][lane] >> part + number * width & (1 << width) - 1
    if of == "f32":
        return state.v[rows[number] if len(rows) == 2 else rows[0] + number][lane]
    place = number * width
    joined = state.v[rows[0] + place // 32][lane]
    if place // 32 + 1 < 48:
        joined |= state.v[rows[0] + place // 32 + 1][lane] << 32
    return joined >> place % 32 & (1 << width) - 1


def _converted(value: Num, power: int, of: str, to: str, seed: int | None) -> int:
    if power == 255:
        value = n.NAN._replace(negative=value.negative)
    elif not value.nan and not value.inf:
        factor = n.power_of_two(power - 127)
        value = value._replace(size=value.size / factor if to in FORMATS else value.size * factor)
    if to not in FORMATS:
        return n.pack(value, to)
    spare = (_WIDE[of][0] if of in _WIDE else 0) - FORMATS[to].mantissa
    return code_of(value, to) if seed is None else code_of(value, to, seed >> 32 - spare, spare)


def _row(text: str) -> int:
    place = register(inner(text)[0])
    assert place is not None
    return place[1]


def to_pair(name: str) -> Callable[[State, Text], None]:
    """Two float32 as two codes in one half of the destination."""

    def run(state: State, text: Text) -> None:
        form, target, out = form_of(name, state.arch), _row(text.operands[0]), {}
        high = text.bits("op_sel", 3)[-1]
        for lane in LANES:
            if state.active(lane):
                codes = [code_of(_signed_source(state, each, lane), form) for each in text.operands[1:]]
                kept = state.v[target][lane] & (0xFFFF if high else 0xFFFF_0000)
                out[lane] = (codes[0] | codes[1] << 8) << 16 * high | kept
        for lane, bits in out.items():
            state.put(target, lane, bits)
            state.loose[target, lane] = [(16 * high, form, 0), (16 * high + 8, form, 0)]

    return run


def _signed_source(state: State, text: str, lane: int) -> Num:
    name, negated, bars, _ = inner(text)
    bits = raw(state, name, "f32", lane)
    return n.unpack((bits & 0x7FFF_FFFF if bars else bits) ^ negated << 31, "f32")


def to_noisy(name: str) -> Callable[[State, Text], None]:
    """One float32 rounded stochastically, into a byte or a half."""

    def run(state: State, text: Text) -> None:
        target, out = _row(text.operands[0]), {}
        small = name in {"fp8", "bf8"}
        form = form_of(name, state.arch)
        chosen = text.bits("op_sel", 4)
        shift = 8 * (2 * chosen[3] + chosen[2]) if small else 16 * chosen[-1]
        for lane in LANES:
            if state.active(lane):
                value, seed = _signed_source(state, text.operands[1], lane), raw(state, text.operands[2], "u32", lane)
                mantissa = FORMATS[form].mantissa if small else n.FORMATS[form][1]
                noise = seed >> 32 - (23 - mantissa)
                code = code_of(value, form, noise, 23 - mantissa) if small else _wide_noisy(value, form, noise)
                mask = (0xFF if small else 0xFFFF) << shift
                out[lane] = code << shift | state.v[target][lane] & ~mask
        for lane, bits in out.items():
            state.put(target, lane, bits)
            state.loose[target, lane] = [(shift, form, 0)]

    return run


def _wide_noisy(value: Num, form: str, noise: int) -> int:
    """To f16 or bf16: the lower neighbour, or the one above if the noise carries."""
    nearest = n.pack(value, form)
    if value.nan or value.inf or value.zero:
        return nearest
    sign, size = nearest & 0x8000, nearest & 0x7FFF
    if n.unpack(size, form).inf or n.unpack(size, form).size > value.size:
        size -= 1
    exponent, mantissa = n.FORMATS[form]
    low = n.unpack(size, form).size
    step = n.power_of_two(max(size >> mantissa, 1) - ((1 << exponent - 1) - 1) - mantissa)
    spare = 23 - mantissa
    up = int((value.size - low) / step * (1 << spare)) + noise >= 1 << spare
    return sign | size + up if value.size < low + step else nearest


def from_small(name: str, count: int) -> Callable[[State, Text], None]:
    """One or two codes as float32."""

    def run(state: State, text: Text) -> None:
        form, target, out = form_of(name, state.arch), _row(text.operands[0]), {}
        unit, _, which = text.modifiers.get("src0_sel", "BYTE_0").partition("_")
        first = int(which or 0) * (8 if unit == "BYTE" else 16)
        for lane in LANES:
            if state.active(lane):
                bits = raw(state, text.operands[1], "u32", lane)
                out[lane] = [n.pack(value_of(bits >> first + 8 * i & 0xFF, form), "f32") for i in range(count)]
        for lane, words in out.items():
            for part, word in enumerate(words):
                state.put(target + part, lane, word)
                state.loose[target + part, lane] = [(0, "f32", 0)]

    return run


SMALL: dict[str, Callable[[State, Text], None]] = {
    **{f"v_cvt_pk_{name}_f32": to_pair(name) for name in ("fp8", "bf8")},
    **{f"v_cvt_sr_{name}_f32": to_noisy(name) for name in ("fp8", "bf8", "f16", "bf16")},
    **{f"v_cvt_f32_{name}": from_small(name, 1) for name in ("fp8", "bf8")},
    **{f"v_cvt_pk_f32_{name}": from_small(name, 2) for name in ("fp8", "bf8")},
}
