"""LDS instructions: takes a ds_ instruction, gives a `Step` (CDNA3 ISA, "Local Data Share"; CDNA4 ISA, transposes)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rota.isa.memory.atomic_ops import Combine, lds_atomic
from rota.isa.memory.lane_exchange import decode_exchange
from rota.isa.memory.lds_access import change, reach, read, write
from rota.isa.memory.transposed_read import arranged
from rota.isa.wave.operand import Operand, parse_operand, unknown
from rota.isa.wave.step import Step, make_step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction
    from rota.isa.memory.lds_access import Arrange
    from rota.isa.wave.wave import Wave
    from rota.targets.architecture import Architecture

_WORDS = re.compile(r"^ds_(?P<verb>read|write)(?P<two>2?)(?P<far>st64)?_b(?P<bits>32|64|96|128)$")
_SHORT_READ = re.compile(r"^ds_read_(?P<sign>[ui])(?P<bits>8|16)(?P<half>_d16(?P<high>_hi)?)?$")
_SHORT_WRITE = re.compile(r"^ds_write_b(?P<bits>8|16)(?P<high>_d16_hi)?$")
_TRANSPOSED = re.compile(r"^ds_read_b(?P<bits>\d+)_tr_b(?P<element>\d+)$")
_TRANSPOSED_ALIGN = {64: 8, 96: 16}  # AMD's rocRoller pads rows of 96 bits to 128 for it


def decode_shared(instruction: Instruction, architecture: Architecture) -> Step | None:
    """The step of an LDS instruction, or None."""
    if not instruction.opcode.startswith("ds_"):
        return None
    if instruction.opcode == "ds_nop":
        return make_step(instruction, lambda _: None)
    if (exchange := decode_exchange(instruction)) is not None:
        return exchange
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    if (atomic := lds_atomic(instruction.opcode)) is not None:
        return _atomic(instruction, operands, atomic)
    return _moving(instruction, operands, architecture)


def _moving(instruction: Instruction, operands: tuple[Operand, ...], architecture: Architecture) -> Step | None:
    """Reads and writes: of words, of less, and reads that transpose."""
    if (found := _WORDS.match(instruction.opcode)) is not None:
        return _plain(instruction, operands, found)
    if (found := _SHORT_READ.match(instruction.opcode)) is not None:
        return _reading(
            instruction, operands, _run(instruction, int(found["bits"]) // 8), _extended(operands[0], found)
        )
    if (found := _SHORT_WRITE.match(instruction.opcode)) is not None:
        return _writing(instruction, operands, _run(instruction, int(found["bits"]) // 8), 16 if found["high"] else 0)
    if (found := _TRANSPOSED.match(instruction.opcode)) is None:
        return None
    if instruction.opcode not in architecture.transposed_reads:
        raise unknown(instruction, f"place on {architecture.arch}")
    bits = int(found["bits"])
    arrange = arranged(bits, int(found["element"]))
    return _reading(instruction, operands, _run(instruction, bits // 8), lambda _: arrange, _TRANSPOSED_ALIGN[bits])


def offsets(instruction: Instruction) -> dict[str, int]:
    """The offsets that an instruction names; any other modifier is not known."""
    found = {}
    for modifier in instruction.modifiers:
        name, _, value = modifier.partition(":")
        if name not in {"offset", "offset0", "offset1"}:
            raise unknown(instruction, f"modifier {modifier!r}")
        found[name] = int(value, 0)
    return found


def _run(instruction: Instruction, size: int) -> NDArray[np.int64]:
    """The places of an instruction that uses so many bytes behind one another."""
    return offsets(instruction).get("offset", 0) + np.arange(size)


def _plain(instruction: Instruction, operands: tuple[Operand, ...], found: re.Match[str]) -> Step:
    size = int(found["bits"]) // 8
    if not found["two"]:
        places = _run(instruction, size)
    else:
        at, unit = offsets(instruction), size * (64 if found["far"] else 1)
        starts = np.array([at.get("offset0", 0), at.get("offset1", 0)]) * unit
        places = (starts[:, None] + np.arange(size)).reshape(-1)
    if found["verb"] == "read":
        return _reading(instruction, operands, places, lambda _: _words)
    return _writing(instruction, operands, places)


def _words(octets: NDArray[np.uint8]) -> NDArray[np.uint32]:
    return octets.view(np.uint32).T


def _reading(
    instruction: Instruction,
    operands: tuple[Operand, ...],
    places: NDArray[np.int64],
    arrange: Callable[[Wave], Arrange],
    align: int = 1,
) -> Step:
    """`arrange` gives, for a wave at the issue, what turns bytes into registers."""
    target, row = operands[0], operands[1].first

    def act(wave: Wave) -> None:
        index, lanes = reach(wave, instruction, wave.v[row].astype(np.int64), places, align)
        read(wave, instruction, index, lanes, rows=target.rows, arrange=arrange(wave))

    return make_step(instruction, act, reads=operands[1:], writes=operands[:1])


def _extended(target: Operand, found: re.Match[str]) -> Callable[[Wave], Arrange]:
    """Bytes and halves, extended to a register, or put into one of its halves."""
    kind = np.dtype(f"<{found['sign']}{int(found['bits']) // 8}")

    def arrange(wave: Wave) -> Arrange:
        old = wave.other_half(target.first)

        def registers(octets: NDArray[np.uint8]) -> NDArray[np.uint32]:
            value: NDArray[np.uint32] = octets.view(kind)[:, 0].astype(np.int32).view(np.uint32)
            if found["half"]:
                low, high = (old, value << np.uint32(16)) if found["high"] else (value, old)
                value = low & np.uint32(0xFFFF) | high & np.uint32(0xFFFF_0000)
            return value[None]

        return registers

    return arrange


def _writing(
    instruction: Instruction, operands: tuple[Operand, ...], places: NDArray[np.int64], shift: int = 0
) -> Step:
    row = operands[0].first
    rows = [each for source in operands[1:] for each in source.rows]
    size = len(places)

    def act(wave: Wave) -> None:
        index, lanes = reach(wave, instruction, wave.v[row].astype(np.int64), places)
        values = np.ascontiguousarray(wave.v[rows].T) >> np.uint32(shift)
        write(wave, instruction, index, lanes, values.view(np.uint8)[:, :size])

    return make_step(instruction, act, reads=operands)


def _atomic(instruction: Instruction, operands: tuple[Operand, ...], atomic: tuple[Combine, int, bool]) -> Step:
    """The bytes of an LDS operand, changed by each lane in turn."""
    combine, size, returns = atomic
    targets, rest = (operands[:1], operands[1:]) if returns else ((), operands)
    row, sources = rest[0].first, [source.first for source in rest[1:]]
    words, places = size // 4, _run(instruction, size)
    rows = tuple(each for target in targets for each in target.rows)

    def act(wave: Wave) -> None:
        index, lanes = reach(wave, instruction, wave.v[row].astype(np.int64), places, size)
        given = [np.ascontiguousarray(wave.v[first : first + words].T).view(f"<u{size}")[:, 0] for first in sources]

        def step(lane: int, old: bytes) -> bytes:
            new = combine(int.from_bytes(old, "little"), *(int(each[lane]) for each in given))
            return new.to_bytes(size, "little")

        change(wave, instruction, index, lanes, rows=rows, step=step)

    return make_step(instruction, act, reads=rest, writes=targets)
