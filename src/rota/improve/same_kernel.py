"""Whether a kernel with another loop computes the same as before; shares no code with the search, nor with the proof.

Either the new kernel has one stretch in another order, with the same words before and after it.  Or the place of a loop
holds a branch to code that wasn't there, which executes trips of the loop in two parts: a head, then rounds that end
with the head of the next trip, then a rest.  With `trip` for the old loop's instructions and the branch that closes it,
two comparisons of values show that this is the same for any number of trips:

    head, branch, rest         is  trip
    head, branch, round, branch  is  trip, head, branch

By the second one a round and a head before it are a trip and a head after it, so all rounds become trips, one after the
other; by the first one what is left is the last trip.

Waits and s_nop compute nothing and may differ.  Whether results are there when they are used, and no other wave is
disturbed in LDS, is for the proof of the new kernel to say.  That proof says nothing of what others see in global
memory: where a store may come before, whatever a wait covered at a barrier, a store or a write-back has to be covered
there in the new order, too.  Nor does it know that memory instructions which follow one another are executed again
together where a page is missing (XNACK): none of them may write what one of them reads, itself included.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from rota.improve.same_values import (
    TIMING,
    Computation,
    Difference,
    Uses,
    compare_computations,
    identity_of,
    read_computations,
    split_operands,
    uses_of,
)
from rota.isa.disassembly import Instruction

_LEAVES = ("s_branch", "s_cbranch", "s_endpgm", "s_setpc", "s_rfe", "s_trap")
_PLACES = ("s_getpc", "s_call", "s_swappc")
_INDIRECT = ("s_setpc", "s_swappc", "s_rfe", "s_cbranch_g", "s_cbranch_i", "s_cbranch_join")
_PUBLISHES = re.compile(
    r"(?:global|buffer|flat)_(?:store|atomic)|buffer_(?:wbl2|inv|wbinvl1)|s_(?:store|atomic|dcache)"
)
_LEFT = re.compile(r"\bvmcnt\((\d+)\)")


def find_difference(old: Sequence[Instruction], new: Sequence[Instruction]) -> Difference | None:
    """Why the new kernel may compute something else; None if it computes the same."""
    first, last = _find_same_ends(old, new)
    if first == len(old) == len(new):
        return None
    faults = _list_clause_faults(new) - _list_clause_faults(old)
    if faults:
        return Difference("executed again after a page fault, one reads what another one wrote", *min(faults, key=str))
    if _differ_in_waits(old, new):
        return None
    if new[min(first, len(new) - 1)].opcode == "s_branch":
        return _Trips(old, new, first).compare()
    return _compare_stretch(old, new, first, last)


def _differ_in_waits(old: Sequence[Instruction], new: Sequence[Instruction]) -> bool:
    """True if nothing differs but waits and s_nop in their places, before anything that others may see."""
    if len(old) != len(new):
        return False
    changed = [place for place, (one, other) in enumerate(zip(old, new, strict=True)) if not _is_same(one, other)]
    return all(
        old[place].address == new[place].address
        and old[place].opcode in TIMING and new[place].opcode in TIMING
        and _length(old[place]) == _length(new[place])
        for place in changed
    ) and not _may_publish_before(old, changed)  # fmt: skip


def _compare_stretch(
    old: Sequence[Instruction], new: Sequence[Instruction], first: int, last: int
) -> Difference | None:
    end, new_end = len(old) - last, len(new) - last
    for listing, stop in ((old, end), (new, new_end)):
        for each in listing:
            if each.target is not None and first < each.target < stop:
                return Difference("a branch goes into what differs", each, listing[each.target])
            if each.opcode.startswith(_INDIRECT):
                return Difference("a jump may go into what differs", each, listing[first])
    one, other = old[first:end], new[first:new_end]
    if any(each.opcode.startswith(_PLACES) for each in one):
        return Difference("its value is an address of code", one[0], other[0])
    found = compare_computations(read_computations(one), read_computations(other))
    if found is None and _may_publish_before(old, range(first, end)) and not _covers_as_much(one, other):
        return Difference("others may see memory before it is written", one[0], other[0])
    return found


_PASSES = {f"s_cbranch_{each}" for each in ("vccz", "vccnz", "execz", "execnz")} | {*TIMING}
_OPPOSITE = {"scc0": "scc1", "vccz": "vccnz", "execz": "execnz"}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}
_CONDITIONAL = "s_cbranch_"


class _DifferentError(Exception):
    def __init__(self, why: str, one: Instruction, other: Instruction) -> None:
        super().__init__(why)
        self.difference = Difference(why, one, other)


class _Trips:
    """A loop, and the code that is executed in its place."""

    def __init__(self, old: Sequence[Instruction], new: Sequence[Instruction], first: int) -> None:
        self._old, self._new, self._first = old, new, first
        self._places = {each.address: number for number, each in enumerate(new)}

    def compare(self) -> Difference | None:
        try:
            self._compare()
        except _DifferentError as error:
            return error.difference
        return None

    def _refuse(self, why: str, number: int | None = None) -> _DifferentError:
        return _DifferentError(why, self._old[self._first], self._new[self._first if number is None else number])

    def _compare(self) -> None:
        closing = self._find_closing()
        begin, end = (self._old[each].address or 0 for each in (self._first, closing + 1))
        self._compare_surroundings(begin, end)
        trip = self._old[self._first : closing]
        decision = _decide(self._old[closing])
        head, branch = self._follow(self._first, end)
        looped, target, then = self._read_branch(branch, closing)
        if looped and target == (head[0].address if head else None):  # no head: a trip is a round
            rest, number = self._follow(then, end)
            if rest or self._new[number].address != end:
                raise self._refuse("something follows the loop", number)
            self._check([*read_computations(trip), decision], [*read_computations(head), decision])
            return self._check_covered([trip] * 2, [head] * 2)
        if looped:
            raise self._refuse("a branch goes elsewhere", branch)
        round_, closes = self._follow(then, end)
        looped, again, leaves = self._read_branch(closes, closing)
        if not looped or again != self._new[then].address:
            raise self._refuse("a branch goes elsewhere", closes)
        for start in (self._places[target], leaves):
            rest, number = self._follow(start, end)
            if self._new[number].address != end:
                raise self._refuse("the rest doesn't lead to what follows the loop", number)
            heads = [*read_computations(head), decision]
            self._check(
                [*read_computations(trip), decision], [*heads, *read_computations(rest)], self._find_unread(closing + 1)
            )
            self._check([*read_computations(trip), decision, *heads], [*heads, *read_computations(round_), decision])
            self._check_covered([trip] * 4, [head, round_, round_, round_, rest])
            self._check_covered([trip], [head, rest])
        return None

    def _find_closing(self) -> int:
        """The conditional branch to where the listings differ, with nothing in between that goes elsewhere."""
        old, first = self._old, self._first
        for number in range(first, len(old) - 1):
            each = old[number]
            if number > first and self._is_target(number):
                break
            if each.opcode.startswith(_CONDITIONAL) and each.target == first:
                return number
            if each.opcode.startswith((*_LEAVES, *_PLACES)):
                break
        raise self._refuse("what differs isn't a loop of one stretch")

    def _is_target(self, number: int) -> bool:
        return any(each.target == number for each in self._old)

    def _compare_surroundings(self, begin: int, end: int) -> None:
        """All that was outside of the loop is there, and nothing goes into the loop's place but to its begin."""
        was = {each.address: each.encoding for each in self._old}
        for number, each in enumerate(self._new):
            place = each.address or 0
            if each.opcode.startswith(_INDIRECT):
                raise self._refuse("a jump may go into what differs", number)
            if place in was and not begin <= place < end and each.encoding != was[place]:
                raise self._refuse("it differs outside of the loop, too", number)
        lost = [
            each for each in self._old if not begin <= (each.address or 0) < end and each.address not in self._places
        ]
        if lost:
            raise self._refuse(f"{lost[0].text} isn't there any more")

    def _follow(self, number: int, end: int) -> tuple[list[Instruction], int]:
        """What is executed from an instruction on, up to a conditional branch or what follows the loop."""
        found: list[Instruction] = []
        seen: set[int] = set()
        while number not in seen and number < len(self._new):
            seen.add(number)
            each = self._new[number]
            if each.address == end or each.opcode.startswith(_CONDITIONAL):
                return found, number
            if each.opcode == "s_branch" and each.target is not None:
                number = each.target
                continue
            if each.opcode.startswith((*_LEAVES, *_PLACES)) or (
                number + 1 < len(self._new) and self._new[number + 1].address != (each.address or 0) + _length(each)
            ):
                break
            found.append(each)
            number += 1
        raise self._refuse("what is executed instead of the loop doesn't lead to what follows it")

    def _read_branch(self, number: int, closing: int) -> tuple[bool, int | None, int]:
        """Whether a branch is taken as the one that closes the loop was, or else; its target, and what follows it."""
        each, was = self._new[number], self._old[closing].opcode.removeprefix(_CONDITIONAL)
        condition = each.opcode.removeprefix(_CONDITIONAL)
        if each.target is None or condition not in {was, _OPPOSITE.get(was)}:
            raise self._refuse("a branch has another condition", number)
        return condition == was, self._new[each.target].address, number + 1

    def _check(
        self, old: Sequence[Computation], new: Sequence[Computation], without: frozenset[str] = frozenset()
    ) -> None:
        found = compare_computations(old, new, without)
        if found is not None:
            raise _DifferentError(found.why, found.one, found.other)

    def _check_covered(self, old: Sequence[Sequence[Instruction]], new: Sequence[Sequence[Instruction]]) -> None:
        if not _may_publish_before(self._old, range(self._first, self._first + len(old[0]))):
            return
        if not _covers_as_much(list(chain.from_iterable(old)), list(chain.from_iterable(new))):
            raise self._refuse("others may see memory before it is written")

    def _find_unread(self, number: int) -> frozenset[str]:
        """SCC, if on each way from an instruction on something sets it before anything reads it."""
        seen, work = {number}, [number]
        while work:
            number = work.pop()
            each = self._old[number]
            ways: list[int] = []
            if each.opcode in {"s_branch", *_PASSES}:
                ways = [] if each.opcode == "s_branch" else [number + 1]
                ways += [] if each.target is None else [each.target]
            elif each.opcode != "s_endpgm":
                uses = uses_of(each)
                if "scc" in uses.reads:
                    return frozenset()
                ways = [] if "scc" in uses.writes else [number + 1]
            work += [way for way in ways if way not in seen]
            seen.update(ways)
        return frozenset({"scc"})


def _decide(closing: Instruction) -> Computation:
    """The branch that closes a loop, as what reads a register."""
    condition = closing.opcode.removeprefix(_CONDITIONAL)
    read = frozenset({condition[:3] if condition.startswith(("scc", "vcc")) else "exec"})
    return Computation(closing, (closing.opcode,), Uses(reads=read, writes=frozenset()))


def _length(instruction: Instruction) -> int:
    return 4 * len(instruction.encoding)


def _find_same_ends(old: Sequence[Instruction], new: Sequence[Instruction]) -> tuple[int, int]:
    """How many instructions are the same before and after what differs."""
    shorter = min(len(old), len(new))
    first = next((place for place in range(shorter) if not _is_same(old[place], new[place])), shorter)
    rest = shorter - first
    last = next((place for place in range(rest) if not _is_same(old[-1 - place], new[-1 - place])), rest)
    return first, last


def _is_same(one: Instruction, other: Instruction) -> bool:
    return (one.encoding, one.address) == (other.encoding, other.address)


def _list_clause_faults(listing: Sequence[Instruction]) -> set[tuple[Instruction, Instruction]]:
    """Pairs of memory instructions, with nothing but such in between, that can't be executed again together.

    LLVM puts an s_nop between them (GCNHazardRecognizer, checkSoftClauseHazards), and before a store.
    """
    found: set[tuple[Instruction, Instruction]] = set()
    run: list[Instruction] = []
    for each in listing:
        kind = _kind_of_clause(each)
        run = [one for one in run if kind and _kind_of_clause(one) == kind]
        for one in run:
            (targets, sources), (more_targets, more_sources) = split_operands(one), split_operands(each)
            overwrites = (targets | more_targets) & (sources | more_sources)
            uses = uses_of(each)
            if overwrites or uses.memory == "write" or uses.lds:
                found.add((_without_place(one), _without_place(each)))
        run = [*run, each] if kind else []
    return found


def _kind_of_clause(instruction: Instruction) -> str:
    if not uses_of(instruction).memory:
        return ""
    return "scalar" if instruction.opcode.startswith("s_") else "vector"


def _without_place(instruction: Instruction) -> Instruction:
    return replace(instruction, line=0, address=None, target=None, source=None)


def _may_publish_before(listing: Sequence[Instruction], stretch: Iterable[int]) -> bool:
    """True if something that others see in global memory may be executed before the end of the stretch."""
    work = [number for number, each in enumerate(listing) if _PUBLISHES.match(each.opcode)]
    seen = set(work)
    while work:
        number = work.pop()
        each = listing[number]
        ways = [] if each.opcode.startswith(("s_branch", "s_endpgm")) else [number + 1]
        for following in (*ways, *([] if each.target is None else [each.target])):
            if following < len(listing) and following not in seen:
                seen.add(following)
                work.append(following)
    return any(number in seen for number in stretch)


def _covers_as_much(old: Sequence[Instruction], new: Sequence[Instruction]) -> bool:
    """True if vector memory keeps its order, and each barrier, store and end has as much of it complete before."""
    queues = [[identity_of(each) for each in listing if _kind_of_clause(each) == "vector"] for listing in (old, new)]
    before, now = _list_covered(old), _list_covered(new)
    return queues[0] == queues[1] and len(before) == len(now) and all(b <= n for b, n in zip(before, now, strict=True))


def _list_covered(stretch: Sequence[Instruction]) -> list[float]:
    """At each barrier, store and the end, the place in the stretch's queue up to which waits have covered."""
    issued, covered = 0, -math.inf
    found = []
    for each in stretch:
        if each.opcode == "s_waitcnt" and (left := _LEFT.search(each.text)) is not None:
            covered = max(covered, issued - 1 - int(left[1]))
        if each.opcode == "s_barrier" or _PUBLISHES.match(each.opcode):
            found.append(covered)
        issued += _kind_of_clause(each) == "vector"
    return [*found, covered]
