"""Arrivals at words of LDS that count them: by lanes, and by copies once they are done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from rota.isa.disassembly import Instruction
from rota.isa.memory.lds_ops import reach
from rota.isa.opcodes import ARRIVALS, ARRIVES_LATER
from rota.isa.wave.control import meetings_of
from rota.isa.wave.meeting import WORD_BYTES, Knowledge
from rota.isa.wave.operand import parse_operand, unknown
from rota.isa.wave.wave import Pending, Step, Wave, make_step


def decode_arrival(instruction: Instruction) -> Step | None:
    access = instruction.spec.access
    if access is None or access.atomic not in ARRIVALS:
        return None
    if not {each.partition(":")[0] for each in instruction.modifiers} <= {"offset"}:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    return _decode_later(instruction) if access.atomic == ARRIVES_LATER else _decode_now(instruction)


def _decode_now(instruction: Instruction) -> Step:
    """Each active lane arrives in turn, as often as it says, and gets the word as it was before."""
    target, address, count = (parse_operand(text, instruction) for text in instruction.operands)
    octets = instruction.offset + np.arange(WORD_BYTES)

    def act(wave: Wave) -> None:
        lds, meetings = wave.lds, meetings_of(wave, instruction)
        index, lanes = reach(wave, instruction, wave.v[address.first].astype(np.int64), octets, WORD_BYTES)
        access = lds.order.begin_arrival(index[lanes], wave.number, wave.epoch, instruction)
        lds.order.cover_plain(wave.number, wave.releases)
        knowledge = meetings.release(wave.number)
        found = np.zeros((wave.lanes, 2), np.uint32)
        for lane in np.flatnonzero(lanes).tolist():
            old = lds.arrive(int(index[lane, 0]), int(wave.v[count.first, lane]), knowledge)
            found[lane] = old & 0xFFFF_FFFF, old >> 32
        issued = wave.active

        def finish() -> None:
            np.copyto(wave.v[target.first : target.first + 2], found.T, where=issued)

        wave.launch(instruction, partial(lds.order.cover, access), rows=target.rows, finish=finish)

    return make_step(instruction, act)


def _decode_later(instruction: Instruction) -> Step:
    """Each active lane arrives once the wave's earlier asynchronous copies are done; no wait covers that."""
    (address,) = (parse_operand(text, instruction) for text in instruction.operands)
    octets = instruction.offset + np.arange(WORD_BYTES)

    def act(wave: Wave) -> None:
        index, lanes = reach(wave, instruction, wave.v[address.first].astype(np.int64), octets, WORD_BYTES)
        copies = {each for each in wave.landing if _is_asynchronous(each.instruction)}
        for place in index[lanes, 0].tolist():
            arrive_when_done(wave, instruction, place, set(copies), _is_asynchronous)

    return make_step(instruction, act)


def _is_asynchronous(instruction: Instruction) -> bool:
    access = instruction.spec.access
    return access is not None and access.asynchronous


def arrive_when_done(
    wave: Wave, instruction: Instruction, place: int, copies: set[Pending], which: Callable[[Instruction], bool]
) -> None:
    """Arrives once when the copies have landed; who sees it knows that the wave's copies of that kind are over."""
    lds, meetings = wave.lds, meetings_of(wave, instruction)
    lds.order.begin_arrival(place + np.arange(WORD_BYTES), wave.number, wave.epoch, instruction)
    token, before = meetings.make_token(), meetings.release(wave.number)
    lds.order.give_token(wave.number, token, which)
    knowledge = before._replace(tokens=before.tokens | {token})
    wave.end_with({each for each in copies if not each.landed}, lambda: _arrive(wave, place, knowledge))


def _arrive(wave: Wave, place: int, knowledge: Knowledge) -> None:
    wave.lds.arrive(place, 1, knowledge)
