"""Scalar loads, stores and atomics (CDNA3 ISA, "Scalar Memory")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from rota.isa.disassembly import Instruction
from rota.isa.memory.atomic_ops import Combine, combine_of
from rota.isa.opcodes import IsaUnit, MemSpace, MemVerb
from rota.isa.races import MemoryUse, scope_of
from rota.isa.wave.operand import Operand, parse_operand, scalar_reader, unknown
from rota.isa.wave.wave import POISON, Step, Wave, make_step
from rota.targets.architecture import Architecture

_MOST_STORED = 4
_POLICIES = frozenset({"glc", "scope", "th", "nv"})
_PARTS = frozenset({1, 2})  # bytes of loads that fill a register by zeros or by the sign


def decode_scalar_memory(instruction: Instruction, architecture: Architecture) -> Step | None:
    spec, access = instruction.spec, instruction.spec.access
    if spec.unit is IsaUnit.SMEM and spec.targets:
        return _clock(instruction)
    if access is None or access.space is not MemSpace.SCALAR or access.private:
        return None
    count = access.size // 4
    if access.verb is MemVerb.LOAD and access.size in _PARTS:
        return None if access.buffer else _load_part(instruction, access.size)
    if access.verb is MemVerb.LOAD:
        return _load(instruction, count, architecture if access.buffer else None)
    combine = combine_of(access)
    if combine is not None and not access.buffer and access.atomic != "cmpswap":
        return _atomic(instruction, combine, access.size)
    stores = access.verb is MemVerb.STORE and not access.buffer and count <= _MOST_STORED
    return _store(instruction, count) if stores else None


def _address(instruction: Instruction, base: Operand, offset: Operand) -> Callable[[Wave], int]:
    """Base, scalar or literal offset, and a second literal offset; cache policies have no effect on values."""
    near, scale = 0, 1
    for name, value in instruction.fields.items():
        if name == "offset":
            near = int(value, 0)
        elif name == "scale_offset" and instruction.spec.access is not None:
            scale = instruction.spec.access.size
        elif name not in _POLICIES:
            raise unknown(instruction, f"modifier {name!r}")
    start, more = scalar_reader(base, wide=True), scalar_reader(offset)
    literal = signed_offset(offset.literal) if not offset.rows else None
    return lambda wave: start(wave) + (more(wave) * scale if literal is None else literal) + near


def read_resource(words: Sequence[int], architecture: Architecture) -> tuple[int, int, int]:
    """Base, number of records and stride of a buffer resource, by the widths that the architecture gives them."""
    layout, bits = architecture.resource, sum(word << 32 * place for place, word in enumerate(words))
    return (
        bits & (1 << layout.base_bits) - 1,
        bits >> layout.records_at & (1 << layout.records_bits) - 1,
        bits >> layout.stride_at & 0x3FFF,
    )


def signed_offset(value: int) -> int:
    """Literal offsets have 21 bits and a sign; the disassembler prints them either way."""
    return value - (1 << 21) if 1 << 20 <= value < 1 << 21 else value


def _load_part(instruction: Instruction, size: int) -> Step:
    target, base, offset = (parse_operand(text, instruction) for text in instruction.operands)
    address, negative = _address(instruction, base, offset), instruction.spec.words[-1].startswith("i")

    def act(wave: Wave) -> None:
        at = address(wave)
        (word,), number = _read_words(wave, instruction, at & ~3, 1)
        value = word >> 8 * (at & 3) & (1 << 8 * size) - 1
        if negative and value >> 8 * size - 1:
            value |= 0xFFFF_FFFF << 8 * size & 0xFFFF_FFFF

        def finish() -> None:
            wave.s[target.first] = value

        wave.launch(instruction, partial(wave.memory.order.cover, number), rows=target.rows, finish=finish)

    return make_step(instruction, act)


def _load(instruction: Instruction, count: int, buffers: Architecture | None) -> Step:
    """Loads words, from a buffer as the architecture describes it if one is given."""
    target, base, offset = (parse_operand(text, instruction) for text in instruction.operands)
    address = _address(instruction, base, offset)
    first, resource = target.first, base.first

    def act(wave: Wave) -> None:
        at = address(wave)
        if buffers is not None:
            words, number = _read_buffer_words(wave, instruction, buffers, resource, (at, count))
        else:
            words, number = _read_words(wave, instruction, at, count)

        def finish() -> None:
            wave.s[first : first + count] = words

        wave.launch(instruction, partial(wave.memory.order.cover, number), rows=target.rows, finish=finish)

    return make_step(instruction, act)


def _read_words(wave: Wave, instruction: Instruction, address: int, count: int) -> tuple[list[int], int]:
    number = wave.memory.order.begin(wave, instruction, MemoryUse.READ, scope_of(instruction.modifiers))
    if not count:
        return [], number
    place = wave.memory.scalar_place(address, count, instruction)
    if place is None:
        return [POISON] * count, number
    spot = np.array([place])
    wave.memory.order.touch(number, spot, 4 * count)
    return wave.memory.get(spot, 4 * count).view(np.uint32)[0].tolist(), number


def _read_buffer_words(
    wave: Wave, instruction: Instruction, architecture: Architecture, resource: int, asked: tuple[int, int]
) -> tuple[list[int], int]:
    """Words past num_records read as zero; a stride, which would make records larger than bytes, is an I105."""
    low, high, *_ = words = wave.s[resource : resource + 4]
    (base, records, stride), (address, count) = read_resource(words, architecture), asked
    if stride:
        wave.faults.add("I105", instruction, f"{instruction.opcode} uses a resource with a stride", ("s", resource))
        records = 0
    at = (address - (low | high << 32)) & ~3
    inside = max(0, min(count, (records - at) // 4))
    words, number = _read_words(wave, instruction, base + at, inside)
    return words + [0] * (count - inside), number


def _store(instruction: Instruction, count: int) -> Step:
    source, base, offset = (parse_operand(text, instruction) for text in instruction.operands)
    address = _address(instruction, base, offset)

    def act(wave: Wave) -> None:
        place = wave.memory.scalar_place(address(wave), count, instruction)
        number = wave.memory.order.begin(wave, instruction, MemoryUse.WRITE, scope_of(instruction.modifiers))
        if place is not None:
            data = np.array(wave.s[source.first : source.first + count], np.uint32).view(np.uint8)[None]
            spot = np.array([place])
            wave.memory.order.touch(number, spot, 4 * count, wave.memory.get(spot, 4 * count) == data)
            wave.memory.put(spot, data)
        wave.launch(instruction, partial(wave.memory.order.cover, number))

    return make_step(instruction, act)


def _atomic(instruction: Instruction, combine: Combine, size: int) -> Step:
    data, base, offset = (parse_operand(text, instruction) for text in instruction.operands)
    address = _address(instruction, base, offset)
    returns, words = "glc" in instruction.modifiers, size // 4

    def act(wave: Wave) -> None:
        place = wave.memory.scalar_place(address(wave), words, instruction)
        number = wave.memory.order.begin(wave, instruction, MemoryUse.ATOMIC if returns else MemoryUse.BLIND_ATOMIC)
        found = [0xFFFF_FFFF] * words
        if place is not None:
            spot = np.array([place])
            wave.memory.order.touch(number, spot, size)
            old = wave.memory.get(spot, size)
            found = [int(word) for word in old.view(np.uint32)[0]]
            given = np.array(wave.s[data.first : data.first + words], np.uint32).tobytes()
            new = combine(int.from_bytes(old.tobytes(), "little"), int.from_bytes(given, "little"))
            wave.memory.put(spot, np.frombuffer(new.to_bytes(size, "little"), np.uint8)[None])

        def finish() -> None:
            if returns:
                wave.s[data.first : data.first + words] = found

        rows = data.rows if returns else ()
        wave.launch(instruction, partial(wave.memory.order.cover, number), rows=rows, finish=finish)

    return make_step(instruction, act)


def _clock(instruction: Instruction) -> Step:
    """The wait states that the wave has passed: a clock that only goes forward."""
    (target,) = (parse_operand(text, instruction) for text in instruction.operands)

    def act(wave: Wave) -> None:
        now = wave.now

        def finish() -> None:
            wave.s[target.first : target.first + 2] = [now & 0xFFFF_FFFF, now >> 32]

        wave.launch(instruction, rows=target.rows, finish=finish)

    return make_step(instruction, act)
