"""Operands of instructions, and the functions that read and write them.

A reader or writer is made once per instruction and then called per wave; its kind is one letter: u, i and f for 32
bits; U, I and d for 64; w, s, h and e (a bfloat16) for 16, of which a register holds the low half and zeros; read only,
b for 32 bits that may be a float's, and p for two 16-bit floats. A constant's bits depend on the kind that it is read
as.
"""

from __future__ import annotations

import enum
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.errors import IsaError
from rota.isa.registers import EXEC, FLAGS, NAMED, SCALAR, SCC, parse_range

if TYPE_CHECKING:
    from rota.isa.disassembly import Instruction
    from rota.isa.wave.wave import Wave

SHARED_BASE, PRIVATE_BASE = 1 << 48, 2 << 48
"""Where LDS and scratch lie among flat addresses: src_shared_base and src_private_base, as ROCm's driver sets them."""
_APERTURES = {"src_shared_base": SHARED_BASE, "src_private_base": PRIVATE_BASE}
_WRAPPED = re.compile(r"^(?P<minus>-)?(?P<bars>\|)?(?P<inner>[^|]+)\|?$")
_NEGATED = re.compile(r"^neg\((?P<inner>.+)\)$")  # constants: a plain minus would be part of the number
_LITERAL = re.compile(r"^(?:lit(?P<long>64)?\()?(?P<bits>0x[0-9a-f]+)\)?$")
_HALVES = {"l": 0, "h": 1}
_M32, _M64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF

Reader = Callable[["Wave"], Any]
Writer = Callable[["Wave", Any], None]


class File(enum.Enum):
    __hash__ = object.__hash__  # members are single, and this one is fast
    VECTOR = "vector"  # VGPR or AGPR
    SCALAR = "scalar"
    LITERAL = "literal"
    STATUS = "status"  # scc, vccz or execz
    NONE = "none"  # off


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """`count` registers from `first` on, or a literal; float operands may carry a sign and bars."""

    text: str
    file: File
    first: int = 0
    count: int = 1
    literal: int = 0  # as bits; a float as those of its float32
    floating: float | None = None
    written: bool = False  # a literal of 32 bits in the code, not an inline constant
    negate: bool = False
    absolute: bool = False
    half: int | None = None  # which 16 bits of its register it is, if not all

    @property
    def signed(self) -> bool:
        return self.negate or self.absolute

    @property
    def rows(self) -> tuple[int, ...]:
        if self.file is File.VECTOR:
            return tuple(range(self.first, self.first + self.count))
        if self.file in {File.SCALAR, File.STATUS}:
            return tuple(range(SCALAR + self.first, SCALAR + self.first + self.count))
        return ()


def parse_operand(text: str, instruction: Instruction) -> Operand:
    if text in {"off", "null"}:
        return Operand(text=text, file=File.NONE)
    if (plain := _register(text) or _constant(text)) is not None:
        return plain
    negated, wrapped = _NEGATED.match(text), _WRAPPED.match(text)
    inner = negated["inner"] if negated else wrapped["inner"] if wrapped else ""
    bars = inner.startswith("|") if negated else wrapped is not None and wrapped["bars"] is not None
    if (plain := _register(inner.strip("|")) or _constant(inner.strip("|"))) is not None:
        return replace(plain, text=text, negate=negated is not None or text.startswith("-"), absolute=bars)
    raise unknown(instruction, f"operand {text!r}")


def unknown(instruction: Instruction, what: str = "") -> IsaError:
    """The I102 error: the interpreter refuses rather than guesses."""
    message = f"the interpreter doesn't know {instruction.opcode}" + (f"; its {what} is not known" if what else "")
    return IsaError.of("I102", message, concerns=(instruction.concern(),))


def named_register(text: str) -> Operand:
    first, count = NAMED[text]
    return Operand(text=text, file=File.SCALAR, first=first, count=count)


@lru_cache(maxsize=4096)  # an unrolled loop names the same registers again and again
def _register(text: str) -> Operand | None:
    whole, _, half = text.partition(".")
    if half in _HALVES and (found := parse_range(whole)) is not None and found.size == 1:
        return Operand(text=text, file=File.VECTOR, first=found.rows[0], half=_HALVES[half])
    if (found := parse_range(text)) is None:
        return None
    file, first = (File.SCALAR, found.first) if found.file == "s" else (File.VECTOR, found.rows[0])
    return Operand(text=text, file=file, first=first, count=found.size)


def _constant(text: str) -> Operand | None:
    if (literal := _LITERAL.match(text)) is not None:
        bits = int(literal["bits"], 16)
        if literal["long"] or bits > _M32:  # all 64 of them are written
            return Operand(text=text, file=File.LITERAL, literal=bits, count=2)
        return Operand(text=text, file=File.LITERAL, literal=bits, written=True)
    if text in _APERTURES:
        return Operand(text=text, file=File.LITERAL, literal=_APERTURES[text], count=2)
    if text in FLAGS:
        first, count = FLAGS[text]
        return Operand(text=text, file=File.STATUS, first=first, count=count)
    try:
        value = float(text) if "." in text else None
        bits = int(text, 0) if value is None else int.from_bytes(struct.pack("<f", value), "little")
    except ValueError:
        return None
    return Operand(text=text, file=File.LITERAL, literal=bits, floating=value)


def constant_bits(operand: Operand, kind: str) -> int:
    """The bits of a constant read as a kind.

    An inline float takes the format of the kind, an inline integer keeps its bits. Written bits are the high half of a
    double, sign-extended for I and zero-extended for U (as LLVM's assembler accepts them).
    """
    if operand.count > 1 and kind not in "UId":
        raise ValueError(f"{operand.text} has 64 bits")  # read by 32 it is broken, says LLVM
    if operand.floating is not None:
        bits = int.from_bytes(struct.pack(_FORMATS.get(kind, "<f"), operand.floating), "little")
        return bits >> 16 if kind == "e" else bits
    if operand.written and kind in "dI":
        return operand.literal << 32 if kind == "d" else (operand.literal ^ 1 << 31) - (1 << 31) & _M64
    return operand.literal & (_M64 if kind in "UId" else 0xFFFF if kind in "wshe" else _M32)


def scalar_reader(operand: Operand, *, wide: bool = False) -> Callable[[Wave], int]:
    first = operand.first
    if operand.file is File.STATUS and first == SCC:
        return lambda wave: wave.scc
    if operand.file is File.STATUS:
        return lambda wave: int(wave.mask_at(first) == 0)
    if operand.file is File.VECTOR:
        raise ValueError(f"{operand.text} is no scalar")
    if operand.file is File.NONE:
        return lambda _: 0
    if operand.file is File.SCALAR and wide:
        return lambda wave: wave.s[first] | wave.s[first + 1] << 32
    if operand.file is File.SCALAR:
        return lambda wave: wave.s[first]
    bits = constant_bits(operand, "U" if wide else "u")
    return lambda _: bits


def scalar_writer(operand: Operand, *, wide: bool = False) -> Callable[[Wave, int], None]:
    """Writes a number modulo 2**32 or 2**64; a new EXEC takes effect at once."""
    first = operand.first
    if operand.file is File.NONE:  # null
        return lambda *_: None

    def put(wave: Wave, value: int) -> None:
        wave.s[first] = value & _M32
        if wide:
            wave.s[first + 1] = value >> 32 & _M32
        if first >= EXEC:
            wave.update_mask()

    return put


def reader(operand: Operand, kind: str) -> Reader:
    plain = _vector_reader(operand, kind) if operand.file is File.VECTOR else _uniform_reader(operand, kind)
    return with_signs(plain, operand, kind)


def _uniform_reader(operand: Operand, kind: str) -> Reader:
    cast = _CASTS[kind]
    if operand.file in {File.SCALAR, File.STATUS}:
        number = scalar_reader(operand, wide=kind in "UId" and operand.count > 1)
        return lambda wave: cast(number(wave))
    constant = cast(constant_bits(operand, kind))
    return lambda _: constant


def with_signs(plain: Reader, operand: Operand, kind: str) -> Reader:
    """Applies the operand's sign and bars to what `plain` reads."""
    if not operand.signed:
        return plain
    if kind not in _SIGNS:
        raise ValueError(f"{operand.text} is no float")
    sign = _SIGNS[kind]
    keep, flip = (~sign if operand.absolute else ~sign | sign), (sign if operand.negate else sign ^ sign)

    def changed(wave: Wave) -> Any:  # noqa: ANN401
        value = plain(wave)
        return (value.view(sign.dtype) & keep ^ flip).view(value.dtype)

    return changed


def _vector_reader(operand: Operand, kind: str) -> Reader:
    row = operand.first
    if operand.half is not None:
        shift, cast = np.uint32(16 * operand.half), _HALF_TYPES.get(kind)
        if cast is None:
            raise ValueError(f"{operand.text} has 16 bits")
        wide = np.uint32 if kind == "u" else cast
        return lambda wave: (wave.v[row] >> shift).astype(np.uint16).view(cast).astype(wide, copy=False)
    readers: dict[str, Reader] = {
        "u": lambda wave: wave.v[row],
        "b": lambda wave: wave.v[row],
        "i": lambda wave: wave.i[row],
        "f": lambda wave: wave.f[row],
        "h": lambda wave: wave.v[row].astype(np.uint16).view(np.float16),
        "w": lambda wave: wave.v[row].astype(np.uint16),
        "e": lambda wave: wave.v[row].astype(np.uint16),
        "s": lambda wave: wave.v[row].astype(np.uint16).view(np.int16),
        "p": lambda wave: wave.v[row],
        "U": lambda wave: _join_words(wave, row),
        "I": lambda wave: _join_words(wave, row).view(np.int64),
        "d": lambda wave: _join_words(wave, row).view(np.float64),
    }
    return readers[kind]


def _join_words(wave: Wave, row: int) -> Any:  # noqa: ANN401  # an array of 64-bit numbers
    return wave.v[row].astype(np.uint64) | wave.v[row + 1].astype(np.uint64) << np.uint64(32)


_HALF_TYPES: dict[str, Any] = {"w": np.uint16, "e": np.uint16, "s": np.int16, "h": np.float16, "u": np.uint16}
_FORMATS = {"h": "<e", "p": "<e", "U": "<d", "I": "<d", "d": "<d"}
_SIGNS: dict[str, Any] = {
    "b": np.uint32(1 << 31),
    "f": np.uint32(1 << 31),
    "h": np.uint16(1 << 15),
    "d": np.uint64(1 << 63),
}
_CASTS: dict[str, Callable[[int], Any]] = {
    "u": np.uint32,
    "b": np.uint32,
    "p": np.uint32,
    "i": lambda bits: np.uint32(bits).view(np.int32),
    "f": lambda bits: np.uint32(bits).view(np.float32),
    "w": lambda bits: np.uint16(bits & 0xFFFF),
    "e": lambda bits: np.uint16(bits & 0xFFFF),
    "s": lambda bits: np.uint16(bits & 0xFFFF).view(np.int16),
    "h": lambda bits: np.uint16(bits & 0xFFFF).view(np.float16),
    "U": np.uint64,
    "I": lambda bits: np.uint64(bits).view(np.int64),
    "d": lambda bits: np.uint64(bits).view(np.float64),
}


def as_bits(value: Any, kind: str) -> Any:  # noqa: ANN401
    """A result as unsigned numbers for registers: 64 bits for U, I and d, else 32."""
    array = np.asarray(value, _TYPES[kind])
    if kind in "UId":
        return array.view(np.uint64)
    return array.view(np.uint16).astype(np.uint32) if kind in "wsh" else array.view(np.uint32)


_TYPES: dict[str, Any] = {
    "u": np.uint32, "b": np.uint32, "p": np.uint32, "i": np.int32, "f": np.float32,
    "w": np.uint16, "s": np.int16, "h": np.float16, "U": np.uint64, "I": np.int64, "d": np.float64,
}  # fmt: skip


def writer(operand: Operand, kind: str) -> Writer:
    if operand.file is not File.VECTOR:
        raise ValueError(f"{operand.text} is no vector register")
    row = operand.first
    if operand.half is not None:
        return _half_writer(operand, kind)

    def put_plain(wave: Wave, value: Any) -> None:  # noqa: ANN401
        if wave.mask is None:
            wave.v[row] = value
        else:
            np.copyto(wave.v[row], value, where=wave.mask)

    def put_float(wave: Wave, value: Any) -> None:  # noqa: ANN401
        np.copyto(wave.f[row], value, where=True if wave.mask is None else wave.mask)

    def put_bits(wave: Wave, value: Any) -> None:  # noqa: ANN401
        np.copyto(wave.v[row], as_bits(value, kind), where=True if wave.mask is None else wave.mask)

    def put_wide(wave: Wave, value: Any) -> None:  # noqa: ANN401
        bits = as_bits(value, kind)
        where = True if wave.mask is None else wave.mask
        low, high = bits.astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)
        np.copyto(wave.v[row], low, where=where)
        np.copyto(wave.v[row + 1], high, where=where)

    return {"u": put_plain, "f": put_float}.get(kind) or (put_wide if kind in "UId" else put_bits)


def _half_writer(operand: Operand, kind: str) -> Writer:
    """Writes 16 bits and keeps the others."""
    row, high = operand.first, operand.half or 0
    shift, keep = np.uint32(16 * high), np.uint32(0xFFFF << 16 * (1 - high))

    def put(wave: Wave, value: Any) -> None:  # noqa: ANN401
        bits = (as_bits(value, kind) & np.uint32(0xFFFF)) << shift
        np.copyto(wave.v[row], wave.v[row] & keep | bits, where=True if wave.mask is None else wave.mask)

    return put
