"""LDS instructions (CDNA3 ISA, "Local Data Share"; CDNA4 ISA, transposes)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rota.isa.binary.kernel_facts import LANES
from rota.isa.disassembly import Instruction
from rota.isa.memory.atomic_ops import Combine, combine_of
from rota.isa.memory.memories import POISON_BYTE, to_registers
from rota.isa.opcodes import MemAccess, MemSpace, MemVerb
from rota.isa.wave.operand import Operand, parse_operand, unknown
from rota.isa.wave.wave import Step, Wave, make_step
from rota.targets.architecture import Architecture

Octets = NDArray[np.uint8]
# From bytes (lanes by bytes) to registers (rows by lanes).
Arrange = Callable[[Octets], NDArray[np.uint32]]

# Reads and writes may start at any byte: amdhsa runs with unaligned access on (LLVM, "unaligned-access-mode").
# Atomics and transposed reads need their natural alignment.

LDS_ADDRESS = 0xFFFF_FFFF  # addresses and offsets are added in 32 bits


def reach(
    wave: Wave, instruction: Instruction, address: NDArray[np.int64], places: NDArray[np.int64], align: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Byte numbers, lanes by places, and the lanes that take part: the object `wave.all` if all do."""
    lds, taking = wave.lds, wave.active
    if (nowhere := wave.architecture.lds_nowhere) is not None and (away := address == nowhere.value).any():
        taking = taking & ~away  # those lanes access nothing
    index = (address[:, None] + places) & LDS_ADDRESS
    inside: NDArray[np.bool_] = np.asarray((index < lds.size).all(axis=1))
    if taking is wave.all and align == 1 and inside.all():
        return index, taking
    if not inside[taking].all():
        lds.report_outside(index[taking & ~inside][0, 0], instruction)
    inside &= taking
    if align > 1 and (index[inside, 0] % align).any():
        report_misaligned(wave, instruction, f"its address is not a multiple of {align}")
        inside &= index[:, 0] % align == 0
    return np.where(inside[:, None], index, 0), inside


def report_misaligned(wave: Wave, instruction: Instruction, what: str) -> None:
    wave.faults.add("I105", instruction, f"{instruction.opcode}: {what}", ("wave", wave.number))


def read(
    wave: Wave,
    instruction: Instruction,
    index: NDArray[np.int64],
    lanes: NDArray[np.bool_],
    *,
    rows: tuple[int, ...],
    arrange: Arrange,
) -> None:
    """Issues a read; `arrange` turns its bytes into registers when it lands."""
    lds, number, issued = wave.lds, wave.number, wave.active
    touched = index if lanes is wave.all else index[lanes]
    access = lds.order.begin_read(touched, number, wave.epoch, instruction)
    before, marked = lds.sample(touched, number)

    def finish() -> None:
        now, disturbed = lds.read_since(before, touched, number)
        bad = marked | disturbed
        if bad.any():
            lds.order.mark_seen(access, touched[bad])
            now[bad] = POISON_BYTE
        if lanes is not wave.all:
            spread = np.full((wave.lanes, index.shape[1]), POISON_BYTE, np.uint8)
            spread[lanes] = now
            now = spread
        np.copyto(wave.v[rows[0] : rows[0] + len(rows)], arrange(now), where=True if issued is wave.all else issued)

    wave.launch(instruction, partial(lds.order.cover, access), rows=rows, finish=finish)


def write_bytes(
    wave: Wave, instruction: Instruction, index: NDArray[np.int64], data: Octets
) -> tuple[Callable[[], None], Callable[[int], None]]:
    """Issues a write of `data`, lanes by bytes; the higher lane wins at equal addresses.  Gives its end and cover."""
    lds = wave.lds
    equal = lds.bytes[index] == data
    access = lds.order.begin_write(index, wave.number, wave.epoch, instruction, equal=equal)
    changed = index[~equal]
    serial = lds.begin(changed, wave.number)
    lds.bytes[index] = data
    return partial(lds.end, changed, serial), partial(lds.order.cover, access)


def combine_bytes(combine: Combine, old: Octets, given: Iterable[int]) -> Octets:
    new = combine(int.from_bytes(old.tobytes(), "little"), *(int(each) for each in given))
    return np.frombuffer(new.to_bytes(len(old), "little"), np.uint8)


def change_bytes(  # noqa: PLR0917
    wave: Wave,
    instruction: Instruction,
    index: NDArray[np.int64],
    lanes: NDArray[np.bool_],
    combine: Combine,
    given: NDArray[np.uint64],
    found: Octets,
) -> tuple[Callable[[], None], Callable[[int], None]]:
    """Issues an atomic on each lane's bytes in turn; `found` gets the old bytes.  Gives its end and cover."""
    lds, touched = wave.lds, index[lanes]
    access = lds.order.begin_atomic(touched, wave.number, wave.epoch, instruction)
    serial = lds.begin(touched, wave.number)
    for lane in np.flatnonzero(lanes).tolist():
        found[lane] = lds.bytes[index[lane]]
        lds.bytes[index[lane]] = combine_bytes(combine, found[lane], given[lane])
    return partial(lds.end, touched, serial), partial(lds.order.cover, access)


_LANE = np.arange(LANES)
_OFFSET = re.compile(r"\boffset:(?:swizzle\((?P<mode>\w+),(?P<rest>[^)]*)\)|(?P<value>\w+))")
_GROUP = 32
_QUAD_BIT, _ROTATE = 0x8000, 0xC000


def decode_exchange(instruction: Instruction) -> Step:
    if instruction.spec.root == "swizzle":
        target, source = (parse_operand(text.split()[0], instruction) for text in instruction.operands[:2])
        pattern = source_lanes(instruction)

        def swizzle(wave: Wave) -> NDArray[np.uint32]:  # an inactive lane reads as zero
            return np.where(wave.active, wave.v[source.first], np.uint32(0))[pattern[: wave.lanes]]

        act = _exchange(instruction, target.rows, swizzle)
        return make_step(instruction, act)
    _check_modifiers(instruction)
    offset = instruction.offset
    target, address, source = (parse_operand(text, instruction) for text in instruction.operands)
    gathers = instruction.spec.root == "bpermute"

    def move(wave: Wave) -> NDArray[np.uint32]:
        active = wave.active
        lane = (wave.v[address.first].astype(np.int64) + offset) >> 2 & (wave.lanes - 1)
        moved = np.zeros(wave.lanes, np.uint32)
        if gathers:
            moved[:] = np.where(active, wave.v[source.first], np.uint32(0))[lane]
            return moved
        moved[lane[active]] = wave.v[source.first][active]  # the last one wins
        return moved

    return make_step(instruction, _exchange(instruction, target.rows, move))


def _exchange(
    instruction: Instruction, rows: tuple[int, ...], move: Callable[[Wave], NDArray[np.uint32]]
) -> Callable[[Wave], None]:
    def act(wave: Wave) -> None:
        issued, moved = wave.active, move(wave)

        def finish() -> None:
            np.copyto(wave.v[rows[0]], moved, where=issued)

        wave.launch(instruction, rows=rows, finish=finish)

    return act


def source_lanes(instruction: Instruction) -> NDArray[np.int64]:
    """The lane that each lane reads, from a pattern given as a number or in the assembler's spelling."""
    found = _OFFSET.search(instruction.text)
    if found is None:
        return _by_masks(0, 0, 0)  # offset 0: all read lane 0 of their 32
    if found["mode"] is None:
        offset = int(found["value"], 0)
        if offset >= _ROTATE:  # FFT and rotate modes
            raise unknown(instruction, f"pattern {offset:#x}")
        if offset & _QUAD_BIT:
            return _by_quads([offset >> 2 * lane & 3 for lane in range(4)])
        return _by_masks(offset & 0x1F, offset >> 5 & 0x1F, offset >> 10 & 0x1F)
    parts = [part.strip().strip('"') for part in found["rest"].split(",")]
    if found["mode"] == "QUAD_PERM":
        return _by_quads([int(part, 0) for part in parts])
    if found["mode"] == "BITMASK_PERM":
        bits = [{"0": (0, 0, 0), "1": (0, 1, 0), "p": (1, 0, 0), "i": (1, 0, 1)}[each] for each in parts[0]]
        keep, put, flip = (sum(bit[kind] << place for place, bit in enumerate(reversed(bits))) for kind in range(3))
        return _by_masks(keep, put, flip)
    if found["mode"] not in _MASKS:
        raise unknown(instruction, f"pattern {found['mode']}")
    return _by_masks(*_MASKS[found["mode"]](*(int(part, 0) for part in parts)))


# The assembler's names of patterns, as the lane bits that are kept, set and flipped.
_MASKS: dict[str, Callable[..., tuple[int, int, int]]] = {
    "SWAP": lambda size: (0x1F, 0, size),
    "REVERSE": lambda size: (0x1F, 0, size - 1),
    "BROADCAST": lambda size, lane: (0x1F & ~(size - 1), lane, 0),
}


def _by_quads(order: list[int]) -> NDArray[np.int64]:
    lanes: NDArray[np.int64] = _LANE & ~3 | np.array(order)[_LANE & 3]
    return lanes


def _by_masks(keep: int, put: int, flip: int) -> NDArray[np.int64]:
    return _LANE & ~(_GROUP - 1) | (_LANE & (_GROUP - 1) & keep | put) ^ flip


# Transposed reads. A lane reads as many elements as fit its width, `n`, from its own address: its run. They are dealt
# out by a fixed pattern, which is another one in each family of machines.
#
# gfx950: sixteen lanes form a team, of which 16 / n adjacent ones hold one column of sixteen elements. Lane `l` of the
# team gets element `l` of each column.
#
# gfx1250: lane `l` gets element `l % n` of one run for each element of its result. Bits of the result's element and the
# bits of `l` that `l % n` leaves number the run's lane. `_RUNS` gives their order from the lowest: how many of the
# former come first, and how many of the latter then; the rest of the former and that of the latter follow (Triton,
# TargetFeatures.cpp; for 6 bits AMD's emulator rocJITsu, ds_transpose.h, which has the others alike). EXEC is ignored.

_TEAM = 16
_RUNS = {
    "ds_load_tr16_b128": (0, 0), "ds_load_tr8_b64": (2, 1), "ds_load_tr6_b96": (2, 1), "ds_load_tr4_b64": (3, 1),
}  # fmt: skip

Sources = tuple[NDArray[np.int64], NDArray[np.int64]]  # lane and place in its run, of each lane's elements


def _sources_by_teams(count: int, lanes: int) -> Sources:
    lane, column = np.arange(lanes)[:, None], np.arange(count)
    member = lane % _TEAM
    return lane // _TEAM * _TEAM + column * (_TEAM // count) + member // count, member % count


def _sources_by_runs(count: int, lanes: int, first: int, then: int) -> Sources:
    lane, item = np.arange(lanes)[:, None], np.arange(count)
    outer = lane // count
    low = item % (1 << first) + (outer % (1 << then) << first)
    return low + (item >> first << first + then) + (outer >> then << then) * count, lane % count


def transpose_registers(
    bits: int, element: int, lanes: int = LANES, runs: tuple[int, int] | None = None
) -> Callable[[NDArray[np.uint8]], NDArray[np.uint32]]:
    count = bits // element
    found = _sources_by_teams(count, lanes) if runs is None else _sources_by_runs(count, lanes, *runs)
    source, place = np.broadcast_arrays(*found)

    def registers(octets: NDArray[np.uint8]) -> NDArray[np.uint32]:
        read = np.unpackbits(octets, axis=1, bitorder="little").reshape(lanes, count, element)
        taken = read[source, place].reshape(lanes, bits)
        return np.packbits(taken, axis=1, bitorder="little").view(np.uint32).T

    return registers


# By bytes. On gfx950 AMD's rocRoller pads runs of 96 bits to 128; AMD's tests for gfx1250 have them 12 bytes apart.
_ALIGN_BY_TEAMS, _ALIGN_BY_RUNS = {8: 8, 12: 16}, {8: 8, 12: 4, 16: 16}


def _decode_transposed(
    instruction: Instruction, architecture: Architecture, operands: tuple[Operand, ...], access: MemAccess
) -> Step:
    if instruction.opcode not in architecture.transposed_reads:
        raise unknown(instruction, f"form on {architecture.arch}")
    runs = _RUNS.get(instruction.opcode)
    arrange = transpose_registers(8 * access.size, access.transposed, architecture.lanes.value, runs)
    align = (_ALIGN_BY_TEAMS if runs is None else _ALIGN_BY_RUNS)[access.size]
    return _decode_read(instruction, operands, _byte_offsets(instruction, access), lambda _: arrange, align)


def decode_shared(instruction: Instruction, architecture: Architecture) -> Step | None:
    access = instruction.spec.access
    if access is None or access.space is not MemSpace.LDS or access.m0:
        return None
    if access.verb is MemVerb.EXCHANGE:
        return decode_exchange(instruction)
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    if access.verb is MemVerb.ATOMIC:
        combine = combine_of(access)
        return None if combine is None else _decode_atomic(instruction, operands, access, combine)
    places, row = _byte_offsets(instruction, access), operands[0].first
    if access.verb is MemVerb.STORE:
        return _decode_write(instruction, operands, places, 16 if access.high else 0)
    if access.transposed:
        return _decode_transposed(instruction, architecture, operands, access)

    def extend(wave: Wave) -> Arrange:
        old = wave.other_half(row)
        return lambda octets: to_registers(access, octets, old)

    return _decode_read(instruction, operands, places, extend)


def _check_modifiers(instruction: Instruction) -> None:
    for modifier in instruction.modifiers:
        if modifier.partition(":")[0] not in {"offset", "offset0", "offset1"}:
            raise unknown(instruction, f"modifier {modifier!r}")


def _byte_offsets(instruction: Instruction, access: MemAccess) -> NDArray[np.int64]:
    _check_modifiers(instruction)
    return (np.array(instruction.piece_offsets)[:, None] + np.arange(access.size)).reshape(-1)


def _decode_read(
    instruction: Instruction,
    operands: tuple[Operand, ...],
    places: NDArray[np.int64],
    arrange: Callable[[Wave], Arrange],
    align: int = 1,
) -> Step:
    """`arrange`, called at the issue, returns the function that turns bytes into registers."""
    rows, row, obeys_exec = operands[0].rows, operands[1].first, instruction.spec.obeys_exec

    def act(wave: Wave) -> None:
        mask, wave.mask = wave.mask, wave.mask if obeys_exec else None
        index, lanes = reach(wave, instruction, wave.v[row].astype(np.int64), places, align)
        read(wave, instruction, index, lanes, rows=rows, arrange=arrange(wave))
        wave.mask = mask

    return make_step(instruction, act)


def _decode_write(
    instruction: Instruction, operands: tuple[Operand, ...], places: NDArray[np.int64], shift: int = 0
) -> Step:
    row = operands[0].first
    rows = [each for source in operands[1:] for each in source.rows]
    size = len(places)

    def act(wave: Wave) -> None:
        index, lanes = reach(wave, instruction, wave.v[row].astype(np.int64), places)
        data = (np.ascontiguousarray(wave.v[rows].T) >> np.uint32(shift)).view(np.uint8)[:, :size]
        if lanes is not wave.all:
            index, data = index[lanes], data[lanes]
        finish, cover = write_bytes(wave, instruction, index, data)
        wave.launch(instruction, cover, finish=finish)

    return make_step(instruction, act)


_NEW_VALUE_FIRST = "cmpstore"  # and then what is expected


def _decode_atomic(
    instruction: Instruction, operands: tuple[Operand, ...], access: MemAccess, combine: Combine
) -> Step:
    targets, rest, size = operands[: access.returns], operands[access.returns :], access.size
    row, sources = rest[0].first, [source.first for source in rest[1:]]
    if instruction.spec.words[0] == _NEW_VALUE_FIRST:
        sources.reverse()
    words, places = size // 4, _byte_offsets(instruction, access)
    rows = tuple(each for target in targets for each in target.rows)

    def act(wave: Wave) -> None:
        index, lanes = reach(wave, instruction, wave.v[row].astype(np.int64), places, size)
        taken = [np.ascontiguousarray(wave.v[first : first + words].T).view(f"<u{size}")[:, 0] for first in sources]
        given, issued = np.array(taken).reshape(len(sources), wave.lanes).T, wave.active
        found = np.full(index.shape, POISON_BYTE, np.uint8)
        end, cover = change_bytes(wave, instruction, index, lanes, combine, given, found)

        def finish() -> None:
            end()
            if rows:
                np.copyto(wave.v[rows[0] : rows[0] + len(rows)], found.view(np.uint32).T, where=issued)

        wave.launch(instruction, cover, rows=rows, finish=finish)

    return make_step(instruction, act)
