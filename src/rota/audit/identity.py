"""Do instructions work on what their entries name?

Addresses and registers are the compiler's choice, but it must choose alike everywhere: a tile's bytes at one distance
from its place in the schedule, a fragment read into the registers that its matrix instructions take, a sum added to in
its own place.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import TypeVar

from rota.audit.machine_loop import (
    ExpectedEvent,
    MachineEvent,
    MachineLoop,
    RegisterSums,
    constant,
    find_written_scalars,
    parse_registers,
    wrong_operand,
)
from rota.emit.attention.attention_ops import INSTRUCTION, READ, READ_TRANSPOSED, VECTOR_WORDS, AttentionOps
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import (
    BlockAdd,
    BoundInstruction,
    ColumnPair,
    Dma,
    Factor,
    LdsRead,
    Mfma,
    PairPack,
    PairRead,
    Piece,
    ScaleDma,
    ScaleRead,
    of_pair,
    of_piece,
    of_scale,
)
from rota.emit.gemm.hip_gemm import COLUMN_HALVES, PACK, PAIR_READ, SCALE_DMA
from rota.errors import Finding
from rota.isa.disassembly import Instruction
from rota.isa.opcodes import IsaUnit
from rota.program.entry import Place, Space
from rota.program.kinds import OpKind, Phase

T = TypeVar("T")
Pair = tuple[ExpectedEvent, MachineEvent]
Register = str
_Piece = tuple[Factor, int, int, int, int]  # operand, copy, part, piece, and which register of it
_Sum = tuple[int, int, int]  # a block of C by its parts of A and B, and which register of it
_BlockSum = tuple[str, int, int, int, int]  # "sum", or what it is "scaled": parts, copy, and which register of it
_Read = tuple[ColumnPair, int]  # of B in pairs of columns, and its copy
_Held = _Piece | _Sum | _BlockSum | _Read | int  # or a constant, in a scalar register
_PATHS = ((Phase.EPILOGUE,), (Phase.KERNEL, Phase.KERNEL, Phase.EPILOGUE))
_OFFSET = re.compile(r"offset:(\d+)")
_COPIES = frozenset({"mov", "accvgpr_mov", "accvgpr_read", "accvgpr_write"})


def wrong_operands(
    pairs: Sequence[Pair], loop: MachineLoop, binding: GemmBinding, *, products: int = 1
) -> list[Finding]:
    """All findings, in the order of the machine code; with two `products`, the halves of B are two matrices'."""
    return [
        *_wrong_opcodes(pairs, binding),
        *_wrong_dmas(pairs, binding, products),
        *_wrong_addresses(pairs, loop, binding),
        *_wrong_registers(pairs, loop, binding),
    ]


def _wrong_opcodes(pairs: Sequence[Pair], binding: GemmBinding) -> Iterator[Finding]:
    """Of the right kind, but of another width or element; no modifier of a matrix instruction means something else."""
    for planned, found in pairs:
        instruction = found.instruction
        due, *wanted = _due_opcode(planned.bound, binding) or (instruction.opcode,)
        modifiers = instruction.modifiers if isinstance(planned.bound, Mfma | BlockAdd) else ()
        if instruction.opcode != due or [*modifiers] != wanted:
            have = " ".join((instruction.opcode, *modifiers))
            yield wrong_operand(planned, found, "kind of element", " ".join((due, *wanted)), have)


def _due_opcode(bound: BoundInstruction | None, binding: GemmBinding) -> tuple[str, ...]:
    """The opcode that something bound has, and its modifiers; nothing if nothing is bound."""
    tile = binding.tile
    match bound:
        case Mfma():
            return binding.matrix_instruction(bound.step)
        case LdsRead():
            return (tile.read_instruction(bound.operand),)
        case ScaleRead():
            return (tile.scale_read_instruction(bound.operand),)
        case BlockAdd():
            return bound.opcode, *bound.modifiers
        case None:
            return ()
    return ({Dma: tile.dma_instruction, ScaleDma: SCALE_DMA, PairRead: PAIR_READ, PairPack: PACK}[type(bound)],)


def _wrong_dmas(pairs: Sequence[Pair], binding: GemmBinding, products: int) -> Iterator[Finding]:
    """The LDS address is a constant of the instruction; the resource tells A from B, and one B from another."""
    tile = binding.tile
    each_matrix = tile.dmas(Factor.B) // products

    def matrix(dma: Dma | ScaleDma) -> tuple[object, int]:
        if isinstance(dma, ScaleDma):
            return (ScaleDma, dma.operand), 0
        return dma.operand, dma.number // each_matrix if dma.operand is Factor.B else 0

    resources: dict[tuple[object, int], Counter[str]] = defaultdict(Counter)
    for planned, found in pairs:
        if isinstance(planned.bound, Dma | ScaleDma):
            resources[matrix(planned.bound)][found.instruction.operands[1]] += 1
    usual = {held: _find_usual(seen) for held, seen in resources.items()}
    starts = _starts(pairs, binding)
    for planned, found in pairs:
        dma = planned.bound
        if not isinstance(dma, Dma | ScaleDma):
            continue
        lds = _start(dma, binding)
        if found.lds is not None and (have := (found.lds - starts[found.lds_base, dma.operand]) % 2**32) != lds:
            yield wrong_operand(planned, found, "LDS byte", lds, have)
        if binding.states_addresses and found.instruction.operands[1] != usual[matrix(dma)]:
            yield wrong_operand(planned, found, "buffer resource", usual[matrix(dma)], found.instruction.operands[1])


def _starts(pairs: Sequence[Pair], binding: GemmBinding) -> dict[tuple[str, Factor], int]:
    """For each register that a DMA's address in LDS is counted from, and each operand, where its buffers begin."""
    distances: dict[tuple[str, Factor], Counter[int]] = defaultdict(Counter)
    for planned, found in pairs:
        dma = planned.bound
        if isinstance(dma, Dma | ScaleDma) and found.lds is not None:
            distances[found.lds_base, dma.operand][(found.lds - _start(dma, binding)) % 2**32] += 1
    return {key: 0 if binding.states_addresses else _find_usual(counts) for key, counts in distances.items()}


def _start(dma: Dma | ScaleDma, binding: GemmBinding) -> int:
    """Its LDS byte: B's buffers lie after A's, and scales after both."""
    if isinstance(dma, ScaleDma):
        return dma.lds + binding.scale_start(dma.operand)
    return dma.lds + (binding.buffer_bytes(Factor.A) if dma.operand is Factor.B else 0)


def _find_usual(counts: Counter[T]) -> T:
    return counts.most_common(1)[0][0]


def _read_offset(instruction: Instruction) -> int:
    return sum(int(match[1]) for text in instruction.modifiers if (match := _OFFSET.match(text)))


def _wrong_addresses(pairs: Sequence[Pair], loop: MachineLoop, binding: GemmBinding) -> Iterator[Finding]:
    """Reads through one lane address, of a piece or a part, differ only by where their tiles and parts begin."""
    reads_of = LdsRead | ScaleRead | PairRead
    wanted = {found.number for planned, found in pairs if isinstance(planned.bound, reads_of)}
    sums, bases = RegisterSums(), dict[int, tuple[str, int]]()
    for number, each in enumerate(loop.instructions):
        if number in wanted:
            bases[number] = sums.of(each.operands[1])
        sums.step(each)
    distances: dict[tuple[object, ...], Counter[int]] = defaultdict(Counter)
    reads: list[tuple[ExpectedEvent, MachineEvent, tuple[object, ...], int, int]] = []
    for planned, found in pairs:
        read = planned.bound
        if isinstance(read, reads_of):
            base, added = bases[found.number]
            added += _read_offset(found.instruction)
            key: tuple[object, ...] = (*_lane(read, binding), base)
            distances[key][added - read.lds] += 1
            reads.append((planned, found, key, read.lds, added))
    for planned, found, where, lds, added in reads:
        usual = _find_usual(distances[where])
        if added - lds != usual:
            yield wrong_operand(planned, found, "LDS byte", lds, added - usual)


def _lane(read: LdsRead | ScaleRead | PairRead, binding: GemmBinding) -> tuple[Factor, object]:
    """Whose lane address a read goes by, and which of them."""
    if isinstance(read, ScaleRead):
        return read.operand, "scales"
    if isinstance(read, PairRead):
        return Factor.B, binding.lane(binding.read_of(read.pair))
    return read.operand, binding.lane(Piece(read.operand, read.part, read.piece))


def _wrong_registers(pairs: Sequence[Pair], loop: MachineLoop, binding: GemmBinding) -> Iterator[Finding]:
    """Follow fragments through registers: with no trip, and with two, since a trip takes what the one before left."""
    by_number = {found.number: (planned, found) for planned, found in pairs}
    spans = {
        Phase.PROLOGUE: range(loop.first),
        Phase.KERNEL: range(loop.first, loop.last + 1),
        Phase.EPILOGUE: range(loop.last + 1, len(loop.instructions)),
    }
    seen: set[int] = set()
    for phases in _PATHS:
        held: dict[Register, _Held] = {}
        for number in chain.from_iterable(spans[phase] for phase in (Phase.PROLOGUE, *phases)):
            each = loop.instructions[number]
            if number in by_number:
                for finding in _follow(*by_number[number], held, binding):
                    if number not in seen:
                        seen.add(number)
                        yield finding
            else:
                _move(each, held)


def _move(instruction: Instruction, held: dict[Register, _Held]) -> None:
    """Follow a copy; a scalar register has a constant until it is written again."""
    opcode, operands = instruction.opcode, instruction.operands
    if instruction.spec.root in _COPIES and instruction.spec.unit is IsaUnit.VALU:
        sources = parse_registers(operands[1]) or [""] * 2
        for target, source in zip(parse_registers(operands[0]), sources, strict=False):
            if source in held:
                held[target] = held[source]
            else:
                held.pop(target, None)
        return
    for register in find_written_scalars(instruction):
        held.pop(register, None)
        if opcode == "s_mov_b32" and (number := constant(operands[1])) is not None:
            held[register] = number


def _follow(
    planned: ExpectedEvent, found: MachineEvent, held: dict[Register, _Held], binding: GemmBinding
) -> Iterator[Finding]:
    bound, operands = planned.bound, found.instruction.operands
    if isinstance(bound, LdsRead | ScaleRead | PairRead):
        for index, register in enumerate(parse_registers(operands[0])):
            if isinstance(bound, PairRead):
                held[register] = bound.pair, bound.copy
            elif isinstance(bound, ScaleRead):
                held[register] = _scale(bound.operand, bound.copy, bound.part, index)
            else:
                held[register] = bound.operand, bound.copy, bound.part, bound.piece, index
    elif isinstance(bound, PairPack):
        yield from _wrong_pairs(planned, bound, found, held)
        held[operands[0]] = Factor.B, bound.copy, bound.part, bound.piece, bound.register
    elif isinstance(bound, BlockAdd):
        yield from _follow_add(planned, bound, found, held)
    elif isinstance(bound, Mfma):
        yield from _follow_product(planned, bound, found, held, binding)


def _follow_product(
    planned: ExpectedEvent, mfma: Mfma, found: MachineEvent, held: dict[Register, _Held], binding: GemmBinding
) -> Iterator[Finding]:
    operands = found.instruction.operands
    for operand, copy, text in zip(Factor, mfma.scale_copies, operands[4:], strict=False):
        wanted = _scale(operand, copy, mfma.factor(operand)[0])
        if (scale := held.get(text)) != wanted:
            yield wrong_operand(planned, found, f"scales of {operand.name} in {text}", _show(wanted), _show(scale))
    for operand, text in ((Factor.A, operands[1]), (Factor.B, operands[2])):
        due = list(_due(mfma, operand, binding))
        have = [held.get(register) for register in parse_registers(text)]
        if have != due:
            shown = ", ".join(sorted({_show(piece) for piece in have}))
            yield wrong_operand(planned, found, f"{operand.name} in {text}", _show(due[0]), shown)
    block, indices = (mfma.a_part, mfma.b_part), range(len(parse_registers(operands[0])))
    if mfma.sum_copy is None:
        yield from _check_sum(planned, found, held, [(*block, index) for index in indices])
        return
    summed: list[_Held] = [("sum", *block, mfma.sum_copy, index) for index in indices]
    before = [held.get(register) for register in parse_registers(operands[3])]
    if (before != summed) if mfma.step else (operands[3] != "0"):
        yield wrong_operand(planned, found, "sum of a block", _show(summed[0]) if mfma.step else "0", operands[3])
    _forget(held, summed)
    held.update(zip(parse_registers(operands[0]), summed, strict=True))


def _check_sum(
    planned: ExpectedEvent, found: MachineEvent, held: dict[Register, _Held], sums: Sequence[_Held]
) -> Iterator[Finding]:
    """What an instruction adds to, its fourth operand, must be where the sums are; its result is, from then on."""
    operands = found.instruction.operands
    have = [held.get(register) for register in parse_registers(operands[3])]
    if have != [*sums] and (any(have) or set(sums) & set(held.values())):
        usual = " ".join(register for register, each in held.items() if each in sums)
        yield wrong_operand(planned, found, "accumulator", usual or "a new one", f"{operands[0]} from {operands[3]}")
    _forget(held, sums)
    held.update(zip(parse_registers(operands[0]), sums, strict=True))


def _follow_add(
    planned: ExpectedEvent, add: BlockAdd, found: MachineEvent, held: dict[Register, _Held]
) -> Iterator[Finding]:
    """Half of a block's sum and B's scale, of which both take the first register; or what they made, and A's."""
    operands = found.instruction.operands
    if found.instruction.opcode != add.opcode:  # a finding of its own
        return
    target = parse_registers(operands[0])
    indices = range(add.half * len(target), (add.half + 1) * len(target))
    a_copy, b_copy = add.scale_copies
    block = add.a_part, add.b_part, add.sum_copy
    scales: list[_Held] = [_scale(Factor.A, a_copy, add.a_part, index) for index in indices]
    if not add.adds:
        scales = [_scale(Factor.B, b_copy, add.b_part)]
    halves: list[_Held] = [("scaled" if add.adds else "sum", *block, index) for index in indices]
    for what, due, text in (("sum of a block", halves, operands[1]), ("scales", scales, operands[2])):
        have = [held.get(register) for register in parse_registers(text)][: len(due)]
        if have != due:
            shown = ", ".join(sorted({_show(each) for each in have}))
            yield wrong_operand(planned, found, f"{what} in {text}", _show(due[0]), shown)
    if add.adds:
        yield from _check_sum(planned, found, held, [(add.a_part, add.b_part, index) for index in indices])
        return
    held.update(zip(target, (("scaled", *block, index) for index in indices), strict=True))


def _wrong_pairs(
    planned: ExpectedEvent, pack: PairPack, found: MachineEvent, held: dict[Register, _Held]
) -> Iterator[Finding]:
    high, low, halves = (held.get(register) for register in found.instruction.operands[1:])
    due = list(zip(pack.sources, pack.copies, strict=True))
    if [low, high] != due:
        have = ", ".join(map(_show, (low, high)))
        yield wrong_operand(planned, found, "pair of columns", ", ".join(map(_show, due)), have)
    if halves != (column := COLUMN_HALVES[pack.part % 2]):
        yield wrong_operand(planned, found, "column of a pair", _show(column), _show(halves))


def _scale(operand: Factor, copy: int, part: int, index: int = 0) -> _Piece:
    """The scales of a part, as a piece before its first."""
    return operand, copy, part, -1, index


def _due(mfma: Mfma, operand: Factor, binding: GemmBinding) -> Iterator[_Piece]:
    part, copies = mfma.factor(operand)
    for piece, copy in enumerate(copies, mfma.step * len(copies)):
        for index in range(binding.tile.piece_bytes(operand) // 4):
            yield operand, copy, part, piece, index


def _forget(held: dict[Register, _Held], sums: Sequence[_Held]) -> None:
    """A sum is in one place: where it was last written to."""
    for register in [register for register, each in held.items() if each in sums]:
        del held[register]


def _show(piece: _Held | None) -> str:
    if piece is None:
        return "nothing that was read"
    if isinstance(piece, int):
        return f"{piece:#x}"
    if isinstance(piece[0], ColumnPair):
        return str(of_pair(piece[0], piece[1]))
    if isinstance(piece[0], Factor):
        return str(of_scale(*piece[:3]) if piece[3] < 0 else of_piece(*piece[:4]))
    if isinstance(piece[0], str):
        return f"{piece[0]}[{piece[3]}][{piece[1]}][{piece[2]}]"
    return f"c[{piece[0]}][{piece[1]}]"


Registers = frozenset[str]
VECTOR_OPCODES = frozenset(f"{word}{suffix}" for word in VECTOR_WORDS for suffix in ("", "_e32", "_e64"))
"""The vector instructions of the loop, as a disassembler may spell them."""
_SUFFIX = re.compile(r"_e(?:32|64)$")


def wrong_values(pairs: Sequence[Pair], ops: AttentionOps) -> Iterator[Finding]:
    """Whether attention's instructions work on what their entries name; registers once for each entry.

    Registers are the compiler's choice, but a value is where it was made until it is read: they are followed through
    the loop, with no trip and with two.  DMAs and LDS reads must name the bytes of their tile.
    """
    for planned, found in pairs:
        opcode = _SUFFIX.sub("", found.instruction.opcode)
        if opcode != planned.opcode:
            yield wrong_operand(planned, found, "kind of value", planned.opcode, opcode)
        if opcode == INSTRUCTION and found.instruction.modifiers:
            yield wrong_operand(planned, found, "kind of value", "no modifiers", " ".join(found.instruction.modifiers))
    yield from _wrong_tiles(pairs, ops)
    yield from _wrong_reads(pairs, ops)
    yield from _wrong_attention_registers(pairs)


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
        usual = _find_usual(resources[planned.entry.effect.writes[0].name])
        if found.instruction.operands[1] != usual:
            yield wrong_operand(planned, found, "buffer resource", usual, found.instruction.operands[1])
    if len({_find_usual(counts) for counts in resources.values()}) < len(resources):
        yield wrong_operand(*loads[0], "buffer resource", "one for K and one for V", "the same")


def _wrong_reads(pairs: Sequence[Pair], ops: AttentionOps) -> Iterator[Finding]:
    """Reads through one lane address differ only by where their tiles and blocks begin."""
    distances: dict[tuple[str, int, str], Counter[int]] = defaultdict(Counter)
    reads: list[tuple[ExpectedEvent, MachineEvent, tuple[str, int, str], int]] = []
    for entry_pairs in _by_entry(pairs):
        for number, (planned, found) in enumerate(entry_pairs):
            if planned.opcode in (READ, READ_TRANSPOSED):
                lane, starts = ops.fragment_bytes(planned.entry)
                distance = _read_offset(found.instruction) - starts[number]
                where = (planned.opcode, lane, found.instruction.operands[1])
                distances[where][distance] += 1
                reads.append((planned, found, where, distance))
    for planned, found, where, distance in reads:
        if distance != (usual := _find_usual(distances[where])):
            yield wrong_operand(planned, found, "LDS byte", usual, distance)
    lanes: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for planned, found, (opcode, lane, register), _ in reads:
        lanes[register].add((opcode, lane))
        if len(lanes[register]) > 1:
            yield wrong_operand(planned, found, "lane address", "one of its own", register)


def _wrong_attention_registers(pairs: Sequence[Pair]) -> Iterator[Finding]:
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
                for finding in _follow_attention(group, held, queries):
                    if number not in seen:
                        seen.add(number)
                        yield finding


def _follow_attention(
    group: Sequence[Pair], held: dict[Place, Registers], queries: dict[str, Registers]
) -> Iterator[Finding]:
    planned, found = group[0]
    effect = planned.entry.effect
    targets, sources = zip(*(_parse_operands(event) for _, event in group), strict=True)
    read: Registers = frozenset().union(*sources)
    known: Registers = frozenset()
    for place in effect.reads:
        if place.space is Space.REGISTER and place in held:
            known |= held[place]
            if not held[place] <= read:
                yield wrong_operand(planned, found, str(place), _list_registers(held[place]), _list_registers(read))
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
            yield wrong_operand(planned, found, "factor", "values of the loop", _list_registers(rest))
        return
    row, _, step = name.removeprefix("mma_s").split("_")
    due = queries.setdefault(f"{row}_{step}", rest)
    if rest != due:
        yield wrong_operand(planned, found, "part of Q", _list_registers(due), _list_registers(rest))
    elif any(rest & others for key, others in queries.items() if key != f"{row}_{step}"):
        yield wrong_operand(planned, found, "part of Q", "one of its own", _list_registers(rest))


def _parse_operands(event: MachineEvent) -> tuple[Registers, Registers]:
    """What an instruction writes and reads; a swap exchanges lanes between its operands."""
    first, *others = (frozenset(parse_registers(each)) for each in event.instruction.operands)
    rest = frozenset[str]().union(*others)
    return (first | rest, first | rest) if event.instruction.spec.swaps else (first, rest)


def _by_entry(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    for _, group in groupby(pairs, key=lambda pair: id(pair[0].entry)):
        yield list(group)


def _list_registers(registers: Registers) -> str:
    return " ".join(sorted(registers, key=lambda each: (each[0], int(each[1:])))) or "nothing"
