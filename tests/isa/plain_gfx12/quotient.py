"""The instructions around a division: what they do to exact quotients."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tests.isa.plain import numbers as n
from tests.isa.plain.machine import WIDTHS
from tests.isa.plain.numbers import Num
from tests.isa.plain.quotient import FORMS
from tests.isa.plain_gfx12.machine import LANES, VCC, State, Text, raw, rounded, signed_bits, store, writes


def _power(bits: int, kind: str) -> int:
    """The field of the exponent."""
    exponent, mantissa = n.FORMATS[kind]
    return bits >> mantissa & (1 << exponent) - 1


def _moved(a: Num, power: int) -> Num:
    return a if a.nan or a.inf else a._replace(size=a.size * n.power_of_two(power))


def _is_tiny(a: Num, kind: str) -> bool:
    return not a.nan and not a.inf and a.size < n.power_of_two(2 - (1 << n.FORMATS[kind][0] - 1))


def _over(a: Num, b: Num) -> Num:
    return n.NAN if (a.inf and b.inf) or (a.zero and b.zero) else n.times(a, n.inverse(b))


def _bits(state: State, text: Text, kind: str, lane: int) -> list[int]:
    return [signed_bits(raw(state, each, kind, lane), each, WIDTHS[kind]) for each in text.operands[1:]]


def _scaled(kind: str, chosen: int, below: int, above: int) -> tuple[Num, bool]:
    """Of a denominator or a numerator what is divided instead, and whether the quotient has to be moved back."""
    form = FORMS[kind]
    c, d, u = (n.unpack(bits, kind) for bits in (chosen, below, above))
    if u.zero or d.zero:
        return n.NAN, False
    if _power(above, kind) - _power(below, kind) >= form.far:
        return (_moved(c, form.scale) if n.same(c, d) else c), True
    if _is_tiny(d, kind):
        return _moved(c, form.scale), False
    inverse, quotient = (_is_tiny(rounded(each, kind), kind) for each in (n.inverse(d), _over(u, d)))
    if inverse and quotient:
        return (_moved(c, -form.scale) if n.same(c, d) else c), True
    if inverse:
        return _moved(c, -form.scale), False
    if quotient:
        return (_moved(c, form.scale) if n.same(c, u) else c), True
    return (_moved(c, form.scale) if _power(above, kind) <= form.tiny else c), False


def _scale(kind: str) -> Callable[[State, Text], None]:
    def run(state: State, text: Text) -> None:
        flags, out = 0, {}
        for lane in LANES:
            if state.active(lane):
                sources = [signed_bits(raw(state, each, kind, lane), each, WIDTHS[kind]) for each in text.operands[2:]]
                out[lane], flag = _scaled(kind, *sources)
                flags |= flag << lane
        for lane, value in out.items():
            store(state, (text.operands[0], lane), value, kind)
        state.s[text.operands[1].row] = flags

    return run


def _multiply(kind: str) -> Callable[[State, Text], None]:
    """A product and a sum, moved back where VCC says so."""

    def run(state: State, text: Text) -> None:
        out = {}
        for lane in LANES:
            if writes(state, text, lane):
                bits = _bits(state, text, kind, lane)
                total = rounded(n.multiply_add(*(n.unpack(each, kind) for each in bits)), kind)
                if state.s[VCC] >> lane & 1:
                    up = _power(bits[2], kind) > (1 << n.FORMATS[kind][0] - 1) - 1
                    total = _moved(total, FORMS[kind].scale if up else -FORMS[kind].scale)
                out[lane] = total
        for lane, value in out.items():
            store(state, (text.operands[0], lane), value, kind)

    return run


def _fixed(kind: str, quotient: int, below: int, above: int) -> Num:
    q, d, u = (n.unpack(bits, kind) for bits in (quotient, below, above))
    negative = d.negative != u.negative
    if u.nan or d.nan or (u.zero and d.zero) or (u.inf and d.inf):
        return n.NAN
    if d.zero or u.inf:
        return n.infinite(negative=negative)
    vanishes = kind != "f16" and _power(above, kind) - _power(below, kind) < FORMS[kind].nothing
    if d.inf or u.zero or vanishes:
        return Num(negative=negative, size=Fraction(0))
    if q.nan and kind != "f16":
        return n.infinite(negative=negative)
    return q._replace(negative=negative)


def _fixup(kind: str) -> Callable[[State, Text], None]:
    def run(state: State, text: Text) -> None:
        out = {lane: _fixed(kind, *_bits(state, text, kind, lane)) for lane in LANES if writes(state, text, lane)}
        for lane, value in out.items():
            store(state, (text.operands[0], lane), value, kind)

    return run


QUOTIENTS: dict[str, Callable[[State, Text], None]] = {
    **{f"v_div_scale_{kind}": _scale(kind) for kind in ("f32", "f64")},
    **{f"v_div_fmas_{kind}": _multiply(kind) for kind in ("f32", "f64")},
    **{f"v_div_fixup_{kind}": _fixup(kind) for kind in ("f16", "f32", "f64")},
}
