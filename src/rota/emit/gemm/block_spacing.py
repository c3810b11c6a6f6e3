"""Wait states of sums of blocks: takes bound instructions by phase, gives how many are due before each that scales one.

The compiler doesn't look into inline assembly.  What is between two instructions counts as one state each, waits and
barriers as none: the compiler may join them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota.emit.gemm.gemm_instructions import BlockAdd, BoundInstruction, Mfma
from rota.emit.gemm.gemm_tile import GemmTile
from rota.program.phase import PATHS, Phase
from rota.targets.architecture import Architecture, architecture_of
from rota.targets.device import rates_of

Bound = Sequence[Sequence[BoundInstruction]]
"""The instructions of each entry of a phase."""


def block_wait_states(phases: Mapping[Phase, Bound], tile: GemmTile) -> dict[tuple[Phase, int, int], int]:
    """By phase, entry and instruction of it, where any are due; the most that any way there asks for."""
    due: dict[tuple[Phase, int, int], int] = {}
    after = result_states(architecture_of(tile.machine), tile.instruction)
    for path in PATHS:
        ready: dict[tuple[int, int, int | None], int] = {}
        now = 0
        for phase in path:
            for entry, instructions in enumerate(phases[phase]):
                for number, each in enumerate(instructions):
                    where = phase, entry, number
                    if isinstance(each, BlockAdd):
                        missing = ready.get((each.a_part, each.b_part, each.sum_copy), 0) - now
                        due[where] = max(due.get(where, 0), missing, 0)
                        now += due[where]
                    now += 1
                    if isinstance(each, Mfma):
                        ready[each.a_part, each.b_part, each.sum_copy] = now + after
    return {where: states for where, states in due.items() if states}


def result_states(architecture: Architecture, instruction: str) -> int:
    """Wait states from a matrix instruction to a vector one that reads its result."""
    return rates_of(architecture).passes(instruction) + architecture.hazards.result.value
