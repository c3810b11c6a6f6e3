"""Conversions between number formats: a table like that of `integer`, and those that write a part of a register.

Integers saturate and a NaN becomes zero.  Codes of 8 bits and below are those of `minifloat`; out of range they become
what the format has for it, because MODE's FP16_OVFL is not set.  Stochastic rounding adds the random number's high
bits right below the last bit kept and truncates, as AMD's host emulation does (amd_hip_ocp_host.hpp); the pseudocode in
the ISA, which lets the mantissa wrap and rounds once more, contradicts that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rota.isa.disassembly import Instruction
from rota.isa.valu.access import op_sel
from rota.isa.valu.floating import greatest, least, to_odd
from rota.isa.valu.integer import INTEGER, Function
from rota.isa.wave.operand import File, Operand, Reader, parse_operand, reader, unknown
from rota.isa.wave.wave import Step, Wave, make_step
from rota.targets.architecture import Architecture, Float8

# Floats of 4 to 16 bits: sign, exponent and mantissa with gradual underflow. Formats differ in the meaning of their top
# codes, and in the code for numbers out of range: infinity, NaN, or the largest number (6 and 4 bits have nothing
# else).


class MiniFloat(NamedTuple):
    """A float format: `lowest` is the exponent of its smallest normal number, `largest` its largest code.

    `over` is the code for numbers out of range and `nan` that of NaN, both without the sign; `one_nan` formats have
    neither a negative zero nor a sign on NaN.
    """

    exponent: int
    mantissa: int
    lowest: int
    largest: int
    over: int
    nan: int
    one_nan: bool = False

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa


F16 = MiniFloat(5, 10, -14, 0x7BFF, 0x7C00, 0x7E00)
BF16 = MiniFloat(8, 7, -126, 0x7F7F, 0x7F80, 0x7FC0)
FP6 = MiniFloat(2, 3, 0, 0x1F, 0x1F, 0x1F)
BF6 = MiniFloat(3, 2, -2, 0x1F, 0x1F, 0x1F)
FP4 = MiniFloat(2, 1, 0, 7, 7, 7)
_OCP = {"fp8": MiniFloat(4, 3, -6, 0x7E, 0x7F, 0x7F), "bf8": MiniFloat(5, 2, -14, 0x7B, 0x7C, 0x7E)}
_FNUZ = {
    "fp8": MiniFloat(4, 3, -7, 0x7F, 0x80, 0x80, one_nan=True),
    "bf8": MiniFloat(5, 2, -15, 0x7F, 0x80, 0x80, one_nan=True),
}
_PLAIN = {"f16": F16, "bf16": BF16, "fp6": FP6, "bf6": BF6, "fp4": FP4}


def format_named(name: str, float8: Float8) -> MiniFloat:
    return {**_PLAIN, **(_OCP if float8 is Float8.OCP else _FNUZ)}[name]


def encode(values: Any, form: MiniFloat, noise: Any = None, noise_bits: int = 0) -> Any:  # noqa: ANN401
    """The codes of float64 values, to nearest even, or truncated with `noise` added so many bits below the last one."""
    exact = np.asarray(values, np.float64)
    size = np.abs(np.where(np.isfinite(exact), exact, 0.0))
    power = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, form.lowest), form.lowest)
    steps = np.ldexp(size, form.mantissa - power)
    if noise is None:
        whole = np.rint(steps)
    else:
        whole = np.floor((np.floor(np.ldexp(steps, noise_bits)) + noise) * 2.0**-noise_bits)
    code = ((power - form.lowest) << form.mantissa) + whole.astype(np.int64)
    code = np.where((code > form.largest) | np.isinf(exact), form.over, code)
    code = np.where(np.isnan(exact), form.nan, code).astype(np.uint32)
    sign = np.signbit(exact).astype(np.uint32) << np.uint32(form.bits - 1)
    if form.one_nan:
        sign = np.where((code == form.nan) | (code == 0), np.uint32(0), sign)
    return code | sign


def decode_code(codes: Any, form: MiniFloat) -> Any:  # noqa: ANN401
    raw = np.asarray(codes).astype(np.int64) & ((1 << form.bits) - 1)
    code = raw & ((1 << form.bits - 1) - 1)
    power, fraction = code >> form.mantissa, code & ((1 << form.mantissa) - 1)
    whole = np.where(power > 0, fraction + (1 << form.mantissa), fraction).astype(np.float64)
    size = np.ldexp(whole, np.maximum(power, 1) - 1 + form.lowest - form.mantissa)
    size = np.where(code > form.largest, np.nan, size)
    if form.over != form.nan:  # there is an infinity
        size = np.where(code == form.over, np.inf, size)
    size = np.where(raw >> (form.bits - 1) == 1, -size, size)
    return np.where(raw == form.nan, np.nan, size) if form.one_nan else size


def float_values(name: str, float8: Float8) -> Any:  # noqa: ANN401
    """The values of all codes of a format, as float64.

    OCP's bf8 has infinities and NaNs as in IEEE 754, its fp8 only the NaN with all bits set; FNUZ formats have no
    negative zero, no infinity and one NaN, 0x80; 6 and 4 bits have neither infinity nor NaN (OCP specifications of
    8-bit floats and of microscaling formats; CDNA3 ISA for FNUZ).
    """
    form = format_named(name, float8)
    return decode_code(np.arange(1 << form.bits), form)


def _to_integer(low: float, high: float, kind: Any, whole: Callable[[Any], Any] = np.trunc) -> Callable[[Any], Any]:  # noqa: ANN401
    def compute(a: Any) -> Any:  # noqa: ANN401
        value = whole(np.asarray(a, np.float64))
        return np.clip(np.where(np.isnan(value), 0, value), low, high).astype(np.int64).astype(kind)

    return compute


def _nearest_half(a: Any) -> Any:  # noqa: ANN401
    """Rounds to nearest even and makes NaNs quiet, which NumPy's cast doesn't."""
    half = np.asarray(a).astype(np.float16)
    return (half.view(np.uint16) | np.where(np.isnan(half), np.uint16(0x200), np.uint16(0))).view(np.float16)


def _half_towards_zero(a: Any) -> Any:  # noqa: ANN401
    """Rounds towards zero; a finite number out of range becomes the largest half."""
    nearest = _nearest_half(a)
    over = np.abs(nearest.astype(np.float64)) > np.abs(np.asarray(a, np.float64))
    return np.where(over, nearest.view(np.uint16) - np.uint16(1), nearest.view(np.uint16)).astype(np.uint32)


def _both(convert: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: convert(a) | convert(b) << np.uint32(16)


def _bf16(a: Any) -> Any:  # noqa: ANN401
    bits = np.asarray(a, np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return np.where(np.isnan(a), bits >> np.uint32(16) | np.uint32(0x40), rounded >> np.uint32(16))


def _insert_byte(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
    """Rounds to nearest even, as a third party measured (shadPS4); the ISA leaves it open."""
    shift = (np.asarray(b) & np.uint32(3)) * np.uint32(8)
    value = np.asarray(_to_integer(0, 255, np.uint32, np.rint)(a))
    return c & ~(np.uint32(0xFF) << shift) | value << shift


def _undefined_above(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """No source, LLVM included, defines the high half, so it is poison."""
    return lambda a: convert(a) | np.uint32(0xFFFF_0000)


_I32, _U32 = (-(2.0**31), 2.0**31 - 1, np.int32), (0.0, 2.0**32 - 1, np.uint32)
CONVERSIONS: dict[str, Function] = {
    "v_cvt_f32_u32": Function("f", "u", lambda a: np.asarray(a).astype(np.float32)),
    "v_cvt_f32_i32": Function("f", "i", lambda a: np.asarray(a).astype(np.float32)),
    "v_cvt_f64_u32": Function("d", "u", lambda a: np.asarray(a).astype(np.float64)),
    "v_cvt_f64_i32": Function("d", "i", lambda a: np.asarray(a).astype(np.float64)),
    "v_cvt_u32_f32": Function("u", "f", _to_integer(*_U32)),
    "v_cvt_i32_f32": Function("i", "f", _to_integer(*_I32)),
    "v_cvt_u32_f64": Function("u", "d", _to_integer(*_U32)),
    "v_cvt_i32_f64": Function("i", "d", _to_integer(*_I32)),
    "v_cvt_flr_i32_f32": Function("i", "f", _to_integer(*_I32, np.floor)),
    "v_cvt_f32_f64": Function("f", "d", lambda a: np.asarray(a).astype(np.float32)),
    "v_cvt_f64_f32": Function("d", "f", lambda a: np.asarray(a).astype(np.float64)),
    "v_cvt_f32_f16": Function("f", "h", lambda a: np.asarray(a).astype(np.float32)),
    "v_cvt_f16_f32": Function("h", "f", _nearest_half),
    "v_cvt_f16_u16": Function("h", "w", lambda a: np.asarray(a).astype(np.float16)),
    "v_cvt_f16_i16": Function("h", "s", lambda a: np.asarray(a).astype(np.float16)),
    "v_cvt_u16_f16": Function("u", "h", _undefined_above(_to_integer(0.0, 2.0**16 - 1, np.uint32))),
    "v_cvt_i16_f16": Function("u", "h", _undefined_above(_to_integer(-(2.0**15), 2.0**15 - 1, np.uint32))),
    "v_cvt_f32_bf16": Function("f", "e", lambda a: (np.asarray(a).astype(np.uint32) << np.uint32(16)).view(np.float32)),
    "v_cvt_off_f32_i4": Function(
        "f", "u", lambda a: ((np.asarray(a).astype(np.int64) & 15 ^ 8) - 8).astype(np.float32) / np.float32(16)
    ),
    **{
        f"v_cvt_f32_ubyte{at}": Function(
            "f", "u", lambda a, at=8 * at: (a >> np.uint32(at) & np.uint32(255)).astype("f4")
        )
        for at in range(4)
    },
    "v_cvt_pkrtz_f16_f32": Function("u", "ff", _both(_half_towards_zero)),
    "v_cvt_pk_bf16_f32": Function("u", "ff", _both(_bf16)),
    "v_cvt_pk_f16_f32": Function("u", "ff", _both(lambda a: _nearest_half(a).view(np.uint16).astype(np.uint32))),
    "v_cvt_pk_i16_f32": Function("u", "ff", _both(_to_integer(-(2.0**15), 2.0**15 - 1, np.uint16))),
    "v_cvt_pk_u16_f32": Function("u", "ff", _both(_to_integer(0.0, 2.0**16 - 1, np.uint16))),
    "v_cvt_nearest_i32_f32": Function("i", "f", _to_integer(*_I32, lambda a: np.floor(a + 0.5))),
    "v_pack_b32_f16": Function("u", "hh", _both(lambda a: np.asarray(a).view(np.uint16).astype(np.uint32))),
    "v_cvt_pk_u8_f32": Function("u", "fuu", _insert_byte),
}


def widen_bf16(bits: Any) -> Any:  # noqa: ANN401
    """The float32 that 16 bits are the high half of."""
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


def _in_bf16(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of float32 on bf16: exact as float64, or rounded to odd, and then rounded once."""
    return lambda *sources: encode(function(*map(widen_bf16, sources)), BF16).astype(np.uint16)


def _fused(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
    return to_odd(np.asarray(a, np.float64) * np.asarray(b, np.float64), np.asarray(c, np.float64))


PACKED_BF16: dict[str, Function] = {
    "v_pk_add_bf16": Function("w", "ww", _in_bf16(lambda a, b: _fused(a, np.float64(1), b))),
    "v_pk_mul_bf16": Function("w", "ww", _in_bf16(lambda a, b: np.asarray(a, np.float64) * b)),
    "v_pk_fma_bf16": Function("w", "www", _in_bf16(_fused)),
    "v_pk_min_num_bf16": Function("w", "ww", _in_bf16(least)),
    "v_pk_max_num_bf16": Function("w", "ww", _in_bf16(greatest)),
}
"""On both halves of a register."""


class Placed(NamedTuple):
    """A conversion to `bits` bits, written where op_sel says; the rest of the destination stays."""

    bits: int
    sources: str
    compute: Callable[..., Any]


def _noisy(form: MiniFloat) -> Placed:
    """Rounds stochastically with the high bits of the second source."""
    spare = 23 - form.mantissa
    return Placed(form.bits, "fu", lambda a, b: encode(a, form, noise(b, spare), spare))


def noise(bits: Any, count: int) -> Any:  # noqa: ANN401
    return (np.asarray(bits) >> np.uint32(32 - count)).astype(np.int64)


def placed_conversions(float8: Float8) -> dict[str, Placed]:
    table = {}
    for name in ("fp8", "bf8"):
        form = format_named(name, float8)
        table[f"v_cvt_pk_{name}_f32"] = Placed(
            16, "ff", lambda a, b, form=form: encode(a, form) | encode(b, form) << np.uint32(form.bits)
        )
        table[f"v_cvt_sr_{name}_f32"] = _noisy(form)
    for name in ("f16", "bf16"):
        table[f"v_cvt_sr_{name}_f32"] = _noisy(format_named(name, float8))
    return table


def float8_readers(float8: Float8) -> dict[str, Function]:
    def one(a: Any, form: MiniFloat) -> Any:  # noqa: ANN401
        return decode_code(np.asarray(a) & np.uint32(0xFF), form).astype(np.float32)

    def two(a: Any, form: MiniFloat) -> Any:  # noqa: ANN401
        low, high = (one(np.asarray(a) >> np.uint32(by), form).view(np.uint32).astype(np.uint64) for by in (0, 8))
        return low | high << np.uint64(32)

    table = {}
    for name in ("fp8", "bf8"):
        form = format_named(name, float8)
        table[f"v_cvt_f32_{name}"] = Function("f", "u", partial(one, form=form))
        table[f"v_cvt_pk_f32_{name}"] = Function("U", "u", partial(two, form=form))
    return table


# Scaled conversions. The scale is a power of two: the exponent field of a float32, all ones for NaN. A conversion to a
# small format divides by it, one from a small format multiplies; both round once (AMD, CDNA4 ISA; edge cases as in
# AMD's host emulation, amd_hip_ocp_host.hpp).

_COUNTS = {"2xpk16": 32, "pk32": 32, "pk": 2, "scalef32": 1, "sr": 1}  # by the last word of the name
_SMALL = frozenset({"fp8", "bf8", "fp6", "bf6", "fp4"})
_BITS = {"f32": 32, "f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
_RANDOM = INTEGER["v_prng_b32"].compute
Codes = list[Any]


def decode_scaled(instruction: Instruction, architecture: Architecture) -> Step | None:
    words, types = instruction.spec.words, instruction.spec.types
    if words[:2] != ("cvt", "scalef32") or words[-1] not in _COUNTS or not set(types) <= _BITS.keys():
        return None
    (to, of), stochastic = types, "sr" in words
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    target, scale = operands[0], reader(operands[-1], "u")
    if target.file is not File.VECTOR or any(each.signed for each in operands):
        raise unknown(instruction, "operand")
    random = reader(operands[-2], "u") if stochastic else None
    given = operands[1 : -2 if stochastic else -1]
    count, chosen = _COUNTS[words[-1]], op_sel(instruction, len(operands) - 1)
    take = _read_codes(instruction, given, of, count, chosen)
    put = _write_codes(instruction, target, to, count, chosen)
    convert = _conversion(of, to, architecture.float8)

    def act(wave: Wave) -> None:
        power = np.broadcast_to(scale(wave), wave.lanes) >> np.uint32(23) & np.uint32(0xFF)
        seed = None if random is None else np.array(np.broadcast_to(random(wave), wave.lanes))
        out = []
        for code in take(wave):
            out.append(convert(code, power.astype(np.int32), seed))
            seed = None if seed is None else _RANDOM(seed)
        put(wave, out)

    return make_step(instruction, act)


def _conversion(of: str, to: str, float8: Float8) -> Callable[[Any, Any, Any], Any]:
    source = None if of == "f32" else format_named(of, float8)
    result = None if to == "f32" else format_named(to, float8)
    spare = 0 if result is None else (23 if source is None else source.mantissa) - result.mantissa
    sign = -1 if to in _SMALL else 1

    def convert(code: Any, power: Any, seed: Any) -> Any:  # noqa: ANN401
        single = np.ascontiguousarray(code, np.uint32).view(np.float32)
        value = single.astype(np.float64) if source is None else decode_code(code, source)
        value = np.where(power == 255, np.copysign(np.nan, value), np.ldexp(value, sign * (power - 127)))
        if result is None:
            return value.astype(np.float32).view(np.uint32)
        return encode(value, result) if seed is None else encode(value, result, noise(seed, spare), spare)

    return convert


def _read_codes(
    instruction: Instruction, given: tuple[Operand, ...], of: str, count: int, chosen: tuple[int, ...]
) -> Callable[[Wave], Codes]:
    bits = _BITS[of]
    if of in _SMALL and count < 32:
        part = chosen[0] + 2 * chosen[1]
        whole = 16 if count * bits == 16 else 8
        if part * whole >= 32 or given[0].count != 1:
            raise unknown(instruction, "op_sel")
        source = reader(given[0], "u")
        return lambda wave: _fields(np.broadcast_to(source(wave), (1, 64)), bits, count, part * whole)
    if any(chosen[:2]):
        raise unknown(instruction, "op_sel")
    if len(given) == 2 and count == 32:  # sixteen of each, one of the one and one of the other
        return lambda wave: [wave.v[each.first + number].copy() for number in range(16) for each in given]
    readers = [_register(each, number) for each in given for number in range(each.count)]
    if len(readers) * 32 // bits < count or (len(readers) > 1 and len(readers) * 32 // bits != count):
        raise unknown(instruction, "operand width")
    return lambda wave: _fields(
        np.array([np.broadcast_to(take(wave), 64) for take in readers], np.uint32), bits, count, 0
    )


def _register(operand: Operand, number: int) -> Reader:
    if operand.file is not File.VECTOR:
        return reader(operand, "u")
    return lambda wave: wave.v[operand.first + number]


def _fields(registers: Any, bits: int, count: int, first: int) -> Codes:  # noqa: ANN401
    wide = np.vstack([registers, np.zeros((1, 64), np.uint32)]).astype(np.uint64)
    out = []
    for number in range(count):
        row, shift = divmod(first + number * bits, 32)
        both = wide[row] | wide[row + 1] << np.uint64(32)
        out.append((both >> np.uint64(shift) & np.uint64((1 << bits) - 1)).astype(np.uint32))
    return out


def _write_codes(
    instruction: Instruction, target: Operand, to: str, count: int, chosen: tuple[int, ...]
) -> Callable[[Wave, Codes], None]:
    """Writes the codes one after the other, or into the part of a register that op_sel chooses."""
    bits = _BITS[to]
    size = count * bits
    first = (chosen[3] * 16 if size == 16 else (2 * chosen[3] + chosen[2]) * 8) if size < 32 else 0
    if (size >= 32 and any(chosen[2:])) or (size == 16 and chosen[2]) or target.count != max(1, size // 32):
        raise unknown(instruction, "op_sel")
    mask = np.uint32(((1 << min(size, 32)) - 1) << first)

    def put(wave: Wave, codes: Codes) -> None:
        words = [np.zeros(64, np.uint64) for _ in range(target.count + 1)]
        for number, code in enumerate(codes):
            row, shift = divmod(first + number * bits, 32)
            moved = code.astype(np.uint64) << np.uint64(shift)
            words[row] = words[row] | moved & np.uint64(0xFFFF_FFFF)
            words[row + 1] = words[row + 1] | moved >> np.uint64(32)
        for number in range(target.count):
            kept = wave.v[target.first + number] & ~mask
            np.copyto(wave.v[target.first + number], words[number].astype(np.uint32) | kept, where=wave.active)

    return put
