"""Advice about synchronisation: which waits and barriers a proved kernel needs, and which an unproved one lacks.

*Needed* means that the proof, with its policies, fails without it. Each wait and barrier is tried alone; then those
that can go are removed one after the other, in the order of the listing, as long as the proof succeeds: these can go
together. Another order may give another set.

A suggestion is found by the size of the set: where a proof fails, the edits that its findings offer are added, one at a
time, until one succeeds. It is called the smallest only if the proof failed with all smaller sets of the offered edits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import combinations

from rota.errors import Severity, several
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction
from rota.isa.opcodes import IsaFlow, written_counts
from rota.prove.causes import Pair
from rota.prove.kernel_proof import Policies, Triple, prove
from rota.prove.verdict import BARRIER_OPCODES, BARRIERS, STEPS_PER_SECOND, Budget, Edit, Status, Verdict, apply_edits
from rota.targets.registry import architecture_named

_EFFORT_FACTOR = 4  # each further proof may take so many times the effort of the first
_LEAST_STEPS = 2 * STEPS_PER_SECOND


@dataclass(frozen=True, slots=True)
class Needed:
    """Waits and barriers of a kernel, as edits that remove them.

    `alone` are those that can be removed one at a time, `together` those that can be removed at once.  `undecided` are
    those without which the proof ended early: they count as needed.
    """

    waits: tuple[Edit, ...]
    barriers: tuple[Edit, ...]
    alone: tuple[Edit, ...]
    undecided: tuple[Edit, ...]
    together: tuple[Edit, ...]
    proofs: int

    def describe(self, instructions: Sequence[Instruction]) -> str:
        parts = []
        for name, every in (("wait", self.waits), ("barrier", self.barriers)):
            removable = sum(each in self.alone for each in every)
            parts.append(f"{len(every) - removable} of {several(len(every), name)}")
        lines = [f"{' and '.join(parts)} are needed: the proof fails without any one of them"]
        if self.undecided:
            lines.append(f"  {len(self.undecided)} of them because the proof ended early without it")
        if self.alone:
            lines.append("each of these can be removed alone:")
            lines += [f"  {each.describe(instructions)}" for each in self.alone]
            if len(self.alone) > 1:
                all_of = len(self.together) == len(self.alone)
                lines.append("and all of them together" if all_of else "these can be removed together:")
                lines += [] if all_of else [f"  {each.describe(instructions)}" for each in self.together]
        return "\n".join(lines)


def find_needed(  # noqa: C901
    facts: KernelFacts,
    instructions: Sequence[Instruction],
    proved: Verdict,
    *,
    block: int | Triple | None = None,
    policies: Policies | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Needed | None:
    """Find the waits and barriers that a proved kernel needs; None if it isn't proved."""
    if not proved.proved:
        return None
    architecture, waits, barriers = architecture_named(facts.arch), list[Edit](), list[Edit]()
    for number, instruction in enumerate(instructions):
        if instruction.opcode in BARRIER_OPCODES:
            barriers.append(Edit(number=number, what=BARRIER_OPCODES[instruction.opcode]))
        elif instruction.spec.flow is IsaFlow.WAIT and architecture is not None:
            counts = written_counts(instruction.spec, instruction.text).items()
            waits += [Edit(number=number, what=name) for name, count in counts if count < architecture.no_wait(name)]
    budget = Budget(steps=max(_EFFORT_FACTOR * proved.statistics.effort, _LEAST_STEPS))
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
        elif found.status is Status.INCONCLUSIVE:
            undecided.append(each)
    together: tuple[Edit, ...] = tuple(alone[:1])
    for each in alone[1:]:
        if verdict((*together, each)).proved:
            together = (*together, each)
    every_wait, every_barrier, left = tuple(waits), tuple(barriers), tuple(undecided)
    return Needed(every_wait, every_barrier, tuple(alone), left, together, proofs)


_FIXABLE = frozenset({"I103", "I106", "I109", "I403"})
_MOST_EDITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Edits with which the kernel is proved, else `why`; `smallest` if all smaller sets of the `candidates` fail."""

    edits: tuple[Edit, ...] = ()
    smallest: bool = False
    candidates: int = 0
    proofs: int = 0
    why: str = ""

    def describe(self, instructions: Sequence[Instruction]) -> str:
        if not self.edits:
            return f"no suggestion: {self.why}"
        smallest = f"the smallest set of the {self.candidates} edits that the findings suggest"
        ends = "it is proved" if self.candidates else "all its pairs are in order"
        line = f"{smallest if self.smallest else 'edits'} with which {ends} ({self.proofs} proofs tried):"
        return "\n".join((line, *(f"  {each.describe(instructions)}" for each in self.edits)))


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
    """Find edits with which a kernel would be proved; None if it is proved as it is."""
    if verdict.proved:
        return None
    other = sorted({each.code for each in verdict.findings if each.severity is not Severity.NOTE} - _FIXABLE)
    if other:
        return Suggestion(why=f"waits and barriers do not fix {', '.join(other)}")
    return _Search(facts, tuple(instructions), block, policies, steps, progress).run(verdict)


def mend_cause(  # noqa: PLR0917
    facts: KernelFacts,
    instructions: Sequence[Instruction],
    verdict: Verdict,
    number: int,
    block: int | Triple | None = None,
    policies: Policies | None = None,
    steps: int = 120 * STEPS_PER_SECOND,
    progress: Callable[[int, int], None] | None = None,
) -> Suggestion:
    """Find edits after which no pair of one cause, by the number of its finding, is wrong any more."""
    if verdict.findings[number].code not in _FIXABLE:
        return Suggestion(why=f"waits and barriers do not fix {verdict.findings[number].code}")
    return _Search(facts, tuple(instructions), block, policies, steps, progress).mend(verdict, number)


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
    limit: int = 5 * STEPS_PER_SECOND
    tried: dict[frozenset[Edit], bool] = field(default_factory=dict)
    offered: dict[Edit, None] = field(default_factory=dict)

    def run(self, verdict: Verdict) -> Suggestion:
        self.limit = max(4 * verdict.statistics.effort, self.limit)
        found = self._search(verdict)
        if found is None:
            over = self.spent > self.steps
            why = "the budget of steps is used up" if over else "no set of the suggested edits is enough"
            return Suggestion(proofs=self.proofs, candidates=len(self.offered), why=why)
        smallest = self._find_smaller(found)
        if smallest is not None and smallest is not found:
            found = smallest
        edits = tuple(sorted(self._weaken(found), key=lambda each: (each.number, each.what in BARRIERS, each.what)))
        return Suggestion(edits=edits, smallest=smallest is not None, candidates=len(self.offered), proofs=self.proofs)

    def mend(self, verdict: Verdict, number: int) -> Suggestion:
        """Add the fix of one pair after the other, each if fewer pairs of the cause are left with it."""
        code, cause = verdict.findings[number].code, frozenset(verdict.pairs[number])
        self.limit = max(4 * verdict.statistics.effort, self.limit)
        edits: frozenset[Edit] = frozenset()
        found, left = verdict, cause
        while left and len(edits) < _MOST_EDITS and self.spent <= self.steps:
            for more in self._offer(edits, found, code, left):
                again = self._prove(more, stops=False)
                fewer = _pairs_left(again, code, cause)
                if len(fewer) < len(left) and not again.ended_early:
                    edits, found, left = more, again, fewer
                    break
            else:
                return Suggestion(proofs=self.proofs, why="no edit that its pairs suggest orders it")
        if left:
            return Suggestion(proofs=self.proofs, why=f"{len(edits)} edits are not enough, or the steps are used up")
        ordered = tuple(sorted(edits, key=lambda each: (each.number, each.what in BARRIERS, each.what)))
        return Suggestion(edits=ordered, proofs=self.proofs)

    def _offer(
        self, edits: frozenset[Edit], verdict: Verdict, code: str, left: frozenset[Pair]
    ) -> Iterator[frozenset[Edit]]:
        """The set with each fix of the first pair that is left."""
        changed, places = apply_edits(self.instructions, edits), self._find_places(edits)
        for remedy in verdict.remedies:
            ends = [changed[each].line for each in (remedy.number, remedy.other) if each < len(changed)]
            if remedy.code == code and tuple(dict.fromkeys(ends)) in left:
                for fix in remedy.fixes:
                    mine = frozenset(each for edit in fix if (each := self._map_back(edit, places)) is not None)
                    if mine and not mine <= edits:
                        yield _merge(edits | mine)
                return

    def _find_places(self, edits: frozenset[Edit]) -> list[int]:
        """For each edited instruction, the original one that it is, or is inserted before."""
        count = [0] * len(self.instructions)
        for made in edits:
            count[made.number] += len(made.texts) * made.inserted
        return [number for number, more in enumerate(count) for _ in range(more + 1)]

    def _search(self, verdict: Verdict) -> frozenset[Edit] | None:
        start: frozenset[Edit] = frozenset()
        self.tried[start] = False
        queue: list[tuple[int, int, frozenset[Edit]]] = []
        seen = {start}
        for each in self._extend(start, verdict):
            seen.add(each)
            heappush(queue, (len(each), len(seen), each))
        while queue and self.spent <= self.steps:
            _, _, edits = heappop(queue)
            found = self._prove(edits, stops=False)
            if found.proved:
                return edits
            for each in self._extend(edits, found):
                if each not in seen and len(each) <= _MOST_EDITS:
                    seen.add(each)
                    heappush(queue, (len(each), len(seen), each))
        return None

    def _extend(self, edits: frozenset[Edit], verdict: Verdict) -> Iterator[frozenset[Edit]]:
        """The set with each fix for the first pair that is still wrong; remembers the fixes for other pairs."""
        places = self._find_places(edits)
        for number, remedy in enumerate(verdict.remedies):
            for fix in remedy.fixes:
                mine = frozenset(each for edit in fix if (each := self._map_back(edit, places)) is not None)
                self.offered |= dict.fromkeys(mine)
                if not number and mine and not mine <= edits:
                    yield _merge(edits | mine)

    def _map_back(self, edit: Edit, places: list[int]) -> Edit | None:
        if not 0 <= edit.number < len(places):
            return None  # after the end, or in the copy of the code that s_setvskip makes
        number = places[edit.number]
        if edit.inserted or self.instructions[number].spec.flow is IsaFlow.WAIT:
            return replace(edit, number=number)
        return Edit(number=number, what=edit.what, most=edit.most, inserted=True)  # the wait was itself inserted

    def _prove(self, edits: frozenset[Edit], *, stops: bool) -> Verdict:
        self.proofs += 1
        if self.progress is not None:
            self.progress(self.proofs, 0)
        changed, budget = apply_edits(self.instructions, edits), Budget(steps=self.limit)
        found = prove(self.facts, changed, block=self.block, policies=self.policies, budget=budget, stops=stops)
        self.spent += found.statistics.effort
        self.tried[edits] = found.proved
        return found

    def _find_smaller(self, found: frozenset[Edit]) -> frozenset[Edit] | None:
        """A smaller set that is enough, else the set itself; None if the steps don't last to decide that."""
        candidates = sorted(self.offered)
        for size in range(1, len(found)):
            for some in combinations(candidates, size):
                edits = _merge(frozenset(some))
                if edits not in self.tried:
                    if self.spent > self.steps:
                        return None
                    self._prove(edits, stops=True)
                if self.tried[edits]:
                    return edits
        return found

    def _weaken(self, edits: frozenset[Edit]) -> frozenset[Edit]:
        """Raise each count as far as the proof allows, one after the other."""
        architecture = architecture_named(self.facts.arch)
        for each in sorted(edits):
            if each.what in BARRIERS or each.most is None or architecture is None:
                continue
            at = self.instructions[each.number]
            now = written_counts(at.spec, at.text).get(each.what) if not each.inserted else None
            low, high = each.most, (architecture.no_wait(each.what) if now is None else now) - 1
            while low < high and self.spent <= self.steps:
                middle = (low + high + 1) // 2
                weaker = edits - {each} | {replace(each, most=middle)}
                if self._prove(weaker, stops=True).proved:
                    low = middle
                else:
                    high = middle - 1
            edits = edits - {each} | {replace(each, most=low)}
        return edits


def _pairs_left(verdict: Verdict, code: str, cause: frozenset[Pair]) -> frozenset[Pair]:
    found = zip(verdict.findings, verdict.pairs, strict=True)
    return cause.intersection(pair for finding, pairs in found if finding.code == code for pair in pairs)


def _merge(edits: frozenset[Edit]) -> frozenset[Edit]:
    strongest: dict[tuple[int, str, bool], Edit] = {}
    for each in edits:
        key = (each.number, each.what, each.inserted)
        other = strongest.get(key)
        if other is None or (each.most is not None and (other.most is None or each.most < other.most)):
            strongest[key] = each
    return frozenset(strongest.values())
