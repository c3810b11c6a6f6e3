"""Lanes that exchange registers by way of the LDS hardware, without memory: takes a ds_ instruction, gives a `Step`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.wave.operand import parse_operand, unknown
from rota.isa.wave.step import Step, make_step
from rota.isa.wave.wave import Pending

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

_LANE = np.arange(LANES)
_OFFSET = re.compile(r"\boffset:(?:swizzle\((?P<mode>\w+),(?P<rest>[^)]*)\)|(?P<value>\w+))")
_GROUP = 32
_QUAD_BIT, _ROTATE = 0x8000, 0xC000


def decode_exchange(instruction: Instruction) -> Step | None:
    """The step of a permutation or swizzle of lanes, or None."""
    if instruction.opcode == "ds_swizzle_b32":
        return _swizzle(instruction)
    if instruction.opcode not in {"ds_bpermute_b32", "ds_permute_b32"}:
        return None
    for modifier in instruction.modifiers:
        if not modifier.startswith("offset:"):
            raise unknown(instruction, f"modifier {modifier!r}")
    target, address, source = (parse_operand(text, instruction) for text in instruction.operands)
    offset = sum(int(modifier.partition(":")[2], 0) for modifier in instruction.modifiers)
    gathers = instruction.opcode == "ds_bpermute_b32"

    def move(wave: Wave) -> NDArray[np.uint32]:
        active = wave.active
        lane = (wave.v[address.first].astype(np.int64) + offset) >> 2 & (LANES - 1)
        moved = np.zeros(LANES, np.uint32)
        if gathers:
            moved[:] = np.where(active, wave.v[source.first], np.uint32(0))[lane]
            return moved
        moved[lane[active]] = wave.v[source.first][active]  # the last one wins
        return moved

    return make_step(instruction, _exchange(instruction, target.rows, move), reads=(address, source), writes=(target,))


def _exchange(
    instruction: Instruction, rows: tuple[int, ...], move: Callable[[Wave], NDArray[np.uint32]]
) -> Callable[[Wave], None]:
    def act(wave: Wave) -> None:
        issued, moved = wave.active, move(wave)

        def finish() -> None:
            np.copyto(wave.v[rows[0]], moved, where=issued)

        wave.launch("ds", Pending(instruction=instruction, rows=rows, finish=finish))

    return act


def _swizzle(instruction: Instruction) -> Step:
    """Each lane takes the register of the lane that a fixed pattern names; one that is not active gives zero."""
    target, source = (parse_operand(text.split()[0], instruction) for text in instruction.operands[:2])
    pattern = source_lanes(instruction)

    def move(wave: Wave) -> NDArray[np.uint32]:
        return np.where(wave.active, wave.v[source.first], np.uint32(0))[pattern]

    return make_step(instruction, _exchange(instruction, target.rows, move), reads=(source,), writes=(target,))


def source_lanes(instruction: Instruction) -> NDArray[np.int64]:
    """For each lane the one it reads, by the pattern as a number or as the assembler spells it."""
    found = _OFFSET.search(instruction.text)
    if found is None:
        return _by_masks(0, 0, 0)  # offset 0: everybody reads lane 0 of its 32
    if found["mode"] is None:
        return _by_number(int(found["value"], 0), instruction)
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


# What assemblers call a pattern, as the lane bits that are kept, set and flipped.
_MASKS: dict[str, Callable[..., tuple[int, int, int]]] = {
    "SWAP": lambda size: (0x1F, 0, size),
    "REVERSE": lambda size: (0x1F, 0, size - 1),
    "BROADCAST": lambda size, lane: (0x1F & ~(size - 1), lane, 0),
}


def _by_number(offset: int, instruction: Instruction) -> NDArray[np.int64]:
    if offset >= _ROTATE:  # FFT and rotate modes
        raise unknown(instruction, f"pattern {offset:#x}")
    if offset & _QUAD_BIT:
        return _by_quads([offset >> 2 * lane & 3 for lane in range(4)])
    return _by_masks(offset & 0x1F, offset >> 5 & 0x1F, offset >> 10 & 0x1F)


def _by_quads(order: list[int]) -> NDArray[np.int64]:
    lanes: NDArray[np.int64] = _LANE & ~3 | np.array(order)[_LANE & 3]
    return lanes


def _by_masks(keep: int, put: int, flip: int) -> NDArray[np.int64]:
    return _LANE & ~(_GROUP - 1) | (_LANE & (_GROUP - 1) & keep | put) ^ flip
