"""Wait states of attention's loop: takes a program and its statements, gives how many are due before each.

The compiler doesn't look into inline assembly.  What is between two statements counts as one state an instruction,
waits and barriers as none: the compiler may join them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rota.emit.attention.attention_ops import AttentionStatement, Maker
from rota.emit.attention.attention_shape import INSTRUCTION
from rota.emit.gemm.block_spacing import result_states
from rota.program.effects import Place
from rota.program.phase import PATHS, Phase
from rota.targets.architecture import Architecture

_VECTOR = (Maker.TRANSCENDENTAL, Maker.PACKED, Maker.VECTOR)


class _Made(NamedTuple):
    maker: Maker
    at: int


def wait_states(
    phases: Mapping[Phase, Sequence[AttentionStatement | None]], architecture: Architecture
) -> dict[tuple[Phase, int], int]:
    """By phase and entry, where any are due; the most that any way there asks for."""
    due: dict[tuple[Phase, int], int] = {}
    for path in PATHS:
        made: dict[Place, _Made] = {}
        now = 0
        for phase in path:
            for place, each in enumerate(phases[phase]):
                if each is None:
                    continue
                missing = max((_due(made, name, each, architecture) - now for name in _named(each)), default=0)
                due[phase, place] = max(due.get((phase, place), 0), missing, 0)
                now += due[phase, place] + len(each.opcodes)
                made.update({name: _Made(each.maker, now) for name in each.writes})
    return {where: states for where, states in due.items() if states}


def _named(each: AttentionStatement) -> tuple[Place, ...]:
    return (*each.reads, *each.writes)


def _due(made: Mapping[Place, _Made], place: Place, then: AttentionStatement, architecture: Architecture) -> int:
    """When `then` may be issued, as far as one place is concerned."""
    if place not in made:
        return 0
    first, at = made[place]
    hazards = architecture.hazards
    if first is Maker.MATRIX and then.maker is not Maker.MATRIX:
        return at + result_states(architecture, INSTRUCTION)
    if first in _VECTOR and then.maker is Maker.MATRIX:
        return at + hazards.operand.value
    if first is Maker.TRANSCENDENTAL and then.maker in (Maker.PACKED, Maker.VECTOR):
        return at + hazards.transcendental.value
    if first is Maker.PACKED and then.maker in _VECTOR:
        return at + hazards.packed.value
    return 0
