"""What would make a kernel provable: takes one with findings, gives a set of added or stronger waits and barriers.

Each finding offers edits (`rota.prove.verdict`).  Sets of them are tried by their size, beginning with none: where a
proof fails, the edits that its findings offer are added, each in turn, until one goes through.  Then all smaller sets
of all edits that were offered are tried, as far as the time allows: only if none of them goes through, the set is
called the smallest.  In the end each count is made as weak as the proof allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import combinations

from rota.errors import Severity
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction
from rota.prove.kernel_proof import Policies, Triple, prove
from rota.prove.verdict import BARRIER, STEPS_PER_SECOND, Budget, Edit, Verdict, apply_edits, parse_wait_counts
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

    def describe(self, instructions: Sequence[Instruction]) -> str:
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
            lines += [f"  {each.describe(instructions)}" for each in self.alone]
            if len(self.alone) > 1:
                all_of = len(self.together) == len(self.alone)
                lines.append("and all of them together" if all_of else "these can go together:")
                lines += [] if all_of else [f"  {each.describe(instructions)}" for each in self.together]
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
        changed = apply_edits(instructions, edits)
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
            counts = parse_wait_counts(each).items()
            waits += [Edit(number=number, what=name) for name, count in counts if count < architecture.no_wait(name)]
    return tuple(waits), tuple(barriers)


_MENDABLE = frozenset({"I103", "I106", "I109", "I403"})
_MOST_EDITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Edits with which the kernel is proved; none if no set was found, and `why` not.

    `smallest` says that no smaller set of the `candidates` goes through: all were tried.
    """

    edits: tuple[Edit, ...] = ()
    smallest: bool = False
    candidates: int = 0
    proofs: int = 0
    why: str = ""

    def describe(self, instructions: Sequence[Instruction]) -> str:
        """In words."""
        if not self.edits:
            return f"no suggestion: {self.why}"
        rank = (
            f"the smallest set, over {self.candidates} edits that the findings offer,"
            if self.smallest
            else "a set of edits"
        )
        lines = [f"{rank} with which it is proved ({self.proofs} proofs tried):"]
        return "\n".join((*lines, *(f"  {each.describe(instructions)}" for each in self.edits)))


def suggest(
    facts: KernelFacts,
    instructions: Sequence[Instruction],
    verdict: Verdict,
    *,
    block: int | Triple | None = None,
    policies: Policies | None = None,
    steps: int = 120 * STEPS_PER_SECOND,
    progress: Callable[[int, int], None] | None = None,
) -> Suggestion | None:
    """Edits for a kernel with an alarm; None if there is nothing to mend."""
    if verdict.proved:
        return None
    other = sorted({each.code for each in verdict.findings if each.severity is not Severity.NOTE} - _MENDABLE)
    if other:
        return Suggestion(why=f"{', '.join(other)} is not about waits and barriers")
    return _Search(facts, tuple(instructions), block, policies, steps, progress).run(verdict)


@dataclass(slots=True)
class _Search:
    facts: KernelFacts
    instructions: tuple[Instruction, ...]
    block: int | Triple | None
    policies: Policies | None
    steps: int
    progress: Callable[[int, int], None] | None
    proofs: int = 0
    spent: int = 0
    patience: int = 5 * STEPS_PER_SECOND
    tried: dict[frozenset[Edit], bool] = field(default_factory=dict)
    offered: dict[Edit, None] = field(default_factory=dict)

    def run(self, verdict: Verdict) -> Suggestion:
        self.patience = max(4 * verdict.statistics.effort, self.patience)
        found = self._found(verdict)
        if found is None:
            return Suggestion(proofs=self.proofs, candidates=len(self.offered), why=self._why())
        smallest = self._none_smaller(found)
        if smallest is not None and smallest is not found:
            found = smallest
        edits = tuple(sorted(self._weakest(found), key=lambda each: (each.number, each.what == BARRIER, each.what)))
        return Suggestion(edits=edits, smallest=smallest is not None, candidates=len(self.offered), proofs=self.proofs)

    def _why(self) -> str:
        return "the steps are used up" if self.spent > self.steps else "no set of the edits on offer is enough"

    def _found(self, verdict: Verdict) -> frozenset[Edit] | None:
        """A set that goes through, by size."""
        start: frozenset[Edit] = frozenset()
        self.tried[start] = False
        queue: list[tuple[int, int, frozenset[Edit]]] = []
        seen = {start}
        for each in self._grown(start, verdict):
            seen.add(each)
            heappush(queue, (len(each), len(seen), each))
        while queue and self.spent <= self.steps:
            _, _, edits = heappop(queue)
            found = self._proof(edits, stops=False)
            if found.proved:
                return edits
            for each in self._grown(edits, found):
                if each not in seen and len(each) <= _MOST_EDITS:
                    seen.add(each)
                    heappush(queue, (len(each), len(seen), each))
        return None

    def _grown(self, edits: frozenset[Edit], verdict: Verdict) -> Iterator[frozenset[Edit]]:
        """With what the first pair that is still wrong offers; what the others offer is remembered."""
        places = self._places(edits)
        for number, remedy in enumerate(verdict.remedies):
            for fix in remedy.fixes:
                mine = frozenset(each for edit in fix if (each := self._original(edit, places)) is not None)
                self.offered |= dict.fromkeys(mine)
                if not number and mine and not mine <= edits:
                    yield _merged(edits | mine)

    def _places(self, edits: frozenset[Edit]) -> list[int]:
        """For each instruction of the edited list, the original one that it is or stands in front of."""
        count = [0] * len(self.instructions)
        for each in edits:
            count[each.number] += each.inserted
        return [number for number, more in enumerate(count) for _ in range(more + 1)]

    def _original(self, edit: Edit, places: list[int]) -> Edit | None:
        if not 0 <= edit.number < len(places):
            return None  # behind the end, or in the half of the code that s_setvskip makes
        number = places[edit.number]
        if edit.inserted or self.instructions[number].opcode == "s_waitcnt":
            return replace(edit, number=number)
        return Edit(number=number, what=edit.what, most=edit.most, inserted=True)  # a wait that was itself added

    def _proof(self, edits: frozenset[Edit], *, stops: bool) -> Verdict:
        self.proofs += 1
        if self.progress is not None:
            self.progress(self.proofs, 0)
        found = prove(
            self.facts,
            apply_edits(self.instructions, edits),
            block=self.block,
            policies=self.policies,
            budget=Budget(steps=self.patience),
            stops=stops,
        )
        self.spent += found.statistics.effort
        self.tried[edits] = found.proved
        return found

    def _none_smaller(self, found: frozenset[Edit]) -> frozenset[Edit] | None:
        """The set itself if all smaller ones fail, or a smaller one that doesn't; None if there is no time to say."""
        candidates = sorted(self.offered)
        for size in range(1, len(found)):
            for some in combinations(candidates, size):
                edits = _merged(frozenset(some))
                if edits not in self.tried:
                    if self.spent > self.steps:
                        return None
                    self._proof(edits, stops=True)
                if self.tried[edits]:
                    return edits
        return found

    def _weakest(self, edits: frozenset[Edit]) -> frozenset[Edit]:
        """Each count as large as the proof allows, one after the other."""
        architecture = architecture_named(self.facts.arch)
        for each in sorted(edits):
            if each.what == BARRIER or each.most is None or architecture is None:
                continue
            now = parse_wait_counts(self.instructions[each.number]).get(each.what) if not each.inserted else None
            low, high = each.most, (architecture.no_wait(each.what) if now is None else now) - 1
            while low < high and self.spent <= self.steps:
                middle = (low + high + 1) // 2
                weaker = edits - {each} | {replace(each, most=middle)}
                if self._proof(weaker, stops=True).proved:
                    low = middle
                else:
                    high = middle - 1
            edits = edits - {each} | {replace(each, most=low)}
        return edits


def _merged(edits: frozenset[Edit]) -> frozenset[Edit]:
    """Two waits for one counter at one place are the stronger one."""
    strongest: dict[tuple[int, str, bool], Edit] = {}
    for each in edits:
        key = (each.number, each.what, each.inserted)
        other = strongest.get(key)
        if other is None or (each.most is not None and (other.most is None or each.most < other.most)):
            strongest[key] = each
    return frozenset(strongest.values())
