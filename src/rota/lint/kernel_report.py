"""What makes a compiled kernel slow, as far as its machine code says it, and what a newer build made worse.

One proof of the kernel gives the addresses of its LDS accesses, and its main loop as a program; the cycle model runs
that program with the clocks that bank conflicts add, and without them.  All else is counted in the listing: accesses of
private memory, copies between the two register files, priorities and narrow accesses, by the innermost loop that they
are in.  Nothing here says that a kernel is wrong.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from rota.cycles.predict import list_bounds, predict
from rota.errors import Concern, Finding, IsaError, RotaError, Severity, several
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction, expand_pairs, expand_vskip
from rota.isa.opcodes import MemVerb
from rota.lift.lifted_loop import LiftedLoop, find_bodies, lift_kernel
from rota.lint.lane_addresses import LINE_BYTES, BankRecorder, Certainty, LdsSite, TouchedLines, find_lines
from rota.program.kinds import OpKind, Unit
from rota.program.lowered import LoweredProgram
from rota.prove.advice import find_needed
from rota.prove.kernel_proof import Policies, Triple, prove
from rota.prove.operation import Operation, OperationKind, UnknownOperationError, read_operation
from rota.prove.slicing import derive_successors, find_reached
from rota.prove.verdict import BARRIERS, Budget, Verdict
from rota.targets.architecture import Architecture
from rota.targets.device import Device, rates_of
from rota.targets.registry import architecture_named

_MOST_SHOWN = 3  # instructions that a finding names
MATTERS = 0.01  # of a loop's clocks, from which on a conflict has a cost
_MANY_COPIES = 10  # one copy in so many instructions
_NEAR, _NEAR_LDS = 2, 16  # granules of registers, or a share of LDS: nearer to the next step than this is worth a word
_WORD = 4  # bytes: a lane that moves fewer wastes a part of its request
_COPIES = frozenset({"accvgpr_read", "accvgpr_write", "accvgpr_mov"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOptions:
    """How a kernel is launched, what it is predicted for, how far the proof goes, and whether waits are tried."""

    device: Device | None = None
    block: int | Triple | None = None
    dynamic_lds: int | None = None
    budget: Budget | None = None
    needed: bool = False


# Loops.


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLoop:
    """A natural loop of the listing, with what it has of its own, without the loops inside.

    `private` and `copies` count accesses of private memory, and copies between VGPRs and AGPRs.  `extra_clocks` are
    those that bank conflicts add to one trip of one wave, in the mean; a bound where some have no rule.
    """

    first: Instruction
    last: Instruction
    depth: int
    operations: tuple[Operation, ...]
    sites: tuple[LdsSite, ...] = ()
    extra_clocks: float = 0.0

    @property
    def place(self) -> str:
        return f"{self.first.place}..{self.last.place}"

    @property
    def private(self) -> tuple[Operation, ...]:
        return tuple(each for each in self.operations if each.access is not None and each.access.private)

    @property
    def copies(self) -> tuple[Operation, ...]:
        return tuple(each for each in self.operations if each.spec.root in _COPIES)

    @property
    def matrix(self) -> int:
        return sum(each.instruction.op_kind is OpKind.MMA for each in self.operations)

    @property
    def narrow(self) -> tuple[Operation, ...]:
        """Loads and stores of global memory with fewer bytes a lane than a register has."""
        found = (each for each in self.operations if each.is_global and each.spec.unit.is_vector)
        return tuple(each for each in found if each.access is not None and 0 < each.access.size < _WORD)


def find_code_loops(
    operations: Sequence[Operation], sites: Sequence[LdsSite], device: Device | None
) -> tuple[CodeLoop, ...]:
    """All loops, in the order of the listing; an instruction is of the smallest loop around it."""
    successors = derive_successors(operations)
    # Where several ways lead into a loop, only what can be executed after its head is in it.
    bodies = {head: body & find_reached(successors, [head]) for head, body in find_bodies(successors).items()}
    by_number = {each.number: each for each in sites}
    owner: dict[int, int] = {}
    for head, body in sorted(bodies.items(), key=lambda pair: (len(pair[1]), pair[0])):
        owner |= dict.fromkeys(body - owner.keys(), head)
    found = []
    for head, body in sorted(bodies.items()):
        own = tuple(operations[each] for each in sorted(body) if owner[each] == head)
        mine = tuple(by_number[each.number] for each in own if each.number in by_number)
        if own:
            found.append(CodeLoop(
                first=operations[head].instruction, last=operations[max(body)].instruction,
                depth=1 + sum(body < other for other in bodies.values()), operations=own, sites=mine,
                extra_clocks=sum(count_lost(each, device) for each in mine),
            ))  # fmt: skip
    return tuple(found)


def count_lost(site: LdsSite, device: Device | None) -> float:
    """Clocks that conflicts add to one access of one wave, in the mean of waves; a bound without a rule."""
    if site.certainty.is_counted:
        return site.mean
    return float(max(site.bound.clocks - max(site.bound.even, count_nominal(site, device)), 0))


def count_nominal(site: LdsSite, device: Device | None) -> int:
    """Clocks of an access of all lanes at the device's rate."""
    kind = site.instruction.op_kind
    if device is None or kind is None or kind.unit is not Unit.LDS:
        return 0
    rate = rates_of(device).lds_rate(kind).value
    return -(-site.width * device.lanes.value // rate)


# How many workgroups fit.


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """The most workgroups that a compute unit can hold at once, by registers, by LDS, and by places for waves.

    `next_vgprs` are the most registers with which one workgroup more would fit, `next_lds` the most bytes; None where
    something else stands in the way.
    """

    waves: int
    vgprs: int
    lds_bytes: int
    by_registers: int
    by_lds: int | None
    by_places: int
    simds: int
    next_vgprs: int | None = None
    next_lds: int | None = None

    @property
    def workgroups(self) -> int:
        return min(self.by_registers, self.by_places, *(() if self.by_lds is None else (self.by_lds,)))

    @property
    def is_alone(self) -> bool:
        """True if no two waves ever share a SIMD."""
        return 0 < self.workgroups * self.waves <= self.simds

    def __str__(self) -> str:
        lds = f"{self.by_lds} by {self.lds_bytes} bytes of LDS" if self.lds_bytes else "no LDS"
        lds = "not known by LDS, which the launch states" if self.by_lds is None else lds
        limits = [f"{self.by_registers} by {self.vgprs} registers", lds, f"{self.by_places} by places for waves"]
        waves = several(self.waves, "wave")
        return f"at most {several(self.workgroups, 'workgroup')} of {waves} on a compute unit: {', '.join(limits)}"


def find_occupancy(
    facts: KernelFacts, waves: int, device: Device | None, dynamic_lds: int = 0, *, uses_lds: bool = False
) -> Occupancy | None:
    """None where the machine doesn't say how many waves a SIMD holds; of LDS that only a launch states, nothing."""
    if device is None or device.waves_per_simd is None or not waves:
        return None
    granule, file, places = device.descriptor.vector_granule, device.vgprs_per_lane.value, device.waves_per_simd.value
    simds, room, lds = rates_of(device).simds.value, device.lds_bytes.value, facts.lds_bytes + dynamic_lds
    vgprs = -(-max(facts.vgprs, 1) // granule) * granule
    found = Occupancy(
        waves=waves, vgprs=vgprs, lds_bytes=lds, by_registers=min(places, file // vgprs) * simds // waves,
        by_lds=room // lds if lds else None if uses_lds else places * simds, by_places=places * simds // waves,
        simds=simds,
    )  # fmt: skip
    more = found.workgroups + 1
    a_simd = -(-more * waves // simds)
    fewer = file // a_simd // granule * granule if a_simd <= places else None
    less = room // more if lds and a_simd <= places else None
    fits_lds, fits_registers = found.by_lds is None or found.by_lds >= more, found.by_registers >= more
    return replace(
        found, next_vgprs=fewer if fits_lds and not fits_registers else None,
        next_lds=less if fits_registers and not fits_lds else None,
    )  # fmt: skip


# The main loop's clocks.


class UnitClocks(NamedTuple):
    unit: str
    clocks: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopClocks:
    """The predicted clocks of one trip of the main loop, with its bank conflicts and without.

    `bounds` are what each unit needs, most first; `fills` says what waves, or idle matrix units, waited for, in clocks.
    """

    place: str
    device: str
    clocks: float
    clean: float
    bound_by: str
    bounds: tuple[UnitClocks, ...]
    fills: tuple[UnitClocks, ...]
    flops: float
    moved: float
    assumed: str

    @property
    def cost(self) -> float:
        """Clocks that the model loses by conflicts: those that no other unit hides."""
        return max(self.clocks - self.clean, 0.0)

    @property
    def matters(self) -> bool:
        return self.cost > MATTERS * self.clocks


def predict_loop(lifted: LiftedLoop, sites: Sequence[LdsSite], device: Device) -> LoopClocks:
    program = lifted.program
    slow = add_conflicts(program, sites, device)
    clean = predict(program, band=False)
    found = clean if slow is program else predict(slow, band=False)
    first, last = lifted.loops[0].chain[0].instruction, lifted.loops[0].chain[-1].instruction
    bounds = sorted(list_bounds(slow).items(), key=lambda pair: -pair[1])
    return LoopClocks(
        place=f"{first.place}..{last.place}", device=device.name, clocks=found.cycles, clean=clean.cycles,
        bound_by=found.bound_by, bounds=tuple(UnitClocks(*each) for each in bounds if each[1]),
        fills=tuple(UnitClocks(str(each), clocks) for each, clocks in found.idle_causes or found.causes),
        flops=found.flops, moved=found.moved, assumed=program.origin,
    )  # fmt: skip


def add_conflicts(program: LoweredProgram, sites: Sequence[LdsSite], device: Device) -> LoweredProgram:
    """The program whose LDS ops hold the port as long as their conflicts make them; the same one without any."""
    held = {}
    for each in sites:
        clocks = count_nominal(each, device) + count_lost(each, device)
        if count_lost(each, device) and each.instruction.op_kind is not None:
            rate = rates_of(device).lds_rate(each.instruction.op_kind).value
            held[_declare(each.instruction)] = math.ceil(clocks * rate)
    if not held:
        return program
    kernel = []
    for entry in program.kernel:
        moved = held.get(str(entry.op.declared))
        if moved is not None and entry.op.work is not None:
            slow = replace(entry.op, work=entry.op.work._replace(moved=moved))
            kernel.append(replace(entry, op=slow))
            continue
        kernel.append(entry)
    return replace(program, kernel=tuple(kernel))


def _declare(instruction: Instruction) -> str:
    """As a lifted op says which instruction it is."""
    at = "" if instruction.address is None else f"{instruction.address:#x}: "
    return at + instruction.text


# The report.


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """What was found of one kernel; `not_lifted` says why its main loop has no predicted clocks.

    `losing` counts the LDS instructions that are known to take longer than at the device's rate; `extras` has the
    clocks that conflicts were seen to add to each, by its number and by wave.
    """

    facts: KernelFacts
    verdict: Verdict
    sites: tuple[LdsSite, ...]
    losing: int
    extras: dict[int, dict[int, frozenset[int]]]
    loops: tuple[CodeLoop, ...]
    lines: tuple[TouchedLines, ...]
    occupancy: Occupancy | None
    clocks: LoopClocks | None
    not_lifted: str
    findings: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def exact(self) -> int:
        return sum(each.certainty is Certainty.EXACT for each in self.sites)

    def count_others(self) -> Iterator[tuple[str, int]]:
        """By reason and opcode, the LDS instructions whose conflicts aren't known exactly."""
        reasons = Counter((each.certainty, each.instruction.spec.name) for each in self.sites)
        for certainty in Certainty:
            named = [(name, count) for (why, name), count in sorted(reasons.items(), key=str) if why is certainty]
            if named and certainty is not Certainty.EXACT:
                listed = ", ".join(f"{count} {name}" for name, count in named)
                yield f"{certainty.value} ({listed})", sum(count for _, count in named)


def lint_kernel(code: CodeObject, name: str | None = None, options: LintOptions = LintOptions()) -> LintReport:  # noqa: B008  # frozen
    """Judge one kernel of a code object; raises IsaError if rota doesn't know its machine or an instruction."""
    facts = code.kernel(name)
    return lint_instructions(facts, code.instructions(facts.name), options)


def lint_instructions(facts: KernelFacts, instructions: Sequence[Instruction], options: LintOptions) -> LintReport:
    operations, architecture = _read_operations(facts, instructions)
    recorder = BankRecorder(operations, architecture)
    device = options.device
    lifted, not_lifted = None, "no device of its architecture is known"
    if device is not None:
        try:
            lifted = lift_kernel(
                facts, instructions, device, block=options.block, budget=options.budget,
                dynamic_lds=options.dynamic_lds, also=recorder,
            )  # fmt: skip
        except RotaError as error:
            not_lifted, recorder = error.findings[0].message, BankRecorder(operations, architecture)
    verdict = lifted.verdict if lifted is not None else prove(
        facts, instructions, block=options.block, dynamic_lds=options.dynamic_lds, budget=options.budget,
        recorder=recorder,
    )  # fmt: skip
    sites = recorder.list_sites()
    loops = find_code_loops(operations, sites, device)
    clocks = None
    if lifted is not None and device is not None:
        try:
            clocks, not_lifted = predict_loop(lifted, sites, device), ""
        except RotaError as error:
            not_lifted = error.findings[0].message
    report = LintReport(
        facts=facts, verdict=verdict, sites=sites, losing=sum(map(partial(_is_sure_to_lose, device=device), sites)),
        extras={each.number: recorder.list_extras(each.number) for each in sites}, loops=loops,
        lines=find_lines(facts, instructions, architecture), occupancy=find_occupancy(
            facts, verdict.waves, device, options.dynamic_lds or 0, uses_lds=any(map(_uses_lds, operations))
        ),
        clocks=clocks, not_lifted=not_lifted,
    )  # fmt: skip
    findings = [*_report_findings(report, operations, device)]
    if options.needed:
        findings += _report_unneeded(report, instructions, options.block)
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
    return replace(report, findings=tuple(sorted(findings, key=lambda each: (order[each.severity], each.code))))


def _is_sure_to_lose(site: LdsSite, device: Device | None) -> bool:
    return site.certainty is not Certainty.AT_MOST and count_lost(site, device) > 0


def _uses_lds(operation: Operation) -> bool:
    return bool(operation.copies) or operation.kind is OperationKind.LDS


def _read_operations(
    facts: KernelFacts, instructions: Sequence[Instruction]
) -> tuple[tuple[Operation, ...], Architecture]:
    architecture = architecture_named(facts.arch)
    if architecture is None:
        raise IsaError.of("I111", f"{facts.name} is for {facts.arch}, which rota doesn't know")
    try:
        listed = expand_pairs(expand_vskip(instructions))
        return tuple(read_operation(each, number, architecture) for number, each in enumerate(listed)), architecture
    except UnknownOperationError as error:
        concerns = (error.instruction.concern(),)
        raise IsaError.of("I401", f"rota doesn't know {error.instruction.opcode}", concerns=concerns) from error


# Findings.


def _report_findings(report: LintReport, operations: Sequence[Operation], device: Device | None) -> Iterator[Finding]:
    in_loops = {each.number for loop in report.loops for each in loop.operations}
    outside = [each for each in report.sites if each.number not in in_loops]
    for loop in report.loops:
        yield from _report_conflicts(loop.sites, loop, report, device)
        yield from _report_loop(loop, report)
    yield from _report_conflicts(outside, None, report, device)
    yield from _report_occupancy(report, device)
    yield from _report_priorities(report, operations)


Evidence = tuple[tuple[str, str | int], ...]


def _make(
    code: str,
    message: str,
    instructions: Iterable[Instruction],
    *,
    evidence: Evidence,
    fixes: tuple[str, ...],
    severity: Severity = Severity.NOTE,
) -> Finding:
    every = list(instructions)
    concerns: tuple[Concern, ...] = tuple(each.concern() for each in every[:_MOST_SHOWN])
    more = (("and further instructions", len(every) - _MOST_SHOWN),) if len(every) > _MOST_SHOWN else ()
    return Finding(code, message, severity=severity, concerns=concerns, evidence=(*evidence, *more), fixes=fixes)


def _report_conflicts(
    sites: Sequence[LdsSite], around: CodeLoop | None, report: LintReport, device: Device | None
) -> Iterator[Finding]:
    """One finding for all instructions of a loop that have a line, an opcode and a conflict in common."""
    groups: defaultdict[tuple[object, ...], list[LdsSite]] = defaultdict(list)
    for each in sites:
        if count_lost(each, device) > 0 or each.worst.extra:
            groups[each.instruction.spec.name, each.instruction.source, each.certainty, each.worst, each.bound].append(
                each
            )
    for some in groups.values():
        first, count = some[0], len(some)
        severity, cost = _weigh(around, report)
        took, more = _describe_clocks(first)
        many = first.instruction.spec.name if count == 1 else f"{count} {first.instruction.spec.name}"
        where = "outside of loops" if around is None else f"in the loop {around.place}"
        yield _make(
            "I601",
            f"{many} {where}: {took}",
            (each.instruction for each in some),
            evidence=(*more, ("clocks a wave", took), ("instructions", count), ("cost", cost)),
            fixes=(_SPREAD,),
            severity=severity,
        )


_SPREAD = (
    "pad the rows of the tile, or exchange chunks of a row by bits of its number: lanes that are served together then "
    "meet different banks"
)


def _describe_clocks(site: LdsSite) -> tuple[str, Evidence]:
    """The clocks of an access beside those without a conflict, and by what they are known."""
    if not site.certainty.is_counted:
        clocks, even = site.bound
        took = f"one bank has to give or take {clocks} words, so at least {clocks} clocks; spread evenly, {even}"
        return took, (("known by", "its banks alone: no rule is known for its width"),)
    least = "" if site.certainty is Certainty.EXACT else "up to "
    took = f"lanes meet in a bank, {least}{site.free_clocks + site.worst.extra} clocks instead of {site.free_clocks}"
    return took, (("ways", site.worst.ways),)


def _weigh(around: CodeLoop | None, report: LintReport) -> tuple[Severity, str]:
    """How bad conflicts are where they are, by the predicted clocks of that loop."""
    if around is None:
        return Severity.NOTE, "none in a loop"
    found = report.clocks
    if found is None or not _is_main(around, report):
        why = report.not_lifted or "it isn't the main loop"
        return Severity.WARNING, f"not known: {why}"
    said = f"predicted: {found.cost:.0f} of {found.clocks:.0f} clocks a trip, with all conflicts of the loop"
    if found.matters:
        return Severity.WARNING, said
    return Severity.NOTE, f"{said}; {found.bound_by} hides them"


def _is_main(loop: CodeLoop, report: LintReport) -> bool:
    return report.clocks is not None and report.clocks.place.split("..")[0] == loop.first.place


def _report_loop(loop: CodeLoop, report: LintReport) -> Iterator[Finding]:
    if loop.private:
        yield _report_private(loop, report.facts)
    if copies := loop.copies:
        share = f"{len(copies)} of {len(loop.operations)} instructions"
        yield _make(
            "I603",
            f"the loop {loop.place} copies between VGPRs and AGPRs: {share}",
            (each.instruction for each in copies),
            evidence=(("copies a trip", len(copies)), ("matrix instructions", loop.matrix)),
            fixes=("a matrix instruction takes either file: keep accumulators where vector instructions need them",),
            severity=Severity.WARNING if _MANY_COPIES * len(copies) >= len(loop.operations) else Severity.NOTE,
        )
    yield from _report_lines(loop, report)
    by_name: defaultdict[str, list[Operation]] = defaultdict(list)
    for each in loop.narrow:
        by_name[each.name].append(each)
    for name, some in sorted(by_name.items()):
        size = some[0].access.size if some[0].access is not None else 0
        yield _make(
            "I608",
            f"{name} in the loop {loop.place} moves {several(size, 'byte')} a lane",
            (each.instruction for each in some),
            evidence=(("bytes a lane", size), ("instructions", len(some))),
            fixes=("let each lane move 4 to 16 bytes that lie side by side, and unpack them in registers",),
        )


def _report_lines(loop: CodeLoop, report: LintReport) -> Iterator[Finding]:
    numbers = {each.instruction.line for each in loop.operations}
    scattered: defaultdict[tuple[str, int, int], list[Operation]] = defaultdict(list)
    for each in report.lines:
        if each.are_scattered and each.operation.instruction.line in numbers:
            scattered[each.operation.name, each.lines, each.fewest].append(each.operation)
    for (name, lines, fewest), some in scattered.items():
        yield _make(
            "I608",
            f"{name} in the loop {loop.place}: a wave touches {lines} lines of {LINE_BYTES} bytes, {fewest} would do",
            (each.instruction for each in some),
            evidence=(("lines", lines), ("fewest lines", fewest), ("instructions", len(some))),
            fixes=("let neighbouring lanes access neighbouring bytes: each lane a column, not a row",),
        )


def _report_private(loop: CodeLoop, facts: KernelFacts) -> Finding:
    private = loop.private
    moved = sum(each.access.size * each.access.pieces for each in private if each.access is not None)
    loads = sum(each.access is not None and each.access.verb is MemVerb.LOAD for each in private)
    counted = facts.spills
    what = "accesses private memory" if counted == 0 else "loads and stores what doesn't fit into registers"
    return _make(
        "I602",
        f"the loop {loop.place} {what}: {several(len(private), 'instruction')} a trip",
        (each.instruction for each in private),
        evidence=(
            ("loads", loads),
            ("stores", len(private) - loads),
            ("bytes a lane and trip", moved),
            ("spilled registers by the notes", "not stated" if counted is None else counted),
            ("private bytes a lane", facts.private_bytes),
        ),
        fixes=(
            "let the compiler use more registers: launch bounds or waves_per_eu that ask for fewer waves",
            "take a smaller tile",
            "if it is an array that a variable indexes, unroll the loop around it",
        ),
        severity=Severity.WARNING,
    )


def _report_occupancy(report: LintReport, device: Device | None) -> Iterator[Finding]:
    found = report.occupancy
    if found is None or device is None:
        return
    granule = device.descriptor.vector_granule
    if found.next_vgprs is not None and found.vgprs - found.next_vgprs <= _NEAR * granule:
        yield _make(
            "I604",
            f"{several(found.vgprs - found.next_vgprs, 'register')} fewer would let one workgroup more run",
            (),
            evidence=(("now", str(found)), ("registers for one more", found.next_vgprs)),
            fixes=("a smaller tile, fewer loads ahead, or launch bounds that ask for it; compare the loop's clocks",),
        )
    if found.next_lds is not None and _NEAR_LDS * (found.lds_bytes - found.next_lds) <= found.lds_bytes:
        yield _make(
            "I604",
            f"{found.lds_bytes - found.next_lds} bytes of LDS fewer would let one workgroup more run",
            (),
            evidence=(("now", str(found)), ("bytes of LDS for one more", found.next_lds)),
            fixes=("less padding, or fewer buffers",),
        )


def _report_priorities(report: LintReport, operations: Sequence[Operation]) -> Iterator[Finding]:
    in_loops = {each.number for loop in report.loops for each in loop.operations}
    alone = report.occupancy is not None and report.occupancy.is_alone
    set_twice = find_idle_priorities(operations)
    priorities = [each for each in operations if each.instruction.op_kind is OpKind.PRIORITY]
    idle = [each for each in priorities if each.number in in_loops and (alone or each.number in set_twice)]
    if not idle:
        return
    why = "no two waves of this kernel share a SIMD" if alone else "the wave has that priority already"
    yield _make(
        "I607",
        f"{len(idle)} s_setprio in loops without effect: {why}",
        (each.instruction for each in idle),
        evidence=(("instructions", len(idle)), ("shares its SIMD", "no" if alone else "maybe")),
        fixes=("remove them: each takes an issue turn",),
    )


def find_idle_priorities(operations: Sequence[Operation]) -> frozenset[int]:
    """The instructions that set the priority that the wave has on every way to them."""
    successors = derive_successors(operations)
    levels: list[frozenset[int]] = [frozenset() for _ in operations]
    work = [0] if operations else []
    if operations:
        levels[0] = frozenset({0})
    while work:
        at = work.pop()
        each = operations[at]
        after = levels[at]
        if each.instruction.op_kind is OpKind.PRIORITY:
            after = frozenset({int(each.instruction.operands[0], 0)})
        for following in successors[at]:
            if not after <= levels[following]:
                levels[following] |= after
                work.append(following)
    return frozenset(
        each.number
        for each in operations
        if each.instruction.op_kind is OpKind.PRIORITY
        and levels[each.number] == frozenset({int(each.instruction.operands[0], 0)})
    )


def _report_unneeded(
    report: LintReport, instructions: Sequence[Instruction], block: int | Triple | None
) -> Iterator[Finding]:
    """Waits and barriers without which the proof still succeeds, each alone."""
    needed = find_needed(report.facts, instructions, report.verdict, block=block, policies=Policies())
    if needed is None:
        return
    lines = {each.instruction.line for loop in report.loops for each in loop.operations}
    for each in needed.alone:
        at = instructions[each.number]
        where = "in a loop" if at.line in lines else "outside of loops"
        together = ("with all others of these", "yes" if each in needed.together else "no")
        if each.what in BARRIERS:
            message, code = f"a barrier {where} orders nothing that the proof needs", "I606"
        else:
            message, code = f"a wait for {each.what} {where} is stronger than the proof needs", "I605"
        yield _make(
            code,
            message,
            (at,),
            evidence=(("can be removed", each.describe(instructions)), together),
            fixes=("remove it, and prove the kernel again: `rota check`",),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildComparison:
    """What became worse from one build of a kernel to the next, and what couldn't be compared."""

    name: str
    findings: tuple[Finding, ...]
    not_compared: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        return any(each.severity is Severity.WARNING for each in self.findings)


class _Measure(NamedTuple):
    """A number of two builds; fewer is better unless `more` is."""

    what: str
    old: float
    new: float
    where: str = ""
    more: bool = False
    share: float = 0.0  # of the old number, by which it may become worse

    @property
    def is_worse(self) -> bool:
        if self.more:
            return self.new < self.old
        return self.new > self.old * (1 + self.share)


def compare_reports(old: LintReport, new: LintReport) -> BuildComparison:
    """Compare two builds of a kernel; what isn't known of one of them is named, and never taken for as good."""
    measures, unknown = [*_measure_kernel(old, new), *_measure_loops(old, new)], list[str]()
    clocks, noted = _measure_clocks(old, new), {_REGISTERS}
    if isinstance(clocks, str):
        unknown.append(clocks)
    else:
        measures.append(clocks)
        if clocks.new < clocks.old * (1 - MATTERS):  # registers or LDS that a faster loop takes
            noted |= _PLACES
    unknown += _list_unknown(old, new)
    found = tuple(_report_worse(each, new.name, noted) for each in measures if each.is_worse)
    order = sorted(found, key=lambda each: each.severity is Severity.NOTE)
    return BuildComparison(name=new.name, findings=tuple(order), not_compared=tuple(unknown))


_REGISTERS = "registers"
_WORKGROUPS, _WAVES = "workgroups on a compute unit, at most", "waves on a compute unit, at most"
_PLACES = {_WORKGROUPS, _WAVES}


def _measure_kernel(old: LintReport, new: LintReport) -> Iterator[_Measure]:
    was, now = old.facts, new.facts
    yield _Measure("private bytes a lane", was.private_bytes, now.private_bytes)
    for what, before, after in (
        ("spilled VGPRs by the notes", was.vgpr_spills, now.vgpr_spills),
        ("spilled SGPRs by the notes", was.sgpr_spills, now.sgpr_spills),
    ):
        if before is not None and after is not None:
            yield _Measure(what, before, after)
    if old.occupancy is not None and new.occupancy is not None:
        same = old.occupancy.waves == new.occupancy.waves
        before, after = (each.workgroups * (1 if same else each.waves) for each in (old.occupancy, new.occupancy))
        yield _Measure(_WORKGROUPS if same else _WAVES, before, after, more=True)
    yield _Measure(_REGISTERS, was.vgprs, now.vgprs)


def _measure_loops(old: LintReport, new: LintReport) -> Iterator[_Measure]:
    """Loop by loop if both builds have as many, else all loops together; of all waves where those differ."""
    same = old.verdict.waves == new.verdict.waves
    waves = (1, 1) if same else (old.verdict.waves, new.verdict.waves)
    whose = "" if same else ", of all waves,"
    pairs: list[tuple[tuple[CodeLoop, ...], tuple[CodeLoop, ...]]]
    pairs = [((each,), (other,)) for each, other in zip(old.loops, new.loops, strict=False)]
    if len(old.loops) != len(new.loops) or any(a[0].depth != b[0].depth for a, b in pairs):
        pairs = [(old.loops, new.loops)]
    for before, after in pairs:
        one = len(before) == len(after) == 1
        where = f"in the loop {after[0].place}, which was {before[0].place}" if one else "in all loops"
        for what, count in (
            ("accesses of private memory", lambda loop: len(loop.private)),
            ("copies between VGPRs and AGPRs", lambda loop: len(loop.copies)),
            ("clocks that bank conflicts add to a trip", lambda loop: loop.extra_clocks),
        ):
            was, now = (times * sum(map(count, some)) for times, some in zip(waves, (before, after), strict=True))
            yield _Measure(f"{what}{whose}", was, now, where)


def _measure_clocks(old: LintReport, new: LintReport) -> _Measure | str:
    """The predicted clocks of the main loop for the same work: products, or else bytes from memory."""
    if old.clocks is None or new.clocks is None:
        which, why = ("old", old.not_lifted) if old.clocks is None else ("new", new.not_lifted)
        return f"predicted clocks: those of the {which} build aren't known: {why}"
    for work, was, now in (
        ("million products and sums", old.clocks.flops / 1e6, new.clocks.flops / 1e6),
        ("KiB from memory", old.clocks.moved / 1024, new.clocks.moved / 1024),
    ):
        if was and now:
            what = f"predicted clocks of the main loop for a {work}"
            return _Measure(what, old.clocks.clocks / was, new.clocks.clocks / now, share=MATTERS)
    return "predicted clocks: the main loops multiply nothing and load nothing, or only one of them does"


def _list_unknown(old: LintReport, new: LintReport) -> Iterator[str]:
    counts = [
        sum(not each.certainty.is_counted for loop in report.loops for each in loop.sites) for report in (old, new)
    ]
    if any(counts):
        yield (
            f"bank conflicts of {counts[0]} LDS instructions in loops of the old build and {counts[1]} of the new one "
            "are bounded by the banks alone, or not known"
        )
    if None in {old.facts.spills, new.facts.spills}:
        yield "spilled registers: the notes of a build don't state them"
    if old.occupancy is None or new.occupancy is None:
        yield "occupancy: the machine doesn't state how many waves a SIMD holds"


def _report_worse(each: _Measure, kernel: str, noted: Collection[str]) -> Finding:
    where = f" {each.where}" if each.where else ""
    return Finding(
        "I609",
        f"{kernel}: {each.what}{where}: {each.new:.4g}, before {each.old:.4g}",
        severity=Severity.NOTE if each.what in noted else Severity.WARNING,
        evidence=(
            ("what", each.what),
            ("where", each.where or "the kernel"),
            ("before", f"{each.old:.4g}"),
            ("now", f"{each.new:.4g}"),
        ),
        fixes=("compare what the compilers were given: version, flags, launch bounds; `rota diff` compares the loops",),
    )
