"""Do attention's instructions work on what their entries name: takes paired events, gives a finding for each misfit.

Registers are the compiler's choice, but a value stands where it was made until it is read: they are followed through
the loop, with no trip and with two.  DMAs and LDS reads must name the bytes of their tile.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

from rota.audit.expected import ExpectedEvent
from rota.audit.machine_loop import MachineEvent
from rota.audit.machine_operands import named_registers, wrong_operand
from rota.emit.attention.attention_ops import READ, READ_TRANSPOSED, VECTOR_WORDS, AttentionOps
from rota.emit.attention.attention_shape import INSTRUCTION
from rota.errors import Finding
from rota.program.effects import Place, Space
from rota.program.kinds import OpKind
from rota.program.phase import Phase

Pair = tuple[ExpectedEvent, MachineEvent]
Registers = frozenset[str]
VECTOR_OPCODES = frozenset(f"{word}{suffix}" for word in VECTOR_WORDS for suffix in ("", "_e32", "_e64"))
"""The vector instructions of the loop, as a disassembler may spell them."""
_OFFSET = re.compile(r"offset:(\d+)")
_SUFFIX = re.compile(r"_e(?:32|64)$")
_PATHS = ((Phase.EPILOGUE,), (Phase.KERNEL, Phase.KERNEL, Phase.EPILOGUE))


def wrong_values(pairs: Sequence[Pair], ops: AttentionOps) -> list[Finding]:
    """All findings; registers once for each entry."""
    return [*_wrong_opcodes(pairs), *_wrong_tiles(pairs, ops), *_wrong_reads(pairs, ops), *_wrong_registers(pairs)]


def _wrong_opcodes(pairs: Sequence[Pair]) -> Iterator[Finding]:
    for planned, found in pairs:
        opcode = _SUFFIX.sub("", found.instruction.opcode)
        if opcode != planned.opcode:
            yield wrong_operand(planned, found, "kind of value", planned.opcode, opcode)
        if opcode == INSTRUCTION and found.instruction.modifiers:
            yield wrong_operand(planned, found, "kind of value", "no modifiers", " ".join(found.instruction.modifiers))


def _wrong_tiles(pairs: Sequence[Pair], ops: AttentionOps) -> Iterator[Finding]:
    """Of DMAs the LDS address is a constant of the instruction, and the resource tells K from V."""
    resources: dict[str, Counter[str]] = defaultdict(Counter)
    loads = [(planned, found) for planned, found in pairs if planned.kind is OpKind.DMA]
    for planned, found in loads:
        resources[planned.entry.effect.writes[0].name][found.instruction.operands[1]] += 1
    for planned, found in loads:
        due = ops.lds(planned.entry)
        if found.lds != due:
            yield wrong_operand(planned, found, "LDS byte", due, found.lds)
        usual = resources[planned.entry.effect.writes[0].name].most_common(1)[0][0]
        if found.instruction.operands[1] != usual:
            yield wrong_operand(planned, found, "buffer resource", usual, found.instruction.operands[1])
    if len({counts.most_common(1)[0][0] for counts in resources.values()}) < len(resources):
        yield wrong_operand(*loads[0], "buffer resource", "one for K and one for V", "the same")


def _wrong_reads(pairs: Sequence[Pair], ops: AttentionOps) -> Iterator[Finding]:
    """Reads through one lane address differ only by where their tiles and blocks begin."""
    distances: dict[tuple[str, int, str], Counter[int]] = defaultdict(Counter)
    reads: list[tuple[ExpectedEvent, MachineEvent, tuple[str, int, str], int]] = []
    for entry_pairs in _by_entry(pairs):
        for number, (planned, found) in enumerate(entry_pairs):
            if planned.opcode in (READ, READ_TRANSPOSED):
                lane, starts = ops.fragment_bytes(planned.entry)
                offset = sum(int(match[1]) for text in found.instruction.modifiers if (match := _OFFSET.match(text)))
                where = (planned.opcode, lane, found.instruction.operands[1])
                distances[where][offset - starts[number]] += 1
                reads.append((planned, found, where, offset - starts[number]))
    for planned, found, where, distance in reads:
        if distance != (usual := distances[where].most_common(1)[0][0]):
            yield wrong_operand(planned, found, "LDS byte", usual, distance)
    lanes: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for planned, found, (opcode, lane, register), _ in reads:
        lanes[register].add((opcode, lane))
        if len(lanes[register]) > 1:
            yield wrong_operand(planned, found, "lane address", "one of its own", register)


def _wrong_registers(pairs: Sequence[Pair]) -> Iterator[Finding]:
    """Follow values from where they are made to where they are read."""
    entries: dict[Phase, list[list[Pair]]] = {phase: [] for phase in Phase}
    for group in _by_entry(pairs):
        entries[group[0][0].entry.phase].append(group)
    seen: set[int] = set()
    queries: dict[str, Registers] = {}
    for phases in _PATHS:
        held: dict[Place, Registers] = {}
        for phase in (Phase.PROLOGUE, *phases):
            for group in entries[phase]:
                number = group[0][1].number
                for finding in _followed(group, held, queries):
                    if number not in seen:
                        seen.add(number)
                        yield finding


def _followed(group: Sequence[Pair], held: dict[Place, Registers], queries: dict[str, Registers]) -> Iterator[Finding]:
    planned, found = group[0]
    effect = planned.entry.effect
    targets, sources = zip(*(_operands(event) for _, event in group), strict=True)
    read: Registers = frozenset().union(*sources)
    known: Registers = frozenset()
    for place in effect.reads:
        if place.space is Space.REGISTER and place in held:
            known |= held[place]
            if not held[place] <= read:
                yield wrong_operand(planned, found, str(place), _listed(held[place]), _listed(read))
    if planned.opcode == INSTRUCTION:
        yield from _products(planned, found, read - known, queries)
    for place in effect.writes:
        if place.space is Space.REGISTER:
            last = planned.entry.op.name.startswith("make_m")  # the others are moved for the exchange of lanes
            made: Registers = targets[-1] if last else frozenset().union(*targets)
            for other in [each for each, registers in held.items() if each != place and registers & made]:
                del held[other]
            held[place] = made


def _products(
    planned: ExpectedEvent, found: MachineEvent, rest: Registers, queries: dict[str, Registers]
) -> Iterator[Finding]:
    """What a product reads besides values of the loop: its rows of Q, always the same; in the output's, nothing."""
    name = planned.entry.op.name
    if name.startswith("mma_o"):
        if rest and all(place.name[0] != "o" for place in planned.entry.effect.reads):
            yield wrong_operand(planned, found, "factor", "values of the loop", _listed(rest))
        return
    row, _, step = name.removeprefix("mma_s").split("_")
    due = queries.setdefault(f"{row}_{step}", rest)
    if rest != due:
        yield wrong_operand(planned, found, "part of Q", _listed(due), _listed(rest))
    elif any(rest & others for key, others in queries.items() if key != f"{row}_{step}"):
        yield wrong_operand(planned, found, "part of Q", "one of its own", _listed(rest))


def _operands(event: MachineEvent) -> tuple[Registers, Registers]:
    """What an instruction writes and reads; lanes are exchanged between both of the operands."""
    operands = event.instruction.operands
    first, rest = _registers(operands[0]), frozenset().union(*map(_registers, operands[1:]))
    if "_swap_" in event.instruction.opcode:
        return first | rest, first | rest
    return first, rest


def _by_entry(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    for _, group in groupby(pairs, key=lambda pair: id(pair[0].entry)):
        yield list(group)


def _registers(operand: str) -> Registers:
    return frozenset(named_registers(operand))


def _listed(registers: Registers) -> str:
    return " ".join(sorted(registers, key=lambda each: (each[0], int(each[1:])))) or "nothing"
