"""Machine code, proved without its arguments: takes a kernel's facts and instructions, gives a `Verdict`."""

from __future__ import annotations

import enum
import math
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np

from rota.errors import Concern, Finding, IsaError, Severity, ToolchainError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.kernel_facts import LANES, MOST_WORK_ITEMS, KernelFacts
from rota.isa.binary.toolchain import find_objdump, read_code_object
from rota.isa.disassembly import Instruction, expand_vskip
from rota.isa.hazards.wait_states import check_spacing
from rota.isa.wave.operand import SCALAR
from rota.program.machine import Confidence
from rota.prove.decisions import Chronicle, Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.judge import FoundError, Judge
from rota.prove.memory_steps import MemorySteps, TouchedBytes
from rota.prove.operation import Operation, UnknownOperationError, bits, mark_flat, mark_spills, read_operation, rows_of
from rota.prove.paths import Explorer, InconclusiveError
from rota.prove.slicing import Agreement, derive_slice
from rota.prove.state import ALL64, Half, Squad
from rota.prove.symbol import M32, Value
from rota.prove.transfer import mark_indexed
from rota.prove.verdict import (
    UNDECIDED,
    Alarm,
    Budget,
    Confirmed,
    Meter,
    Remedy,
    Statistics,
    Verdict,
    broken,
    lacks,
    status_of,
    unconfirmed,
)
from rota.prove.widening import ProductState, Recorder
from rota.targets.architecture import SOURCES, Architecture
from rota.targets.registry import architecture_named

Triple = tuple[int, int, int]
_OF_BLOCKS = frozenset({"I105", "I109"})  # findings about which bytes of LDS work items use, and which waves there are
_SAY_BLOCK = "say how it is launched: --block 256, --block 16x16, or `reqd_work_group_size` in the source"
_START = {0: M32 & ~0x3FF}
_JUMPS = ("s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call")
_ENCODINGS = ("_e32", "_e64")
_INTEGER = re.compile(r"\d+|0x[0-9a-f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenBlock:
    """Work items in x, y and z, what a verdict tells of them, and, if nobody said them, what was assumed."""

    sizes: Triple
    told: tuple[str, ...] = ()
    assumed: str = ""

    def rested(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """What an assumed block decides isn't decided: another block may not have it."""
        return tuple(
            replace(
                each,
                severity=Severity.WARNING,
                evidence=(*each.evidence, (UNDECIDED, self.assumed)),
                fixes=(*each.fixes, _SAY_BLOCK),
            )
            if self.assumed and each.code in _OF_BLOCKS and lacks(each) is None
            else each
            for each in findings
        )


def choose_block(
    facts: KernelFacts, instructions: Sequence[Instruction], block: int | Triple | None = None
) -> ChosenBlock:
    """As asked for, as the kernel demands, or else the largest that it takes."""
    required, most = facts.required_workgroup, facts.max_workgroup
    if isinstance(block, tuple):
        return ChosenBlock(sizes=block, told=(f"a workgroup has {_told(block)} work items, as asked for",))
    if required is not None and len(required) == 3 and all(required) and block in {None, math.prod(required)}:
        return ChosenBlock(sizes=(required[0], required[1], required[2]))
    shaped = facts.workitem_ids > 0 and looks_further(instructions)
    chosen = (most if block is None else block, 1, 1)
    if block is None:  # the most of any kernel is what an author doesn't have to say
        told = f"a workgroup has {most} work items in one dimension, the most that the kernel takes"
        unsaid = most == MOST_WORK_ITEMS or shaped
        assumed = f"the block, which was taken as {_told(chosen)}" if unsaid else ""
    elif shaped:
        told = f"a workgroup has {block} work items, as asked for, in one dimension"
        assumed = f"the shape of a block: {block} work items were taken as {_told(chosen)}"
    else:
        told, assumed = f"a workgroup has {_told(chosen)} work items, as asked for", ""
    return ChosenBlock(sizes=chosen, told=(told,), assumed=assumed)


def _told(block: Triple) -> str:
    return " x ".join(map(str, block))


class _Source:
    """An operand: a number, or bits of a register that y and z may decide."""

    def __init__(self, text: str, tainted: dict[int, int]) -> None:
        # A float such as 1.0 is a constant too, but any of its bits may be one.
        self.number = int(text, 0) & M32 if _INTEGER.fullmatch(text) else None
        self.taint = 0
        for row in rows_of(bits(text)):
            self.taint |= tainted.get(row, 0)

    @property
    def may(self) -> int:
        """The bits that may be one."""
        return M32 if self.number is None else self.number


def looks_further(instructions: Sequence[Instruction]) -> bool:
    """May it look at more than a work item's x?"""
    tainted, straight = dict(_START), True
    for each in instructions:
        straight = straight and not each.opcode.startswith(_JUMPS) and "exec" not in each.text
        sources = [_Source(text, tainted) for text in each.operands]
        name = each.opcode
        for encoding in _ENCODINGS:
            name = name.removesuffix(encoding)
        vector = name.startswith("v_")
        follow = _FOLLOWED.get(name, _table(each) if name == "v_bitop3_b32" else None)
        read = sources[1:] if vector else sources
        taint = 0
        if any(source.taint for source in read):
            if follow is None or any(source.number is None for source in read[:1] if "rev" in name):
                return True
            taint = follow(*read) & M32
        for row in rows_of(bits(each.operands[0])) if vector and each.operands else ():
            tainted[row] = taint if straight else tainted.get(row, 0) | taint
    return False


def _masked(a: _Source, b: _Source) -> int:
    return a.taint & b.may | b.taint & a.may


def _upwards(*sources: _Source) -> int:
    """Of a sum: a carry goes to all bits above."""
    taint = 0
    for each in sources:
        taint |= each.taint
    return M32 & -(taint & -taint)


def _table(instruction: Instruction) -> Callable[..., int]:
    """v_bitop3_b32: a bit of an operand counts where the others leave it a say."""
    table = int(instruction.modifiers[0].partition(":")[2], 0)

    def follow(*sources: _Source) -> int:
        found = 0
        for place, source in enumerate(sources):
            for row in range(8):
                weight = 4 >> place
                if row & weight or (table >> row ^ table >> (row | weight)) & 1 == 0:
                    continue
                where = source.taint
                for other, each in enumerate(sources):
                    if other != place and each.number is not None:
                        where &= each.number if row & 4 >> other else ~each.number
                found |= where
        return found

    return follow


_FOLLOWED: dict[str, Callable[..., int]] = {
    "v_mov_b32": lambda a: a.taint,
    "v_and_b32": _masked,
    "v_and_or_b32": lambda a, b, c: _masked(a, b) | c.taint,
    "v_or_b32": lambda a, b: a.taint | b.taint,
    "v_or3_b32": lambda a, b, c: a.taint | b.taint | c.taint,
    "v_xor_b32": lambda a, b: a.taint | b.taint,
    "v_add_u32": _upwards,
    "v_lshlrev_b32": lambda by, a: a.taint << (by.number & 31),
    "v_lshrrev_b32": lambda by, a: a.taint >> (by.number & 31),
    "v_lshl_or_b32": lambda a, by, c: (a.taint << (by.number & 31) if by.number is not None else M32) | c.taint,
    "v_bfe_u32": lambda a, at, size: (
        M32 if at.number is None or size.number is None else a.taint >> at.number & (1 << size.number) - 1
    ),
}
"""What y and z may decide of a result; an instruction that isn't here is one that looks at them."""


_NOT_JUDGED = "accesses of global memory, and what LDS holds before it is written, are not judged"
_SAME_WORDS = "words that several waves load to the same bytes of LDS, and their addresses in memory, stay as they are"
_IN_BOUNDS = "addresses of LDS that come from data lie inside of what the kernel has, as asked for"
_READ_PER_SECOND = 6_000  # instructions that are decoded and sliced in a second, at least
_STEPS_TO_READ, _ALWAYS_READ = 7, 1_000  # as long as that takes for one of them, and how many are read anyhow
_LLVM = SOURCES[Confidence.COMPILER_MODEL]
_REGISTER = re.compile(r"[vas]\d+")


class ReadsAtBarrier(enum.Enum):
    """Is an LDS read over when its wave passes a barrier without having waited for it?"""

    STRICT = "an LDS read that no wait has covered is under way behind a barrier"
    LENIENT = "an LDS read is over before its wave passes a barrier, towards writes of registers"


class VmcntOrder(enum.Enum):
    """Do vector memory ops return in order?"""

    IN_ORDER = "vector memory ops return in the order of their issue"
    ANY_ORDER = "vector memory ops return in any order: only vmcnt(0) is a promise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """Rules of the machine that can be read in two ways, and what is taken for granted because it was asked for."""

    reads: ReadsAtBarrier = ReadsAtBarrier.STRICT
    order: VmcntOrder = VmcntOrder.IN_ORDER
    lds_in_bounds: bool = False


def prove(
    facts: KernelFacts,
    instructions: Sequence[Instruction],
    *,
    block: int | Triple | None = None,
    dynamic_lds: int | None = None,
    policies: Policies | None = None,
    budget: Budget | None = None,
    recorder: Recorder | None = None,
    stops: bool = False,
    witness: bool = False,
    image: bytes = b"",
) -> Verdict:
    """Follows every path of a kernel, for all arguments and orders of its waves.

    A recorder sees what it comes to.  With `stops` the first error is enough.  With `witness`, alarms on paths that no
    launch can take are dropped, and the others are executed; `image` is what is loaded with the code.
    """
    started = time.process_time()
    policies = policies or Policies()
    proof = _Proof(facts, instructions, block, dynamic_lds, policies, budget or Budget(), recorder, stops=stops)
    complete, alarms, ending = proof.run()
    confirmed = proof.confirmed(alarms, image, complete=complete) if witness and alarms else unconfirmed(alarms)
    findings = (*broken(proof.broken), *proof.block.rested(confirmed.findings), *ending)
    return Verdict(
        kernel=facts.name,
        arch=facts.arch,
        status=status_of(findings, complete=complete),
        findings=findings,
        assumptions=tuple(proof.assumptions),
        policies=(policies.reads.value, policies.order.value),
        statistics=proof.statistics(time.process_time() - started),
        waves=proof.waves,
        remedies=proof.remedies,
        dropped=confirmed.dropped,
    )


class _Proof:
    def __init__(  # noqa: PLR0917
        self,
        facts: KernelFacts,
        instructions: Sequence[Instruction],
        block: int | Triple | None,
        dynamic_lds: int | None,
        policies: Policies,
        budget: Budget,
        recorder: Recorder | None,
        *,
        stops: bool,
    ) -> None:
        self._recorder, self._stops = recorder, stops
        self.remedies: tuple[Remedy, ...] = ()
        self.broken: list[Alarm] = []  # rules of wait states, which no execution can show
        self._facts, self._instructions, self._policies = facts, instructions, policies
        self._meter = Meter(budget)
        self.block = choose_block(facts, instructions, block)
        self._block = self.block.sizes
        self.assumptions = [_NOT_JUDGED, *self.block.told]
        self._dynamic = dynamic_lds
        self._explorer: Explorer | None = None
        self._memory: MemorySteps | None = None
        self._size = 0

    def statistics(self, seconds: float) -> Statistics:
        """What the proof took."""
        sites = {} if self._memory is None else self._memory.sites
        explorer = self._explorer
        return Statistics(
            steps=0 if explorer is None else explorer.steps,
            states=0 if explorer is None else explorer.states,
            paths=0 if explorer is None else explorer.paths,
            sites=len(sites),
            concrete_sites=sum(sites.values()),
            seconds=seconds,
            effort=self._meter.spent,
        )

    @property
    def waves(self) -> int:
        """Of a workgroup."""
        return -(-self._block[0] * self._block[1] * self._block[2] // LANES)

    def confirmed(self, alarms: list[Alarm], image: bytes, *, complete: bool) -> Confirmed:
        """Alarms that may happen, executed where that can be."""
        from rota.prove.confirmation import Replay, confirm
        from rota.prove.witness import tables_of

        explorer = self._explorer
        replay = Replay(
            self._facts,
            self._instructions,
            block=self._block,
            dynamic_lds=max(self._size - self._facts.descriptor.lds_bytes, 0),
            image=image,
            tables=frozenset() if explorer is None else tables_of(explorer.one.symbols.every()),
        )
        chronicle = Chronicle() if explorer is None else explorer.chronicle
        return confirm(alarms, chronicle, replay, self._facts, complete=complete, meter=self._meter)

    def run(self) -> tuple[bool, list[Alarm], tuple[Finding, ...]]:
        """Whether every path was followed to its end, what may be wrong, and what ended the proof early."""
        architecture = architecture_named(self._facts.arch)
        if architecture is None:
            return False, [], (_finding("I401", f"the proof doesn't know {self._facts.arch}"),)
        if (too_many := self._too_many()) is not None:
            return False, [], (too_many,)
        self.broken = _grouped(check_spacing(self._instructions, architecture))
        if self.broken and self._stops:
            return False, [], ()
        try:
            instructions = expand_vskip(self._instructions)
            operations = self._operations(instructions, architecture)
        except IsaError as error:  # what the proof can't follow is nothing that was shown to be wrong
            return False, [], tuple(map(_not_followed, error.findings))
        judge, ending = self._follow(operations, architecture)
        self.remedies = judge.remedies
        if any(each.first.code == "I304" for each in judge.alarms()):
            self.assumptions.append(_SAME_WORDS)
        return not ending, judge.alarms(), ending

    def _operations(self, instructions: Sequence[Instruction], architecture: Architecture) -> list[Operation]:
        operations: list[Operation] = []
        refused: dict[str, Finding] = {}
        for number, each in enumerate(instructions):
            try:
                operations.append(read_operation(each, number, architecture))
            except UnknownOperationError as error:
                part = f"; its {error.what} is not known" if error.what else ""
                refused.setdefault(each.opcode, _finding("I401", f"the proof doesn't know {each.opcode}{part}", each))
        if not refused:
            try:
                return mark_flat(mark_spills(mark_indexed(operations)))
            except UnknownOperationError as error:
                each = error.instruction
                refused[each.opcode] = _finding("I401", f"the proof doesn't follow {each.opcode} in index mode", each)
        raise IsaError(*refused.values())

    def _follow(self, operations: list[Operation], architecture: Architecture) -> tuple[Judge, tuple[Finding, ...]]:
        items = self._block[0] * self._block[1] * self._block[2]
        waves, full = -(-items // LANES), items % LANES == 0
        sliced = derive_slice(operations, full=full)
        one = Evaluator()
        start, kernarg_row = self._start(one, waves)
        judge = Judge(
            operations,
            Agreement(operations, start.copy(), full=full),
            strict_reads=self._policies.reads is ReadsAtBarrier.STRICT,
            stops=self._stops,
        )
        size = self._size = self._lds_size(operations, architecture)
        touched = TouchedBytes(size, one.masks)
        aperture = any("src_shared_base" in each.text for each in self._instructions)
        memory = self._memory = MemorySteps(
            one,
            touched,
            judge,
            holds=(architecture.no_wait("vmcnt"), architecture.no_wait("lgkmcnt")),
            constants=self._constants(),
            evaluated=sliced.evaluated,
            in_order=self._policies.order is VmcntOrder.IN_ORDER,
            flat_lds=aperture,
            m0_is_short=architecture.lds_bytes.value <= 1 << 16,
            lds_in_bounds=self._policies.lds_in_bounds,
            recorder=self._recorder,
        )
        explorer = self._explorer = Explorer(
            operations,
            sliced,
            one,
            memory,
            judge,
            kernarg_row=kernarg_row,
            waves=waves,
            meter=self._meter,
            recorder=self._recorder,
        )
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, 20_000))
        ending: tuple[Finding, ...] = ()
        try:
            with np.errstate(all="ignore"):
                explorer.explore(ProductState(squads=[start], known=Decisions()))
        except InconclusiveError as error:
            instruction = None if error.operation is None else error.operation.instruction
            ending = (self._ended_early(str(error), instruction, error.ended_by),)
        except FoundError:
            ending = (_finding("I402", "the first error was enough"),)
        except RecursionError:
            ending = (self._ended_early("values are nested too deeply", None, "depth"),)
        finally:
            sys.setrecursionlimit(limit)
        if memory.assumed_in_bounds:
            self.assumptions.append(_IN_BOUNDS)
        if memory.loads_twice:
            self.assumptions.append("memory that scalar loads read is not written during the launch")
        return judge, ending

    def _too_many(self) -> Finding | None:
        """To decode and slice a kernel takes its time as well, and can't be ended on the way."""
        count, budget = len(self._instructions), self._meter.budget
        limits = {"steps": _ALWAYS_READ + budget.steps // _STEPS_TO_READ}
        if budget.seconds is not None:
            limits["seconds"] = int(_READ_PER_SECOND * budget.seconds)
        for name, most in limits.items():
            if count > most:
                message = f"{count} instructions are too many for the budget of {name}"
                return replace(_finding("I402", message), evidence=(("ended by", name),))
        return None

    def _ended_early(self, message: str, instruction: Instruction | None, ended_by: str) -> Finding:
        explorer = self._explorer
        code = "I402" if ended_by else "I401"
        evidence: tuple[tuple[str, str | int], ...] = (("ended by", ended_by),) if ended_by else ()
        if explorer is not None:
            evidence += (("steps", explorer.steps), ("states", explorer.states), ("paths begun", explorer.paths))
        concerns: tuple[Concern, ...] = () if instruction is None else (instruction.concern(),)
        return Finding(code=code, message=message, concerns=concerns, evidence=evidence)

    def _lds_size(self, operations: Sequence[Operation], architecture: Architecture) -> int:
        fixed = self._facts.lds_bytes
        hidden = any(each.kind == "hidden_dynamic_lds_size" for each in self._facts.arguments)
        uses = any(each.address for each in operations)
        if self._dynamic is not None:
            self.assumptions.append(f"the launch adds {self._dynamic} bytes of dynamic LDS, as asked for")
            return fixed + self._dynamic
        if uses and (hidden or not fixed):
            most = architecture.lds_bytes.value
            self.assumptions.append(f"the launch gives it as much dynamic LDS as it uses, up to {most} bytes in all")
            return most
        return fixed

    def _constants(self) -> dict[int, int]:
        """Words of the arguments that follow from the block's size."""
        block = self._block
        known: dict[int, int] = {}
        places = {each.kind: each for each in self._facts.arguments}
        x, y, z = (places.get(f"hidden_group_size_{axis}") for axis in "xyz")
        if x is not None and y is not None and x.offset % 4 == 0 and y.offset == x.offset + 2:
            known[x.offset] = block[0] | block[1] << 16
        if z is not None and z.offset % 4 == 0:
            known[z.offset] = block[2]  # with the remainder of x above it, which full workgroups leave at 0
        known[-4] = block[0] | block[1] << 16
        known[-8] = block[2]
        return known

    def _start(self, one: Evaluator, waves: int) -> tuple[Squad, int]:
        """The registers with which waves start."""
        facts, block = self._facts, self._block
        registers: dict[int, Value | Half] = {}
        at, kernarg_row = SCALAR, -1
        names = {"kernarg_segment_ptr": "kernarg", "dispatch_ptr": "packet"}
        for name, size in facts.user_sgprs:
            for word in range(size):
                if name == "kernarg_preload":
                    place = 4 * (facts.descriptor.preload_offset + word)
                    constant = self._constants().get(place)
                    registers[at + word] = one.symbols.argument("argument", place) if constant is None else constant
                else:
                    told = names.get(name, name) if word == 0 else f"{name} high"
                    registers[at + word] = one.symbols.argument(told, word)
            if name == "kernarg_segment_ptr":
                kernarg_row = at
            at += size
        for axis, wanted in zip("xyz", facts.workgroup_ids, strict=True):
            if wanted:
                registers[at] = one.symbols.argument("workgroup", axis)
                at += 1
        item = np.arange(waves * LANES, dtype=np.int64).reshape(waves, LANES)
        x, y, z = item % block[0], item // block[0] % block[1], item // (block[0] * block[1])
        ids = (x, y, z)[: facts.workitem_ids + 1]
        packed = np.zeros_like(item)
        for place, part in enumerate(ids):
            packed = packed | part << 10 * place
        registers[0] = packed
        items = block[0] * block[1] * block[2]
        full = tuple(
            ALL64 if items - LANES * wave >= LANES else (1 << items - LANES * wave) - 1 for wave in range(waves)
        )
        squad = Squad(waves=tuple(range(waves)), at=0, registers=registers, exec=one.masks.leaf(full))
        return squad, max(kernarg_row, 0)


def _grouped(findings: Sequence[Finding]) -> list[Alarm]:
    """One for each cause, those of AMD's manual first."""
    groups: dict[tuple[object, ...], Alarm] = {}
    for each in sorted(findings, key=lambda each: dict(each.evidence)["source"] == _LLVM):
        words = each.message.split()
        cause = (dict(each.evidence)["rule"], *(word for word in words if not _REGISTER.fullmatch(word)))
        groups.setdefault(cause, Alarm()).add(each, None)
    return [*groups.values()]


def _not_followed(finding: Finding) -> Finding:
    return replace(finding, code="I401", message=finding.message.replace("the interpreter", "the proof"))


def _finding(code: str, message: str, instruction: Instruction | None = None) -> Finding:
    concerns = () if instruction is None else (instruction.concern(),)
    return Finding(code=code, message=message, concerns=concerns, severity=Severity.ERROR)


def read_object_to_prove(source: str | PathLike[str] | bytes, *, arch: str | None = None) -> CodeObject:
    """A code object from a file or bytes, disassembled."""
    if isinstance(source, bytes):
        return read_code_object(source, find_objdump(), arch=arch)
    try:
        contents = Path(source).read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        raise ToolchainError(Finding(code="T103", message=f"{source} can't be read: {why}")) from error
    return read_code_object(contents, find_objdump(), arch=arch)


def assert_proved(
    source: str | PathLike[str] | bytes | CodeObject,
    name: str | None = None,
    *,
    block: int | Triple | None = None,
    dynamic_lds: int | None = None,
    policies: Policies | None = None,
    budget: Budget | None = None,
) -> tuple[Verdict, ...]:
    """Every kernel, or the one of that name, is proved; raises what was found if one isn't."""
    verdicts = prove_object(source, name, block=block, dynamic_lds=dynamic_lds, policies=policies, budget=budget)
    wrong = [each for each in verdicts if not each.proved]
    if wrong:
        raise IsaError(*(finding for each in wrong for finding in each.findings))
    return verdicts


def prove_object(
    source: str | PathLike[str] | bytes | CodeObject,
    name: str | None = None,
    *,
    block: int | Triple | None = None,
    dynamic_lds: int | None = None,
    policies: Policies | None = None,
    budget: Budget | None = None,
    witness: bool = True,
) -> tuple[Verdict, ...]:
    """The kernel of that name, or all of them; what may be wrong is executed unless no `witness` is wanted."""
    code = source if isinstance(source, CodeObject) else read_object_to_prove(source)
    kernels = code.kernels if name is None else (code.kernel(name),)
    return tuple(
        prove(
            facts,
            instructions,
            block=block,
            dynamic_lds=dynamic_lds,
            policies=policies,
            budget=budget,
            witness=witness,
            image=code.image() if any(each.opcode == "s_getpc_b64" for each in instructions) else b"",
        )
        for facts in kernels
        for instructions in (code.instructions(facts.name),)
    )
