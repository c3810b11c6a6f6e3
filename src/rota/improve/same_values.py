"""Whether two stretches of instructions compute the same values.

This check shares no code with the search, nor with the proof: it reads listings.  Both stretches are executed with
names instead of numbers: what an instruction computes is known by its words and by what the registers hold that it
reads, or writes, since a part of them may stay.  The new stretch has to compute what the old one does, and to leave the
same in each register.  What meets in memory, at a barrier or in a place that isn't recognised keeps its order.

What an instruction reads and writes is taken from its text, and too much rather than too little.  Waits and s_nop
compute nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
