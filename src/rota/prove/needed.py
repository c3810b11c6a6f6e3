"""Which waits and barriers a proof needs: takes a kernel that is proved, gives those without which it still is.

*Needed* means exactly this: without it the proof, with its policies, no longer goes through.  A wait for two counters
is two waits.  Each is tried alone; then those that can go are taken away one after the other, in the order of the
listing, as long as the proof goes through: these can go together.  Another order may give another set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.code.disassembly import Instruction
from rota.prove.block_shape import Triple
from rota.prove.edits import BARRIER, Edit, edited, waits_of
from rota.prove.kernel_proof import Policies, prove
from rota.prove.meter import STEPS_PER_SECOND, Budget
from rota.prove.verdict import Verdict
from rota.targets.registry import architecture_named

_PATIENCE = 4  # times what the proof itself took
_LEAST = 2 * STEPS_PER_SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """Waits and barriers of a kernel, as edits that take them away; `undecided` are those whose proof ended early.

    What is undecided counts as needed.
    """

    waits: tuple[Edit, ...]
    barriers: tuple[Edit, ...]
    alone: tuple[Edit, ...]
    undecided: tuple[Edit, ...]
    together: tuple[Edit, ...]
    proofs: int

    def told(self, instructions: Sequence[Instruction]) -> str:
        """In words, with what can go."""
        parts = []
        for name, every in (("waits", self.waits), ("barriers", self.barriers)):
            gone = sum(each in self.alone for each in every)
            parts.append(f"{len(every) - gone} of {len(every)} {name}")
        lines = [f"{' and '.join(parts)} are needed: without one of these the proof no longer goes through"]
        if self.undecided:
            lines.append(f"  {len(self.undecided)} of them because the proof ended early without it")
        if self.alone:
            lines.append("these can go, each alone:")
            lines += [f"  {each.told(instructions)}" for each in self.alone]
            if len(self.alone) > 1:
                all_of = len(self.together) == len(self.alone)
                lines.append("and all of them together" if all_of else "these can go together:")
                lines += [] if all_of else [f"  {each.told(instructions)}" for each in self.together]
        return "\n".join(lines)


def find_needed(
    facts: KernelFacts,
    instructions: Sequence[Instruction],
    proved: Verdict,
    *,
    block: int | Triple | None = None,
    policies: Policies | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Needed | None:
    """What the proof needs of a kernel; None if it isn't proved as it is."""
    if not proved.proved:
        return None
    waits, barriers = _synchronisation(facts, instructions)
    budget = Budget(steps=max(_PATIENCE * proved.statistics.effort, _LEAST))
    every, proofs = (*waits, *barriers), 0

    def verdict(edits: tuple[Edit, ...]) -> Verdict:
        nonlocal proofs
        proofs += 1
        if progress is not None:
            progress(proofs, 2 * len(every))
        changed = edited(instructions, edits)
        return prove(facts, changed, block=block, policies=policies, budget=budget, stops=True)

    alone, undecided = [], []
    for each in every:
        found = verdict((each,))
        if found.proved:
            alone.append(each)
        elif found.ran_out:
            undecided.append(each)
    together: tuple[Edit, ...] = tuple(alone[:1])
    for each in alone[1:]:
        if verdict((*together, each)).proved:
            together = (*together, each)
    return Needed(
        waits=waits,
        barriers=barriers,
        alone=tuple(alone),
        undecided=tuple(undecided),
        together=together,
        proofs=proofs,
    )


def _synchronisation(
    facts: KernelFacts, instructions: Sequence[Instruction]
) -> tuple[tuple[Edit, ...], tuple[Edit, ...]]:
    """Waits that wait for something, and barriers."""
    architecture = architecture_named(facts.arch)
    waits, barriers = [], []
    for number, each in enumerate(instructions):
        if each.opcode == "s_barrier":
            barriers.append(Edit(number=number, what=BARRIER))
        elif each.opcode == "s_waitcnt" and architecture is not None:
            counts = waits_of(each).items()
            waits += [Edit(number=number, what=name) for name, count in counts if count < architecture.no_wait(name)]
    return tuple(waits), tuple(barriers)
