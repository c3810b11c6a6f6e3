"""Operands of instructions: takes their text, gives `Operand` values, and the functions that read and write them.

Registers of a wave are numbered in rows: 0 to 255 the VGPRs, 256 to 511 the AGPRs, and from 512 the scalar registers.
A reader or writer is made once per instruction and then called per wave; its kind is one letter: u, i and f for 32
bits, U and I for 64; read only, h for a float of 16 bits, and b for 32 bits that may be a float's.
"""

from __future__ import annotations

import enum
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.errors import Finding, IsaError

if TYPE_CHECKING:
    from rota.isa.disassembly import Instruction
    from rota.isa.wave import Wave

ACC, SCALAR = 256, 512
VCC, M0, EXEC, SCC = 106, 124, 126, 253  # numbers of the scalar operands in the encoding
_NAMED = {
    "vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1), "m0": (M0, 1),
    "exec": (EXEC, 2), "exec_lo": (EXEC, 1), "exec_hi": (EXEC + 1, 1),
}  # fmt: skip
_REGISTER = re.compile(r"^(?P<file>[vas])(?:(?P<one>\d+)|\[(?P<first>\d+):(?P<last>\d+)\])$")
_WRAPPED = re.compile(r"^(?P<minus>-)?(?P<bars>\|)?(?P<inner>[^|]+)\|?$")
_M32, _M64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF

Reader = Callable[["Wave"], Any]
Writer = Callable[["Wave", Any], None]


class File(enum.Enum):
    """Where an operand's value lives."""

    VECTOR = "vector"  # VGPR or AGPR
    SCALAR = "scalar"
    LITERAL = "literal"
    NONE = "none"  # off


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One operand: `count` registers from `first` on, or a literal; with the signs that float operands may carry."""

    text: str
    file: File
    first: int = 0
    count: int = 1
    literal: int = 0  # as bits; a float as those of its float32
    floating: float | None = None
    negate: bool = False
    absolute: bool = False

    @property
    def signed(self) -> bool:
        """Does it carry a sign or bars?"""
        return self.negate or self.absolute

    @property
    def rows(self) -> tuple[int, ...]:
        """The register rows that it names."""
        if self.file is File.VECTOR:
            return tuple(range(self.first, self.first + self.count))
        if self.file is File.SCALAR:
            return tuple(range(SCALAR + self.first, SCALAR + self.first + self.count))
        return ()


SCC_BIT = Operand(text="scc", file=File.SCALAR, first=SCC)
"""The scalar condition code, which instructions read and write without naming it."""


def parse_operand(text: str, instruction: Instruction) -> Operand:
    """The operand that the text names."""
    if text in {"off", "null"}:
        return Operand(text=text, file=File.NONE)
    if (register := _register(text)) is not None:
        return register
    try:
        if "." in text:
            return _float_literal(text)
        return Operand(text=text, file=File.LITERAL, literal=int(text, 0))
    except ValueError:
        pass
    wrapped = _WRAPPED.match(text)
    if wrapped is not None and (register := _register(wrapped["inner"])) is not None:
        return Operand(
            text=text,
            file=register.file,
            first=register.first,
            count=register.count,
            negate=wrapped["minus"] is not None,
            absolute=wrapped["bars"] is not None,
        )
    raise unknown(instruction, f"operand {text!r}")


def unknown(instruction: Instruction, what: str = "") -> IsaError:
    """The I102 error: the interpreter refuses rather than guesses."""
    part = f"; its {what} is not known" if what else ""
    return IsaError(
        Finding(
            code="I102",
            message=f"the interpreter doesn't know {instruction.opcode}{part}",
            concerns=(instruction.concern(),),
        )
    )


def named(text: str) -> Operand:
    """A scalar register with a name of its own, such as vcc."""
    first, count = _NAMED[text]
    return Operand(text=text, file=File.SCALAR, first=first, count=count)


def _register(text: str) -> Operand | None:
    if text in _NAMED:
        return named(text)
    found = _REGISTER.match(text)
    if found is None:
        return None
    first = int(found["one"] or found["first"])
    last = int(found["one"] or found["last"])
    file = File.SCALAR if found["file"] == "s" else File.VECTOR
    return Operand(text=text, file=file, first=first + ACC * (found["file"] == "a"), count=last - first + 1)


def scalar_reader(operand: Operand, *, wide: bool = False) -> Callable[[Wave], int]:
    """Reads an unsigned number of 32 or 64 bits."""
    first = operand.first
    if operand.file is File.SCALAR and wide:
        return lambda wave: wave.s[first] | wave.s[first + 1] << 32
    if operand.file is File.SCALAR:
        return lambda wave: wave.s[first]
    bits = operand.literal & (_M64 if wide else _M32)
    return lambda _: bits


def scalar_writer(operand: Operand, *, wide: bool = False) -> Callable[[Wave, int], None]:
    """Writes a number, cut to 32 or 64 bits; a new EXEC takes effect at once."""
    first = operand.first

    def narrow(wave: Wave, value: int) -> None:
        wave.s[first] = value & _M32

    def both(wave: Wave, value: int) -> None:
        wave.s[first] = value & _M32
        wave.s[first + 1] = value >> 32 & _M32

    def masked(wave: Wave, value: int) -> None:
        (both if wide else narrow)(wave, value)
        wave.take_exec()

    if first >= EXEC:
        return masked
    return both if wide else narrow


def reader(operand: Operand, kind: str) -> Reader:
    """Reads a value per lane, or one for all lanes from a scalar register or literal."""
    plain = _vector_reader(operand.first, kind) if operand.file is File.VECTOR else _uniform_reader(operand, kind)
    if not operand.signed:
        return plain
    if kind not in _SIGNS:
        raise ValueError(f"{operand.text} is no float")
    sign = _SIGNS[kind]
    keep, flip = (~sign if operand.absolute else ~sign | sign), (sign if operand.negate else sign ^ sign)

    def changed(wave: Wave) -> Any:  # noqa: ANN401
        """Clears the sign bit, flips it, or both: what a modifier does whatever the bits mean, to a NaN as well."""
        value = plain(wave)
        return (value.view(sign.dtype) & keep ^ flip).view(value.dtype)

    return changed


def _vector_reader(row: int, kind: str) -> Reader:
    readers: dict[str, Reader] = {
        "u": lambda wave: wave.v[row],
        "b": lambda wave: wave.v[row],
        "i": lambda wave: wave.i[row],
        "f": lambda wave: wave.f[row],
        "h": lambda wave: wave.v[row].astype(np.uint16).view(np.float16),
        "U": lambda wave: _joined(wave, row),
        "I": lambda wave: _joined(wave, row).view(np.int64),
    }
    return readers[kind]


def _joined(wave: Wave, row: int) -> Any:  # noqa: ANN401  # an array of 64-bit numbers
    return wave.v[row].astype(np.uint64) | wave.v[row + 1].astype(np.uint64) << np.uint64(32)


def _uniform_reader(operand: Operand, kind: str) -> Reader:
    wide = kind in "UI"
    cast = _CASTS[kind]
    if operand.file is File.SCALAR:
        number = scalar_reader(operand, wide=wide and operand.count > 1)
        return lambda wave: cast(number(wave))
    if kind == "h" and operand.floating is not None:
        half = np.float16(operand.floating)
        return lambda _: half
    constant = cast(operand.literal & (_M64 if wide else _M32))
    return lambda _: constant


def _float_literal(text: str) -> Operand:
    value = float(text)
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return Operand(text=text, file=File.LITERAL, literal=bits, floating=value)


_SIGNS: dict[str, Any] = {"b": np.uint32(1 << 31), "f": np.uint32(1 << 31), "h": np.uint16(1 << 15)}
_CASTS: dict[str, Callable[[int], Any]] = {
    "u": np.uint32,
    "b": np.uint32,
    "i": lambda bits: np.uint32(bits).view(np.int32),
    "f": lambda bits: np.uint32(bits).view(np.float32),
    "h": lambda bits: np.uint16(bits & 0xFFFF).view(np.float16),
    "U": np.uint64,
    "I": lambda bits: np.uint64(bits).view(np.int64),
}


def writer(operand: Operand, kind: str) -> Writer:
    """Writes a value per lane, in the lanes that EXEC names."""
    row = operand.first

    def put_u(wave: Wave, value: Any) -> None:  # noqa: ANN401
        if wave.mask is None:
            wave.v[row] = value
        else:
            np.copyto(wave.v[row], value, where=wave.mask)

    def put_i(wave: Wave, value: Any) -> None:  # noqa: ANN401
        np.copyto(wave.i[row], value, where=True if wave.mask is None else wave.mask)

    def put_f(wave: Wave, value: Any) -> None:  # noqa: ANN401
        np.copyto(wave.f[row], value, where=True if wave.mask is None else wave.mask, casting="same_kind")

    def put_wide(wave: Wave, value: Any) -> None:  # noqa: ANN401
        bits = value.view(np.uint64)
        where = True if wave.mask is None else wave.mask
        low, high = bits.astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)
        np.copyto(wave.v[row], low, where=where)
        np.copyto(wave.v[row + 1], high, where=where)

    return {"u": put_u, "i": put_i, "f": put_f, "U": put_wide, "I": put_wide}[kind]
