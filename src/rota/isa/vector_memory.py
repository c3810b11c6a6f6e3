"""Vector and scalar memory instructions: takes a load or store, gives a `Step` (CDNA3 ISA, "Vector Memory").

Buffer accesses outside of `num_records` read zero and write nothing, checked for each word by itself; an access that
passes this check and yet belongs to no buffer is a fault, as on the machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rota.isa.hazard import check_dma, check_scalar_operands
from rota.isa.kernel_facts import LANES
from rota.isa.operand import M0, SCALAR, File, Operand, parse_operand, scalar_reader, unknown
from rota.isa.step import Act, Step, make_step
from rota.isa.wave import Pending, misaligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.disassembly import Instruction
    from rota.isa.memory import Memory
    from rota.isa.wave import Wave

_OPCODE = re.compile(
    r"^(?P<space>buffer|global)_(?P<verb>load|store)_(?P<lds>lds_)?"
    r"(?P<width>dword(?:x[234])?|ubyte|sbyte|byte|ushort|sshort|short)(?P<half>_d16(?P<high>_hi)?)?$"
)
_SIZES = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "ubyte": 1, "sbyte": 1, "byte": 1}
_SIZES |= {"ushort": 2, "sshort": 2, "short": 2}
_SCALAR = re.compile(r"^s_load_dword(?:x(?P<count>2|4|8|16))?$")
_CACHE = frozenset({"sc0", "sc1", "nt", "glc", "slc"})  # who may keep a copy: no effect on values
_LANE = np.arange(LANES, dtype=np.int64)

Addresses = Callable[["Wave"], tuple["NDArray[np.uint64]", "NDArray[np.uint64] | None"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Access:
    """What an instruction moves: bytes per lane, from or to which addresses, and how they lie in registers."""

    instruction: Instruction
    size: int
    addresses: Addresses  # byte addresses, and the room behind each of them within num_records
    scalars: tuple[int, ...]  # scalar rows that are read
    signed: bool
    half: bool
    high: bool


def decode_memory(instruction: Instruction) -> Step | None:
    """The step of a buffer, global or scalar memory instruction, or None."""
    if (scalar := _SCALAR.match(instruction.opcode)) is not None:
        return _scalar_load(instruction, int(scalar["count"] or 1))
    found = _OPCODE.match(instruction.opcode)
    if found is None:
        return None
    offset, flags = _modifiers(instruction)
    to_lds = bool(found["lds"]) or "lds" in flags
    operands = [parse_operand(text, instruction) for text in instruction.operands]
    if to_lds:
        data, rest = None, operands
    elif found["space"] == "global" and found["verb"] == "store":
        data, rest = operands[1], [operands[0], *operands[2:]]
    else:
        data, rest = operands[0], operands[1:]
    where = (
        _buffer(rest, offset, "offen" in flags, instruction) if found["space"] == "buffer" else _global(rest, offset)
    )
    access = _Access(
        instruction=instruction,
        size=_SIZES[found["width"]],
        addresses=where,
        scalars=tuple(row for operand in rest for row in operand.rows if row >= SCALAR),
        signed=found["width"].startswith("s") and found["width"] != "short",
        half=bool(found["half"]),
        high=bool(found["high"]),
    )
    if data is None:
        if access.size not in {4, 12, 16}:
            raise unknown(instruction, "width of a load to LDS")
        return make_step(instruction, _dma(access, offset), reads=(*rest, parse_operand("m0", instruction)))
    if found["verb"] == "load":
        return make_step(instruction, _load(access, data), reads=tuple(rest), writes=(data,))
    return make_step(instruction, _store(access, data), reads=(*rest, data))


def _modifiers(instruction: Instruction) -> tuple[int, frozenset[str]]:
    offset, flags = 0, set()
    for modifier in instruction.modifiers:
        if modifier.startswith("offset:"):
            offset = int(modifier.partition(":")[2], 0)
        elif modifier in {"offen", "lds"} | _CACHE:
            flags.add(modifier)
        else:
            raise unknown(instruction, f"modifier {modifier!r}")
    return offset, frozenset(flags)


def _global(operands: list[Operand], offset: int) -> Addresses:
    """A 64-bit address per lane, or a scalar one with an offset per lane."""
    lane, base = operands[0].first, operands[1]
    near = np.uint64(offset & 0xFFFF_FFFF_FFFF_FFFF)

    def pointers(wave: Wave) -> tuple[NDArray[np.uint64], None]:
        low, high = wave.v[lane].astype(np.uint64), wave.v[lane + 1].astype(np.uint64)
        return (low | high << np.uint64(32)) + near, None

    scalar = scalar_reader(base, wide=True)

    def offsets(wave: Wave) -> tuple[NDArray[np.uint64], None]:
        return wave.v[lane].astype(np.uint64) + np.uint64(scalar(wave)) + near, None

    return pointers if base.file is File.NONE else offsets


def _buffer(operands: list[Operand], offset: int, offen: bool, instruction: Instruction) -> Addresses:
    """Base and bounds from the resource, offsets from a lane, a scalar and the instruction.

    The scalar offset counts in the check: an offset is out of range from num_records - soffset on.
    """
    lane, resource = operands[0].first, operands[1].first
    soffset = scalar_reader(operands[2])

    def addresses(wave: Wave) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        low, high, records = wave.s[resource : resource + 3]
        if high >> 16 & 0x3FFF:
            wave.faults.add("I105", instruction, f"{instruction.opcode} uses a resource with a stride", ("s", resource))
            records = 0
        inside = np.full(LANES, offset + soffset(wave), np.uint64)
        if offen:
            inside += wave.v[lane]
        room = np.uint64(records) - np.minimum(inside, np.uint64(records))
        return inside + np.uint64(low | (high & 0xFFFF) << 32), room

    return addresses


def _fetch(access: _Access, wave: Wave, memory: Memory) -> NDArray[np.uint8]:
    """Lanes by bytes; zero where a buffer ends."""
    check_scalar_operands(wave, access.instruction, access.scalars)
    address, room = access.addresses(wave)
    active = wave.active
    if room is None or bool((room >= access.size).all()):
        return memory.load(address, access.size, active, access.instruction)
    unit = min(4, access.size)
    out = np.zeros((LANES, access.size), np.uint8)
    for at in range(0, access.size, unit):
        reached = active & (room >= at + unit)
        out[:, at : at + unit] = memory.load(address + np.uint64(at), unit, reached, access.instruction)
    return out


def _load(access: _Access, data: Operand) -> Act:
    first = data.first

    def act(wave: Wave) -> None:
        fetched = _fetch(access, wave, wave.memory)
        issued, old = wave.mask, wave.v[first].copy()

        def finish() -> None:
            np.copyto(
                wave.v[first : first + data.count], registers(fetched, old), where=True if issued is None else issued
            )

        wave.launch("vm", Pending(instruction=access.instruction, rows=data.rows, finish=finish))

    def registers(fetched: NDArray[np.uint8], old: NDArray[np.uint32]) -> NDArray[np.uint32]:
        if access.size >= 4:
            return fetched.view(np.uint32).T
        kind = np.dtype(f"<{'i' if access.signed else 'u'}{access.size}")
        value: NDArray[np.uint32] = fetched.view(kind)[:, 0].astype(np.int32).view(np.uint32)
        if access.half:
            low, high = (old, value << np.uint32(16)) if access.high else (value, old)
            value = low & np.uint32(0xFFFF) | high & np.uint32(0xFFFF0000)
        return value[None]

    return act


def _store(access: _Access, data: Operand) -> Act:
    first, size = data.first, access.size

    def act(wave: Wave) -> None:
        check_scalar_operands(wave, access.instruction, access.scalars)
        address, room = access.addresses(wave)
        values = np.ascontiguousarray(wave.v[first : first + data.count].T)
        octets = (values >> np.uint32(16) if access.high else values).view(np.uint8)
        unit = size if room is None else min(4, size)
        for at in range(0, size, unit):
            reached = wave.active if room is None else wave.active & (room >= at + unit)
            wave.memory.store(address + np.uint64(at), octets[:, at : at + unit], reached, access.instruction)
        wave.launch("vm", Pending(instruction=access.instruction, rows=(), finish=lambda: None))

    return act


def _dma(access: _Access, offset: int) -> Act:
    """Memory to LDS: lane i writes at M0 + offset + i * size, however the addresses are spread."""
    words = access.size // 4
    spread = _LANE[:, None] * words + np.arange(words)

    def act(wave: Wave) -> None:
        check_dma(wave, access.instruction)
        lds = wave.lds
        fetched = _fetch(access, wave, wave.memory).view(np.uint32)
        start = wave.s[M0] + offset
        if start & 3:
            misaligned(wave, access.instruction, "its m0")
            start &= ~3
        active = wave.active & lds.within(start + _LANE * access.size, access.size, access.instruction)
        index = ((start >> 2) + spread)[active]
        number = lds.order.begin_write(index, wave.number, wave.epoch, access.instruction, dma=True)
        serial = lds.begin(index, wave.number, access.instruction, dma=True)

        def finish() -> None:
            lds.words[index] = fetched[active]
            lds.end(index, serial)

        cover = partial(lds.order.cover, number)
        wave.launch("vm", Pending(instruction=access.instruction, rows=(), finish=finish, cover=cover))

    return act


def _scalar_load(instruction: Instruction, count: int) -> Step:
    target, base, offset = (parse_operand(text, instruction) for text in instruction.operands)
    if instruction.modifiers:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    start, more = scalar_reader(base, wide=True), scalar_reader(offset)
    first = target.first

    def act(wave: Wave) -> None:
        words = wave.memory.scalar_words(start(wave) + more(wave), count, instruction)

        def finish() -> None:
            wave.s[first : first + count] = words

        wave.launch("sm", Pending(instruction=instruction, rows=target.rows, finish=finish))

    return make_step(instruction, act, reads=(base, offset), writes=(target,))
