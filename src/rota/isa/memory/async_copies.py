"""Copies between memory and LDS that need no registers: by lanes, and of whole tiles by a description in registers.

They take place at any time from their issue to the wait that covers them; a wave's own LDS instructions aren't ordered
with them. A lane whose LDS address is where nothing is accesses nothing (`Architecture.lds_nowhere`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.isa.disassembly import Instruction
from rota.isa.memory.arrivals import arrive_when_done
from rota.isa.memory.lds_ops import LDS_ADDRESS, report_misaligned
from rota.isa.memory.memories import POISON_BYTE
from rota.isa.memory.vector_memory import pointer_addresses, read_modifiers
from rota.isa.opcodes import MemVerb
from rota.isa.races import MemoryUse, scope_of
from rota.isa.wave.meeting import WORD_BYTES
from rota.isa.wave.operand import parse_operand, unknown
from rota.isa.wave.wave import Pending, Step, Wave, make_step
from rota.targets.architecture import Architecture

Bytes = NDArray[np.int64]
Lanes = NDArray[np.bool_]


def decode_copy(instruction: Instruction, architecture: Architecture) -> Step | None:
    access = instruction.spec.access
    if access is None or not (access.asynchronous or access.tensor) or not instruction.spec.modelled:
        return None
    return _decode_tile(instruction) if access.tensor else _decode_lanes(instruction, architecture)


def _decode_lanes(instruction: Instruction, architecture: Architecture) -> Step:
    """Each lane names a place in LDS and one in memory; the offset moves both, as LLVM takes it."""
    access, modifiers = instruction.spec.access, read_modifiers(instruction)
    first, second, base = (parse_operand(text, instruction) for text in instruction.operands)
    if access is None:
        raise unknown(instruction)
    loads, size, scope = access.verb is MemVerb.LOAD, access.size, scope_of(modifiers.flags)
    near, lane = (first, second) if loads else (second, first)
    addresses = pointer_addresses(lane, base, modifiers, size=size, signed=architecture.signed_lane_offsets)
    nowhere = None if architecture.lds_nowhere is None else architecture.lds_nowhere.value

    def act(wave: Wave) -> None:
        place = wave.v[near.first].astype(np.int64)
        active = wave.active & (place != nowhere)
        at = (place + modifiers.offset) & LDS_ADDRESS
        inside = active.copy()
        inside[active] = wave.lds.within(at[active], size, instruction)
        address, _ = addresses(wave)
        index = (at[:, None] + np.arange(size))[inside]
        use = MemoryUse.READ if loads else MemoryUse.WRITE
        number = wave.memory.order.begin(wave, instruction, use, scope)
        spots, reached = wave.memory.places(address, size, inside, instruction)
        copy = _Copy(instruction=instruction, index=index, spots=spots, number=number, size=size, kept=reached[inside])
        source = np.where(inside, address, 0).tobytes() + at.tobytes() + inside.tobytes()
        copy.load(wave, source) if loads else copy.store(wave)

    return make_step(instruction, act)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """One copy: pieces of `size` bytes in LDS, and the places in memory of those that are `kept`."""

    instruction: Instruction
    index: Bytes  # of LDS, pieces by bytes
    spots: Bytes  # of memory, of the kept pieces
    number: int  # of its access of memory
    size: int
    kept: Lanes
    missing: int = POISON_BYTE  # what pieces that aren't kept are filled with

    def load(self, wave: Wave, source: bytes) -> Pending:
        """Reads memory at once, and writes LDS when it lands."""
        lds, order, index = wave.lds, wave.memory.order, self.index
        data = np.full(index.shape, self.missing, np.uint8)
        data[self.kept] = wave.memory.get(self.spots, self.size)
        order.touch(self.number, self.spots, self.size)
        access = lds.order.begin_load(index, wave.number, wave.epoch, self.instruction, source)
        serial = lds.begin(index, wave.number, dma=True)

        def finish() -> None:
            lds.bytes[index] = data
            lds.end(index, serial)

        covers = partial(lds.order.cover, access), partial(order.cover, self.number)
        return wave.launch(self.instruction, *covers, finish=finish)

    def store(self, wave: Wave) -> Pending:
        """Reads LDS from its issue on, and writes memory when it lands."""
        lds, memory, kept = wave.lds, wave.memory, self.index[self.kept]
        access = lds.order.begin_read(self.index, wave.number, wave.epoch, self.instruction, dma=True)
        before, marked = lds.sample(kept, wave.number)
        memory.order.touch(self.number, self.spots, self.size)

        def finish() -> None:
            now, disturbed = lds.read_since(before, kept, wave.number)
            bad = marked | disturbed
            if bad.any():
                lds.order.mark_seen(access, kept[bad])
            memory.put(self.spots, np.where(bad, np.uint8(POISON_BYTE), now))

        covers = partial(lds.order.cover, access), partial(memory.order.cover, self.number)
        return wave.launch(self.instruction, *covers, finish=finish)


# Copies of tiles (Triton, TDMUtility.cpp, and the manual's section 10.11 as others quote it). EXEC doesn't matter. A
# tile's rows follow each other in LDS, in a load with words left out after each interval; what lies beyond the tensor
# reads as zero and isn't stored. A copy that its description switches off does nothing, and its counter counts it.

_WORD = 4


class _Tile(NamedTuple):
    """A description of two dimensions: sizes are in elements, but those of padding."""

    place: int
    address: int
    element: int  # bytes
    sides: tuple[int, int]
    room: tuple[int, int]  # of the tensor from the tile's first element on; a row alone has all of the second one
    stride: int
    padding: tuple[int, int]  # after so many bytes so many are left out
    barrier: int | None


def _bits(words: list[int], first: int, count: int) -> int:
    whole = sum(word << 32 * place for place, word in enumerate(words))
    return whole >> first & (1 << count) - 1


def _read_tile(head: list[int], shape: list[int]) -> _Tile | str:
    """The tile that two groups of registers describe, or what they ask for that isn't modelled."""
    padded = _bits(shape, 20, 1)
    for what, asked in (
        ("gathers or scatters", _bits(head, 31, 1)),
        ("is sent to several workgroups", _bits(shape, 0, 16)),
        ("iterates", _bits(shape, 19, 1)),
        ("has more than two dimensions", _bits(shape, 144, 16) > 1),
    ):
        if asked:
            return what
    rows = _bits(shape, 128, 16)
    return _Tile(
        place=_bits(head, 32, 32),
        address=_bits(head, 64, 57),
        element=1 << _bits(shape, 16, 2),
        sides=(_bits(shape, 112, 16), max(rows, 1)),
        room=(_bits(shape, 48, 32), _bits(shape, 80, 32) if rows else 1),
        stride=_bits(shape, 160, 48),
        padding=(_WORD << _bits(shape, 22, 3) + 1, _WORD * (_bits(shape, 25, 7) + 1)) if padded else (0, 0),
        barrier=_bits(shape, 32, 16) * WORD_BYTES if _bits(shape, 18, 1) else None,
    )


def _decode_tile(instruction: Instruction) -> Step:
    groups = [parse_operand(text, instruction) for text in instruction.operands]
    if len(groups) != 2 or [each.count for each in groups] != [4, 8]:
        raise unknown(instruction, "third dimension")
    loads = instruction.spec.access is not None and instruction.spec.access.verb is MemVerb.LOAD
    if not {each.partition(":")[0] for each in instruction.modifiers} <= {"th", "scope", "nv"}:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")

    def act(wave: Wave) -> None:
        head, shape = (wave.s[each.first : each.first + each.count] for each in groups)
        tile = _read_tile(head, shape) if _bits(head, 0, 2) else "is switched off"
        if isinstance(tile, str):
            if _bits(head, 0, 2):
                message = f"{instruction.opcode} {tile}, which isn't modelled"
                wave.faults.add("I102", instruction, message, ("wave", wave.number))
            wave.launch(instruction)
            return
        pending = _copy_tile(wave, instruction, tile, loads=loads)
        if tile.barrier is not None:
            arrive_when_done(wave, instruction, tile.barrier, {pending}, lambda each: each is instruction)

    return make_step(instruction, act)


def _copy_tile(wave: Wave, instruction: Instruction, tile: _Tile, *, loads: bool) -> Pending:
    size, (wide, high) = tile.element, tile.sides
    x, y = (each.reshape(-1) for each in np.meshgrid(np.arange(wide), np.arange(high)))
    along = np.arange(wide * high) * size
    between, skipped = tile.padding
    at = tile.place + along + (along // between * skipped if between and loads else 0)
    inside = wave.lds.within(at, size, instruction)
    kept = inside & (x < tile.room[0]) & (y < tile.room[1])
    address = np.uint64(tile.address) + (size * (x + y * tile.stride)).astype(np.uint64)
    number = wave.memory.order.begin(wave, instruction, MemoryUse.READ if loads else MemoryUse.WRITE)
    spots, reached = wave.memory.places(address, size, kept, instruction)
    index = (at[:, None] + np.arange(size))[inside]
    copy = _Copy(
        instruction=instruction, index=index, spots=spots, number=number, size=size, kept=reached[inside], missing=0
    )
    if tile.place % _WORD:
        report_misaligned(wave, instruction, f"its LDS address is not a multiple of {_WORD}")
    return copy.load(wave, repr(tile).encode()) if loads else copy.store(wave)
