"""Instructions for the proof: takes an instruction, gives an `Operation`, or says that it isn't known.

What an operand's place means follows from the family of the opcode; an opcode of no known family is refused by name.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rota.errors import IsaError
from rota.isa.wave.operand import Operand, parse_operand
from rota.prove.memory_operation import scalar_memory, shared_memory, vector_memory
from rota.prove.operation import (
    EXEC_BITS,
    M0_BIT,
    SCC_BIT,
    VCC_BITS,
    VECTORS,
    Operation,
    OperationKind,
    UnknownOperationError,
    bits,
    parsed,
    quiet,
)

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.targets.architecture import Architecture

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
            quiet(instruction, number), reads=bits(instruction.operands[-1]) if opcode == "s_setreg_b32" else 0
        )
    named = [bits(text) for text in instruction.operands]
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
        kind, reads, operands = OperationKind.BRANCH, named[0] | named[1], parsed(instruction)
    elif opcode in _CALLS:
        kind = OperationKind.CALL
        reads = 0 if opcode == "s_call_b64" else named[-1]
        writes = 0 if opcode == "s_setpc_b64" else named[0]
        operands = () if opcode == "s_call_b64" else parsed(instruction)
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
        reads, writes, operands = named[0] | named[1], SCC_BIT, parsed(instruction)
    elif _SCALAR.match(opcode):
        writes = named[0]
        for each in named[1:]:
            reads |= each
        operands = (
            parsed(instruction) if "getreg" not in opcode else (parse_operand(instruction.operands[0], instruction),)
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
        return quiet(instruction, number)
    named = [bits(text) for text in instruction.operands]
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
        operands=() if name.startswith(("v_mfma", "v_smfmac")) else parsed(instruction),
        odd=(odd or keeps) and not _plain_form(instruction, name),
        targets=targets,
        keeps=keeps,
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
