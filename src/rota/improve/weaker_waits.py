"""Waits of a loop that may leave more in flight: each count is raised as far as the proof allows, one after the other.

The proof doesn't judge what other workgroups see.  So a wait keeps its counts if a store to global memory, an atomic or
an instruction of caches may have been issued before it, and in kernels that hand data over by flags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rota.improve.loop_block import make_nop, respell_wait
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction
from rota.prove.hand_overs import find_hand_overs
from rota.prove.operation import Operation, OperationKind, read_operation
from rota.prove.slicing import derive_successors, find_reached
from rota.targets.architecture import Architecture

_MOST_JUDGED, _FEWEST = 20_000, 12  # instructions in all, and kernels
_PUBLISHES = frozenset({"store", "atomic", "cache"})


def find_weaker_waits(
    facts: KernelFacts, instructions: Sequence[Instruction], numbers: Sequence[int], architecture: Architecture,
    is_proved: Callable[[Sequence[Instruction]], bool],
) -> dict[int, Instruction | None]:  # fmt: skip
    """By number, the waits that may be weaker, or None for those that may go; `is_proved` judges all together.

    Of long kernels only the first ones are tried.
    """
    left = max(_MOST_JUDGED // len(instructions), _FEWEST)
    operations = [read_operation(each, number, architecture) for number, each in enumerate(instructions)]
    report = find_hand_overs(facts, instructions)
    if report.hand_overs or report.unknown:
        return {}
    after = _find_after(operations)
    found: dict[int, Instruction | None] = {}
    now = list(instructions)
    for number in numbers:
        if operations[number].kind is not OperationKind.WAIT or number in after:
            continue
        counts = dict(operations[number].waits)
        for counter in tuple(counts):
            for count in _list_counts(counts[counter], architecture.no_wait(counter)):
                weaker = respell_wait(operations[number], counts | {counter: count}, architecture)
                tried = [*now]
                tried[number] = weaker or make_nop(instructions[number], 0)
                left -= 1
                if left < 0 or not is_proved(tried):
                    break
                now, counts[counter], found[number] = tried, count, weaker
    return found


def _list_counts(count: int, most: int) -> Iterator[int]:
    """The next one, then in growing steps up to none at all."""
    step = 1
    while count < most:
        count = min(count + step, most)
        yield count
        step *= 4


def _find_after(operations: Sequence[Operation]) -> set[int]:
    """The instructions that may follow one that publishes something."""
    publish = [each.number for each in operations if each.verb in _PUBLISHES and each.kind is not OperationKind.LDS]
    return find_reached(derive_successors(operations), publish)
