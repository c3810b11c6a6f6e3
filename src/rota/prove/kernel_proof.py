"""Proves compiled kernels free of races, for all arguments and all orders of waves."""

from __future__ import annotations

import enum
import gc
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike

import numpy as np

from rota.errors import Concern, Finding, IsaError, Severity
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.kernel_facts import MOST_WORK_ITEMS, KernelFacts
from rota.isa.binary.toolchain import read_object
from rota.isa.disassembly import Instruction, expand_pairs, expand_vskip
from rota.isa.hazards.dependency_waits import check_dependency_waits, may_need_waits
from rota.isa.hazards.wait_states import check_spacing
from rota.isa.opcodes import IsaFlow
from rota.isa.registers import NAMED, SCALAR, rows_in
from rota.prove.agreement import Agreement
from rota.prove.causes import LEVEL, UNDECIDED, Alarm, FoundPair, RankedFinding, rank_causes
from rota.prove.decisions import Decisions, Spelling, StateGraph
from rota.prove.evaluation import Evaluator
from rota.prove.judge import FirstError, Judge
from rota.prove.memory_steps import MemorySteps
from rota.prove.operation import (
    WAVE_ROW,
    WAVE_SHIFT,
    Operation,
    OperationKind,
    UnknownOperationError,
    list_queues,
    mark_counted,
    mark_flat,
    mark_mbarriers,
    mark_spills,
    read_operation,
)
from rota.prove.paths import Explorer, InconclusiveError
from rota.prove.slicing import derive_slice
from rota.prove.state import Half, WaveSet
from rota.prove.symbol import M32, Value
from rota.prove.touched_bytes import TouchedBytes
from rota.prove.transfer import mark_indexed
from rota.prove.verdict import (
    BARRIER,
    SPLIT_BARRIER,
    Budget,
    Confirmed,
    Meter,
    Remedy,
    Statistics,
    Verdict,
    missing_fact,
    report_broken_rules,
    report_unconfirmed,
    status_of,
)
from rota.prove.widening import ProductState, Recorder
from rota.targets.architecture import Architecture, Traffic
from rota.targets.registry import architecture_named

Triple = tuple[int, int, int]
_OF_BLOCKS = frozenset({"I105", "I109"})  # findings that depend on the block: on its waves, and what they access
_SAY_BLOCK = "say how it is launched: --block 256, --block 16x16, or `reqd_work_group_size` in the source"
_ID_TAINT = {0: M32 & ~0x3FF}
_STRAIGHT = frozenset(
    {IsaFlow.NEXT, IsaFlow.WAIT, IsaFlow.BARRIER, IsaFlow.SIGNAL, IsaFlow.JOIN, IsaFlow.TRAP, IsaFlow.END}
)
_BY_FIRST = frozenset({"v_lshlrev_b32", "v_lshrrev_b32"})  # shift by their first source
_INTEGER = re.compile(r"\d+|0x[0-9a-f]+")
_OF_WORKGROUP = ("ttmp6", "ttmp7", "ttmp9")  # its place in its cluster; its y and z; its x, or its cluster's
_DEEPEST = 20_000  # calls, for values that are nested
_COLLECT_AFTER = 50_000  # new objects, before the collector looks at them


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenBlock:
    """Work items in x, y and z; `assumed` says what of them is a guess."""

    sizes: Triple
    assumptions: tuple[str, ...] = ()
    assumed: str = ""

    def qualify(self, causes: tuple[RankedFinding, ...]) -> tuple[RankedFinding, ...]:
        """Turn findings that depend on an assumed block into warnings: another block may not have them."""
        found = []
        for cause in causes:
            each = cause.finding
            if self.assumed and each.code in _OF_BLOCKS and missing_fact(each) is None:
                evidence = (*(item for item in each.evidence if item[0] != LEVEL), (UNDECIDED, self.assumed))
                fixes = (*each.fixes, _SAY_BLOCK)
                each = replace(each, severity=Severity.WARNING, evidence=evidence, fixes=fixes)
            found.append(replace(cause, finding=each))
        return tuple(found)


def choose_block(
    facts: KernelFacts, instructions: Sequence[Instruction], block: int | Triple | None = None
) -> ChosenBlock:
    """The block that the caller asks for, or the kernel requires, else the largest that the kernel accepts."""
    required, most = facts.required_workgroup, facts.max_workgroup
    if isinstance(block, tuple):
        text = f"a workgroup has {_describe_block(block)} work items, as requested"
        return ChosenBlock(sizes=block, assumptions=(text,))
    if required is not None and len(required) == 3 and all(required) and block in {None, math.prod(required)}:
        return ChosenBlock(sizes=(required[0], required[1], required[2]))
    shaped = facts.workitem_ids > 0 and may_use_y_or_z(instructions)
    chosen = (most if block is None else block, 1, 1)
    if block is None:
        text = f"a workgroup has {most} work items in one dimension, the most that the kernel accepts"
        is_guess = most == MOST_WORK_ITEMS or shaped  # the default, if the source doesn't limit the workgroup
        assumed = f"the block, which was assumed to be {_describe_block(chosen)}" if is_guess else ""
    elif shaped:
        text = f"a workgroup has {block} work items, as requested, in one dimension"
        assumed = f"the shape of the block: {block} work items were assumed to be {_describe_block(chosen)}"
    else:
        text, assumed = f"a workgroup has {_describe_block(chosen)} work items, as requested", ""
    return ChosenBlock(sizes=chosen, assumptions=(text,), assumed=assumed)


def _describe_block(block: Triple) -> str:
    return " x ".join(map(str, block))


# Taint analysis: does the kernel look at more of a work item's id than x?  The ids of y and z start in the bits of v0
# above x.  What an instruction not listed in _TAINTS does with them counts as a use.


class _Source:
    def __init__(self, text: str, tainted: dict[int, int]) -> None:
        # A float such as 1.0 is a constant too, but any of its bits may be one.
        self.number = int(text, 0) & M32 if _INTEGER.fullmatch(text) else None
        self.taint = 0
        for row in rows_in(text):
            self.taint |= tainted.get(row, 0)

    @property
    def may(self) -> int:
        return M32 if self.number is None else self.number


def may_use_y_or_z(instructions: Sequence[Instruction]) -> bool:
    """True unless the kernel surely ignores the y and z of a work item's id."""
    tainted, straight = dict(_ID_TAINT), True
    for each in instructions:
        straight = straight and each.spec.flow in _STRAIGHT and "exec" not in each.text
        sources, writes = [_Source(text, tainted) for text in each.operands], each.registers.writes
        name = each.opcode if each.is_dpp or each.is_sdwa else each.mnemonic  # parts and lanes aren't followed
        vector = each.spec.unit.computes_lanes and rows_in(each.operands[0] if each.operands else "") <= writes
        follow = _TAINTS.get(name, _taint_of_table(each) if name == "v_bitop3_b32" else None)
        read = sources[1:] if vector else sources
        taint = 0
        if any(source.taint for source in read):
            if follow is None or any(source.number is None for source in read[:1] if name in _BY_FIRST):
                return True
            taint = follow(*read) & M32
        for row in rows_in(each.operands[0]) if vector and each.operands else ():
            tainted[row] = taint if straight else tainted.get(row, 0) | taint
    return False


def _taint_and(a: _Source, b: _Source) -> int:
    return a.taint & b.may | b.taint & a.may


def _taint_of_table(instruction: Instruction) -> Callable[..., int]:
    """v_bitop3_b32: a bit of an operand matters where the truth table depends on it, given known other operands."""
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


_TAINTS: dict[str, Callable[..., int]] = {
    "v_mov_b32": lambda a: a.taint,
    "v_and_b32": _taint_and,
    "v_and_or_b32": lambda a, b, c: _taint_and(a, b) | c.taint,
    "v_or_b32": lambda a, b: a.taint | b.taint,
    "v_or3_b32": lambda a, b, c: a.taint | b.taint | c.taint,
    "v_xor_b32": lambda a, b: a.taint | b.taint,
    "v_add_u32": lambda a, b: M32 & -((both := a.taint | b.taint) & -both),  # a carry reaches all bits above
    "v_lshlrev_b32": lambda by, a: a.taint << (by.number & 31),
    "v_lshrrev_b32": lambda by, a: a.taint >> (by.number & 31),
    "v_lshl_or_b32": lambda a, by, c: (a.taint << (by.number & 31) if by.number is not None else M32) | c.taint,
    "v_bfe_u32": lambda a, at, size: (
        M32 if at.number is None or size.number is None else a.taint >> at.number & (1 << size.number) - 1
    ),
}
"""The bits of a result that may depend on y and z."""


# The proof.

_NOT_JUDGED = "accesses of global memory, and the contents of LDS before it is written, are not judged"
_SAME_WORDS = "words that several waves load to the same bytes of LDS, and pointers to them in memory, do not change"
_IN_BOUNDS = "LDS addresses that come from data are inside of the kernel's LDS, as requested"
ARRIVALS_ASSUMED = "each barrier that waves wait for gets the arrivals that it counts; whether waves hang is not judged"
NOWHERE_ASSUMED = "lanes that give the address 0x7fffffff access no LDS, as compilers mean it"
_READ_PER_SECOND = 6_000  # instructions that are decoded and sliced per second, at least
_STEPS_TO_READ, _ALWAYS_READ = 2, 1_000  # steps that this costs for each, and how many are read in any case


class ReadsAtBarrier(enum.Enum):
    """Whether an LDS read may still be in flight after a barrier that its wave passes without a wait for it."""

    STRICT = "an LDS read that no wait covers may be in flight after a barrier"
    LENIENT = (
        "an LDS read completes before its wave passes a barrier, so that no later LDS write from registers overtakes it"
    )


_VECTOR_MEMORY = (Traffic.LOAD, Traffic.STORE, Traffic.TO_LDS)


class VmcntOrder(enum.Enum):
    IN_ORDER = "vector memory ops return in the order of their issue"
    ANY_ORDER = "vector memory ops return in any order, so that only vmcnt(0) guarantees anything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """How to read rules of the machine that are open to interpretation, and what to assume on request."""

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
    """Follow every path of a kernel, for all arguments and orders of its waves.

    A recorder observes the proof.  With `stops` it ends at the first error.  With `witness`, alarms on paths that no
    launch can take are dropped, and the others are replayed in the interpreter; `image` is loaded with the code.
    """
    started = time.process_time()
    policies = policies or Policies()
    chosen, meter = choose_block(facts, instructions, block), Meter(budget or Budget())
    architecture = architecture_named(facts.arch)
    proof = _Proof(facts, instructions, architecture, chosen, dynamic_lds, policies, meter, recorder, stops)
    with _long_search():
        complete, alarms, ending = proof.run()
        searched = witness and bool(alarms)
        confirmed = proof.confirm(alarms, image, complete=complete) if searched else report_unconfirmed(alarms)
    broken, early = report_broken_rules(proof.broken_rules), tuple(RankedFinding(finding=each) for each in ending)
    causes = rank_causes((*broken, *proof.block.qualify(confirmed.causes), *early))
    findings = tuple(each.finding for each in causes)
    return Verdict(
        kernel=facts.name,
        arch=facts.arch,
        status=status_of(findings, complete=complete),
        findings=findings,
        assumptions=(_NOT_JUDGED, *proof.block.assumptions, *proof.assumptions),
        policies=(policies.reads.value, proof.describe_order()),
        statistics=proof.statistics(time.process_time() - started),
        pairs=tuple(each.pairs for each in causes),
        waves=proof.waves,
        remedies=proof.remedies,
        dropped=confirmed.dropped,
    )


@contextmanager
def _long_search() -> Iterator[None]:
    """Let values nest deeply, and look for garbage rarely: a proof keeps what it makes until its verdict."""
    limit, (young, middle, old) = sys.getrecursionlimit(), gc.get_threshold()
    sys.setrecursionlimit(max(limit, _DEEPEST))
    gc.set_threshold(max(young, _COLLECT_AFTER) if young else 0, middle, old)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)
        sys.setrecursionlimit(limit)


@dataclass(slots=True)
class _Proof:
    facts: KernelFacts
    instructions: Sequence[Instruction]
    architecture: Architecture | None
    block: ChosenBlock
    dynamic_lds: int | None
    policies: Policies
    meter: Meter
    recorder: Recorder | None
    stops: bool
    assumptions: list[str] = field(default_factory=list)
    broken_rules: list[Alarm] = field(default_factory=list)  # of two instructions, which no replay can show
    remedies: tuple[Remedy, ...] = ()
    explorer: Explorer | None = None
    lds_bytes: int = 0

    def statistics(self, seconds: float) -> Statistics:
        if (explorer := self.explorer) is None:
            return Statistics(seconds=seconds, effort=self.meter.spent)
        return Statistics(
            steps=explorer.steps,
            states=explorer.states,
            paths=explorer.paths,
            sites=len(explorer.memory.sites),
            concrete_sites=sum(explorer.memory.sites.values()),
            seconds=seconds,
            effort=self.meter.spent,
        )

    @property
    def waves(self) -> int:
        items = math.prod(self.block.sizes)
        return 1 if self.architecture is None else -(-items // self.architecture.lanes.value)

    @property
    def doubted(self) -> frozenset[str]:
        """The counters on which the policy trusts no order."""
        if self.architecture is None or self.policies.order is VmcntOrder.IN_ORDER:
            return frozenset()
        return frozenset(self.architecture.queue_of(each).counter for each in _VECTOR_MEMORY)

    def describe_order(self) -> str:
        named = " and ".join(f"{each}(0)" for each in sorted(self.doubted))
        return self.policies.order.value.replace("vmcnt(0)", named or "vmcnt(0)")

    def confirm(self, alarms: list[Alarm], image: bytes, *, complete: bool) -> Confirmed:
        from rota.prove.confirmation import Replay, confirm
        from rota.prove.witness import tables_of

        explorer = self.explorer
        dynamic = max(self.lds_bytes - self.facts.descriptor.lds_bytes, 0)
        tables = frozenset[int]() if explorer is None else tables_of(explorer.evaluator.symbols.every())
        replay = Replay(self.facts, self.instructions, self.block.sizes, dynamic, image, tables)
        graph = StateGraph() if explorer is None else explorer.graph
        return confirm(alarms, graph, replay, self.facts, complete=complete, meter=self.meter)

    def run(self) -> tuple[bool, list[Alarm], tuple[Finding, ...]]:
        """Whether every path was followed to its end, the alarms, and the finding that ended the proof early."""
        if (architecture := self.architecture) is None:
            return False, [], (_make_finding("I401", f"the proof doesn't know {self.facts.arch}"),)
        if (too_many := self._check_size()) is not None:
            return False, [], (too_many,)
        if missing := self._list_missing(architecture):
            return False, [], self._refuse_machine(architecture, missing)
        waits = check_dependency_waits(self.instructions, architecture)
        spacing = check_spacing(self.instructions, architecture) if architecture.hazards.rules else ()
        self.broken_rules = _group((*spacing, *waits))
        if self.broken_rules and self.stops:
            return False, [], ()
        try:
            instructions = expand_pairs(expand_vskip(self.instructions))
            operations = self._read_operations(instructions, architecture)
        except IsaError as error:  # the proof can't model it, which is no error of the kernel
            return False, [], _refuse(error)
        self.assumptions += architecture.assumed
        judge, ending = self._explore(operations, architecture)
        self.remedies = tuple(judge.remedies.values())
        if any(each.first.code == "I304" for each in judge.alarms()):
            self.assumptions.append(_SAME_WORDS)
        return not ending, judge.alarms(), ending

    def _list_missing(self, architecture: Architecture) -> tuple[str, ...]:
        """What the kernel needs of its machine, and the proof doesn't have."""
        cluster = self.facts.cluster or (1,)
        shape = f"clusters of {' x '.join(map(str, cluster))} workgroups"
        return (*architecture.unmodelled, *((shape,) if math.prod(cluster) > 1 else ()))

    def _refuse_machine(self, architecture: Architecture, missing: tuple[str, ...]) -> tuple[Finding, ...]:
        """The instructions that the proof doesn't know, and the rules of the machine that it doesn't have."""
        machine = tuple(
            _make_finding("I401", f"the proof doesn't model {rule}; code for {architecture.arch} depends on it")
            for rule in missing
        )
        try:
            self._read_operations(expand_pairs(expand_vskip(self.instructions)), architecture)
        except IsaError as error:
            return (*_refuse(error), *machine)
        return machine

    def _read_operations(self, instructions: Sequence[Instruction], architecture: Architecture) -> list[Operation]:
        operations: list[Operation] = []
        refused: dict[str, Finding] = {}
        for number, each in enumerate(instructions):
            try:
                operations.append(read_operation(each, number, architecture))
            except UnknownOperationError as error:
                part = f"; its {error.what} is not known" if error.what else ""
                message = f"the proof doesn't know {each.opcode}{part}"
                refused.setdefault(each.opcode, _make_finding("I401", message, each))
        if may_need_waits(instructions):  # what a called function leaves in flight isn't followed
            for call in (each for each in operations if each.kind is OperationKind.CALL):
                message = f"the proof doesn't know {call.name} where s_wait_alu is needed"
                refused.setdefault(call.name, _make_finding("I401", message, call.instruction))
        if not refused:
            try:
                marked = mark_mbarriers(mark_flat(mark_spills(mark_indexed(operations))))
                return mark_counted(marked, architecture)
            except UnknownOperationError as error:
                message = f"the proof doesn't model {error.instruction.opcode} in index mode"
                refused[error.instruction.opcode] = _make_finding("I401", message, error.instruction)
        raise IsaError(*refused.values())

    def _explore(self, operations: list[Operation], architecture: Architecture) -> tuple[Judge, tuple[Finding, ...]]:
        waves, lanes = self.waves, architecture.lanes.value
        full = math.prod(self.block.sizes) % lanes == 0
        sliced = derive_slice(operations, full=full)
        evaluator = Evaluator(lanes)
        start, kernarg_row = self._make_start(evaluator, waves)
        start.queues = dict.fromkeys(list_queues(architecture).values(), ())
        strict = self.policies.reads is ReadsAtBarrier.STRICT
        agreement = Agreement(operations, start.copy(), lanes, full=full)
        barrier = SPLIT_BARRIER if architecture.split_barrier else BARRIER
        masks = evaluator.masks
        judge = Judge(operations, agreement, masks, strict_reads=strict, stops=self.stops, barrier=barrier)
        self.lds_bytes = self._find_lds_size(operations, architecture)
        memory = MemorySteps(
            evaluator,
            TouchedBytes(self.lds_bytes, evaluator.masks, evaluator.symbols),
            judge,
            most={each.counter: architecture.no_wait(each.counter) for each in architecture.queues},
            constants=self._constants(),
            evaluated=sliced.evaluated,
            doubted=self.doubted,
            flat_lds=any("src_shared_base" in each.text for each in self.instructions),
            m0_is_short=architecture.lds_bytes.value <= 1 << 16,
            nowhere=None if architecture.lds_nowhere is None else architecture.lds_nowhere.value,
            lds_in_bounds=self.policies.lds_in_bounds,
            recorder=self.recorder,
        )
        explorer = self.explorer = Explorer(
            operations, sliced, evaluator, memory, judge, kernarg_row, waves, self.meter, self.recorder
        )
        explorer.spelling = Spelling(
            names={each.offset: each.name for each in self.facts.arguments}, flat=self.block.sizes[1:] == (1, 1)
        )
        ending: tuple[Finding, ...] = ()
        try:
            with np.errstate(all="ignore"):
                explorer.explore(ProductState(wave_sets=[start], known=Decisions()))
        except InconclusiveError as error:
            instruction = None if error.operation is None else error.operation.instruction
            ending = (self._report_early_end(str(error), instruction, error.ended_by, error.evidence),)
        except FirstError:
            ending = (_make_finding("I402", "the proof ended at the first error, as requested"),)
        except RecursionError:
            ending = (self._report_early_end("values are nested too deeply", None, "depth"),)
        if memory.assumed_in_bounds:
            self.assumptions.append(_IN_BOUNDS)
        if explorer.hangs:
            self.assumptions.append(ARRIVALS_ASSUMED)
        if memory.met_nowhere:
            self.assumptions.append(NOWHERE_ASSUMED)
        if memory.loads_twice:
            self.assumptions.append("memory that scalar loads read is not written during the launch")
        return judge, ending

    def _check_size(self) -> Finding | None:
        """Refuse a kernel that the budget doesn't suffice to decode and slice, since neither can stop early."""
        count, budget = len(self.instructions), self.meter.budget
        limits = {"steps": _ALWAYS_READ + budget.steps // _STEPS_TO_READ}
        if budget.seconds is not None:
            limits["seconds"] = int(_READ_PER_SECOND * budget.seconds)
        for name, most in limits.items():
            if count > most:
                message = f"{count} instructions are too many for the budget of {name}"
                return replace(_make_finding("I402", message), evidence=(("ended by", name),))
        return None

    def _report_early_end(
        self, message: str, instruction: Instruction | None, ended_by: str, why: tuple[tuple[str, str], ...] = ()
    ) -> Finding:
        explorer = self.explorer
        evidence: tuple[tuple[str, str | int], ...] = (*why, *((("ended by", ended_by),) if ended_by else ()))
        if explorer is not None:
            evidence += (("steps", explorer.steps), ("states", explorer.states), ("paths begun", explorer.paths))
        concerns: tuple[Concern, ...] = () if instruction is None else (instruction.concern(),)
        return Finding("I402" if ended_by else "I401", message, concerns=concerns, evidence=evidence)

    def _find_lds_size(self, operations: Sequence[Operation], architecture: Architecture) -> int:
        fixed, most = self.facts.lds_bytes, architecture.lds_bytes.value
        hidden = any(each.kind == "hidden_dynamic_lds_size" for each in self.facts.arguments)
        if self.dynamic_lds is not None:
            self.assumptions.append(f"the launch adds {self.dynamic_lds} bytes of dynamic LDS, as requested")
            return fixed + self.dynamic_lds
        if any(each.address for each in operations) and (hidden or not fixed):
            text = f"the launch provides the dynamic LDS that the kernel uses, up to {most} bytes in all"
            self.assumptions.append(text)
            return most
        return fixed

    def _constants(self) -> dict[int, int]:
        """Words of the kernarg segment, and at negative keys of the dispatch packet, that follow from the block."""
        block = self.block.sizes
        known: dict[int, int] = {}
        places = {each.kind: each for each in self.facts.arguments}
        x, y, z = (places.get(f"hidden_group_size_{axis}") for axis in "xyz")
        if x is not None and y is not None and x.offset % 4 == 0 and y.offset == x.offset + 2:
            known[x.offset] = block[0] | block[1] << 16
        if z is not None and z.offset % 4 == 0:
            known[z.offset] = block[2]  # the remainder of x above it is 0 in full workgroups
        known[-4] = block[0] | block[1] << 16
        known[-8] = block[2]
        return known

    def _make_start(self, evaluator: Evaluator, waves: int) -> tuple[WaveSet, int]:
        facts, block = self.facts, self.block.sizes
        registers: dict[int, Value | Half] = {}
        at, kernarg_row = SCALAR, -1
        names = {"kernarg_segment_ptr": "kernarg", "dispatch_ptr": "packet"}
        for name, size in facts.user_sgprs:
            for word in range(size):
                if name == "kernarg_preload":
                    place = 4 * (facts.descriptor.preload_offset + word)
                    known = self._constants()
                    unknown = evaluator.symbols.argument
                    registers[at + word] = known[place] if place in known else unknown("argument", place)
                else:
                    argument = names.get(name, name) if word == 0 else f"{name} high"
                    registers[at + word] = evaluator.symbols.argument(argument, word)
            if name == "kernarg_segment_ptr":
                kernarg_row = at
            at += size
        for axis, wanted in zip("xyz", facts.workgroup_ids, strict=True):
            if wanted:
                registers[at] = evaluator.symbols.argument("workgroup", axis)
                at += 1
        if self.architecture is not None and not self.architecture.descriptor.workgroup_ids:
            for name in _OF_WORKGROUP:
                registers[SCALAR + NAMED[name][0]] = evaluator.symbols.argument("workgroup", name)
            registers[WAVE_ROW] = np.arange(waves, dtype=np.int64)[:, None] << WAVE_SHIFT
        lanes = evaluator.masks.lanes
        item = np.arange(waves * lanes, dtype=np.int64).reshape(waves, lanes)
        x, y, z = item % block[0], item // block[0] % block[1], item // (block[0] * block[1])
        ids = (x, y, z)[: facts.workitem_ids + 1]
        registers[0] = sum((part << 10 * place for place, part in enumerate(ids)), np.zeros_like(item))
        items = math.prod(block)
        full = tuple((1 << min(items - lanes * wave, lanes)) - 1 for wave in range(waves))
        wave_set = WaveSet(waves=tuple(range(waves)), at=0, registers=registers, exec=evaluator.masks.leaf(full))
        return wave_set, max(kernarg_row, 0)


def _refuse(error: IsaError) -> tuple[Finding, ...]:
    refused = [(each, each.message.replace("the interpreter", "the proof")) for each in error.findings]
    return tuple(replace(each, code="I401", message=message) for each, message in refused)


def _group(findings: Sequence[Finding]) -> list[Alarm]:
    """Broken rules by their names: each is one cause, wherever it is."""
    groups: dict[object, Alarm] = {}
    for each in findings:
        pair = FoundPair(finding=each, number=0, other=0, rule="", gap=None)
        groups.setdefault(dict(each.evidence)["rule"], Alarm()).found.append(pair)
    return [*groups.values()]


def _make_finding(code: str, message: str, instruction: Instruction | None = None) -> Finding:
    concerns = () if instruction is None else (instruction.concern(),)
    return Finding(code, message, concerns=concerns, severity=Severity.ERROR)


def assert_proved(
    source: str | PathLike[str] | bytes | CodeObject,
    name: str | None = None,
    *,
    block: int | Triple | None = None,
    dynamic_lds: int | None = None,
    policies: Policies | None = None,
    budget: Budget | None = None,
) -> tuple[Verdict, ...]:
    """Prove every kernel, or the one of that name; raises IsaError with the findings if one isn't proved."""
    verdicts = prove_object(source, name, block=block, dynamic_lds=dynamic_lds, policies=policies, budget=budget)
    if wrong := [each for each in verdicts if not each.proved]:
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
    """Prove the kernel of that name, or all of them; alarms are replayed unless `witness` is false."""
    code = source if isinstance(source, CodeObject) else read_object(source)
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
