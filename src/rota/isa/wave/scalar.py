"""Scalar instructions on Python numbers (CDNA3 ISA, "SALU"), and registers chosen by M0."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial

from rota.isa.disassembly import Instruction
from rota.isa.opcodes import IsaUnit, Opcode
from rota.isa.registers import M0
from rota.isa.wave.operand import Operand, named_register, parse_operand, scalar_reader, scalar_writer, unknown
from rota.isa.wave.wave import INDEXED, Step, Wave, make_step

# Registers indexed by M0. In index mode vector instructions add M0 to their VGPRs; see `wave.with_indexing`.

_NAMES = re.compile(r"gpr_idx\((?P<names>[A-Z0-9,]*)\)")
_PLACES = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}
_LAST = 101  # the last scalar register that an index may reach


def _which(instruction: Instruction) -> int:
    """The bits of gpr_idx(...), from the text because parsing splits it at its commas."""
    found = _NAMES.search(instruction.text.replace(" ", ""))
    if found is None:
        raise unknown(instruction, "form")
    return sum(_PLACES[name] for name in found["names"].split(",") if name)


_KEPT = {"on": 0xFFFF_0F00, "mode": 0xFFFF_0FFF, "idx": 0xFFFF_FF00}  # bits of M0 that stay


def _index(instruction: Instruction) -> Step:
    name = instruction.spec.words[-1]
    sources = () if name == "mode" else (parse_operand(instruction.operands[0], instruction),)
    takes, which = [scalar_reader(each) for each in sources], 0 if name == "idx" else _which(instruction)

    def act(wave: Wave) -> None:
        index = sum(take(wave) & 0xFF for take in takes)
        wave.s[M0] = wave.s[M0] & _KEPT[name] | index | which << 12
        if name == "on":
            wave.mode |= INDEXED

    return make_step(instruction, act)


def _index_off(instruction: Instruction) -> Step:
    def act(wave: Wave) -> None:
        wave.mode &= ~INDEXED

    return make_step(instruction, act)


def _move(*, wide: bool, from_there: bool) -> Callable[[Instruction], Step]:
    def make(instruction: Instruction) -> Step:
        target, source = (parse_operand(text, instruction) for text in instruction.operands)
        moved = source if from_there else target
        if not moved.rows or moved.first > _LAST:
            raise unknown(instruction, f"operand {moved.text!r}")
        take = scalar_reader(source, wide=wide)

        def act(wave: Wave) -> None:
            there = moved.first + wave.s[M0]
            if there + wide > _LAST:
                message = f"{instruction.opcode} uses s{there}, which doesn't exist"
                wave.faults.add("I102", instruction, message, ("wave", wave.number))
                return
            value = wave.s[there] | wave.s[there + 1] << 32 if from_there else take(wave)
            for part in range(1 + wide):
                wave.s[(target.first if from_there else there) + part] = value >> 32 * part & 0xFFFF_FFFF

        return make_step(instruction, act)

    return make


_DECODERS: dict[str, Callable[[Instruction], Step]] = {
    **{f"s_set_gpr_idx_{name}": _index for name in _KEPT},
    "s_set_gpr_idx_off": _index_off,
    **{f"s_movrel{way}_b{bits}": _move(wide=bits == 64, from_there=way == "s") for way in "sd" for bits in (32, 64)},
}


_M32, _M64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF
# From the sources and SCC to the result and the new SCC; None leaves SCC unchanged.
_Function = Callable[..., tuple[int, int | None]]


def signed(value: int, bits: int = 32) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _with_scc(result: int, bits: int = 32) -> tuple[int, int]:
    kept = result & (1 << bits) - 1
    return kept, int(kept != 0)


def _overflow(total: int) -> tuple[int, int]:
    return total & _M32, int(not -(2**31) <= total < 2**31)


def _field(a: int, b: int, bits: int, *, sign: bool) -> tuple[int, int]:
    """Bit field: offset in the low bits of b, size in bits 16 to 22."""
    start, size = b & (bits - 1), b >> 16 & 0x7F
    value = (a & ((1 << bits) - 1)) >> start & ((1 << size) - 1)
    return _with_scc(signed(value, size) if sign and size else value, bits)


def _lowest(value: int) -> int:
    return (value & -value).bit_length() - 1 if value else _M32


def _highest(value: int, bits: int) -> int:
    return bits - value.bit_length() if value else _M32


def _highest_sign(value: int, bits: int) -> int:
    return _highest(value ^ (-(value >> bits - 1) & ((1 << bits) - 1)), bits)


def _quads(value: int, bits: int) -> Iterable[tuple[int, int]]:
    return enumerate(int(value >> place & 15 != 0) for place in range(0, bits, 4))


_TWO: dict[str, _Function] = {
    "s_add_u32": lambda a, b, _: ((a + b) & _M32, a + b >> 32),
    "s_addc_u32": lambda a, b, scc: ((a + b + scc) & _M32, a + b + scc >> 32),
    "s_sub_u32": lambda a, b, _: ((a - b) & _M32, int(b > a)),
    "s_subb_u32": lambda a, b, scc: ((a - b - scc) & _M32, int(b + scc > a)),
    "s_add_i32": lambda a, b, _: _overflow(signed(a) + signed(b)),
    "s_sub_i32": lambda a, b, _: _overflow(signed(a) - signed(b)),
    "s_mul_i32": lambda a, b, _: (a * b & _M32, None),
    "s_mul_hi_u32": lambda a, b, _: (a * b >> 32, None),
    "s_mul_hi_i32": lambda a, b, _: (signed(a) * signed(b) >> 32 & _M32, None),
    "s_min_i32": lambda a, b, _: (min(a, b, key=signed), int(signed(a) < signed(b))),
    "s_min_u32": lambda a, b, _: (min(a, b), int(a < b)),
    "s_max_i32": lambda a, b, _: (max(a, b, key=signed), int(signed(a) > signed(b))),
    "s_max_u32": lambda a, b, _: (max(a, b), int(a > b)),
    "s_absdiff_i32": lambda a, b, _: _with_scc(abs(signed((signed(a) - signed(b)) & _M32))),
    "s_pack_ll_b32_b16": lambda a, b, _: (a & 0xFFFF | (b & 0xFFFF) << 16, None),
    "s_pack_lh_b32_b16": lambda a, b, _: (a & 0xFFFF | b & 0xFFFF0000, None),
    "s_pack_hh_b32_b16": lambda a, b, _: (a >> 16 | b & 0xFFFF0000, None),
    "s_pack_hl_b32_b16": lambda a, b, _: (a >> 16 | (b & 0xFFFF) << 16, None),
    "s_add_nc_u64": lambda a, b, _: ((a + b) & _M64, None),
    "s_sub_nc_u64": lambda a, b, _: ((a - b) & _M64, None),
    "s_mul_u64": lambda a, b, _: (a * b & _M64, None),
}
_LOGIC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}


def _for_both_sizes(table: dict[str, _Function]) -> dict[str, _Function]:
    return {f"{name}{bits}": partial(function, bits=bits) for name, function in table.items() for bits in (32, 64)}


_TWO |= _for_both_sizes(
    {
        "s_lshl_b": lambda a, b, _, bits: _with_scc(a << (b & bits - 1), bits),
        "s_lshr_b": lambda a, b, _, bits: _with_scc(a >> (b & bits - 1), bits),
        "s_ashr_i": lambda a, b, _, bits: _with_scc(signed(a, bits) >> (b & bits - 1), bits),
        "s_bfe_u": lambda a, b, _, bits: _field(a, b, bits, sign=False),
        "s_bfe_i": lambda a, b, _, bits: _field(a, b, bits, sign=True),
        "s_bfm_b": lambda a, b, _, bits: (((1 << (a & bits - 1)) - 1 << (b & bits - 1)) & (1 << bits) - 1, None),
        "s_cselect_b": lambda a, b, scc, bits: (a if scc else b, None),  # noqa: ARG005
        **{
            f"s_{name}_b": lambda a, b, _, bits, combine=combine: _with_scc(combine(a, b), bits)
            for name, combine in _LOGIC.items()
        },
    }
)
_TWO |= {
    f"s_lshl{by}_add_u32": lambda a, b, _, by=by: (((a << by) + b) & _M32, int((a << by) + b > _M32))
    for by in (1, 2, 3, 4)
}
_ONE: dict[str, _Function] = {
    "s_movk_i32": lambda a, _, __: (signed(a & 0xFFFF, 16) & _M32, None),
    "s_flbit_i32": lambda a, _, __: (_highest_sign(a, 32), None),
    "s_flbit_i32_i64": lambda a, _, __: (_highest_sign(a, 64), None),
    "s_bitreplicate_b64_b32": lambda a, _, __: (sum((a >> bit & 1) * 3 << 2 * bit for bit in range(32)), None),
    "s_abs_i32": lambda a, _, __: _with_scc(abs(signed(a))),
    "s_sext_i32_i8": lambda a, _, __: (signed(a & 0xFF, 8) & _M32, None),
    "s_sext_i32_i16": lambda a, _, __: (signed(a & 0xFFFF, 16) & _M32, None),
    **_for_both_sizes(
        {
            "s_mov_b": lambda a, _, __, bits: (a, None),  # noqa: ARG005
            "s_not_b": lambda a, _, __, bits: _with_scc(~a, bits),
            "s_brev_b": lambda a, _, __, bits: (int(f"{a:0{bits}b}"[::-1], 2), None),
            "s_wqm_b": lambda a, _, __, bits: _with_scc(sum(15 * on << 4 * at for at, on in _quads(a, bits)), bits),
            "s_quadmask_b": lambda a, _, __, bits: _with_scc(sum(on << at for at, on in _quads(a, bits)), bits),
            "s_bcnt0_i32_b": lambda a, _, __, bits: _with_scc(bits - a.bit_count()),
            "s_bcnt1_i32_b": lambda a, _, __, bits: _with_scc(a.bit_count()),  # noqa: ARG005
            "s_ff0_i32_b": lambda a, _, __, bits: (_lowest(~a & (1 << bits) - 1), None),
            "s_ff1_i32_b": lambda a, _, __, bits: (_lowest(a), None),  # noqa: ARG005
            "s_flbit_i32_b": lambda a, _, __, bits: (_highest(a, bits), None),
        }
    ),
}
# Their first source is the destination.
_ON_ITSELF: dict[str, _Function] = {
    "s_addk_i32": lambda a, b, _: _overflow(signed(a) + signed(b & 0xFFFF, 16)),
    "s_mulk_i32": lambda a, b, _: (signed(a) * signed(b & 0xFFFF, 16) & _M32, None),
    "s_cmovk_i32": lambda a, b, scc: (signed(b & 0xFFFF, 16) & _M32 if scc else a, None),
    **_for_both_sizes(
        {
            "s_cmov_b": lambda a, b, scc, bits: (b if scc else a, None),  # noqa: ARG005
            "s_bitset0_b": lambda a, b, _, bits: (a & ~(1 << (b & bits - 1)), None),
            "s_bitset1_b": lambda a, b, _, bits: (a | 1 << (b & bits - 1), None),
        }
    ),
}
_ORDER: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def decode_scalar(instruction: Instruction) -> Step | None:  # noqa: PLR0911  # one line per family
    opcode, words = instruction.mnemonic, instruction.spec.words
    if instruction.spec.unit is not IsaUnit.SALU:
        return None
    if opcode in _DECODERS:
        return _DECODERS[opcode](instruction)
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    if opcode in _TWO or opcode in _ONE:
        return _decode_function(instruction, operands[0], operands[1:], {**_TWO, **_ONE}[opcode])
    if opcode in _ON_ITSELF:
        return _decode_function(instruction, operands[0], operands, _ON_ITSELF[opcode])
    if words[0] in {"cmp", "cmpk"} and words[-1] in _ORDER and instruction.spec.type[0] != "f":
        return _decode_compare(instruction, operands)
    if words[0] in {"bitcmp0", "bitcmp1"} and len(operands) == 2:
        wanted, last = int(words[0] == "bitcmp1"), 63 if instruction.spec.is_wide else 31
        value, place = scalar_reader(operands[0], wide=last == 63), scalar_reader(operands[1])

        def compare_bit(wave: Wave) -> None:
            wave.scc = int(value(wave) >> (place(wave) & last) & 1 == wanted)

        return make_step(instruction, compare_bit)
    if words[-1] in {"saveexec", "wrexec"}:
        return _decode_save_exec(instruction, operands, words[0], new=words[-1] == "wrexec")
    return None


_SHIFTS = frozenset({"lshl", "lshr", "ashr", "bfe", "bitset0", "bitset1"})  # by a number of 32 bits


def _wide(spec: Opcode, place: int) -> bool:
    """True if an operand has 64 bits; shift amounts, field descriptors and counts have 32."""
    result, source = spec.types[0].endswith("64"), spec.is_wide
    if spec.words[0] == "bfm":
        return place == 0 and result
    return result if place == 0 else source and not (place == 2 and spec.words[0] in _SHIFTS)


def _decode_function(
    instruction: Instruction, target: Operand, sources: tuple[Operand, ...], function: _Function
) -> Step:
    first = scalar_reader(sources[0], wide=_wide(instruction.spec, 1))
    second = scalar_reader(sources[1], wide=_wide(instruction.spec, 2)) if len(sources) > 1 else lambda _: 0
    put = scalar_writer(target, wide=_wide(instruction.spec, 0))
    sets_m0 = target.first == M0

    def act(wave: Wave) -> None:
        result, scc = function(first(wave), second(wave), wave.scc)
        put(wave, result)
        if scc is not None:
            wave.scc = int(scc)
        if sets_m0:
            wave.m0_at = wave.now

    return make_step(instruction, act)


def _decode_compare(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    (verb, name), wide = instruction.spec.words, instruction.spec.is_wide
    left, right = (scalar_reader(operand, wide=wide) for operand in operands)
    order, short, is_signed = _ORDER[name], verb == "cmpk", instruction.spec.type[0] == "i"

    def act(wave: Wave) -> None:
        a, b = left(wave), right(wave)
        if is_signed:
            a, b = signed(a), signed(b & 0xFFFF, 16) if short else signed(b)
        elif short:
            b &= 0xFFFF
        wave.scc = int(order(a, b))

    return make_step(instruction, act)


def _decode_save_exec(instruction: Instruction, operands: tuple[Operand, ...], name: str, *, new: bool) -> Step:
    exec_, wide, turned = named_register("exec"), instruction.spec.is_wide, name in {"andn1", "orn1"}
    saved, put = (scalar_writer(each, wide=wide) for each in (operands[0], exec_))
    source, old = (scalar_reader(each, wide=wide) for each in (operands[1], exec_))
    combine, every = _LOGIC[{"andn1": "andn2", "orn1": "orn2"}.get(name, name)], _M64 if wide else _M32

    def act(wave: Wave) -> None:
        before, mask = old(wave), source(wave)
        result = (combine(before, mask) if turned else combine(mask, before)) & every
        saved(wave, result if new else before)
        put(wave, result)
        wave.scc = int(result != 0)

    return make_step(instruction, act)
