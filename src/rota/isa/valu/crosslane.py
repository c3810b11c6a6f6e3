"""Instructions that move values between lanes or registers: takes one, gives a `Step`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.valu.access import parsed
from rota.isa.valu.integer import population
from rota.isa.valu.modifiers import only
from rota.isa.wave.operand import M0, File, Operand, reader, scalar_reader, scalar_writer, unknown, writer
from rota.isa.wave.step import Step, make_step

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave


def decode_crosslane(instruction: Instruction, opcode: str) -> Step | None:
    """The step of such an instruction, or None; `opcode` is the instruction's without its encoding."""
    if opcode not in _MADE or instruction.opcode.endswith(("_dpp", "_sdwa")):
        return None
    only(instruction, ())
    return _MADE[opcode](instruction, parsed(instruction))


def _first_lane(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    target, source = operands
    take, put = reader(source, "u"), scalar_writer(target)

    def act(wave: Wave) -> None:
        values = np.broadcast_to(take(wave), LANES)
        put(wave, int(values[0 if wave.mask is None else int(wave.mask.argmax())]))
        if target.first == M0:
            wave.m0_at = wave.now

    return make_step(instruction, act, reads=(source,), writes=(target,))


def _read_lane(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    target, source, lane = operands
    take, put, which = reader(source, "u"), scalar_writer(target), scalar_reader(lane)

    def act(wave: Wave) -> None:
        put(wave, int(np.broadcast_to(take(wave), LANES)[which(wave) & 63]))
        if target.first == M0:
            wave.m0_at = wave.now

    return make_step(instruction, act, reads=operands[1:], writes=(target,))


def _write_lane(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    target, source, lane = operands
    value, which = scalar_reader(source), scalar_reader(lane)
    if target.file is not File.VECTOR:
        raise unknown(instruction, f"operand {target.text!r}")

    def act(wave: Wave) -> None:
        wave.v[target.first, which(wave) & 63] = value(wave)

    return make_step(instruction, act, reads=(*operands[1:], target), writes=(target,))


def _count_below(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    """Bits of a mask below each lane's own number, in the low or the high half of the wave."""
    target, mask, addend = operands
    take, more, put = reader(mask, "u"), reader(addend, "u"), writer(target, "u")
    base = 32 if "_hi_" in instruction.opcode else 0
    width = np.clip(np.arange(LANES) - base, 0, 32).astype(np.uint64)
    below = ((np.uint64(1) << width) - np.uint64(1)).astype(np.uint32)

    def act(wave: Wave) -> None:
        put(wave, population(take(wave) & below) + more(wave))

    return make_step(instruction, act, reads=operands[1:], writes=(target,))


def _swapped(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    one, two = operands
    takes, puts = [reader(each, "u") for each in operands], [writer(each, "u") for each in operands]

    def act(wave: Wave) -> None:
        first, second = (take(wave).copy() for take in takes)
        puts[0](wave, second)
        puts[1](wave, first)

    return make_step(instruction, act, reads=(one, two), writes=(one, two))


def _lanes_swapped(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    """The odd rows of the first register change places with the even rows of the second (rows of 16 or 32 lanes)."""
    one, two = operands
    if one.file is not File.VECTOR or two.file is not File.VECTOR:
        raise unknown(instruction, "operand")
    rows = 32 if "32_swap" in instruction.opcode else 16
    lanes = np.arange(LANES)
    even = lanes[lanes // rows % 2 == 0]
    odd = even + rows

    def act(wave: Wave) -> None:
        if wave.mask is not None:
            wave.faults.add(
                "I102",
                instruction,
                f"what {instruction.opcode} does while EXEC leaves lanes out is not known",
                ("wave", wave.number),
            )
        above, below = wave.v[one.first, odd].copy(), wave.v[two.first, even].copy()
        wave.v[one.first, odd], wave.v[two.first, even] = below, above

    return make_step(instruction, act, reads=(one, two), writes=(one, two))


_MADE: dict[str, Callable[[Instruction, tuple[Operand, ...]], Step]] = {
    "v_readfirstlane_b32": _first_lane,
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "v_mbcnt_lo_u32_b32": _count_below,
    "v_mbcnt_hi_u32_b32": _count_below,
    "v_swap_b32": _swapped,
    "v_permlane16_swap_b32": _lanes_swapped,
    "v_permlane32_swap_b32": _lanes_swapped,
}
