"""Whether a kernel with another order of instructions computes the same values.

This check shares no code with the search, nor with the proof.  It reads the two listings.  Outside one straight stretch
they must be the same, word for word and place for place.  Inside, the new one must have the instructions of the old
one, and two that depend on each other must be in the old order: then each has the operands that it had, and what the
stretch leaves is the same.  What an instruction reads and writes is taken from its text, and too much rather than too
little: its first operand counts as read, too, scalar arithmetic as both using and setting SCC, and what isn't
recognised keeps its place among all others.

Waits and s_nop compute nothing and may differ.  Whether results are there when they are used, and no other wave is
disturbed in LDS, is for the proof of the new kernel to say.  That proof says nothing of what others see in global
memory: where a store may come before, whatever a wait covered at a barrier, a store or a write-back has to be covered
there in the new order, too.  Nor does it know that memory instructions which follow one another are executed again
together where a page is missing (XNACK): none of them may write what one of them reads, itself included.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rota.isa.disassembly import Instruction

_REGISTERS = re.compile(
    r"(?<![\w.])([vsa])(?:(\d+)|\[(\d+):(\d+)\])(?!\w)|\b(vcc|exec|m0|scc|flat_scratch|xnack_mask|ttmp)"
)
_TIMING = ("s_nop", "s_waitcnt")
_WITHOUT_SCC = re.compile(
    r"s_(?:mov_|movk|mul_i32|mul_hi|mulk|load|buffer_load|bitset|sext|pack|setprio|brev|ff1|flbit_i32_b)"
)
_STORES = re.compile(r"(?:global|buffer|flat|scratch)_(?:store|atomic)|ds_(?!read|bpermute|permute|swizzle)")
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
_INDIRECT = ("s_setpc", "s_swappc", "s_rfe", "s_cbranch_g", "s_cbranch_i", "s_cbranch_join")
_PUBLISHES = re.compile(
    r"(?:global|buffer|flat)_(?:store|atomic)|buffer_(?:wbl2|inv|wbinvl1)|s_(?:store|atomic|dcache)"
)
_LEFT = re.compile(r"\bvmcnt\((\d+)\)")
_NOTHING: frozenset[str] = frozenset()


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

    def depends(self, other: Uses) -> bool:
        if self.fixed or other.fixed:
            return True
        if self.writes & (other.reads | other.writes) or self.reads & other.writes:
            return True
        if (self.meets and (other.lds or other.memory or other.meets)) or (other.meets and (self.lds or self.memory)):
            return True
        return any(a and b and "write" in {a, b} for a, b in ((self.lds, other.lds), (self.memory, other.memory)))


def uses_of(instruction: Instruction) -> Uses:
    opcode = instruction.opcode
    if opcode == "s_barrier":
        return Uses(reads=_NOTHING, writes=_NOTHING, meets=True)
    kinds = (_VECTOR, _SCALAR, _LDS, _MEMORY)
    if _FIXED.match(opcode) or not any(each.match(opcode) for each in kinds):
        return Uses(reads=_NOTHING, writes=_NOTHING, fixed=True)
    reads = {name for each in (*instruction.operands, *instruction.modifiers) for name in _names(each)}
    writes = {name for each in instruction.operands[: _count_targets(instruction)] for name in _names(each)}
    implied_reads, implied_writes = _find_implied(opcode)
    to_lds = _goes_to_lds(instruction)
    effect = "write" if _STORES.match(opcode) else "read"
    exchanges = "permute" in opcode or "swizzle" in opcode
    return Uses(
        reads=frozenset(reads | implied_reads), writes=frozenset(writes | implied_writes),
        lds="write" if to_lds else effect if _LDS.match(opcode) and not exchanges else "",
        memory=effect if _MEMORY.match(opcode) else "read" if opcode.startswith(_SCALAR_LOADS) else "",
    )  # fmt: skip


def _find_implied(opcode: str) -> tuple[set[str], set[str]]:
    """What an instruction reads and writes that its operands don't name."""
    if _SCALAR.match(opcode):
        sets = set() if _WITHOUT_SCC.match(opcode) else {"scc"}
        sets |= {"exec"} if "saveexec" in opcode or "wrexec" in opcode else set()
        return sets, sets
    reads = {"exec"} if _VECTOR.match(opcode) else {"exec", "m0"}
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


def find_difference(old: Sequence[Instruction], new: Sequence[Instruction]) -> Difference | None:
    """Why the new kernel may compute something else; None if it computes the same."""
    first, last = _find_same_ends(old, new)
    if first == len(old) == len(new):
        return None
    end, new_end = len(old) - last, len(new) - last
    for listing, stop in ((old, end), (new, new_end)):
        for each in listing:
            if each.target is not None and first < each.target < stop:
                return Difference("a branch goes into what differs", each, listing[each.target])
            if each.opcode.startswith(_INDIRECT):
                return Difference("a jump may go into what differs", each, listing[first])
    one, other = old[first:end], new[first:new_end]
    faults = _list_clause_faults(new) - _list_clause_faults(old)
    if faults:
        return Difference("executed again after a page fault, one reads what another one wrote", *min(faults, key=str))
    found = _compare_stretches(one, other)
    if found is None and _may_publish_before(old, range(first, end)) and not _covers_as_much(one, other):
        return Difference("others may see memory before it is written", one[0], other[0])
    return found


def _find_same_ends(old: Sequence[Instruction], new: Sequence[Instruction]) -> tuple[int, int]:
    """How many instructions are the same before and after what differs."""
    shorter = min(len(old), len(new))
    first = next((place for place in range(shorter) if not _is_same(old[place], new[place])), shorter)
    rest = shorter - first
    last = next((place for place in range(rest) if not _is_same(old[-1 - place], new[-1 - place])), rest)
    return first, last


def _is_same(one: Instruction, other: Instruction) -> bool:
    return (one.encoding, one.address) == (other.encoding, other.address)


def _compare_stretches(old: Sequence[Instruction], new: Sequence[Instruction]) -> Difference | None:
    kept = [each for each in old if not each.opcode.startswith(_TIMING)]
    moved = [each for each in new if not each.opcode.startswith(_TIMING)]
    if len(kept) != len(moved) or Counter(map(_identity, kept)) != Counter(map(_identity, moved)):
        return Difference("not the same instructions", (kept or [*old])[0], (moved or [*new])[0])
    places: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, each in enumerate(kept):
        places[_identity(each)].append(place)
    was = [places[_identity(each)].pop(0) for each in moved]  # the same ones keep their order
    uses = [uses_of(each) for each in kept]
    for place, one in enumerate(was):
        for other in was[place + 1 :]:
            if other < one and uses[one].depends(uses[other]):
                return Difference("two that depend on each other changed places", kept[other], kept[one])
    return None


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
            (targets, sources), (more_targets, more_sources) = _split_operands(one), _split_operands(each)
            overwrites = (targets | more_targets) & (sources | more_sources)
            if overwrites or _STORES.match(each.opcode) or _goes_to_lds(each):
                found.add((_without_place(one), _without_place(each)))
        run = [*run, each] if kind else []
    return found


def _split_operands(instruction: Instruction) -> tuple[set[str], set[str]]:
    """The registers that its operands name: what it writes, and what it reads."""
    count = _count_targets(instruction)
    targets, sources = instruction.operands[:count], instruction.operands[count:]
    return {name for each in targets for name in _names(each)}, {name for each in sources for name in _names(each)}


def _kind_of_clause(instruction: Instruction) -> str:
    if instruction.opcode.startswith(_SCALAR_LOADS):
        return "scalar"
    return "vector" if _MEMORY.match(instruction.opcode) else ""


def _without_place(instruction: Instruction) -> Instruction:
    return replace(instruction, line=0, address=None, target=None, source=None)


def _may_publish_before(listing: Sequence[Instruction], stretch: range) -> bool:
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
    queues = [[_identity(each) for each in listing if _MEMORY.match(each.opcode)] for listing in (old, new)]
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
        issued += bool(_MEMORY.match(each.opcode))
    return [*found, covered]


def _identity(instruction: Instruction) -> tuple[object, ...]:
    """Its words; of a branch what it does and the address that it goes to."""
    if instruction.opcode.startswith(("s_branch", "s_cbranch")):
        return (instruction.opcode, _goes_to(instruction))
    return instruction.encoding


def _goes_to(branch: Instruction) -> int:
    words = branch.encoding[0] & 0xFFFF
    return (branch.address or 0) + 4 + 4 * (words - (1 << 16) * (words >> 15))
