"""Registers chosen while running, vector instructions skipped, clocks: takes an instruction, gives a `Step`.

M0 holds the index.  In index mode it is added to the VGPRs of vector instructions: `mode.aware` gives the step for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from rota.isa.wave.mode import INDEXED
from rota.isa.wave.operand import M0, SCALAR, named, parse_operand, scalar_reader, unknown
from rota.isa.wave.step import Step, make_step
from rota.isa.wave.wave import Pending

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

_NAMES = re.compile(r"gpr_idx\((?P<names>[A-Z0-9,]*)\)")
_PLACES = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}
_LAST = 101  # the last scalar register that an index may reach
_M0 = named("m0")


def decode_register_index(instruction: Instruction) -> Step | None:
    """The step of such an instruction, or None."""
    make = _MADE.get(instruction.opcode)
    return None if make is None else make(instruction)


def _which(instruction: Instruction) -> int:
    """The bits of gpr_idx(...); the commas inside it have taken it apart."""
    found = _NAMES.search(instruction.text.replace(" ", ""))
    if found is None:
        raise unknown(instruction, "form")
    return sum(_PLACES[name] for name in found["names"].split(",") if name)


def _index_on(instruction: Instruction) -> Step:
    source, which = parse_operand(instruction.operands[0], instruction), _which(instruction)
    take = scalar_reader(source)

    def act(wave: Wave) -> None:
        wave.mode |= INDEXED
        wave.s[M0] = wave.s[M0] & 0xFFFF_0F00 | take(wave) & 0xFF | which << 12

    return make_step(instruction, act, reads=(source, _M0), writes=(_M0,))


def _index_off(instruction: Instruction) -> Step:
    def act(wave: Wave) -> None:
        wave.mode &= ~INDEXED

    return make_step(instruction, act)


def _index_mode(instruction: Instruction) -> Step:
    which = _which(instruction)

    def act(wave: Wave) -> None:
        wave.s[M0] = wave.s[M0] & ~0xF000 | which << 12

    return make_step(instruction, act, reads=(_M0,), writes=(_M0,))


def _index(instruction: Instruction) -> Step:
    source = parse_operand(instruction.operands[0], instruction)
    take = scalar_reader(source)

    def act(wave: Wave) -> None:
        wave.s[M0] = wave.s[M0] & ~0xFF | take(wave) & 0xFF

    return make_step(instruction, act, reads=(source, _M0), writes=(_M0,))


def _move(*, wide: bool, from_there: bool) -> Callable[[Instruction], Step]:
    """Moves from or to the scalar register that M0 counts from the one named."""

    def make(instruction: Instruction) -> Step:
        target, source = (parse_operand(text, instruction) for text in instruction.operands)
        moved = source if from_there else target
        if not moved.rows or moved.first > _LAST:
            raise unknown(instruction, f"operand {moved.text!r}")
        take = scalar_reader(source, wide=wide)

        def act(wave: Wave) -> None:
            there = moved.first + wave.s[M0]
            if there + wide > _LAST:
                wave.faults.add(
                    "I102",
                    instruction,
                    f"{instruction.opcode} reaches s{there}, which isn't there",
                    ("wave", wave.number),
                )
                return
            value = wave.s[there] | wave.s[there + 1] << 32 if from_there else take(wave)
            for part in range(1 + wide):
                wave.s[(target.first if from_there else there) + part] = value >> 32 * part & 0xFFFF_FFFF

        return make_step(instruction, act, reads=(source, _M0), writes=(target,))

    return make


def _clock(instruction: Instruction) -> Step:
    """A number that grows with every instruction of the wave; what it is on a machine nothing here predicts."""
    target = parse_operand(instruction.operands[0], instruction)

    def act(wave: Wave) -> None:
        now = wave.now

        def finish() -> None:
            wave.s[target.first], wave.s[target.first + 1] = now & 0xFFFF_FFFF, now >> 32

        rows = tuple(SCALAR + target.first + part for part in (0, 1))
        wave.launch("sm", Pending(instruction=instruction, rows=rows, finish=finish))

    return make_step(instruction, act, writes=(target,))


_MADE: dict[str, Callable[[Instruction], Step]] = {
    "s_set_gpr_idx_on": _index_on,
    "s_set_gpr_idx_off": _index_off,
    "s_set_gpr_idx_mode": _index_mode,
    "s_set_gpr_idx_idx": _index,
    "s_memtime": _clock,
    "s_memrealtime": _clock,
    **{f"s_movrel{way}_b{bits}": _move(wide=bits == 64, from_there=way == "s") for way in "sd" for bits in (32, 64)},
}
