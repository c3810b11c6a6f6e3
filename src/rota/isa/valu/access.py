"""How VALU instructions reach their registers.

The encoding decides: plain, with op_sel for halves, _sdwa for bytes and halves, _dpp across lanes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.isa.binary.kernel_facts import LANES
from rota.isa.disassembly import Instruction
from rota.isa.wave.operand import (
    File,
    Operand,
    Reader,
    Writer,
    as_bits,
    parse_operand,
    reader,
    unknown,
    with_signs,
    writer,
)
from rota.isa.wave.wave import Wave


def check_modifiers(instruction: Instruction, known: Iterable[str]) -> dict[str, str]:
    """The modifiers by name; raises I102 for any but the `known` ones."""
    fields = instruction.fields
    if not fields.keys() <= set(known):
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    return fields


def flags(text: str, default: int, count: int) -> list[int]:
    return [int(flag) for flag in text.strip("[]").split(",")] if text else [default] * count


def op_sel(instruction: Instruction, sources: int) -> tuple[int, int, int, int]:
    """The four bits of op_sel: three for sources and the last for the destination, which is printed last."""
    given = flags(check_modifiers(instruction, ("op_sel",)).get("op_sel", ""), 0, 4)
    if len(given) == 4:
        return given[0], given[1], given[2], given[3]
    if len(given) == sources + 1 == 3:
        return given[0], given[1], 0, given[2]
    raise unknown(instruction, "op_sel")


# DPP, for the largest wave; a smaller one has fewer rows. Lane i of a row of 16 reads another lane of its row, or of
# the wave. A lane whose source is outside the row or inactive reads zero with bound_ctrl:1, else it doesn't write (AMD,
# CDNA3 ISA, "Data Parallel Processing"). Rows and banks outside the masks don't write either.

_LANE = np.arange(LANES)
_ROW, _PLACE = _LANE // 16, _LANE % 16
_HALF = re.compile(r"\bv\d+\.[lh]\b")
_MODIFIERS = ("row_mask", "bank_mask", "bound_ctrl", "fi")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCrossing:
    """How a _dpp instruction crosses lanes: `source` per lane, or -1; the masks give `enabled`."""

    source: NDArray[np.int64]
    enabled: NDArray[np.bool_]
    zero: bool  # what a lane without a source reads; otherwise it doesn't write
    inactive: bool = False  # lanes read inactive ones, too

    def read(self, wave: Wave, values: Any) -> Any:  # noqa: ANN401
        moved = np.broadcast_to(values, wave.lanes)[np.maximum(self.source[: wave.lanes], 0)]
        return np.where(self._found(wave), moved, moved.dtype.type(0))

    def writes(self, wave: Wave) -> NDArray[np.bool_]:
        some = wave.active & self.enabled[: wave.lanes]
        return some if self.zero else some & self._found(wave)

    def _found(self, wave: Wave) -> NDArray[np.bool_]:
        source = self.source[: wave.lanes]
        return (source >= 0) & (self.inactive | wave.active[np.maximum(source, 0)])


def crossing_of(instruction: Instruction) -> LaneCrossing:
    fields = instruction.fields
    if _HALF.search(instruction.text) is not None:
        fields.pop("op_sel", None)  # which says the same as the operands
    if "dpp8" in fields:  # which has no masks
        fields |= {"row_mask": "0xf", "bank_mask": "0xf"}
    rows, banks, bound, inactive = (fields.pop(name, "0") for name in _MODIFIERS)
    if len(fields) != 1:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    ((name, value),) = fields.items()
    source = _sources(name, value)
    if source is None:
        raise unknown(instruction, f"modifier {name}:{value}")
    enabled = (int(rows, 0) >> _ROW & 1) & (int(banks, 0) >> _PLACE // 4 & 1) == 1
    places = source.astype(np.int64)
    return LaneCrossing(source=places, enabled=enabled, zero=bound == "1" or name == "dpp8", inactive=inactive == "1")


def _sources(name: str, value: str) -> NDArray[np.int64] | None:  # noqa: PLR0911  # one line per form
    within = _ROW * 16
    if name == "quad_perm":
        return np.asarray(_LANE // 4 * 4 + np.array(flags(value, 0, 4))[_LANE % 4])
    if name in {"row_shl", "row_shr"} and 1 <= int(value) <= 15:
        place = _PLACE + int(value) * (1 if name == "row_shl" else -1)
        return np.where((place >= 0) & (place < 16), within + place, -1)
    if name == "row_ror" and 1 <= int(value) <= 15:
        return within + (_PLACE - int(value)) % 16
    if name in {"wave_shl", "wave_shr"} and value == "1":
        lane = _LANE + (1 if name == "wave_shl" else -1)
        return np.where((lane >= 0) & (lane < LANES), lane, -1)
    if name in {"wave_rol", "wave_ror"} and value == "1":
        return (_LANE + (1 if name == "wave_rol" else -1)) % LANES
    if name == "row_mirror":
        return within + 15 - _PLACE
    if name == "row_half_mirror":
        return _LANE // 8 * 8 + 7 - _LANE % 8
    if name == "row_bcast" and value == "15":
        return np.where(_ROW > 0, within - 1, -1)
    if name == "row_bcast" and value == "31":
        return np.where(_ROW > 1, 31, -1)
    return _sources_of_later(name, value)


def _sources_of_later(name: str, value: str) -> NDArray[np.int64] | None:
    """Forms that not every architecture has."""
    within = _ROW * 16
    if name == "dpp8":
        return np.asarray(_LANE // 8 * 8 + np.array(flags(value, 0, 8))[_LANE % 8])
    if name not in {"row_newbcast", "row_share", "row_xmask"} or not 0 <= int(value) <= 15:
        return None
    return np.asarray(within + (_PLACE ^ int(value) if name == "row_xmask" else int(value)))


_SELECTIONS = ("dst_sel", "dst_unused", "src0_sel", "src1_sel", "clamp")
_HALVES: dict[str, Any] = {"w": np.uint16, "e": np.uint16, "s": np.int16, "h": np.float16}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandAccess:
    """Readers of the sources and the writer of the result, by the encoding; `clamp` limits the result."""

    readers: tuple[Reader, ...]
    put: Writer
    clamp: bool
    crossing: LaneCrossing | None = None


def _put_nowhere(wave: Wave, value: Any) -> None:  # noqa: ANN401
    """Without a target nothing is written."""


def parse_operands(instruction: Instruction) -> tuple[Operand, ...]:
    bare = (text[5:].removesuffix(")") if text.startswith("sext(") else text for text in instruction.operands)
    return tuple(parse_operand(text, instruction) for text in bare)


def access(
    instruction: Instruction,
    target: Operand | None,
    result: str,
    sources: tuple[Operand, ...],
    kinds: str,
    *,
    first: int = 1,
    halves: bool = False,
) -> OperandAccess:
    """`first` is the operand number of the first source; without a target there is no writer."""
    if instruction.is_dpp:
        return _access_dpp(instruction, target, result, sources, kinds)
    if instruction.is_sdwa:
        return _access_sdwa(instruction, target, result, sources, kinds, first=first)
    fields = check_modifiers(instruction, ("clamp", "op_sel"))
    if has_halves(sources if target is None else (target, *sources)):
        fields.pop("op_sel", None)  # which says the same
    readers = [reader(operand, kind) for operand, kind in zip(sources, kinds, strict=True)]
    put = _put_nowhere if target is None else writer(target, result)
    if "op_sel" in fields or halves:
        chosen = flags(fields.get("op_sel", ""), 0, len(sources) + 1)
        if len(chosen) != len(sources) + 1:
            raise unknown(instruction, "op_sel")
        for place, (operand, kind, high) in enumerate(zip(sources, kinds, chosen, strict=False)):
            readers[place] = _upper_half(instruction, operand, kind) if high else readers[place]
        if chosen[-1] and not halves:
            raise unknown(instruction, "op_sel of the destination")
        if halves and target is not None and target.half is None:
            put = _part_writer(target, result, f"WORD_{chosen[-1]}", "UNUSED_PRESERVE")
    return OperandAccess(readers=tuple(readers), put=put, clamp="clamp" in fields)


def _upper_half(instruction: Instruction, operand: Operand, kind: str) -> Reader:
    if kind not in _HALVES or operand.file is File.LITERAL:
        raise unknown(instruction, "op_sel")
    whole = reader(Operand(text=operand.text, file=operand.file, first=operand.first), "u")
    return half_reader(whole, 1, operand, kind)


def has_halves(operands: Iterable[Operand]) -> bool:
    """True if operands name halves of registers."""
    return any(each.half is not None for each in operands)


def half_reader(take: Reader, high: int, operand: Operand, kind: str) -> Reader:
    """The low or the high 16 bits as a kind, with the operand's sign and bars."""
    shift, view = np.uint32(16 * high), _HALVES[kind]
    keep = np.uint16(0x7FFF if operand.absolute else 0xFFFF)
    flip = np.uint16(0x8000 if operand.negate else 0)
    if operand.signed and kind != "h":
        raise ValueError(f"{operand.text} is no float")
    return lambda wave: ((np.asarray(take(wave)) >> shift).astype(np.uint16) & keep ^ flip).view(view)


def _access_dpp(
    instruction: Instruction, target: Operand | None, result: str, sources: tuple[Operand, ...], kinds: str
) -> OperandAccess:
    if target is None or not sources or sources[0].file is not File.VECTOR:
        raise unknown(instruction, "form")
    crossing = crossing_of(instruction)
    readers = [reader(operand, kind) for operand, kind in zip(sources, kinds, strict=True)]
    moved = reader(replace(sources[0], negate=False, absolute=False), kinds[0])
    across = with_signs(lambda wave: crossing.read(wave, moved(wave)), sources[0], kinds[0])  # zeros get them too

    def put(wave: Wave, value: Any) -> None:  # noqa: ANN401
        bits, where = as_bits(value, result), crossing.writes(wave)
        if target.half is not None:
            shift = np.uint32(16 * target.half)
            bits = wave.v[target.first] & ~(np.uint32(0xFFFF) << shift) | (bits & np.uint32(0xFFFF)) << shift
        if bits.dtype == np.uint64:
            np.copyto(wave.v[target.first + 1], (bits >> np.uint64(32)).astype(np.uint32), where=where)
        np.copyto(wave.v[target.first], bits.astype(np.uint32), where=where)

    return OperandAccess(readers=(across, *readers[1:]), put=put, clamp=False, crossing=crossing)


def _access_sdwa(
    instruction: Instruction,
    target: Operand | None,
    result: str,
    sources: tuple[Operand, ...],
    kinds: str,
    *,
    first: int,
) -> OperandAccess:
    fields = check_modifiers(instruction, _SELECTIONS)
    if any(kind in "UId" for kind in kinds):
        raise unknown(instruction, "form")
    chosen = [fields.get(f"src{number}_sel", "DWORD") for number in range(2)]
    chosen += ["DWORD"] * (len(sources) - 2)
    readers = [
        _part_reader(instruction, operand, kind, part, sign=instruction.operands[first + number].startswith("sext("))
        for number, (operand, kind, part) in enumerate(zip(sources, kinds, chosen, strict=False))
    ]
    put: Writer = _put_nowhere
    if target is not None and result in "UId":
        if "dst_sel" in fields:
            raise unknown(instruction, "dst_sel")
        put = writer(target, result)
    elif target is not None:
        put = _part_writer(target, result, fields.get("dst_sel", "DWORD"), fields.get("dst_unused", "UNUSED_PAD"))
    return OperandAccess(readers=tuple(readers), put=put, clamp="clamp" in fields)


def _span(selection: str) -> tuple[int, int]:
    if selection == "DWORD":
        return 0, 32
    unit, _, number = selection.partition("_")
    width = {"BYTE": 8, "WORD": 16}[unit]
    return width * int(number), width


def _part_reader(instruction: Instruction, operand: Operand, kind: str, selection: str, *, sign: bool) -> Reader:
    shift, width = _span(selection)
    if operand.file not in {File.VECTOR, File.SCALAR} and selection != "DWORD":
        raise unknown(instruction, f"part of {operand.text}")
    if selection == "DWORD" and not sign:
        return reader(operand, kind)
    if operand.signed and (16 if kind in _HALVES else 32) != width:
        raise unknown(instruction, "sign of a part of a register")
    whole = reader(Operand(text=operand.text, file=operand.file, first=operand.first, literal=operand.literal), "u")
    mask, top = np.uint32((1 << width) - 1), np.uint32(1 << width - 1)

    def part(wave: Wave) -> Any:  # noqa: ANN401
        value = np.asarray(whole(wave)) >> np.uint32(shift) & mask
        return (value ^ top) - top if sign else value

    if kind in _HALVES:
        return half_reader(part, 0, operand, kind)
    types: dict[str, Any] = {"i": np.int32, "f": np.float32}
    return lambda wave: part(wave).view(types.get(kind, np.uint32))


def _part_writer(target: Operand, kind: str, selection: str, unused: str) -> Writer:
    shift, width = _span(selection)
    put, old = writer(target, "u"), reader(target, "u")
    mask = np.uint32((1 << width) - 1)
    keep = np.uint32(~(((1 << width) - 1) << shift) & 0xFFFF_FFFF)
    if unused not in {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"}:
        raise ValueError(unused)

    def place(wave: Wave, value: Any) -> None:  # noqa: ANN401
        part = as_bits(value, kind) & mask
        if unused == "UNUSED_SEXT":
            top = np.uint32(1 << width - 1)
            put(wave, ((part ^ top) - top) << np.uint32(shift))
        else:
            kept = old(wave) & keep if unused == "UNUSED_PRESERVE" else np.uint32(0)
            put(wave, part << np.uint32(shift) | kept)

    return place
