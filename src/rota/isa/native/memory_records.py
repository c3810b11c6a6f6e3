"""A memory instruction for the native core: takes one, fills what its record says of memory, gives the core's name.

The core has one routine for all atomics on LDS and one for those on memory; other instructions keep their names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rota.isa.memory.atomic_ops import lds_atomic, memory_atomic
from rota.isa.memory.lane_exchange import source_lanes
from rota.isa.memory.scalar_memory import signed_offset
from rota.isa.wave.operand import File, parse_operand

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.targets.architecture import Architecture

_LOST = 2  # a load of half a register that loses the other one
_MEMORY = re.compile(
    r"^(?P<space>buffer|global|scratch)_(?:load|store)_(?:lds_)?"
    r"(?P<width>dword(?:x[234])?|[us]?byte|[us]?short)(?P<half>_d16)?(?P<high>_hi)?$"
)
_LDS = re.compile(
    r"^ds_(?P<verb>read|write)(?P<two>2)?(?P<far>st64)?_(?P<kind>[bui])(?P<bits>\d+)"
    r"(?:_tr_b(?P<element>8|16))?(?P<half>_d16)?(?P<high>_hi)?$"
)
_ATOMIC = re.compile(
    r"^(?:ds_(?P<lds>\w+?)(?:_rtn)?_(?P<type>[uib]\d+|b?f\d+)|(?:buffer|global)_atomic_(?P<verb>\w+?)(?P<wide>_x2)?)$"
)
_VERBS = (
    "add", "sub", "rsub", "inc", "dec", "umin", "umax", "smin", "smax", "and", "or", "xor", "swap", "mskor", "cmpswap",
    "add_f32", "add_f64", "pk_add_f16", "pk_add_bf16", "min_f32", "max_f32", "min_f64", "max_f64",
)  # fmt: skip  # as in atomic.c
_LDS_NAMES = {"wrxchg": "swap", "cmpst": "cmpswap"}
_SIZES = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "byte": 1, "short": 2}
_SHORT_M0 = 1 << 16  # LDS bytes that 16 bits of M0 can name


def memory_record(record: Any, instruction: Instruction, architecture: Architecture) -> str | None:  # noqa: ANN401
    """None if the instruction has no name but its own."""
    opcode = instruction.opcode
    fields = dict(modifier.partition(":")[::2] for modifier in instruction.modifiers)
    if opcode.startswith(("s_load_", "s_buffer_load_")):
        offset = parse_operand(instruction.operands[2], instruction)
        near = int(fields.get("offset", "0"), 0)
        record["offset"] = near + (signed_offset(offset.literal) if offset.file is File.LITERAL else 0)
        record["buffer"] = opcode.startswith("s_buffer")
        return None
    if opcode == "ds_swizzle_b32":
        record["dpp_source"] = source_lanes(instruction)
        return None
    if not opcode.startswith(("ds_", "buffer_", "global_", "scratch_")):
        return None
    record["offset"] = int(fields.get("offset", "0"), 0)
    if (found := _MEMORY.match(opcode)) is not None:
        width = found["width"]
        record["buffer"] = found["space"] == "buffer"
        record["sign"] = width[0] == "s" and width != "short"
        record["size"] = _SIZES[width if width in _SIZES else width[1:]]
        record["to_lds"], record["offen"] = "lds" in fields or "_lds_" in opcode, "offen" in fields
        record["align_m0"] = _SHORT_M0 - 1 if architecture.lds_bytes.value <= _SHORT_M0 else -1
    elif (found := _LDS.match(opcode)) is not None:
        _pieces(record, found, fields)
    else:
        return _atomic(record, instruction, fields)
    halves = bool(found["half"]) and "_store_" not in opcode
    record["half"], record["high"] = halves * (1 if architecture.d16_kept.value else _LOST), bool(found["high"])
    return None


def _pieces(record: Any, found: re.Match[str], fields: dict[str, str]) -> None:  # noqa: ANN401
    """How many bytes a lane moves, and in which pieces."""
    record["size"] = size = int(found["bits"]) // 8
    record["sign"] = found["kind"] == "i"
    record["element"] = int(found["element"] or 0)
    record["pieces"] = 2 if found["two"] else 1
    unit = size * (64 if found["far"] else 1)
    names = ("offset0", "offset1") if found["two"] else ("offset",)
    for piece, name in enumerate(names):
        record["pieces_offset"][piece] = int(fields.get(name, "0"), 0) * (unit if found["two"] else 1)


def _atomic(record: Any, instruction: Instruction, fields: dict[str, str]) -> str | None:  # noqa: ANN401
    opcode = instruction.opcode
    on_lds, found = lds_atomic(opcode), _ATOMIC.match(opcode)
    known = on_lds or memory_atomic(opcode)
    if known is None or found is None:
        return None
    record["size"] = known[1]
    if on_lds is None:
        record["verb"] = _VERBS.index(found["verb"])
        record["buffer"], record["offen"] = opcode.startswith("buffer"), "offen" in fields
        record["returns"] = not fields.keys().isdisjoint({"sc0", "glc"})
        return "rota_memory_atomic"
    record["returns"], record["pieces"] = on_lds[2], 1
    record["pieces_offset"][0] = int(fields.get("offset", "0"), 0)
    verb, kind = _LDS_NAMES.get(found["lds"], found["lds"]), found["type"]
    if "f" in kind:
        verb = f"{verb}_{kind}"
    elif verb in {"min", "max"}:
        verb = ("s" if kind[0] == "i" else "u") + verb
    record["verb"] = _VERBS.index(verb)
    return "rota_lds_atomic"
