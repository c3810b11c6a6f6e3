"""Whether a kernel with another loop computes the same as before; shares no code with the search, nor with the proof.

Either the new kernel has one stretch in another order, with the same words before and after it.  Or the place of a loop
holds a branch to code that wasn't there, which executes trips of the loop in two parts: a head, then rounds that end
with the head of the next trip, then a rest.  With `trip` for the old loop's instructions and the branch that closes it,
two comparisons of values show that this is the same for any number of trips:

    head, branch, rest         is  trip
    head, branch, round, branch  is  trip, head, branch

By the second one a round and a head before it are a trip and a head after it, so all rounds become trips, one after the
other; by the first one what is left is the last trip.

Values are compared by reading listings.  Both stretches are executed with names instead of numbers: what an instruction
computes is known by its words and by what the registers hold that it reads, or writes, since a part of them may stay.
The new stretch has to compute what the old one does, and to leave the same in each register.  What meets in memory, at
a barrier or in a place that isn't recognised keeps its order.  What an instruction reads and writes is taken from its
text, and too much rather than too little.

Waits and s_nop compute nothing and may differ.  Whether results are there when they are used, and no other wave is
disturbed in LDS, is for the proof of the new kernel to say.  That proof says nothing of what others see in global
memory: where a store may come before, whatever a wait covered at a barrier, a store or a write-back has to be covered
there in the new order, too.  Nor does it know that memory instructions which follow one another are executed again
together where a page is missing (XNACK): none of them may write what one of them reads, itself included.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from rota.isa.disassembly import Instruction

_REGISTERS = re.compile(
    r"(?<![\w.])([vsa])(?:(\d+)|\[(\d+):(\d+)\])(?!\w)|\b(?:src_)?(vcc|exec|m0|scc|flat_scratch|xnack_mask|ttmp)"
)
TIMING = ("s_nop", "s_waitcnt")
_WITHOUT_SCC = re.compile(
    r"s_(?:mov_|movk|mul_i32|mul_hi|mulk|load|buffer_load|bitset|sext|pack|setprio|brev|ff1|flbit_i32_b)"
)
_STORES = re.compile(r"(?:global|buffer|flat|scratch)_(?:store|atomic)|ds_(?!read|bpermute|permute|swizzle)")
_SETS_SCC = re.compile(
    r"s_(?:cmp_|cmpk_|bitcmp[01]_|(?:addk?|sub|addc|subb|andn?2?|nand|orn?2?|nor|xn?or|not|lshl|lshr|ashr|bfe|min|max|abs"
    r"|lshl\d_add)_[biu])"
)
_READS_SCC = re.compile(r"s_(?:addc|subb|cselect|cmov|cbranch_scc)")
_ADDS_M0 = re.compile(r"ds_\w*addtid")
_COMPARES = re.compile(r"s_(?:cmp|bitcmp)")
_TWO_TARGETS = re.compile(r"v_(?:\w*_co_|div_scale|mad_[ui]64|\w*swap)")
_LDS, _MEMORY = re.compile(r"ds_"), re.compile(r"(?:global|buffer|scratch)_(?:load|store|atomic)")
_VECTOR, _SCALAR = re.compile(r"v_"), re.compile(r"s_")
_SCALAR_LOADS = ("s_load", "s_buffer_load")
_FIXED = re.compile(
    r"s_(?:setreg|getreg|set_gpr|sleep|sendmsg|trap|endpgm|branch|cbranch|call|setpc|swappc|getpc|rfe|icache|dcache|"
    r"inst|ttrace|sethalt|barrier_|wakeup|memtime|memrealtime|atc|atomic|store|scratch|buffer_store|buffer_atomic)|"
    r"v_(?:movrel|nop)|ds_(?:gws|append|consume|ordered|nop)|buffer_(?:wbl2|inv|wbinvl1)"
)
_NOTHING: frozenset[str] = frozenset()
_STATE = frozenset({"scc", "vcc", "exec", "m0"})


@dataclass(frozen=True, slots=True)
class Difference:
    """Why two kernels aren't known to be equal, and the places."""

    why: str
    one: Instruction
    other: Instruction

    def __str__(self) -> str:
        return f"{self.why}: `{self.one.text}` at {self.one.place}, `{self.other.text}` at {self.other.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """What an instruction may read and write, by name; `fixed` if nothing may change places with it."""

    reads: frozenset[str]
    writes: frozenset[str]
    lds: str = ""  # read or write
    memory: str = ""
    meets: bool = False
    fixed: bool = False

    @property
    def is_ordered(self) -> bool:
        return self.fixed or self.meets or bool(self.lds or self.memory)

    def keeps_order(self, other: Uses) -> bool:
        """True if two instructions can't change places, whatever the registers are."""
        if self.fixed or other.fixed:
            return True
        if (self.meets and (other.lds or other.memory or other.meets)) or (other.meets and (self.lds or self.memory)):
            return True
        return any(a and b and "write" in {a, b} for a, b in ((self.lds, other.lds), (self.memory, other.memory)))


@dataclass(frozen=True, slots=True)
class Computation:
    """An instruction of a stretch, what it does by its words, and its registers."""

    instruction: Instruction
    identity: tuple[object, ...]
    uses: Uses


def uses_of(instruction: Instruction) -> Uses:
    opcode = instruction.opcode
    if opcode == "s_barrier":
        return Uses(reads=_NOTHING, writes=_NOTHING, meets=True)
    kinds = (_VECTOR, _SCALAR, _LDS, _MEMORY)
    if _FIXED.match(opcode) or not any(each.match(opcode) for each in kinds):
        named = frozenset(name for each in (*instruction.operands, *instruction.modifiers) for name in _names(each))
        return Uses(reads=named | _STATE, writes=named | _STATE, fixed=True)
    reads = {name for each in (*instruction.operands, *instruction.modifiers) for name in _names(each)}
    writes = {name for each in instruction.operands[: _count_targets(instruction)] for name in _names(each)}
    implied_reads, implied_writes = _find_implied(opcode)
    to_lds = _goes_to_lds(instruction)
    effect = "write" if _STORES.match(opcode) else "read"
    exchanges = "permute" in opcode or "swizzle" in opcode
    return Uses(
        reads=frozenset(reads | implied_reads | ({"m0"} if to_lds else set())),
        writes=frozenset(writes | implied_writes),
        lds="write" if to_lds else effect if _LDS.match(opcode) and not exchanges else "",
        memory=effect if _MEMORY.match(opcode) else "read" if opcode.startswith(_SCALAR_LOADS) else "",
    )  # fmt: skip


def _find_implied(opcode: str) -> tuple[set[str], set[str]]:
    """What an instruction reads and writes that its operands don't name."""
    if _SCALAR.match(opcode):
        sets = set() if _WITHOUT_SCC.match(opcode) else {"scc"}
        reads = {"scc"} if _READS_SCC.match(opcode) or (sets and not _SETS_SCC.match(opcode)) else set()
        changes = {"exec"} if "saveexec" in opcode or "wrexec" in opcode else set()
        return reads | changes, sets | changes
    reads = {"exec", "m0"} if _ADDS_M0.match(opcode) else {"exec"}  # LDS has no bound in M0 from gfx9 on
    reads |= {"vcc"} if opcode.startswith("v_div_fmas") else set()
    return reads, {"exec"} if opcode.startswith("v_cmpx") else set()


def _count_targets(instruction: Instruction) -> int:
    opcode = instruction.opcode
    if _COMPARES.match(opcode) or _goes_to_lds(instruction) or (_STORES.match(opcode) and not _returns(instruction)):
        return 0
    return 2 if _TWO_TARGETS.match(opcode) else 1


def _goes_to_lds(instruction: Instruction) -> bool:
    return "lds" in instruction.modifiers or "_lds_" in instruction.opcode


def _returns(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    return "_rtn" in opcode or ("atomic" in opcode and bool({"glc", "sc0"} & set(instruction.modifiers)))


def _names(operand: str) -> Iterator[str]:
    for kind, single, first, last, named in _REGISTERS.findall(operand):
        if named:
            yield named
        elif single:
            yield kind + single
        else:
            yield from (f"{kind}{number}" for number in range(int(first), int(last) + 1))


def split_operands(instruction: Instruction) -> tuple[set[str], set[str]]:
    """The registers that its operands name: what it writes, and what it reads."""
    count = _count_targets(instruction)
    targets, sources = instruction.operands[:count], instruction.operands[count:]
    return {name for each in targets for name in _names(each)}, {name for each in sources for name in _names(each)}


def read_computations(stretch: Sequence[Instruction]) -> list[Computation]:
    """All but what only takes time."""
    return [
        Computation(each, identity_of(each), uses_of(each)) for each in stretch if not each.opcode.startswith(TIMING)
    ]


def compare_computations(
    old: Sequence[Computation], new: Sequence[Computation], without: frozenset[str] = _NOTHING
) -> Difference | None:
    """Why two stretches may compute something else, or leave it in a register other than those `without` readers."""
    known: dict[object, int] = {}
    made, left = _execute(old, known)
    made_new, left_new = _execute(new, known)
    if Counter(made) != Counter(made_new):
        places = [place for place, each in enumerate(made_new) if each not in made]
        place = places[0] if places else 0
        return Difference("it isn't computed, or of other values", old[min(place, len(old) - 1)].instruction,
                          new[place].instruction)  # fmt: skip
    was = {each: place for place, each in enumerate(made)}
    ordered = [was[each] for each, step in zip(made_new, new, strict=True) if step.uses.is_ordered]
    if any(each.uses.fixed for each in old):
        ordered = [was[each] for each in made_new]
    for place, one in enumerate(ordered):
        for other in ordered[place + 1 :]:
            if other < one and old[one].uses.keeps_order(old[other].uses):
                return Difference("two that have to keep their order changed places", old[other].instruction,
                                  old[one].instruction)  # fmt: skip
    lost = [name for name in sorted({*left, *left_new} - without) if left.get(name, name) != left_new.get(name, name)]
    if lost:
        return Difference(f"another value is left in {lost[0]}", old[-1].instruction, new[-1].instruction)
    return None


def _execute(steps: Sequence[Computation], known: dict[object, int]) -> tuple[list[tuple[int, int]], dict[str, object]]:
    """What each one computes, and what the registers hold at the end; equal numbers are equal values.

    The same instruction with the same values is told apart by how many there were before.
    """
    held: dict[str, object] = {}
    made: list[tuple[int, int]] = []
    count: Counter[int] = Counter()
    for each in steps:
        stays = each.uses.writes - ({"scc"} if _SETS_SCC.match(each.instruction.opcode) else _NOTHING)
        needs = tuple((name, held.get(name, name)) for name in sorted(each.uses.reads | stays))
        number = known.setdefault((each.identity, needs), len(known))
        made.append((number, count[number]))
        held |= {name: (*made[-1], name) for name in each.uses.writes}
        count[number] += 1
    return made, held


def identity_of(instruction: Instruction) -> tuple[object, ...]:
    """Its words; of a branch what it does and the address that it goes to."""
    if instruction.opcode.startswith(("s_branch", "s_cbranch")):
        return (instruction.opcode, _goes_to(instruction))
    return instruction.encoding


def _goes_to(branch: Instruction) -> int:
    words = branch.encoding[0] & 0xFFFF
    return (branch.address or 0) + 4 + 4 * (words - (1 << 16) * (words >> 15))


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
