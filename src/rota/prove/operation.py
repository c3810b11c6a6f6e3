"""What the proof needs of an instruction, as data: registers are bits of a number, row r as operands count them."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rota.errors import IsaError
from rota.isa.hazards.spacing import rows_in
from rota.isa.wave.operand import EXEC, M0, SCALAR, SCC, VCC, Operand, parse_operand

if TYPE_CHECKING:
    from rota.isa.disassembly import Instruction
    from rota.targets.architecture import Architecture

SCC_ROW, M0_ROW = SCALAR + SCC, SCALAR + M0
EXEC_BITS = 0b11 << SCALAR + EXEC
VCC_BITS = 0b11 << SCALAR + VCC
SCC_BIT, M0_BIT = 1 << SCC_ROW, 1 << M0_ROW
VECTORS = (1 << SCALAR) - 1
SLOTS = 1024
"""From this row on: words of private memory that are only used by their numbers, as a compiler does that spills."""


class OperationKind(enum.Enum):
    """What a step of the proof does with it."""

    VALUE = "computes"
    LDS = "uses LDS"
    EXCHANGE = "goes through LDS and leaves it alone"
    VMEM = "uses memory"
    SMEM = "scalar memory"
    WAIT = "waits"
    BARRIER = "barrier"
    BRANCH = "branches"
    CALL = "jumps where a register says"
    END = "ends"
    QUIET = "does nothing that matters"
    INDEX = "chooses registers while running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One instruction: registers as bits, its operands, and of memory ops what they use.

    `spots` are the bytes that an LDS op uses, from its address on: pairs of an offset and a size.  `verb` is read,
    write or atomic of an LDS op, load, store or atomic of others.  `data` are rows that a load fills.  `slots` are the
    words of private memory that it loads or stores.
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
    waits: tuple[int | None, int | None] = (None, None)
    indexed: int = 0
    targets: int = 1
    keeps_target: bool = False  # a part of what its target had
    holds_data: bool = (
        False  # `data` are rows that a store reads until it is waited for: others may read them, not write
    )

    @property
    def is_vector(self) -> bool:
        """Does EXEC decide which lanes it writes?"""
        return self.instruction.opcode.startswith("v_")


class UnknownOperationError(Exception):
    """An instruction that the proof doesn't know."""

    def __init__(self, instruction: Instruction, what: str = "") -> None:
        super().__init__(what)
        self.instruction, self.what = instruction, what


def rows_of(mask: int) -> Iterator[int]:
    """The registers that a number stands for, in their order."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def parse_rows(text: str) -> int:
    """The registers that an operand names."""
    return sum(1 << row for row in rows_in(text))


def make_quiet(instruction: Instruction, number: int) -> Operation:
    """An operation that does nothing that matters."""
    return Operation(number=number, instruction=instruction, name=instruction.opcode, kind=OperationKind.QUIET)


def parse_operands(instruction: Instruction) -> tuple[Operand, ...]:
    """All operands."""
    return tuple(parse_operand(text, instruction) for text in instruction.operands)


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


def scalar_memory(instruction: Instruction, number: int) -> Operation | None:
    """A scalar load, store or atomic, or None."""
    found = _SMEM.match(instruction.opcode)
    if found is None and not _SMEM_ATOMIC.match(instruction.opcode):
        return None
    return _scalar_memory(instruction, number, found, [parse_rows(text) for text in instruction.operands])


def _scalar_memory(instruction: Instruction, number: int, found: re.Match[str] | None, named: list[int]) -> Operation:
    verb = "atomic" if found is None else found["verb"]
    loads = verb == "load" or (verb == "atomic" and "glc" in instruction.modifiers)
    reads = 0
    for each in named[0 if found is None or found["verb"] == "store" else 1 :]:
        reads |= each
    operands = parse_operands(instruction)
    return Operation(
        number=number,
        instruction=instruction,
        name=instruction.opcode,
        kind=OperationKind.SMEM,
        reads=reads,
        writes=named[0] if loads else 0,
        data=named[0],
        operands=operands,
        verb=verb,
        holds_data=not loads,
    )


def shared_memory(instruction: Instruction, number: int, _: Architecture) -> Operation:  # noqa: C901, PLR0912
    """An LDS instruction."""
    opcode = instruction.opcode
    if _QUIET_MEMORY.match(opcode):
        return make_quiet(instruction, number)
    named = [parse_rows(text) for text in instruction.operands]
    everything = 0
    for each in named:
        everything |= each
    if _EXCHANGE.match(opcode):
        rest = everything if named[0] & (named[1] | named[-1]) else everything & ~named[0]
        return Operation(
            number=number,
            instruction=instruction,
            name=opcode,
            kind=OperationKind.EXCHANGE,
            reads=rest | EXEC_BITS,
            writes=named[0],
            data=named[0],
        )
    offsets = {}
    for modifier in instruction.modifiers:
        key, _colon, value = modifier.partition(":")
        if key not in {"offset", "offset0", "offset1"}:
            raise UnknownOperationError(instruction, f"modifier {modifier!r}")
        offsets[key] = int(value, 0)
    at = offsets.get("offset", 0)
    returns = True
    if (found := _LDS.match(opcode)) is not None:
        verb, size = found["verb"], int(found["bits"]) // 8
        if found["two"]:
            unit = size * (64 if found["far"] else 1)
            spots: tuple[tuple[int, int], ...] = tuple(
                (offsets.get(key, 0) * unit, size) for key in ("offset0", "offset1")
            )
        else:
            spots = ((at, size),)
    elif (found := _LDS_SHORT.match(opcode)) is not None:
        verb, spots = found["verb"], ((at, int(found["bits"]) // 8),)
    elif (found := _LDS_ATOMIC.match(opcode)) is not None:
        size = int(found["bits"]) // 8 if found["bits"] != "16" else 4
        verb, spots, returns = "atomic", ((at, size),), found["returns"] is not None
        if "2" in opcode.partition("wrxchg")[2][:1]:
            raise UnknownOperationError(instruction)
    else:
        raise UnknownOperationError(instruction)
    loads = verb == "read" or (verb == "atomic" and returns)
    address = named[1] if loads else named[0]
    place = 1 if loads else 0
    reads = 0
    for each in named[1:] if loads and "_d16" not in opcode else named:  # a source may be the target as well
        reads |= each
    operands = (parse_operand(instruction.operands[place], instruction),)
    return Operation(
        number=number,
        instruction=instruction,
        name=opcode,
        kind=OperationKind.LDS,
        reads=reads | EXEC_BITS,
        writes=named[0] if loads else 0,
        data=named[0] if loads else 0,
        operands=operands,
        verb=verb,
        extents=spots,
        address=address,
    )


def vector_memory(instruction: Instruction, number: int, _: Architecture) -> Operation:
    """A load, store or atomic of global memory."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if _QUIET_MEMORY.match(opcode):
        return make_quiet(instruction, number)
    found = _VMEM.match(opcode)
    if found is None:
        raise UnknownOperationError(instruction)
    named = [parse_rows(text) for text in instruction.operands]
    everything = 0
    for each in named:
        everything |= each
    to_lds = bool(found["lds"]) or "lds" in modifiers
    verb = found["verb"]
    loads = (verb == "load" or (verb == "atomic" and ("sc0" in modifiers or "glc" in modifiers))) and not to_lds
    spots: tuple[tuple[int, int], ...] = ()
    if to_lds:
        size = _SIZES.get(found["width"])
        if size is None or size < 4:
            raise UnknownOperationError(instruction, "width of a load to LDS")
        offset = next((int(each[7:], 0) for each in modifiers if each.startswith("offset:")), 0)
        spots = ((offset, size),)
    reads = everything
    if loads and "_d16" not in opcode:  # its target is no source, unless it is named as one
        reads = 0
        for each in named[1:]:
            reads |= each
    reads |= EXEC_BITS | (M0_BIT if to_lds else 0)
    return Operation(
        number=number,
        instruction=instruction,
        name=opcode,
        kind=OperationKind.VMEM,
        reads=reads,
        writes=named[0] if loads else 0,
        data=named[0] if loads else 0,
        verb=verb,
        to_lds=spots[0][1] if to_lds else 0,
        extents=spots,
        address=M0_BIT if to_lds else 0,
        flat=found["space"] == "flat",
    )


def mark_flat(operations: list[Operation]) -> list[Operation]:
    """Names the bytes that flat ops use and the registers of their addresses, in a kernel that may mean LDS by one."""
    if not any("src_shared_base" in each.instruction.text for each in operations):
        return operations
    return [_with_address(each) if each.flat else each for each in operations]


def _with_address(operation: Operation) -> Operation:
    texts, width = operation.instruction.operands, operation.name.rpartition("_")[2]
    place = texts[1 if operation.data else 0]
    size = _SIZES.get(operation.name.partition(f"{operation.verb}_")[2].partition("_")[0])
    if size is None:  # an atomic, of one word or two
        size = 8 if width in {"x2", "f64"} else 4
    spots = ((_offset(operation), size),)
    operand = parse_operand(place, operation.instruction)
    return replace(operation, operands=(operand,), address=parse_rows(place), extents=spots)


def mark_spills(operations: list[Operation]) -> list[Operation]:
    """Names the words of private memory that loads and stores use, if all of them do so by constants alone.

    Then private memory is one more file of registers: nobody else reaches it, and a lane's own ops on it are in order.
    """
    mine = [each for each in operations if each.name.startswith(("scratch_", "s_scratch_"))]
    pointed = any("src_private" in each.instruction.text for each in operations)
    if pointed or any(each.kind is OperationKind.CALL for each in operations) or not all(map(_spills, mine)):
        return operations
    return [_with_slots(each) if each.name.startswith("scratch_") else each for each in operations]


def _spills(operation: Operation) -> bool:
    named = operation.instruction.operands
    places = named[::2] if operation.verb == "store" else named[1:]
    return bool(_SPILL.match(operation.name)) and set(places) == {"off"} and _offset(operation) % 4 == 0


def _offset(operation: Operation) -> int:
    return next((int(each[7:], 0) for each in operation.instruction.modifiers if each.startswith("offset:")), 0)


def _with_slots(operation: Operation) -> Operation:
    data = operation.reads & VECTORS if operation.verb == "store" else operation.data
    first = SLOTS + _offset(operation) // 4
    slots = tuple(range(first, first + data.bit_count()))
    rows = sum(1 << slot for slot in slots)
    if operation.verb == "store":
        return replace(operation, slots=slots, writes=rows)
    return replace(operation, slots=slots, reads=operation.reads | rows)


_SUFFIX = re.compile(r"_(?:e32|e64|dpp|sdwa|e64_dpp)$")
_ROOTS = [
    "mov",
    "add",
    "sub",
    "subrev",
    "mul",
    "mad",
    "fma",
    "fmac",
    "fmamk",
    "fmaak",
    "mac",
    "madmk",
    "madak",
    "max",
    "min",
    "max3",
    "min3",
    "med3",
    "maximum3",
    "minimum3",
    "lshl",
    "lshlrev",
    "lshrrev",
    "ashrrev",
    "and",
    "or",
    "xor",
    "xnor",
    "not",
    "bfe",
    "bfi",
    "bfm",
    "bfrev",
    "bcnt",
    "ffbh",
    "ffbl",
    "bitop3",
    "add3",
    "or3",
    "xad",
    "sad",
    "perm",
    "alignbit",
    "alignbyte",
    "cndmask",
    "cvt",
    "exp",
    "log",
    "rcp",
    "rsq",
    "sqrt",
    "sin",
    "cos",
    "floor",
    "ceil",
    "trunc",
    "rndne",
    "fract",
    "frexp",
    "ldexp",
    "div",
    "dot2",
    "dot4",
    "dot8",
    "dot2c",
    "dot4c",
    "dot8c",
    "pk",
    "pack",
    "accvgpr",
    "mbcnt",
    "mfma",
    "smfmac",
    "prng",
    "readfirstlane",
    "readlane",
    "writelane",
    "cmp",
    "cmpx",
    "swap",
    "permlane16",
    "permlane32",
    "nop",
    "addc",
    "subb",
    "subbrev",
    "ashr",
    "lerp",
    "legacy",
    "xor3",
    "sat",
    "screen",
    "clrexcp",
]
_VECTOR = re.compile(rf"^v_(?:{'|'.join(_ROOTS)})(?:_\w+)?$")
_CARRIES = re.compile(r"^v_(?:(?:add|sub|subrev|addc|subb|subbrev)_co_u32|div_scale_f\d\d|mad_[ui]64_[ui]32)$")
_EXCHANGES = re.compile(r"^v_(?:swap_b32|permlane(?:16|32)_swap_b32)$")
_TIED = re.compile(
    r"^v_(?:(?:pk_)?fmac|mac|dot\w*c|writelane|bfi_tied|cvt_(?:scalef32_)?(?:sr_)?pk|cvt_(?:scalef32_)?sr|smfmac)_"
)
_HALF = re.compile(  # results of 16 bits in the long encoding, which leave the other half of their register alone
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
_CALLS = frozenset({"s_setpc_b64", "s_swappc_b64", "s_call_b64"})
_COUNTS = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")


def read_operation(instruction: Instruction, number: int, architecture: Architecture) -> Operation:
    """What the proof needs of one instruction."""
    opcode = instruction.opcode
    try:
        for prefix, read in _READERS:
            if opcode.startswith(prefix):
                return read(instruction, number, architecture)
    except (IsaError, LookupError, ValueError) as error:
        raise UnknownOperationError(instruction, "form") from error
    raise UnknownOperationError(instruction)


def _parsed_first(instruction: Instruction) -> tuple[Operand, ...]:
    return (parse_operand(instruction.operands[0], instruction),)


def _scalar(instruction: Instruction, number: int, architecture: Architecture) -> Operation:  # noqa: C901, PLR0912
    opcode = instruction.opcode
    if opcode == "s_waitcnt":
        return _wait(instruction, number, architecture)
    if _QUIET.match(opcode):
        return replace(
            make_quiet(instruction, number),
            reads=parse_rows(instruction.operands[-1]) if opcode == "s_setreg_b32" else 0,
        )
    named = [parse_rows(text) for text in instruction.operands]
    kind, reads, writes = OperationKind.VALUE, 0, 0
    operands: tuple[Operand, ...] = ()
    if opcode in {"s_barrier", "s_endpgm", "s_endpgm_saved"}:
        kind = OperationKind.BARRIER if opcode == "s_barrier" else OperationKind.END
    elif opcode.startswith(("s_branch", "s_cbranch_")):
        if instruction.target is None or "cdbg" in opcode or "_fork" in opcode or "_join" in opcode:
            raise UnknownOperationError(instruction, "target")
        kind = OperationKind.BRANCH
        reads = SCC_BIT if "_scc" in opcode else VCC_BITS if "_vcc" in opcode else 0
        reads |= EXEC_BITS if "_exec" in opcode else 0
    elif opcode == "s_setvskip":
        kind, reads, operands = OperationKind.BRANCH, named[0] | named[1], parse_operands(instruction)
    elif opcode in _CALLS:
        kind = OperationKind.CALL
        reads = 0 if opcode == "s_call_b64" else named[-1]
        writes = 0 if opcode == "s_setpc_b64" else named[0]
        operands = () if opcode == "s_call_b64" else parse_operands(instruction)
        if opcode == "s_call_b64":
            operands = _parsed_first(instruction)
    elif (memory := scalar_memory(instruction, number)) is not None:
        return memory
    elif opcode in {"s_memtime", "s_memrealtime"}:
        return Operation(
            number=number,
            instruction=instruction,
            name=opcode,
            kind=OperationKind.SMEM,
            writes=named[0],
            data=named[0],
            verb="time",
        )
    elif opcode.startswith("s_set_gpr_idx"):
        return Operation(
            number=number,
            instruction=instruction,
            name=opcode,
            kind=OperationKind.INDEX,
            reads=M0_BIT | named[0],
            writes=M0_BIT,
            operands=_parsed_first(instruction),
        )
    elif _COMPARES.match(opcode):
        reads, writes, operands = named[0] | named[1], SCC_BIT, parse_operands(instruction)
    elif _SCALAR.match(opcode):
        writes = named[0]
        for each in named[1:]:
            reads |= each
        operands = (
            parse_operands(instruction)
            if "getreg" not in opcode
            else (parse_operand(instruction.operands[0], instruction),)
        )
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
    return Operation(
        number=number, instruction=instruction, name=opcode, kind=kind, reads=reads, writes=writes, operands=operands
    )


def _wait(instruction: Instruction, number: int, architecture: Architecture) -> Operation:
    written = instruction.text.partition(" ")[2].strip()
    counts = {name: int(count) for name, count in _COUNTS.findall(written)}
    if not counts:
        word = int(written, 0)
        counts = {"vmcnt": word & 0xF | word >> 10 & 0x30, "lgkmcnt": word >> 8 & 0xF}
    vm, lgkm = (
        None if (count := counts.get(name)) is None or count >= architecture.no_wait(name) else count
        for name in ("vmcnt", "lgkmcnt")
    )
    return Operation(
        number=number, instruction=instruction, name="s_waitcnt", kind=OperationKind.WAIT, waits=(vm, lgkm)
    )


def _vector(instruction: Instruction, number: int, _: Architecture) -> Operation:  # noqa: C901
    opcode = instruction.opcode
    name = _SUFFIX.sub("", opcode)
    if not _VECTOR.match(name):
        raise UnknownOperationError(instruction)
    if name == "v_nop":
        return make_quiet(instruction, number)
    named = [parse_rows(text) for text in instruction.operands]
    targets = 2 if _CARRIES.match(name) else 1
    writes = reads = 0
    for each in named[:targets]:
        writes |= each
    for each in named[targets:]:
        reads |= each
    if _EXCHANGES.match(name):
        reads = writes = named[0] | named[1]
    if name.startswith("v_cmpx"):
        writes |= EXEC_BITS
    if name.startswith("v_div_fmas"):
        reads |= VCC_BITS
    odd = bool(instruction.modifiers) or "_dpp" in opcode or "_sdwa" in opcode
    keeps = bool(_TIED.match(name) or _HALF.match(name)) or "_dpp" in opcode or "_sdwa" in opcode
    keeps = keeps or any(each.startswith("op_sel:") for each in instruction.modifiers)
    if keeps:
        reads |= writes & VECTORS
    if not name.startswith(("v_readfirstlane", "v_readlane", "v_writelane")):
        reads |= EXEC_BITS
    if name.startswith("v_readfirstlane"):
        reads |= EXEC_BITS
    return Operation(
        number=number,
        instruction=instruction,
        name=name,
        kind=OperationKind.VALUE,
        reads=reads,
        writes=writes,
        operands=() if name.startswith(("v_mfma", "v_smfmac")) else parse_operands(instruction),
        unmodelled=(odd or keeps) and not _plain_form(instruction, name),
        targets=targets,
        keeps_target=keeps,
    )


def _plain_form(instruction: Instruction, name: str) -> bool:
    """Is it followed although it has modifiers or keeps a part of its target?"""
    if name == "v_writelane_b32":
        return not instruction.modifiers
    return name == "v_bitop3_b32" and len(instruction.modifiers) == 1 and instruction.modifiers[0].startswith("bitop3:")


_READERS = (
    ("s_", _scalar),
    ("v_", _vector),
    ("ds_", shared_memory),
    ("buffer_", vector_memory),
    ("global_", vector_memory),
    ("flat_", vector_memory),
    ("scratch_", vector_memory),
    ("tbuffer_", vector_memory),
)
