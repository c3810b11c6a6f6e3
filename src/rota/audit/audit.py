"""The audit: how far machine code follows the schedule that it was made from.

What the compiler kept, moved, weakened or added. Between two data instructions only the strongest wait of each counter
on each side of a barrier matters: the compiler fuses adjacent waits. The schedule is then proved again with the waits
and barriers that its code really has.
"""

from __future__ import annotations

import enum
from collections import Counter as Tally, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from rota.audit.identity import VECTOR_OPCODES, wrong_operands, wrong_values
from rota.audit.machine_loop import (
    Expected,
    ExpectedEvent,
    MachineEvent,
    MachineLoop,
    expect_counts,
    expect_gemm,
    expect_opcodes,
    read_machine_loop,
)
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.attention.attention_kernel import attention_shape
from rota.emit.attention.attention_ops import AttentionOps
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_plan import Binder
from rota.emit.gemm.gemm_tile import SCALING_OPCODES, Element, gemm_tile
from rota.emit.gemm.hip_gemm import PACK
from rota.emit.planning import with_register_waits
from rota.emit.text import Addition, check_words
from rota.errors import Finding, IsaError, Severity, several
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction, check_descriptor
from rota.isa.hazards.wait_states import check_spacing
from rota.pipeline.geometry import KernelGeometry
from rota.program.entry import BARRIER, MEETS, Entry, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import Lowerable, LoweredProgram
from rota.program.machine import Machine
from rota.targets.architecture import architecture_of
from rota.targets.device import registers_per_lane
from rota.verify.prove import verify
from rota.verify.report import Certificate, Report

SYNC = (OpKind.WAIT, OpKind.BARRIER)
"""Kinds that are between the others, whose order is the schedule's."""


class WaitVerdict(enum.Enum):
    EQUAL = "equal"
    STRONGER = "stronger"
    WEAKER = "weaker"
    ADDED = "added"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitMatch:
    """One wait after fusing: the counts that the schedule and the machine code name; None is no wait there."""

    phase: Phase
    before: str
    counter: str
    planned: int | None
    found: int | None

    @property
    def verdict(self) -> WaitVerdict:
        if self.planned is None:
            return WaitVerdict.ADDED
        if self.found is None or self.found > self.planned:
            return WaitVerdict.WEAKER
        return WaitVerdict.EQUAL if self.found == self.planned else WaitVerdict.STRONGER

    def __str__(self) -> str:
        planned, found = ("none" if count is None else count for count in (self.planned, self.found))
        return f"{self.phase.value.lower()}, before {self.before}: {self.counter} {planned} became {found}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Pairs of data events where the order was kept, all waits, how many of them were fused away, and findings."""

    pairs: tuple[tuple[ExpectedEvent, MachineEvent], ...]
    waits: tuple[WaitMatch, ...]
    fused: int
    findings: tuple[Finding, ...]


_Data = tuple[OpKind, int]  # with its priority, if it sets one


class _Sync(NamedTuple):
    """A wait with its counts, or a barrier that all waves or one group alone executes."""

    is_barrier: bool = False
    waits: tuple[tuple[str, int], ...] = ()
    alone: bool = False
    exempt: bool = False


class _Stretch(NamedTuple):
    """A phase: its data events, and what synchronises before each of them and after the last."""

    kinds: tuple[_Data, ...]
    gaps: tuple[tuple[_Sync, ...], ...]


def compare(expected: Expected, found: MachineLoop) -> Comparison:
    """All three phases; where the order of a phase differs, its waits can't be compared."""
    pairs: list[tuple[ExpectedEvent, MachineEvent]] = []
    waits: list[WaitMatch] = []
    findings: list[Finding] = []
    fused = 0
    for phase in Phase:
        events = found.phase(phase)
        planned = [event for event in expected[phase] if event.kind not in SYNC]
        coded = [event for event in events if event.kind not in SYNC]
        plan = _split(_list_planned(expected[phase]))
        code = _split(_list_coded(events, in_loop=phase is Phase.KERNEL))
        difference = _first_difference(phase, plan, code, planned, coded)
        if difference is not None:
            findings.append(difference)
            continue
        pairs += zip(planned, coded, strict=True)
        message = f"a branch may skip an instruction of the {phase.value.lower()}, which the schedule always executes"
        findings += (Finding("I202", message, concerns=(event.concern(),)) for event in coded if event.conditional)
        for index, (want, have) in enumerate(zip(plan.gaps, code.gaps, strict=True)):
            closing = index == len(planned) and phase is Phase.EPILOGUE
            where = str(planned[index].entry) if index < len(planned) else "the end"
            findings += _barriers(phase, where, want, have)
            waits += _waits(phase, where, want, have, closing=closing)
            fused += max(0, sum(not each.is_barrier for each in want) - sum(not each.is_barrier for each in have))
    return Comparison(
        pairs=tuple(pairs),
        waits=tuple(waits),
        fused=fused,
        findings=(*findings, *(finding for match in waits for finding in _judge_wait(match))),
    )


def _list_planned(events: Sequence[ExpectedEvent]) -> Iterator[_Sync | _Data]:
    for event in events:
        effect = event.entry.effect
        if event.kind is OpKind.WAIT and effect.counter is not None:
            yield _Sync(waits=((effect.counter, effect.wait_value),))
        elif event.kind is OpKind.BARRIER:
            yield _Sync(is_barrier=True, alone=event.alone)
        else:
            yield event.kind, effect.wait_value


def _list_coded(events: Sequence[MachineEvent], *, in_loop: bool) -> Iterator[_Sync | _Data]:
    for event in events:
        if event.kind is OpKind.WAIT:
            yield _Sync(waits=event.waits, exempt=event.serves_scalars and not in_loop)
        elif event.kind is OpKind.BARRIER:
            yield _Sync(is_barrier=True, alone=event.conditional)
        else:
            yield event.kind, event.level


def _split(events: Iterable[_Sync | _Data]) -> _Stretch:
    kinds: list[_Data] = []
    gaps: list[list[_Sync]] = [[]]
    for event in events:
        if isinstance(event, _Sync):
            gaps[-1].append(event)
        else:
            kinds.append(event)
            gaps.append([])
    return _Stretch(tuple(kinds), tuple(map(tuple, gaps)))


def _first_difference(
    phase: Phase, plan: _Stretch, code: _Stretch, planned: Sequence[ExpectedEvent], coded: Sequence[MachineEvent]
) -> Finding | None:
    if plan.kinds == code.kinds:
        return None
    shorter = min(len(plan.kinds), len(code.kinds))
    at = next((index for index in range(shorter) if plan.kinds[index] != code.kinds[index]), shorter)
    due = (event.entry.concern("due here") for event in planned[at : at + 1])
    here = (event.concern("is here in machine code") for event in coded[at : at + 1])
    return Finding(
        "I202",
        f"the machine code of the {phase.value.lower()} departs from the schedule after {at} instructions",
        concerns=(*due, *here),
        evidence=(
            ("instructions in the schedule", len(plan.kinds)),
            ("instructions in the machine code", len(code.kinds)),
            ("waits in the schedule", _wait_text(plan)),
            ("waits in the machine code", _wait_text(code)),
        ),
    )


def _wait_text(stretch: _Stretch) -> str:
    """How often each wait is in a phase; full drains come first."""
    waits = Tally(wait for gap in stretch.gaps for sync in gap for wait in sync.waits)
    ordered = sorted(waits.items(), key=lambda item: (item[0][1], item[0][0]))
    return ", ".join(f"{times} x {counter}({count})" for (counter, count), times in ordered) or "none"


def _barriers(phase: Phase, where: str, want: Sequence[_Sync], have: Sequence[_Sync]) -> Iterator[Finding]:
    planned = [each.alone for each in want if each.is_barrier]
    coded = [each.alone for each in have if each.is_barrier]
    if planned != coded:
        yield Finding(
            "I205",
            f"{phase.value.lower()}, before {where}: the schedule has {_barrier_text(planned)}, "
            f"the machine code {_barrier_text(coded)}",
            evidence=(("planned", len(planned)), ("found", len(coded))),
        )


def _barrier_text(alone: Sequence[bool]) -> str:
    text = f"{len(alone)} barrier" + ("" if len(alone) == 1 else "s")
    return text + (f", {sum(alone)} of one wave group alone" if any(alone) else "")


def _waits(
    phase: Phase, where: str, want: Sequence[_Sync], have: Sequence[_Sync], *, closing: bool
) -> Iterator[WaitMatch]:
    """Stretches between barriers, one by one; what the machine code waits for after the last entry is its own."""
    for plan, code in zip_longest(_between_barriers(want), _between_barriers(have), fillvalue=()):
        planned, found = _find_strongest(plan), _find_strongest(code)
        needed = () if closing else _find_strongest([each for each in code if not each.exempt])
        for counter in dict.fromkeys((*planned, *needed)):
            counts = {"planned": planned.get(counter), "found": found.get(counter)}
            yield WaitMatch(phase=phase, before=where, counter=counter, **counts)


def _between_barriers(syncs: Sequence[_Sync]) -> list[list[_Sync]]:
    parts: list[list[_Sync]] = [[]]
    for each in syncs:
        if each.is_barrier:
            parts.append([])
        else:
            parts[-1].append(each)
    return parts


def _find_strongest(syncs: Sequence[_Sync]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in syncs:
        for counter, count in each.waits:
            counts[counter] = min(count, counts.get(counter, count))
    return counts


def _judge_wait(match: WaitMatch) -> Iterator[Finding]:
    evidence: tuple[tuple[str, str | int], ...] = (
        ("planned", "no wait" if match.planned is None else match.planned),
        ("found", "no wait" if match.found is None else match.found),
    )
    if match.verdict is WaitVerdict.WEAKER:
        yield Finding("I204", f"the machine code waits for less: {match}", evidence=evidence)
    elif match.verdict is not WaitVerdict.EQUAL:
        yield Finding("I208", f"the compiler waits for more: {match}", severity=Severity.WARNING, evidence=evidence)


def reprove(planned: Lowerable, expected: Expected, found: MachineLoop) -> Report:
    return verify(build_found_program(planned.lowered, expected, found))


def build_found_program(planned: LoweredProgram, expected: Expected, found: MachineLoop) -> LoweredProgram:
    """The data ops as planned, since their order was kept, with the machine code's own synchronisation.

    A wait between the instructions of one op counts as one after the op that lets the rest of it be in flight.
    """
    alone = {phase: iter(_check_alone(expected[phase], found.phase(phase))) for phase in Phase}
    return planned.with_phases({p: list(_entries(expected[p], found.phase(p), p, alone[p])) for p in Phase})


def _check_alone(expected: Sequence[ExpectedEvent], found: Sequence[MachineEvent]) -> list[Entry]:
    """Barriers that some roles execute alone: machine code doesn't say which, so that it must have them all."""
    planned = [event.entry for event in expected if event.kind is OpKind.BARRIER and event.alone]
    skipped = sum(event.kind is OpKind.BARRIER and event.conditional for event in found)
    if len(planned) != skipped:
        raise IsaError.of(
            "I205",
            "the barriers that keep the wave groups apart are not all there"
            if len(planned) > skipped
            else "a branch may skip barriers that the schedule has for all waves",
            concerns=tuple(entry.concern() for entry in planned),
            evidence=(("of one group alone, planned", len(planned)), ("found", skipped)),
        )
    return planned


def _entries(
    expected: Sequence[ExpectedEvent], found: Sequence[MachineEvent], phase: Phase, alone: Iterator[Entry]
) -> Iterator[Entry]:
    """Data entries when their last instruction has come, sync entries where they are found."""
    data = [event for event in expected if event.kind not in SYNC]
    position, held = 0, list[Entry]()
    for event in found:
        if event.kind not in SYNC:
            entry = data[position].entry
            position += 1
            if position == len(data) or data[position].entry is not entry:
                yield entry
                yield from held
                held = []
        elif 0 < position < len(data) and data[position].entry is data[position - 1].entry:
            held += _inside(event, data[position:], phase)
        elif event.kind is OpKind.BARRIER:
            yield next(alone) if event.conditional else Entry(op=BARRIER, effect=MEETS, time_slot=0, phase=phase)
        else:
            yield from (_make_wait(counter, count, phase) for counter, count in event.waits)


def _inside(event: MachineEvent, rest: Sequence[ExpectedEvent], phase: Phase) -> Iterator[Entry]:
    """Waits between instructions of one op, of which `rest` begins with those still to come."""
    op = rest[0].entry
    if event.kind is OpKind.BARRIER:
        raise IsaError.of("I205", f"a barrier is between the instructions of {op.op}", concerns=(op.concern(),))
    to_come = next((number for number, each in enumerate(rest) if each.entry is not op), len(rest))
    for counter, count in event.waits:
        yield _make_wait(counter, count + (to_come if op.effect.counter == counter else 0), phase)


def _make_wait(counter: str, count: int, phase: Phase) -> Entry:
    return Entry(op=wait_op(counter, count), effect=wait_effect(counter, count), time_slot=0, phase=phase)


def with_additions(expected: Expected, additions: Sequence[Addition]) -> Expected:
    """Each addition right before its data instruction or barrier, as if the schedule had it."""
    due: defaultdict[tuple[Phase, int, bool], list[Addition]] = defaultdict(list)
    for each in additions:
        due[each.phase, each.before, each.at_barrier].append(each)
    return {phase: tuple(_insert(phase, events, due)) for phase, events in expected.items()}


def _insert(
    phase: Phase, events: Sequence[ExpectedEvent], due: dict[tuple[Phase, int, bool], list[Addition]]
) -> Iterator[ExpectedEvent]:
    number = 0
    for event in events:
        is_data = event.kind not in SYNC
        if is_data or event.kind is OpKind.BARRIER:
            yield from (_wait(each, event) for each in due.pop((phase, number, not is_data), ()))
        number += is_data
        yield event
    yield from (_wait(each, events[-1]) for each in due.pop((phase, number, False), ()))


def _wait(addition: Addition, event: ExpectedEvent) -> ExpectedEvent:
    op, effect = wait_op(addition.counter, addition.count), wait_effect(addition.counter, addition.count)
    entry = Entry(op=op, effect=effect, time_slot=event.entry.time_slot, phase=addition.phase)
    return ExpectedEvent(kind=OpKind.WAIT, entry=entry)


# Staggered groups run the same instructions; only the branches around three barriers tell them apart.

_GROUPS = 2  # that staggering knows
_Pair = tuple[Entry, MachineEvent]


def wrong_groups(
    expected: Expected, loop: MachineLoop, machine: Machine, waves: int, *, as_emitted: bool
) -> list[Finding]:
    """As emitted, the first half of the waves is group 0; elsewhere any two groups will do that leave no wave out."""
    pairs = [pair for phase in Phase for pair in _alone(expected, loop, phase)]
    if not pairs:
        return []
    from rota.isa.decoded import waves_at

    numbers = [event.number for _, event in pairs]
    reached = waves_at(loop.instructions, architecture_of(machine), waves, numbers, reached=loop.marked)
    found = [reached[event.number] for _, event in pairs]
    each = waves // _GROUPS
    due = [frozenset(wave for wave in range(waves) if entry.executed_by(wave // each)) for entry, _ in pairs]
    if not as_emitted and found[0]:
        first, everyone = pairs[0][0].roles, frozenset(range(waves))
        due = [found[0] if entry.roles == first else everyone - found[0] for entry, _ in pairs]
    return [*_wrong(pairs, due, found)]


def _alone(expected: Expected, loop: MachineLoop, phase: Phase) -> list[_Pair]:
    """Barriers of one group, as planned and as found; none if their numbers differ, which `compare` reports."""
    planned = [event.entry for event in expected[phase] if event.kind is OpKind.BARRIER and event.alone]
    found = [event for event in loop.phase(phase) if event.kind is OpKind.BARRIER and event.conditional]
    return list(zip(planned, found, strict=True)) if len(planned) == len(found) else []


def _wrong(
    pairs: Sequence[_Pair], due: Sequence[frozenset[int]], found: Sequence[frozenset[int] | None]
) -> Iterator[Finding]:
    for (entry, event), planned, have in zip(pairs, due, found, strict=True):
        if have == planned and have:
            continue
        other = "other waves than the schedule's" if have is not None else "waves that can't be told from their number"
        group = ", ".join(map(str, entry.roles or ()))
        yield Finding(
            "I210",
            f"the {entry.phase.value.lower()}'s barrier of group {group} alone is executed by {other}",
            concerns=(entry.concern(), event.concern()),
            evidence=(("due", _show_waves(planned)), ("found", "not known" if have is None else _show_waves(have))),
        )


def _show_waves(waves: frozenset[int]) -> str:
    return "waves " + ", ".join(map(str, sorted(waves))) if waves else "no wave"


def misfits(facts: KernelFacts, instructions: Sequence[Instruction], machine: Machine) -> list[Finding]:
    """What keeps a kernel from running on a machine as it was compiled."""
    found = [*check_descriptor(facts, instructions)]
    needed, there = max(facts.descriptor.lds_bytes, facts.lds_bytes), machine.lds_bytes.value
    if needed > there:
        message = f"the kernel takes more LDS than a workgroup has on {machine.arch}"
        found.insert(0, Finding("I207", message, evidence=(("LDS bytes", f"{needed}, at most {there}"),)))
    if facts.arch != machine.arch:
        message = f"the code object is for {facts.arch}, the schedule for {machine.arch}"
        evidence = ("code object", facts.arch), ("schedule", machine.arch)
        found.insert(0, Finding("I111", message, evidence=evidence))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedUse:
    """Registers that hold data, LDS bytes of the kernel itself, and how many registers a wave may take at all."""

    registers: int
    limit: int
    lds_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What became of a schedule in machine code; `certificate` is the proof on the code's own waits and barriers."""

    name: str
    toolchain: str
    facts: KernelFacts
    prediction: PredictedUse | None
    entries: int
    instructions: int
    waits: tuple[WaitMatch, ...]
    fused: int
    barriers: int
    findings: tuple[Finding, ...]
    certificate: Certificate | None

    @property
    def clean(self) -> bool:
        """The machine code is the schedule, or waits for more."""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def exact(self) -> bool:
        """The machine code is the schedule: nothing moved, added or taken away."""
        return not self.findings

    def tally(self, verdict: WaitVerdict) -> int:
        return sum(match.verdict is verdict for match in self.waits)

    def __str__(self) -> str:
        facts, private = self.facts, self.facts.private_bytes
        waits = ", ".join(f"{self.tally(verdict)} {verdict.value}" for verdict in WaitVerdict)
        predicted = ""
        if self.prediction is not None:
            registers, limit = self.prediction.registers, self.prediction.limit
            predicted = f"; predicted {registers} for data, unless some share; {limit} at most"
        entries, barriers = several(self.entries, "entry"), several(self.barriers, "barrier")
        lines = [
            f"{self.name} by {self.toolchain}: {'the schedule' if self.exact else 'see the findings'}",
            f"  {entries} are {several(self.instructions, 'instruction')}, {barriers}",
            f"  waits: {waits}, {self.fused} fused",
            f"  registers {facts.vgprs} ({_show_count(facts.agprs)} AGPRs), {facts.sgprs} SGPRs{predicted}",
            f"  LDS {facts.lds_bytes} bytes, spills {_show_count(facts.spills)}, private memory {private} bytes",
        ]
        if self.certificate is not None:
            lines.append(f"  on its own waits and barriers {str(self.certificate).splitlines()[0]}")
        return "\n\n".join(["\n".join(lines), *map(str, self.findings)])


def audit_gemm(
    compiled: CompiledSchedule,
    geometry: KernelGeometry,
    code: CodeObject,
    *,
    element: Element | None = None,
    waves: int | None = None,
    kernel: str | None = None,
    products: int = 1,
    bound: Binder = GemmBinding,
    additions: Sequence[Addition] = (),
    dynamic_lds: int = 0,
) -> Audit:
    """An emitted GEMM: order, waits, barriers, and what each instruction works on.

    A whole kernel with a gated epilogue has two `products`: the halves of its B are two matrices'.  A language may deal
    out rows otherwise (`bound`), say in advance which waits its compiler adds, and leave LDS to the launch.
    """
    check_words(compiled.lowered)
    planned = with_register_waits(compiled)
    tile = gemm_tile(planned, geometry, element=element, waves=waves)
    binding = bound(planned, tile)
    expected = with_additions(expect_gemm(planned, binding), additions)
    vector = (PACK,) if tile.pairs else SCALING_OPCODES if tile.block_sums else ()
    loop = read_machine_loop(code.instructions(kernel), vector)
    comparison = compare(expected, loop)
    wrong = [
        *wrong_operands(comparison.pairs, loop, binding, products=products),
        *wrong_groups(expected, loop, planned.machine, tile.waves, as_emitted=True),
    ]
    if vector:  # which the compiler doesn't look into
        wrong += check_spacing(loop.instructions, architecture_of(planned.machine))
    sums = tile.accumulator_registers * (2 if tile.block_sums else 1)
    prediction = PredictedUse(
        registers=sums + tile.fragment_registers * binding.copies,
        limit=registers_per_lane(planned.machine, tile.waves),
        lds_bytes=binding.lds_bytes - dynamic_lds,
    )
    return _audit(planned, code, kernel, (expected, loop, comparison), wrong, prediction=prediction)


def audit_skeleton(
    compiled: CompiledSchedule, code: CodeObject, *, kernel: str | None = None, valu: Collection[str] = ()
) -> Audit:
    """A kernel around a skeleton that issues what the loop declares; `valu` are opcodes of the author's vector ops."""
    check_words(compiled.lowered)
    planned = with_register_waits(compiled)
    expected = expect_counts(planned)
    program = planned.lowered
    kinds = {entry.op.kind for entry in program.entries}
    loop = read_machine_loop(code.instructions(kernel), valu, kinds)
    wrong = wrong_groups(expected, loop, program.machine, program.waves or 0, as_emitted=False)
    return _audit(planned, code, kernel, (expected, loop, compare(expected, loop)), wrong)


def audit_attention(compiled: CompiledSchedule, code: CodeObject, *, kernel: str | None = None) -> Audit:
    """A whole attention forward: order, opcodes, waits, barriers, wait states, and what each instruction works on."""
    check_words(compiled.lowered)
    planned = with_register_waits(compiled)
    program = planned.lowered
    ops = AttentionOps(attention_shape(planned), program)
    expected = expect_opcodes(planned, lambda entry: ops.translate(entry, entry.phase).opcodes)
    loop = read_machine_loop(code.instructions(kernel), VECTOR_OPCODES, {entry.op.kind for entry in program.entries})
    comparison = compare(expected, loop)
    wrong = [*wrong_values(comparison.pairs, ops)]
    wrong += check_spacing(loop.instructions, architecture_of(program.machine))
    limit = registers_per_lane(program.machine, ops.shape.waves)
    prediction = PredictedUse(registers=program.registers or 0, limit=limit, lds_bytes=ops.lds_bytes)
    return _audit(planned, code, kernel, (expected, loop, comparison), wrong, prediction=prediction)


def _audit(
    planned: CompiledSchedule,
    code: CodeObject,
    kernel: str | None,
    compared: tuple[Expected, MachineLoop, Comparison],
    wrong: Sequence[Finding],
    *,
    prediction: PredictedUse | None = None,
) -> Audit:
    facts, (expected, loop, comparison) = code.kernel(kernel), compared
    findings = [*comparison.findings, *wrong, *_resources(facts, prediction)]
    findings += misfits(facts, loop.instructions, planned.machine)
    certificate = None
    if not any(finding.code == "I202" for finding in findings):
        try:
            report = reprove(planned, expected, loop)
        except IsaError as error:
            findings += error.findings
        else:
            findings += report.errors
            certificate = report.certificate
    return Audit(
        name=facts.name,
        toolchain=code.toolchain,
        facts=facts,
        prediction=prediction,
        entries=sum(entry.listed for entry in planned.lowered.entries),
        instructions=len(comparison.pairs),
        waits=comparison.waits,
        fused=comparison.fused,
        barriers=sum(event.kind is OpKind.BARRIER for phase in Phase for event in loop.phase(phase)),
        findings=tuple(sorted(findings, key=lambda finding: list(Severity).index(finding.severity))),
        certificate=certificate,
    )


def _resources(facts: KernelFacts, prediction: PredictedUse | None) -> list[Finding]:
    findings: list[Finding] = []
    if facts.spills != 0 or facts.private_bytes:
        spilled = f"{facts.spills} registers were spilled"
        if facts.spills is None:
            spilled = "the notes don't say how many registers were spilled"
        counts = ("spilled registers", _show_count(facts.spills)), ("private bytes", facts.private_bytes)
        findings.append(Finding("I206", f"{spilled}; reloads add waits of their own", evidence=counts))
    if prediction is None:
        return findings
    registers, lds_bytes = max(facts.vgprs, facts.descriptor.vgprs), facts.descriptor.lds_bytes
    if registers > prediction.limit or lds_bytes != prediction.lds_bytes:
        taken = ("registers", f"{registers}, at most {prediction.limit}")
        lds = ("LDS bytes", f"{lds_bytes}, predicted {prediction.lds_bytes}")
        findings.append(Finding("I207", "the kernel doesn't take what was predicted", evidence=(taken, lds)))
    return findings


def _show_count(count: int | None) -> int | str:
    return "unknown" if count is None else count
