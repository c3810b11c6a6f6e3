"""The instructions around a division, without NumPy: takes values, gives values, by exact quotients."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from tests.isa.plain import numbers as n
from tests.isa.plain.machine import LANES, WIDTHS, State, Text, inner, raw, register, rounded
from tests.isa.plain.numbers import Num


class Form(NamedTuple):
    """By how much operands move, and from which exponents on."""

    scale: int
    far: int
    tiny: int
    nothing: int


FORMS = {"f16": Form(0, 0, 0, 0), "f32": Form(64, 96, 23, -150), "f64": Form(128, 768, 53, -1075)}


def _field(bits: int, kind: str) -> int:
    exponent, mantissa = n.FORMATS[kind]
    return bits >> mantissa & (1 << exponent) - 1


def _times(a: Num, power: int) -> Num:
    return a if a.nan or a.inf else a._replace(size=a.size * n.power_of_two(power))


def _least(kind: str) -> Fraction:
    return n.power_of_two(2 - (1 << n.FORMATS[kind][0] - 1))


def _bits(state: State, text: str, kind: str, lane: int) -> int:
    name, negated, bars, _ = inner(text)
    bits, width = raw(state, name, kind, lane), WIDTHS[kind]
    bits &= (1 << width) - 1
    return (bits & (1 << width - 1) - 1 if bars else bits) ^ negated << width - 1


def scaled(kind: str) -> Callable[[State, Text], None]:
    form = FORMS[kind]

    def one(chosen: int, below: int, above: int) -> tuple[Num, bool]:
        c, d, u = (n.unpack(bits, kind) for bits in (chosen, below, above))
        if u.zero or d.zero:
            return n.NAN, False
        if _field(above, kind) - _field(below, kind) >= form.far:
            return (_times(c, form.scale) if n.same(c, d) else c), True
        quotient, inverse = rounded(_over(u, d), kind), rounded(n.inverse(d), kind)
        if not d.nan and not d.inf and d.size < _least(kind):
            return _times(c, form.scale), False
        small = [not each.nan and not each.inf and each.size < _least(kind) for each in (inverse, quotient)]
        if all(small):
            return (_times(c, -form.scale) if n.same(c, d) else c), True
        if small[0]:
            return _times(c, -form.scale), False
        if small[1]:
            return (_times(c, form.scale) if n.same(c, u) else c), True
        return (_times(c, form.scale), False) if _field(above, kind) <= form.tiny else (c, False)

    def run(state: State, text: Text) -> None:
        place = register(text.operands[0])
        assert place is not None
        flags, out = 0, {}
        for lane in LANES:
            if state.active(lane):
                value, flag = one(*(_bits(state, each, kind, lane) for each in text.operands[2:]))
                out[lane] = n.pack(value, kind)
                flags |= flag << lane
        _put(state, place[1], out, kind)
        flag_place = register(text.operands[1])
        assert flag_place is not None
        state.put_mask(flag_place[1], flags)

    return run


def _over(a: Num, b: Num) -> Num:
    return n.NAN if (a.inf and b.inf) or (a.zero and b.zero) else n.times(a, n.inverse(b))


def _put(state: State, row: int, out: dict[int, int], kind: str) -> None:
    for lane, bits in out.items():
        state.put(row, lane, bits, 64 if kind == "f64" else 32)
        state.loose[row, lane] = [(0, kind, 0)]


def multiplied(kind: str) -> Callable[[State, Text], None]:
    def run(state: State, text: Text) -> None:
        place = register(text.operands[0])
        assert place is not None
        out = {}
        for lane in LANES:
            if state.active(lane):
                bits = [_bits(state, each, kind, lane) for each in text.operands[1:]]
                total = rounded(n.multiply_add(*(n.unpack(each, kind) for each in bits)), kind)
                if state.mask(106) >> lane & 1:
                    up = _field(bits[2], kind) > (1 << n.FORMATS[kind][0] - 1) - 1
                    total = _times(total, FORMS[kind].scale if up else -FORMS[kind].scale)
                out[lane] = n.pack(total, kind)
        _put(state, place[1], out, kind)

    return run


def fixed(kind: str, *, keeps: bool) -> Callable[[State, Text], None]:
    def one(quotient: int, below: int, above: int) -> Num:
        q, d, u = (n.unpack(bits, kind) for bits in (quotient, below, above))
        negative = d.negative != u.negative
        if u.nan or d.nan or (u.zero and d.zero) or (u.inf and d.inf):
            return n.NAN
        if d.zero or u.inf:
            return n.infinite(negative=negative)
        vanishes = kind != "f16" and _field(above, kind) - _field(below, kind) < FORMS[kind].nothing
        if d.inf or u.zero or vanishes:
            return Num(negative=negative, size=Fraction(0))
        if q.nan and kind != "f16":
            return n.infinite(negative=negative)
        return q._replace(negative=negative)

    def run(state: State, text: Text) -> None:
        place = register(text.operands[0])
        assert place is not None
        out = {}
        for lane in LANES:
            if state.active(lane):
                bits = n.pack(one(*(_bits(state, each, kind, lane) for each in text.operands[1:])), kind)
                out[lane] = bits | (state.v[place[1]][lane] & 0xFFFF_0000 if keeps else 0)
        _put(state, place[1], out, kind)

    return run


QUOTIENTS: dict[str, Callable[[State, Text], None]] = {
    "v_div_scale_f32": scaled("f32"), "v_div_scale_f64": scaled("f64"),
    "v_div_fmas_f32": multiplied("f32"), "v_div_fmas_f64": multiplied("f64"),
    "v_div_fixup_f32": fixed("f32", keeps=False), "v_div_fixup_f64": fixed("f64", keeps=False),
    "v_div_fixup_f16": fixed("f16", keeps=True), "v_div_fixup_legacy_f16": fixed("f16", keeps=False),
}  # fmt: skip
