"""What the proof needs to know of an instruction, as data: its registers, memory accesses and waits.

A set of registers is a number with bit r for row r, as `rota.isa.wave.operand` numbers rows.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_
from typing import NamedTuple

from rota.errors import IsaError
from rota.isa.disassembly import Instruction
from rota.isa.hazards.spacing import rows_in
from rota.isa.wave.operand import EXEC, M0, SCALAR, SCC, VCC, Operand, parse_operand
from rota.prove.verdict import is_wait, parse_wait_counts
from rota.targets.architecture import Architecture, Traffic

SCC_ROW, M0_ROW = SCALAR + SCC, SCALAR + M0
EXEC_BITS = 0b11 << SCALAR + EXEC
VCC_BITS = 0b11 << SCALAR + VCC
SCC_BIT, M0_BIT = 1 << SCC_ROW, 1 << M0_ROW
VECTORS = (1 << SCALAR) - 1
SLOTS = 1024  # the first row of spill slots: words of private memory that the kernel addresses by constants only


class OperationKind(enum.Enum):
    VALUE = "computes registers"
    LDS = "accesses LDS"
    EXCHANGE = "exchanges lanes through the LDS unit"
    VMEM = "accesses global or private memory"
    SMEM = "accesses memory from the scalar unit"
    WAIT = "waits for counters"
    BARRIER = "waits at a barrier"
    SIGNAL = "signals a barrier"
    BRANCH = "branches"
    CALL = "jumps to an address in registers"
    END = "ends the wave"
    QUIET = "does nothing that the proof judges"
    INDEX = "sets the register index"


class CountedBy(NamedTuple):
    """The counters that count a memory op, and whether it returns in the order of issue.

    A flat op counts as vector memory and, as the last, as LDS: it is complete after waits for both.
    """

    counters: tuple[str, ...]
    in_order: bool = False


NOT_COUNTED = CountedBy(())
_TRAFFIC = {OperationKind.LDS: Traffic.LDS, OperationKind.EXCHANGE: Traffic.LDS, OperationKind.SMEM: Traffic.SCALAR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One instruction: the registers that it reads and writes, its operands, and what it accesses.

    `extents` are the bytes that an LDS op accesses, as offsets from its address and sizes.  `verb` is read, write or
    atomic for LDS ops, load, store or atomic for others, and wait if a barrier has to be signalled before.  `data` are
    the registers that a load fills, `address` those of an LDS address, `slots` the spill slots that it loads or stores.
    `to_lds` are the bytes per lane of a load to LDS, `waits` the counts of a wait by counter, `indexed` the mode bits
    of index mode.  `keeps_target` says that a part of the target stays as it was, `holds_data` that a store reads
    `data` until a wait covers it.
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
    to_lds: int = 0
    flat: bool = False
    address: int = 0
    slots: tuple[int, ...] = ()
    waits: tuple[tuple[str, int], ...] = ()
    counted_by: CountedBy = NOT_COUNTED
    indexed: int = 0
    targets: int = 1
    keeps_target: bool = False
    holds_data: bool = False

    @property
    def is_vector(self) -> bool:
        return self.instruction.opcode.startswith("v_")


class UnknownOperationError(Exception):
    def __init__(self, instruction: Instruction, what: str = "") -> None:
        super().__init__(what)
        self.instruction, self.what = instruction, what


def rows_of(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def parse_rows(text: str) -> int:
    return sum(1 << row for row in rows_in(text))


def _parse_operands(instruction: Instruction, count: int | None = None) -> tuple[Operand, ...]:
    return tuple(parse_operand(text, instruction) for text in instruction.operands[:count])


def _unite(rows: Iterable[int]) -> int:
    return reduce(or_, rows, 0)


# Memory instructions.

_SMEM = re.compile(r"^s_(?:buffer_|scratch_)?(?P<verb>load|store)_dword(?:x(?P<count>\d+))?$")
_SMEM_ATOMIC = re.compile(r"^s_(?:buffer_)?atomic_\w+$")
_LDS = re.compile(r"^ds_(?P<verb>read|write)(?P<two>2?)(?P<far>st64)?_b(?P<bits>32|64|96|128)(?:_tr_b\d+)?$")
_LDS_SHORT = re.compile(r"^ds_(?P<verb>read|write)_[uib](?P<bits>8|16)(?:_d16)?(?:_hi)?$")
_LDS_ATOMIC = re.compile(
    r"^ds_(?:add|sub|rsub|inc|dec|min|max|and|or|xor|mskor|wrxchg|wrxchg2|cmpst|wrap|pk_add)(?P<returns>_rtn)?"
    r"_[uifb]+(?P<bits>32|64|16)$"
)
_EXCHANGE = re.compile(r"^ds_(?:permute|bpermute|swizzle)_b32$")
_VMEM = re.compile(
    r"^(?P<space>buffer|global|flat|scratch|tbuffer)_(?P<verb>load|store|atomic)_(?P<lds>lds_)?(?P<width>\w+)$"
)
_SIZES = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "ubyte": 1, "ushort": 2, "sbyte": 1, "sshort": 2,
          "byte": 1, "short": 2}  # fmt: skip
_SPILL = re.compile(r"^scratch_(?:load|store)_dword(?:x[234])?$")
_QUIET_MEMORY = re.compile(r"^(?:ds_nop|buffer_(?:inv|wbl2|wbinvl1|wbinvl1_vol|invl2))$")


def _read_scalar_memory(instruction: Instruction, number: int) -> Operation | None:
    found = _SMEM.match(instruction.opcode)
    if found is None and not _SMEM_ATOMIC.match(instruction.opcode):
        return None
    named = [parse_rows(text) for text in instruction.operands]
    verb = "atomic" if found is None else found["verb"]
    loads = verb == "load" or (verb == "atomic" and "glc" in instruction.modifiers)
    return Operation(
        number=number,
        instruction=instruction,
        name=instruction.opcode,
        kind=OperationKind.SMEM,
        reads=_unite(named[1 if verb == "load" else 0 :]),
        writes=named[0] if loads else 0,
        data=named[0],
        operands=_parse_operands(instruction),
        verb=verb,
        holds_data=not loads,
    )


def _read_lds(instruction: Instruction, number: int, _: Architecture) -> Operation:
    opcode = instruction.opcode
    make = partial(Operation, number=number, instruction=instruction, name=opcode)
    if _QUIET_MEMORY.match(opcode):
        return make(kind=OperationKind.QUIET)
    named = [parse_rows(text) for text in instruction.operands]
    if _EXCHANGE.match(opcode):
        everything = _unite(named)
        reads = everything if named[0] & (named[1] | named[-1]) else everything & ~named[0]
        return make(kind=OperationKind.EXCHANGE, reads=reads | EXEC_BITS, writes=named[0], data=named[0])
    offsets = {}
    for modifier in instruction.modifiers:
        key, _colon, value = modifier.partition(":")
        if key not in {"offset", "offset0", "offset1"}:
            raise UnknownOperationError(instruction, f"modifier {modifier!r}")
        offsets[key] = int(value, 0)
    at = offsets.get("offset", 0)
    extents: tuple[tuple[int, int], ...]
    returns = True
    if (found := _LDS.match(opcode)) is not None:
        verb, size = found["verb"], int(found["bits"]) // 8
        if found["two"]:
            unit = size * (64 if found["far"] else 1)
            extents = tuple((offsets.get(key, 0) * unit, size) for key in ("offset0", "offset1"))
        else:
            extents = ((at, size),)
    elif (found := _LDS_SHORT.match(opcode)) is not None:
        verb, extents = found["verb"], ((at, int(found["bits"]) // 8),)
    elif (found := _LDS_ATOMIC.match(opcode)) is not None:
        size = int(found["bits"]) // 8 if found["bits"] != "16" else 4
        verb, extents, returns = "atomic", ((at, size),), found["returns"] is not None
        if "2" in opcode.partition("wrxchg")[2][:1]:
            raise UnknownOperationError(instruction)
    else:
        raise UnknownOperationError(instruction)
    loads = verb == "read" or (verb == "atomic" and returns)
    place = 1 if loads else 0
    reads = _unite(named[1:] if loads and "_d16" not in opcode else named)  # the target may be named as a source, too
    return make(
        kind=OperationKind.LDS,
        reads=reads | EXEC_BITS,
        writes=named[0] if loads else 0,
        data=named[0] if loads else 0,
        operands=(parse_operand(instruction.operands[place], instruction),),
        verb=verb,
        extents=extents,
        address=named[place],
    )


def _read_vector_memory(instruction: Instruction, number: int, _: Architecture) -> Operation:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    make = partial(Operation, number=number, instruction=instruction, name=opcode)
    if _QUIET_MEMORY.match(opcode):
        return make(kind=OperationKind.QUIET)
    found = _VMEM.match(opcode)
    if found is None:
        raise UnknownOperationError(instruction)
    named = [parse_rows(text) for text in instruction.operands]
    to_lds = bool(found["lds"]) or "lds" in modifiers
    verb = found["verb"]
    loads = (verb == "load" or (verb == "atomic" and ("sc0" in modifiers or "glc" in modifiers))) and not to_lds
    size = _SIZES.get(found["width"], 0)
    if to_lds and size < 4:
        raise UnknownOperationError(instruction, "width of a load to LDS")
    reads = _unite(named[1:] if loads and "_d16" not in opcode else named)  # the target may be named as a source, too
    return make(
        kind=OperationKind.VMEM,
        reads=reads | EXEC_BITS | (M0_BIT if to_lds else 0),
        writes=named[0] if loads else 0,
        data=named[0] if loads else 0,
        verb=verb,
        to_lds=size if to_lds else 0,
        extents=((_read_offset(instruction), size),) if to_lds else (),
        address=M0_BIT if to_lds else 0,
        flat=found["space"] == "flat",
    )


def mark_flat(operations: list[Operation]) -> list[Operation]:
    """Give flat ops their addresses and extents, if the kernel may reach LDS by one."""
    if not any("src_shared_base" in each.instruction.text for each in operations):
        return operations
    marked = list(operations)
    for number, each in enumerate(operations):
        if each.flat:
            place = each.instruction.operands[1 if each.data else 0]
            one_or_two = 8 if each.name.endswith(("_x2", "_f64")) else 4  # words, of an atomic
            size = _SIZES.get(each.name.partition(f"{each.verb}_")[2].partition("_")[0], one_or_two)
            operands, extents = (parse_operand(place, each.instruction),), ((_read_offset(each.instruction), size),)
            marked[number] = replace(each, operands=operands, address=parse_rows(place), extents=extents)
    return marked


def mark_spills(operations: list[Operation]) -> list[Operation]:
    """Give loads and stores of private memory their spill slots, if the kernel addresses it by constants only.

    Then private memory is one more register file: no other lane reaches it, and a lane's own ops on it are in order.
    """
    private = [each for each in operations if each.name.startswith(("scratch_", "s_scratch_"))]
    has_pointers = any("src_private" in each.instruction.text for each in operations)
    if has_pointers or any(each.kind is OperationKind.CALL for each in operations) or not all(map(_is_spill, private)):
        return operations
    marked = list(operations)
    for number, each in enumerate(operations):
        if each.name.startswith("scratch_"):
            stores, first = each.verb == "store", SLOTS + _read_offset(each.instruction) // 4
            data = each.reads & VECTORS if stores else each.data
            slots = tuple(range(first, first + data.bit_count()))
            rows = sum(1 << slot for slot in slots)
            reads, writes = (each.reads, rows) if stores else (each.reads | rows, each.writes)
            marked[number] = replace(each, slots=slots, reads=reads, writes=writes)
    return marked


def list_queues(architecture: Architecture) -> dict[tuple[Traffic, bool], CountedBy]:
    """How the machine counts each kind of memory op, plain or flat: those in order first, flat ones last."""
    queues = {each: architecture.queue_of(each) for each in Traffic}
    plain = {(each, False): CountedBy((queue.counter,), each in queue.in_order) for each, queue in queues.items()}
    flat = {}
    for each in (Traffic.LOAD, Traffic.STORE):
        flat[each, True] = CountedBy(tuple(dict.fromkeys((queues[each].counter, queues[Traffic.LDS].counter))))
    return dict(sorted(plain.items(), key=lambda each: not each[1].in_order)) | flat


def mark_counted(operations: list[Operation], architecture: Architecture) -> list[Operation]:
    """Say of each memory op which counters count it."""
    by, marked = list_queues(architecture), list(operations)
    for number, each in enumerate(operations):
        traffic = _TRAFFIC.get(each.kind)
        if each.kind is OperationKind.VMEM:
            traffic = Traffic.TO_LDS if each.to_lds else Traffic.LOAD if each.data else Traffic.STORE
        if traffic is not None:
            marked[number] = replace(each, counted_by=by[traffic, each.flat])
    return marked


def _is_spill(operation: Operation) -> bool:
    named, offset = operation.instruction.operands, _read_offset(operation.instruction)
    places = named[::2] if operation.verb == "store" else named[1:]
    return bool(_SPILL.match(operation.name)) and set(places) == {"off"} and offset % 4 == 0


def _read_offset(instruction: Instruction) -> int:
    return next((int(each[7:], 0) for each in instruction.modifiers if each.startswith("offset:")), 0)


# Scalar and vector instructions.

_SUFFIX = re.compile(r"_(?:e32|e64|dpp|sdwa|e64_dpp)$")
_ROOTS = (
    "mov", "add", "sub", "subrev", "mul", "mad", "fma", "fmac", "fmamk", "fmaak", "mac", "madmk", "madak", "max",
    "min", "max3", "min3", "med3", "maximum3", "minimum3", "lshl", "lshlrev", "lshrrev", "ashrrev", "and", "or", "xor",
    "xnor", "not", "bfe", "bfi", "bfm", "bfrev", "bcnt", "ffbh", "ffbl", "bitop3", "add3", "or3", "xad", "sad", "perm",
    "alignbit", "alignbyte", "cndmask", "cvt", "exp", "log", "rcp", "rsq", "sqrt", "sin", "cos", "floor", "ceil",
    "trunc", "rndne", "fract", "frexp", "ldexp", "div", "dot2", "dot4", "dot8", "dot2c", "dot4c", "dot8c", "pk",
    "pack", "accvgpr", "mbcnt", "mfma", "smfmac", "prng", "readfirstlane", "readlane", "writelane", "cmp", "cmpx",
    "swap", "permlane16", "permlane32", "nop", "addc", "subb", "subbrev", "ashr", "lerp", "legacy", "xor3", "sat",
    "screen", "clrexcp",
)  # fmt: skip
_VECTOR = re.compile(rf"^v_(?:{'|'.join(_ROOTS)})(?:_\w+)?$")
_CARRIES = re.compile(r"^v_(?:(?:add|sub|subrev|addc|subb|subbrev)_co_u32|div_scale_f\d\d|mad_[ui]64_[ui]32)$")
_EXCHANGES = re.compile(r"^v_(?:swap_b32|permlane(?:16|32)_swap_b32)$")
_TIED = re.compile(
    r"^v_(?:(?:pk_)?fmac|mac|dot\w*c|writelane|bfi_tied|cvt_(?:scalef32_)?(?:sr_)?pk|cvt_(?:scalef32_)?sr|smfmac)_"
)
_HALF = re.compile(  # results of 16 bits in the long encoding leave the other half of their register as it was
    r"^v_(?:(?:min3|max3|med3)_[fiu]16|(?:mad|fma|div_fixup)_(?:legacy_)?[fiu]16|(?:add|sub)_i16|(?:fma|mad)_mix(?:lo|hi)_f16|bitop3_b16"
    r"|cvt_scalef32_f16_(?:bf8|fp8))$"
)
_KEEPS_SCC = re.compile(
    r"^s_(?:mov|movk|cmov|cmovk|cselect|mul_|mulk|bfm|pack|getpc|setpc|swappc|sext|brev|ff0|ff1|flbit|bitset|getreg|call"
    r"|movrel|bitreplicate|memtime|memrealtime)"
)
_READS_SCC = re.compile(r"^s_(?:addc|subb|cselect|cmov|cmovk|cbranch_scc)")
_SCALAR = re.compile(
    r"^s_(?:mov|movk|add|addk|sub|addc|subb|mul|mulk|lshl|lshr|ashr|lshl[1-4]_add|and|or|xor|nand|nor|xnor|andn1|andn2|orn1"
    r"|orn2|not|min|max|bfe|bfm|cselect|cmov|cmovk|abs|pack|sext|ff0|ff1|flbit|bcnt0|bcnt1|brev|wqm|quadmask|absdiff"
    r"|bitset0|bitset1|getpc|getreg|bitreplicate|memtime|memrealtime)(?:_\w+)?$"
)
_COMPARES = re.compile(r"^s_(?:cmp|cmpk|bitcmp[01])_")
_QUIET = re.compile(
    r"^(?:s_(?:nop|setprio|sleep|icache_inv|inst_prefetch|setreg|setreg_imm32|ttracedata|incperflevel|decperflevel|setkill"
    r"|dcache_\w+|sendmsg|trap|code_end|set_gpr_idx_off)(?:_b32)?)$"
)
_SPLIT_BARRIER = {"s_barrier_signal": OperationKind.SIGNAL, "s_barrier_wait": OperationKind.BARRIER}
_CALLS = frozenset({"s_setpc_b64", "s_swappc_b64", "s_call_b64"})


def read_operation(instruction: Instruction, number: int, architecture: Architecture) -> Operation:
    """Read one instruction; raises UnknownOperationError for one that the proof doesn't know."""
    opcode = instruction.opcode
    try:
        for prefix, read in _READERS:
            if opcode.startswith(prefix):
                return read(instruction, number, architecture)
    except (IsaError, LookupError, ValueError) as error:
        raise UnknownOperationError(instruction, "form") from error
    raise UnknownOperationError(instruction)


def _read_scalar(instruction: Instruction, number: int, architecture: Architecture) -> Operation:  # noqa: C901, PLR0912
    opcode = instruction.opcode
    make = partial(Operation, number=number, instruction=instruction, name=opcode)
    if is_wait(instruction):
        counts = parse_wait_counts(instruction)
        if not counts.keys() <= {each.counter for each in architecture.queues}:
            raise UnknownOperationError(instruction)
        waits = tuple((name, count) for name, count in counts.items() if count < architecture.no_wait(name))
        return make(kind=OperationKind.WAIT, waits=waits)
    if _QUIET.match(opcode):
        reads = parse_rows(instruction.operands[-1]) if opcode == "s_setreg_b32" else 0
        return make(kind=OperationKind.QUIET, reads=reads)
    named = [parse_rows(text) for text in instruction.operands]
    kind, reads, writes = OperationKind.VALUE, 0, 0
    operands: tuple[Operand, ...] = ()
    if opcode in {"s_barrier", "s_endpgm", "s_endpgm_saved"}:
        kind = OperationKind.BARRIER if opcode == "s_barrier" else OperationKind.END
    elif architecture.split_barrier and opcode in _SPLIT_BARRIER and instruction.operands == ("-1",):
        return make(kind=_SPLIT_BARRIER[opcode], verb=opcode.rpartition("_")[2])
    elif opcode.startswith(("s_branch", "s_cbranch_")):
        if instruction.target is None or "cdbg" in opcode or "_fork" in opcode or "_join" in opcode:
            raise UnknownOperationError(instruction, "target")
        kind = OperationKind.BRANCH
        reads = SCC_BIT if "_scc" in opcode else VCC_BITS if "_vcc" in opcode else 0
        reads |= EXEC_BITS if "_exec" in opcode else 0
    elif opcode == "s_setvskip":
        kind, reads, operands = OperationKind.BRANCH, named[0] | named[1], _parse_operands(instruction)
    elif opcode in _CALLS:
        kind = OperationKind.CALL
        reads = 0 if opcode == "s_call_b64" else named[-1]
        writes = 0 if opcode == "s_setpc_b64" else named[0]
        operands = _parse_operands(instruction, 1 if opcode == "s_call_b64" else None)
    elif (memory := _read_scalar_memory(instruction, number)) is not None:
        return memory
    elif opcode in {"s_memtime", "s_memrealtime"}:
        return make(kind=OperationKind.SMEM, writes=named[0], data=named[0], verb="time")
    elif opcode.startswith("s_set_gpr_idx"):
        kind, reads, writes = OperationKind.INDEX, M0_BIT | named[0], M0_BIT
        operands = _parse_operands(instruction, 1)
    elif _COMPARES.match(opcode):
        reads, writes, operands = named[0] | named[1], SCC_BIT, _parse_operands(instruction)
    elif _SCALAR.match(opcode):
        reads, writes = _unite(named[1:]), named[0]
        operands = _parse_operands(instruction, 1 if "getreg" in opcode else None)
        if opcode.startswith(("s_addk", "s_mulk", "s_cmov", "s_bitset")):
            reads |= named[0]
        if not _KEEPS_SCC.match(opcode):
            writes |= SCC_BIT
        if "_saveexec" in opcode or "_wrexec" in opcode:
            reads, writes = reads | EXEC_BITS, writes | EXEC_BITS
    else:
        raise UnknownOperationError(instruction)
    if _READS_SCC.match(opcode):
        reads |= SCC_BIT
    return make(kind=kind, reads=reads, writes=writes, operands=operands)


def _read_vector(instruction: Instruction, number: int, _: Architecture) -> Operation:
    opcode = instruction.opcode
    name = _SUFFIX.sub("", opcode)
    if not _VECTOR.match(name):
        raise UnknownOperationError(instruction)
    make = partial(Operation, number=number, instruction=instruction)
    if name == "v_nop":
        return make(name=opcode, kind=OperationKind.QUIET)
    named = [parse_rows(text) for text in instruction.operands]
    targets = 2 if _CARRIES.match(name) else 1
    writes, reads = _unite(named[:targets]), _unite(named[targets:])
    if _EXCHANGES.match(name):
        reads = writes = named[0] | named[1]
    if name.startswith("v_cmpx"):
        writes |= EXEC_BITS
    if name.startswith("v_div_fmas"):
        reads |= VCC_BITS
    by_parts = "_dpp" in opcode or "_sdwa" in opcode
    keeps_target = by_parts or bool(_TIED.match(name) or _HALF.match(name))
    keeps_target = keeps_target or any(each.startswith("op_sel:") for each in instruction.modifiers)
    if keeps_target:
        reads |= writes & VECTORS
    if not name.startswith(("v_readlane", "v_writelane")):
        reads |= EXEC_BITS
    modifiers = [each.partition(":")[0] for each in instruction.modifiers]
    is_modelled = (name, modifiers) in [("v_writelane_b32", []), ("v_bitop3_b32", ["bitop3"])]
    return make(
        name=name,
        kind=OperationKind.VALUE,
        reads=reads,
        writes=writes,
        operands=() if name.startswith(("v_mfma", "v_smfmac")) else _parse_operands(instruction),
        unmodelled=(bool(instruction.modifiers) or keeps_target) and not is_modelled,
        targets=targets,
        keeps_target=keeps_target,
    )


_READERS = (
    ("s_", _read_scalar),
    ("v_", _read_vector),
    ("ds_", _read_lds),
    (("buffer_", "global_", "flat_", "scratch_", "tbuffer_"), _read_vector_memory),
)
