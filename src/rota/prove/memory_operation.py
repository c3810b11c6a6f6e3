"""Memory ops: takes an instruction of LDS, of global or of scalar memory, gives an `Operation`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rota.isa.wave.operand import parse_operand
from rota.prove.operation import (
    EXEC_BITS,
    M0_BIT,
    SLOTS,
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
_QUIET = re.compile(r"^(?:ds_nop|buffer_(?:inv|wbl2|wbinvl1|wbinvl1_vol|invl2))$")


def scalar_memory(instruction: Instruction, number: int) -> Operation | None:
    """A scalar load, store or atomic, or None."""
    found = _SMEM.match(instruction.opcode)
    if found is None and not _SMEM_ATOMIC.match(instruction.opcode):
        return None
    return _scalar_memory(instruction, number, found, [bits(text) for text in instruction.operands])


def _scalar_memory(instruction: Instruction, number: int, found: re.Match[str] | None, named: list[int]) -> Operation:
    verb = "atomic" if found is None else found["verb"]
    loads = verb == "load" or (verb == "atomic" and "glc" in instruction.modifiers)
    reads = 0
    for each in named[0 if found is None or found["verb"] == "store" else 1 :]:
        reads |= each
    operands = parsed(instruction)
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
        holds=not loads,
    )


def shared_memory(instruction: Instruction, number: int, _: Architecture) -> Operation:  # noqa: C901, PLR0912
    """An LDS instruction."""
    opcode = instruction.opcode
    if _QUIET.match(opcode):
        return quiet(instruction, number)
    named = [bits(text) for text in instruction.operands]
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
        spots=spots,
        address=address,
    )


def vector_memory(instruction: Instruction, number: int, _: Architecture) -> Operation:
    """A load, store or atomic of global memory."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if _QUIET.match(opcode):
        return quiet(instruction, number)
    found = _VMEM.match(opcode)
    if found is None:
        raise UnknownOperationError(instruction)
    named = [bits(text) for text in instruction.operands]
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
        spots=spots,
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
    return replace(operation, operands=(operand,), address=bits(place), spots=spots)


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
