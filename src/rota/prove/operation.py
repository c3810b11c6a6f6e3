"""What the proof needs to know of an instruction, as data: its registers, memory accesses and waits.

A set of registers is a number with bit r for row r, as `rota.isa.wave.operand` numbers rows.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from rota.errors import IsaError
from rota.isa.disassembly import Instruction
from rota.isa.hazards.dependency_waits import sets_known_mode
from rota.isa.opcodes import ARRIVES_LATER, IsaFlow, IsaUnit, MemAccess, MemSpace, MemVerb, Opcode, Trait, wait_counts
from rota.isa.registers import EXEC, M0, NAMED, SCALAR, SCC, TRAP_ROWS, is_beyond, rows_in
from rota.isa.wave.operand import File, Operand, parse_operand
from rota.prove.tensor_copies import BARRIER, NEEDED
from rota.targets.architecture import Architecture, Traffic

SCC_ROW = SCALAR + SCC
VECTORS = (1 << SCALAR) - 1
EXEC_BITS = 0b11 << SCALAR + EXEC
SCC_BIT, M0_BIT = 1 << SCC_ROW, 1 << SCALAR + M0
SLOTS = 2048  # the first row of spill slots: words of private memory that the kernel addresses by constants only


class OperationKind(enum.Enum):
    __hash__ = object.__hash__  # members are single, and this one is fast
    VALUE = "computes registers"
    LDS = "accesses LDS"
    EXCHANGE = "exchanges lanes through the LDS unit"
    VMEM = "accesses global or private memory"
    SMEM = "accesses memory from the scalar unit"
    WAIT = "waits for counters"
    BARRIER = "waits at a barrier"
    SIGNAL = "signals a barrier"
    ARRIVAL = "arrives at a barrier in LDS"
    BRANCH = "branches"
    CALL = "jumps to an address in registers"
    END = "ends the wave"
    QUIET = "does nothing that the proof judges"
    INDEX = "sets the register index"


class CountedBy(NamedTuple):
    """The counters that count a memory op, and whether it returns in the order of issue: `among` its kind, if not all.

    A flat op counts as vector memory and, as the last, as LDS: it is complete after waits for both.
    """

    counters: tuple[str, ...]
    in_order: bool = False
    among: str = ""


NOT_COUNTED = CountedBy(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One instruction: the registers that it reads and writes, its operands, and what it accesses.

    `extents` are the bytes that an LDS op accesses, as offsets from its address and sizes.  `verb` is read, write or
    atomic for LDS ops, load, store or atomic for others, and wait if a barrier has to be signalled before.  `data` are
    the registers that a load fills, `address` those of an LDS address, `slots` the spill slots that it loads or stores.
    `copies` says how an instruction that accesses LDS beside global memory does it: dma for a load to LDS, copy for a
    store from there; a `tensor` copy is described by scalar registers.  `to_lds` are the bytes per lane of a load to
    LDS whose lanes follow M0.  `waits` are the counts of a wait by counter, `indexed` the mode bits of index mode.
    `keeps_target` says that a part of the target stays as it was, `holds_data` that a store reads `data` until a wait
    covers it.  `parts` are the bits of each operand that SDWA reads: the first, and how many.  A read that `polls` a
    barrier in LDS has the first and the last operation of its loop there; a tensor copy has it where somebody polls.
    """

    number: int
    instruction: Instruction
    name: str
    kind: OperationKind
    reads: int = 0
    writes: int = 0
    operands: tuple[Operand, ...] = ()
    unmodelled: bool = False
    verb: str = ""
    extents: tuple[tuple[int, int], ...] = ()
    data: int = 0
    copies: str = ""
    to_lds: int = 0
    tensor: bool = False
    flat: bool = False
    address: int = 0
    slots: tuple[int, ...] = ()
    waits: tuple[tuple[str, int], ...] = ()
    counted_by: CountedBy = NOT_COUNTED
    indexed: int = 0
    targets: int = 1
    keeps_target: bool = False
    holds_data: bool = False
    polls: tuple[int, ...] = ()
    parts: tuple[tuple[int, int], ...] = ()

    @property
    def spec(self) -> Opcode:
        return self.instruction.spec

    @property
    def access(self) -> MemAccess | None:
        return self.instruction.spec.access

    @property
    def is_global(self) -> bool:
        """True if it accesses global memory, or may: flat accesses name any memory."""
        access = self.access
        if access is None or self.kind not in _REACHING:
            return False
        return access.space in _GLOBAL and not access.private

    @property
    def is_vector(self) -> bool:
        return self.instruction.spec.unit.computes_lanes and not self.instruction.spec.is_scalar


_REACHING = frozenset({OperationKind.VMEM, OperationKind.SMEM})
_GLOBAL = frozenset({MemSpace.GLOBAL, MemSpace.FLAT, MemSpace.SCALAR})


class UnknownOperationError(Exception):
    def __init__(self, instruction: Instruction, what: str = "") -> None:
        super().__init__(what)
        self.instruction, self.what = instruction, what


def rows_of(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def _mask(rows: Iterable[int]) -> int:
    return sum(1 << row for row in rows)


def _parse_operands(instruction: Instruction, count: int | None = None) -> tuple[Operand, ...]:
    """Its operands; of half a register, the whole."""
    return tuple(_parse_operand(text, instruction) for text in instruction.operands[:count])


def _parse_operand(text: str, instruction: Instruction) -> Operand:
    return parse_operand(_HALF.sub("", text), instruction)


_HALF = re.compile(r"\.[lh](?=\||\)|$)")


_WORKGROUP = (("-1",), ("0xffff",))  # the barrier of a workgroup, as a number of the encoding and as its bits
_FLOWS = {
    IsaFlow.WAIT: OperationKind.WAIT, IsaFlow.BARRIER: OperationKind.BARRIER, IsaFlow.END: OperationKind.END,
    IsaFlow.SIGNAL: OperationKind.SIGNAL, IsaFlow.JOIN: OperationKind.BARRIER,
    IsaFlow.BRANCH: OperationKind.BRANCH, IsaFlow.JUMP: OperationKind.BRANCH, IsaFlow.CALL: OperationKind.CALL,
    IsaFlow.INDIRECT: OperationKind.CALL, IsaFlow.INDIRECT_CALL: OperationKind.CALL,
}  # fmt: skip
_BARRIER_VERBS = {"barrier_init": "init", "barrier_join": "join"}
_LDS_VERBS = {MemVerb.LOAD: "read", MemVerb.STORE: "write", MemVerb.ATOMIC: "atomic"}
_LEAST_TO_LDS = 4  # bytes per lane


def read_operation(instruction: Instruction, number: int, architecture: Architecture) -> Operation:
    """Read one instruction; raises UnknownOperationError for one that the proof doesn't know."""
    spec, traffic = instruction.spec, instruction.traffic
    if not spec.is_modelled:
        raise UnknownOperationError(instruction)
    if traffic is not None and not any(traffic in queue.counts for queue in architecture.queues):
        raise UnknownOperationError(instruction, "counter")
    try:
        registers = instruction.registers
        _refuse_unmodelled(instruction, architecture)
        reads = _mask(registers.reads) | (EXEC_BITS if spec.obeys_exec else 0)
        make = partial(
            Operation, number=number, instruction=instruction, name=spec.name, reads=reads,
            writes=_mask(registers.writes),
        )  # fmt: skip
        if spec.access is not None:
            return _read_memory(make, instruction, spec.access)
        if spec.unit is IsaUnit.VMEM and traffic is not None:  # of caches: only its counter sees it
            return make(kind=OperationKind.VMEM, verb="cache")
        if spec.root in _BARRIER_VERBS and spec.unit is IsaUnit.CONTROL:
            return _read_named(make, instruction, _BARRIER_VERBS[spec.root])
        if spec.flow in _FLOWS:
            return _read_control(make, instruction, architecture)
        return _read_value(make, instruction)
    except (IsaError, LookupError, ValueError) as error:
        raise UnknownOperationError(instruction, "form") from error


# Launches of some machines put a wave's number into bits 29 to 25 of a register; nothing is known of the others.
WAVE_ROW, WAVE_SHIFT = SCALAR + NAMED["ttmp8"][0], 25
_WAVE_NUMBER = ("s_bfe_u32", "ttmp8", "0x50019")  # how it is read

# Fields that no address depends on: rounding and denormals, and the bit that compilers set first in every kernel.
_KNOWN_MODES = re.compile(r"hwreg\(HW_REG_WAVE_MODE, *(?:0, *[1-8]|2, *[1-6]|4, *[1-4]|6, *[12]|25, *1)\)")


def _refuse_unmodelled(instruction: Instruction, architecture: Architecture) -> None:
    """Raises UnknownOperationError for what depends on rules of the machine that the proof doesn't have."""
    spec, registers = instruction.spec, instruction.registers
    rows = registers.reads | registers.writes
    accumulators = architecture.descriptor.accumulators
    if any(is_beyond(text, accumulators=accumulators) for text in instruction.operands):
        raise UnknownOperationError(instruction, "register that the machine lacks")
    launch_fills = not architecture.descriptor.workgroup_ids
    if not TRAP_ROWS.isdisjoint(registers.writes if launch_fills else rows):
        raise UnknownOperationError(instruction, "register of trap handlers")
    if not architecture.assumed:
        return
    if spec.unit is IsaUnit.MATRIX and all(each.name != spec.name for each in architecture.matrix_forms):
        raise UnknownOperationError(instruction, "distance from other instructions")
    is_known = _KNOWN_MODES.search(instruction.text) is not None or sets_known_mode(instruction)
    if Trait.SETS_MODE in spec.traits and not is_known:
        raise UnknownOperationError(instruction, "mode")
    if spec.access is not None and (spec.access.private or instruction.is_flat):
        raise UnknownOperationError(instruction, "address space")
    if WAVE_ROW in rows and (spec.name, *instruction.operands[1:]) != _WAVE_NUMBER:
        raise UnknownOperationError(instruction, "register of trap handlers")


def _read_control(make: Callable[..., Operation], instruction: Instruction, architecture: Architecture) -> Operation:
    flow, operands, verb = instruction.spec.flow, tuple[Operand, ...](), ""
    kind, waits = _FLOWS[flow], tuple[tuple[str, int], ...]()
    if instruction.spec.name == "s_wait_idle":
        waits = tuple((queue.counter, 0) for queue in architecture.queues)
    elif flow is IsaFlow.WAIT:
        waits = tuple(wait_counts(instruction.spec, instruction.text, architecture).items())
    elif flow in {IsaFlow.SIGNAL, IsaFlow.JOIN}:
        verb = _read_barrier(instruction, architecture)
        if verb == "signal named":
            return _read_named(make, instruction, verb)
    elif kind is OperationKind.CALL:
        operands = _parse_operands(instruction, 1 if flow is IsaFlow.CALL else None)
    elif Trait.SKIPS in instruction.spec.traits:
        operands = _parse_operands(instruction)
    elif kind is OperationKind.BRANCH and instruction.target is None:
        raise UnknownOperationError(instruction, "target")
    return make(kind=kind, waits=waits, operands=operands, verb=verb)


def _read_barrier(instruction: Instruction, architecture: Architecture) -> str:
    verb = "wait" if instruction.spec.flow is IsaFlow.JOIN else "signal"
    if architecture.split_barrier and instruction.operands in _WORKGROUP:
        return verb
    if architecture.descriptor.named_barriers and _NAMED.fullmatch(instruction.operands[0]):
        return f"{verb} named"
    raise UnknownOperationError(instruction)


_NAMED = re.compile(r"m0|[1-9]|1[0-6]")


def _read_named(make: Callable[..., Operation], instruction: Instruction, verb: str) -> Operation:
    """A named barrier, by M0 or a constant."""
    operands = _parse_operands(instruction)
    return make(kind=OperationKind.SIGNAL, verb=verb, operands=operands, address=M0_BIT if operands[0].rows else 0)


def _read_memory(make: Callable[..., Operation], instruction: Instruction, access: MemAccess) -> Operation:
    registers, returns = instruction.registers, instruction.returns
    data = _mask(registers.writes) if returns else 0
    if access.space is MemSpace.SCALAR:
        return make(
            kind=OperationKind.SMEM, data=_mask(registers.data), operands=_parse_operands(instruction),
            verb=access.verb.value, holds_data=not returns,
        )  # fmt: skip
    if access.verb is MemVerb.EXCHANGE:
        gathers = instruction.spec.root == "bpermute"
        return make(kind=OperationKind.EXCHANGE, data=data, operands=_parse_operands(instruction) if gathers else ())
    if access.atomic in _ARRIVALS:
        place, *counts = _parse_operands(instruction)[int(returns) :]
        needed = _mask(row for each in (place, *counts) for row in each.rows)
        return make(
            kind=OperationKind.ARRIVAL, data=data, operands=(place, *counts), address=needed, verb=access.atomic,
        )  # fmt: skip
    if access.space is MemSpace.LDS:
        if access.m0 or not access.size or (access.pieces > 1 and access.verb is MemVerb.ATOMIC):
            raise UnknownOperationError(instruction)
        for name in instruction.fields:
            if name not in _OFFSETS:
                raise UnknownOperationError(instruction, f"modifier {name!r}")
        return make(
            kind=OperationKind.LDS, data=data, verb=_LDS_VERBS[access.verb], address=_mask(registers.address),
            operands=(_parse_operand(instruction.operands[returns], instruction),),
            extents=tuple((start, access.size) for start in instruction.piece_offsets),
        )  # fmt: skip
    if access.tensor or access.asynchronous or instruction.to_lds:
        return _read_copy(make, instruction, access)
    return make(
        kind=OperationKind.VMEM, data=data, verb=access.verb.value, flat=access.space is MemSpace.FLAT,
    )  # fmt: skip


def _read_copy(make: Callable[..., Operation], instruction: Instruction, access: MemAccess) -> Operation:
    """A copy between memory and LDS: its place there is named by scalar registers, by each lane, or by M0."""
    registers, extents, size = instruction.registers, ((instruction.offset, access.size),), access.size
    make = partial(
        make, kind=OperationKind.VMEM, verb=access.verb.value, copies="dma" if instruction.to_lds else "copy"
    )
    if access.tensor:
        groups = _parse_operands(instruction)
        if len(groups) != _TENSOR_GROUPS:
            raise UnknownOperationError(instruction, "third dimension")
        needed = _mask(groups[group].rows[word] for group, word in NEEDED)
        return make(operands=groups, address=needed, tensor=True)
    if access.asynchronous:
        place = _parse_operand(instruction.operands[0 if instruction.to_lds else 1], instruction)
        return make(operands=(place,), address=_mask(registers.address), extents=extents)
    if size < _LEAST_TO_LDS:
        raise UnknownOperationError(instruction, "width of a load to LDS")
    return make(to_lds=size, extents=extents, address=M0_BIT, flat=access.space is MemSpace.FLAT)


_ARRIVALS = frozenset({"barrier_arrive", ARRIVES_LATER})
_TENSOR_GROUPS = 2
_COMPARED = 2
_OFFSETS = frozenset({"offset", "offset0", "offset1"})
_MODELLED = (  # in spite of their modifiers and kept targets
    ("v_writelane_b32", ()), ("v_bitop3_b32", ("bitop3",)), ("v_add_u32", ("clamp",)), ("v_sub_u32", ("clamp",)),
    ("v_subrev_u32", ("clamp",)),
)  # fmt: skip


def _read_value(make: Callable[..., Operation], instruction: Instruction) -> Operation:
    spec, registers = instruction.spec, instruction.registers
    if Trait.INDEXES in spec.traits:
        if spec.targets:  # it moves a register that it doesn't name
            raise UnknownOperationError(instruction)
        return (
            make(kind=OperationKind.INDEX, operands=_parse_operands(instruction, 1))
            if registers.writes
            else make(kind=OperationKind.QUIET)
        )
    if spec.unit is IsaUnit.SMEM and spec.targets:
        return make(kind=OperationKind.SMEM, data=_mask(registers.writes), verb="time")
    if not (registers.writes and (spec.unit is IsaUnit.SALU or spec.unit.computes_lanes)):
        return make(kind=OperationKind.QUIET)
    if spec.unit is IsaUnit.SALU:
        count = 1 if Trait.READS_MODE in spec.traits else None
        return make(kind=OperationKind.VALUE, operands=_parse_operands(instruction, count))
    operands = () if spec.unit is IsaUnit.MATRIX else _parse_operands(instruction)
    if Trait.COMPARES_EXEC in spec.traits and len(operands) == _COMPARED:  # it names no mask beside EXEC
        operands = (Operand(text="null", file=File.NONE), *operands)
    keeps_target = bool(registers.kept)
    parts = _read_parts(instruction)
    halves = any(_HALF.search(each) for each in instruction.operands)
    is_modelled = (spec.name, tuple(instruction.fields)) in _MODELLED or bool(parts)
    return make(
        kind=OperationKind.VALUE,
        operands=operands,
        unmodelled=(bool(instruction.modifiers) or keeps_target or halves) and not is_modelled,
        targets=1 if spec.swaps else spec.targets,
        keeps_target=keeps_target,
        parts=parts,
    )


_WHOLE = (0, 32)
_SELECTED = (
    {"DWORD": _WHOLE}
    | {f"BYTE_{at}": (8 * at, 8) for at in range(4)}
    | {f"WORD_{at}": (16 * at, 16) for at in range(2)}
)
_PARTS = frozenset({"dst_sel", "dst_unused", "src0_sel", "src1_sel"})


def _read_parts(instruction: Instruction) -> tuple[tuple[int, int], ...]:
    """The parts of its operands that an SDWA instruction reads; none if it writes a part, or extends a sign."""
    fields = instruction.fields
    extends = any(each.startswith("sext(") for each in instruction.operands)
    if not instruction.is_sdwa or extends or not fields.keys() <= _PARTS or fields.get("dst_sel", "DWORD") != "DWORD":
        return ()
    return (_WHOLE, *(_SELECTED[fields.get(f"src{number}_sel", "DWORD")] for number in range(2)))


def mark_flat(operations: list[Operation]) -> list[Operation]:
    """Give flat ops their addresses and extents, if the kernel may reach LDS by one."""
    if not any("src_shared_base" in each.instruction.text for each in operations):
        return operations
    marked = list(operations)
    for number, each in enumerate(operations):
        if each.flat:
            place = each.instruction.operands[1 if each.data else 0]
            extents = ((each.instruction.offset, each.access.size if each.access else 0),)
            operands, address = (_parse_operand(place, each.instruction),), _mask(rows_in(place))
            marked[number] = replace(each, operands=operands, address=address, extents=extents)
    return marked


_NEAR = 16  # operations of a loop that polls


def mark_mbarriers(operations: list[Operation]) -> list[Operation]:
    """Mark reads that do nothing but poll, and the data of stores that may set a barrier in LDS up."""
    if not any(each.kind is OperationKind.ARRIVAL or each.tensor for each in operations):
        return operations
    marked = list(operations)
    found = ((each.number, _find_poll(operations, each)) for each in operations)
    polling = {number: loop for number, loop in found if loop}
    for number, each in enumerate(operations):
        if number in polling:
            marked[number] = replace(each, polls=polling[number])
        elif each.tensor and polling:  # it may arrive at a barrier, which another of its words names
            named = _mask(each.operands[BARRIER.group].rows[BARRIER.word : BARRIER.word + 1])
            marked[number] = replace(each, polls=(number, number), address=each.address | named)
        elif _may_set_up(each, polls=bool(polling)):
            data = _parse_operand(each.instruction.operands[1], each.instruction)
            rows = each.address | _mask(data.rows)
            marked[number] = replace(each, operands=(*each.operands, data), address=rows)
    return marked


def _may_set_up(operation: Operation, *, polls: bool) -> bool:
    """True if it stores one number in LDS that a wave may rely on: a barrier, or where polled ones are."""
    if operation.kind is not OperationKind.LDS or operation.verb != "write" or len(operation.extents) > 1:
        return False
    size = operation.extents[0][1]
    return size == _BARRIER_BYTES or (polls and size == _BARRIER_BYTES // 2)


_BARRIER_BYTES = 8
_UNSEEN = frozenset({OperationKind.QUIET, OperationKind.WAIT, OperationKind.VALUE})


def _find_poll(operations: Sequence[Operation], read: Operation) -> tuple[int, ...]:
    """The ends of a loop that only polls by this read: a branch back over it, and nothing that others see."""
    if read.kind is not OperationKind.LDS or read.verb != "read":
        return ()
    for at in range(read.number + 1, min(read.number + _NEAR, len(operations))):
        target = operations[at].instruction.target
        if operations[at].kind is OperationKind.BRANCH:
            if target is None or target > read.number:
                return ()
            body = operations[target : at + 1]
            harmless = all(each.kind in _UNSEEN or each is read for each in body[:-1])
            return (target, at) if harmless and not _carries(body) else ()
    return ()


def _carries(body: Sequence[Operation]) -> bool:
    """True if a round of a loop reads what an earlier one wrote: then it may end for another reason."""
    first_read = written = 0
    for each in body:
        first_read |= each.reads & ~written
        written |= each.writes | each.data
    return bool(first_read & written)


def mark_spills(operations: list[Operation]) -> list[Operation]:
    """Give loads and stores of private memory their spill slots, if the kernel addresses it by constants only.

    Then private memory is one more register file: no other lane reaches it, and a lane's own ops on it are in order.
    """
    private = [each for each in operations if _is_private(each)]
    has_pointers = any("src_private" in each.instruction.text for each in operations)
    if has_pointers or any(each.kind is OperationKind.CALL for each in operations) or not all(map(_is_spill, private)):
        return operations
    marked = list(operations)
    for number, each in enumerate(operations):
        if _is_private(each):
            stores, first = each.verb == "store", SLOTS + each.instruction.offset // 4
            data = each.reads & VECTORS if stores else each.data
            slots = tuple(range(first, first + data.bit_count()))
            rows = sum(1 << slot for slot in slots)
            reads, writes = (each.reads, rows) if stores else (each.reads | rows, each.writes)
            marked[number] = replace(each, slots=slots, reads=reads, writes=writes)
    return marked


def list_queues(architecture: Architecture) -> dict[tuple[Traffic, bool], CountedBy]:
    """How the machine counts each kind of memory op, plain or flat: those in order first, flat ones last."""
    queues = {each: queue for queue in architecture.queues for each in Traffic if each in queue.counts}
    plain = {
        (each, False): CountedBy((queue.counter,), each in queue.in_order, each.value if queue.by_kind else "")
        for each, queue in queues.items()
    }
    flat = {}
    for each in (Traffic.LOAD, Traffic.STORE):
        flat[each, True] = CountedBy(tuple(dict.fromkeys((queues[each].counter, queues[Traffic.LDS].counter))))
    return dict(sorted(plain.items(), key=lambda each: not each[1].in_order)) | flat


def mark_counted(operations: list[Operation], architecture: Architecture) -> list[Operation]:
    """Say of each memory op which counters count it."""
    by = list_queues(architecture)
    return [
        each if (traffic := each.instruction.traffic) is None else replace(each, counted_by=by[traffic, each.flat])
        for each in operations
    ]


def _is_private(operation: Operation) -> bool:
    return operation.access is not None and operation.access.private


def _is_spill(operation: Operation) -> bool:
    named, access = operation.instruction.operands, operation.access
    if access is None or access.space is MemSpace.SCALAR or access.verb is MemVerb.ATOMIC or access.size < 4:
        return False
    places = named[::2] if operation.verb == "store" else named[1:]
    return set(places) == {"off"} and operation.instruction.offset % 4 == 0
