"""The three instructions around a division: takes v_div_scale, v_div_fmas or v_div_fixup, gives a `Step`.

A compiler divides by Newton's iteration between them.  v_div_scale brings numerator and denominator into the middle of
the exponent range and says in VCC whether the quotient has to be scaled back, which v_div_fmas does; v_div_fixup puts
in what zeros, infinities and NaNs give.  The ISA's text leaves three points open, and they are read so that quotients
come out right, which compiled divisions are tested for: a denominator whose inverse is denormal is scaled down, the
scale of v_div_fmas undoes that of v_div_scale, and a quotient that overflows on the way is infinite.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.valu.access import access, parsed
from rota.isa.valu.exactly import fused
from rota.isa.valu.lane_compare import lane_bits, lanes_of
from rota.isa.wave.mode import heeding, limited
from rota.isa.wave.operand import VCC, named, scalar_writer, unknown
from rota.isa.wave.step import Step, make_step

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

_NAME = re.compile(r"^v_div_(?P<part>scale|fmas|fixup|fixup_legacy)_(?P<kind>f16|f32|f64)$")


class _Format(NamedTuple):
    letter: str
    kind: Any
    bias: int
    mantissa: int
    scale: int  # by which power of two operands move
    far: int  # from which difference of exponents on a quotient may overflow
    tiny: int  # up to which exponent a numerator is tiny
    nothing: int  # below which difference a quotient is zero

    def exponent(self, values: Any) -> Any:  # noqa: ANN401
        """The exponent field."""
        bits = np.asarray(values).view({"h": np.uint16, "f": np.uint32, "d": np.uint64}[self.letter])
        return (bits.astype(np.int64) >> self.mantissa) & (2 * self.bias + 1)


_FORMATS = {
    "f16": _Format("h", np.float16, 15, 10, 0, 99, -1, -99),
    "f32": _Format("f", np.float32, 127, 23, 64, 96, 23, -150),
    "f64": _Format("d", np.float64, 1023, 52, 128, 768, 53, -1075),
}


def decode_division(instruction: Instruction, opcode: str) -> Step | None:
    """The step of one of the three, or None; `opcode` is the instruction's without its encoding."""
    found = _NAME.match(opcode)
    if found is None:
        return None
    form = _FORMATS[found["kind"]]
    if found["part"] == "scale":
        return _scale(instruction, form)
    if found["part"] == "fmas":
        return _fmas(instruction, form)
    return _fixup(instruction, form, halves=form.letter == "h" and found["part"] == "fixup")


def _scale(instruction: Instruction, form: _Format) -> Step:
    target, flag, *sources = parsed(instruction)
    if instruction.modifiers or any(each.absolute for each in sources):
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    reached = access(instruction, target, form.letter, tuple(sources), 3 * form.letter)
    out = scalar_writer(flag, wide=True)
    put = reached.put
    assert put is not None  # noqa: S101  # a target was given

    def act(wave: Wave) -> None:
        chosen, below, above = (np.broadcast_to(take(wave), LANES) for take in reached.readers)
        scaled, back = _scaled(form, chosen, below, above)
        put(wave, scaled)
        out(wave, lane_bits(back & wave.active))

    return make_step(instruction, act, reads=tuple(sources), writes=(target, flag))


def _scaled(form: _Format, chosen: Any, below: Any, above: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Numerator `above` over denominator `below`, of which `chosen` is one; and whether the quotient is scaled back."""
    smallest = np.finfo(form.kind).tiny
    quotient, inverse = np.abs(above / below), np.abs(form.kind(1) / below)
    up, down = np.ldexp(chosen, form.scale), np.ldexp(chosen, -form.scale)
    is_below, is_above = chosen == below, chosen == above
    cases = (
        ((above == 0) | (below == 0), form.kind(np.nan), False),
        (form.exponent(above) - form.exponent(below) >= form.far, np.where(is_below, up, chosen), True),
        (np.abs(below) < smallest, up, False),
        ((inverse < smallest) & (quotient < smallest), np.where(is_below, down, chosen), True),
        (inverse < smallest, down, False),
        (quotient < smallest, np.where(is_above, up, chosen), True),
        (form.exponent(above) <= form.tiny, up, False),
    )
    conditions = [case[0] for case in cases]
    values = np.select(conditions, [np.broadcast_to(case[1], LANES) for case in cases], chosen)
    return values.astype(form.kind), np.select(conditions, [np.full(LANES, case[2]) for case in cases], np.False_)


def _fmas(instruction: Instruction, form: _Format) -> Step:
    target, *sources = parsed(instruction)
    reached = access(instruction, target, form.letter, tuple(sources), 3 * form.letter)
    readers = tuple(map(heeding, reached.readers)) if form.letter == "f" else reached.readers
    put = reached.put
    assert put is not None  # noqa: S101  # a target was given

    def act(wave: Wave) -> None:
        a, b, c = (np.broadcast_to(take(wave), LANES) for take in readers)
        total = fused(a, b, c, form.kind)
        back = lanes_of(wave.s[VCC] | wave.s[VCC + 1] << 32)
        power = np.where(form.exponent(c) > form.bias, form.scale, -form.scale)
        result = np.where(back, np.ldexp(total, power.astype(np.int32)), total)
        put(wave, limited(wave, result) if reached.clamp else result)

    return make_step(instruction, act, reads=(*sources, named("vcc")), writes=(target,))


def _fixup(instruction: Instruction, form: _Format, *, halves: bool) -> Step:
    target, *sources = parsed(instruction)
    reached = access(instruction, target, form.letter, tuple(sources), 3 * form.letter, halves=halves)
    put = reached.put
    assert put is not None  # noqa: S101  # a target was given

    def act(wave: Wave) -> None:
        result = _fixed(form, *(np.broadcast_to(take(wave), LANES) for take in reached.readers))
        put(wave, limited(wave, result) if reached.clamp else result)

    reads = (*sources, target) if halves else tuple(sources)
    return make_step(instruction, act, reads=reads, writes=(target,))


def _fixed(form: _Format, quotient: Any, below: Any, above: Any) -> Any:  # noqa: ANN401
    sign = np.where(np.signbit(below) ^ np.signbit(above), form.kind(-1), form.kind(1))
    infinite, nothing, none = form.kind(np.inf), form.kind(0), form.kind(-np.nan)  # a NaN whose sign is set
    vanishes = form.exponent(above) - form.exponent(below) < form.nothing
    cases = (
        (np.isnan(above), above),
        (np.isnan(below), below),
        ((above == 0) & (below == 0), none),
        (np.isinf(above) & np.isinf(below), none),
        ((below == 0) | np.isinf(above), sign * infinite),
        ((above == 0) | np.isinf(below) | vanishes, sign * nothing),
        (np.isnan(quotient) & (form.scale > 0), sign * infinite),
    )
    values = [np.broadcast_to(value, LANES) for _, value in cases]
    return np.select([case for case, _ in cases], values, np.copysign(quotient, sign)).astype(form.kind)
