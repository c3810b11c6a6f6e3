"""Private memory of lanes: takes a scratch_ instruction, gives a `Step` (CDNA3 ISA, "Flat Scratch").

Each lane has bytes of its own; how the machine weaves them into memory can't be seen from inside a kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.memory.vector_addresses import read_modifiers
from rota.isa.memory.widths import Width, width_of
from rota.isa.wave.operand import File, Operand, parse_operand, scalar_reader
from rota.isa.wave.step import Act, Step, make_step
from rota.isa.wave.wave import Pending

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

_OPCODE = re.compile(r"^scratch_(?P<verb>load|store)_(?P<width>\w+)$")


def decode_scratch(instruction: Instruction) -> Step | None:
    """The step of a scratch load or store, or None."""
    found = _OPCODE.match(instruction.opcode)
    width = width_of(found["verb"], found["width"]) if found else None
    if found is None or width is None:
        return None
    operands = [parse_operand(text, instruction) for text in instruction.operands]
    offset = read_modifiers(instruction).offset
    if found["verb"] == "load":
        target, lane, base = operands
        act = _load(instruction, width, target, _offsets(lane, base, offset))
        return make_step(instruction, act, reads=(lane, base), writes=(target,))
    lane, source, base = operands
    act = _store(instruction, width, source, _offsets(lane, base, offset))
    return make_step(instruction, act, reads=(lane, source, base))


def _offsets(lane: Operand, base: Operand, offset: int) -> Callable[[Wave], NDArray[np.int64]]:
    """An offset per lane, one for all of them, and the instruction's."""
    scalar = scalar_reader(base) if base.file is not File.NONE else (lambda _: 0)
    row = lane.first

    def offsets(wave: Wave) -> NDArray[np.int64]:
        uniform = np.full(LANES, scalar(wave) + offset, np.int64)
        return uniform if lane.file is File.NONE else uniform + wave.v[row]

    return offsets


def _load(instruction: Instruction, width: Width, target: Operand, offsets: Callable[[Wave], NDArray[np.int64]]) -> Act:
    first = target.first

    def act(wave: Wave) -> None:
        private, issued = wave.private, wave.active
        index, lanes = private.index(wave, instruction, offsets(wave), width.size, issued)
        fetched, old = private.get(index, lanes), wave.other_half(first)

        def finish() -> None:
            np.copyto(wave.v[first : first + target.count], width.registers(fetched, old), where=issued)

        wave.launch("vm", Pending(instruction=instruction, rows=target.rows, finish=finish))

    return act


def _store(
    instruction: Instruction, width: Width, source: Operand, offsets: Callable[[Wave], NDArray[np.int64]]
) -> Act:
    first, size = source.first, width.size

    def act(wave: Wave) -> None:
        index, lanes = wave.private.index(wave, instruction, offsets(wave), size, wave.active)
        wave.private.put(index, lanes, width.stored(wave.v[first : first + source.count])[:, :size])
        wave.launch("vm", Pending(instruction=instruction, rows=(), finish=lambda: None))

    return act
