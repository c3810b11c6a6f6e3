"""A program for the native core: takes decoded steps, gives their records, or None if the core lacks any."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.native.library import opcodes
from rota.isa.valu.dpp import crossing_of
from rota.isa.valu.lane_compare import lane_bits
from rota.isa.wave.operand import File, Operand, parse_operand
from rota.targets.architecture import Float8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction
    from rota.isa.decoded import KernelProgram
    from rota.isa.wave.step import Step

_ENCODING = re.compile(r"_(e32|e64|sdwa|dpp)$")
_MEMORY = re.compile(
    r"^(?P<space>buffer|global)_(?:load|store)_(?:lds_)?"
    r"(?P<width>dword(?:x[234])?|[us]?byte|[us]?short)(?P<half>_d16)?(?P<high>_hi)?$"
)
_LDS = re.compile(
    r"^ds_(?:read|write)(?P<two>2)?(?P<far>st64)?_(?P<kind>[bui])(?P<bits>\d+)(?P<half>_d16)?(?P<high>_hi)?$"
)
_COUNTS = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")
_SIZES = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "byte": 1, "short": 2}
_SELECTIONS = {f"BYTE_{n}": n for n in range(4)} | {"WORD_0": 4, "WORD_1": 5, "DWORD": 6}
_UNUSED = {"UNUSED_PAD": 0, "UNUSED_SEXT": 1, "UNUSED_PRESERVE": 2}
_FILES = {File.NONE: 0, File.VECTOR: 1, File.SCALAR: 2, File.LITERAL: 3}
_SDWA, _CLAMP, _OP_SEL, _NEG, _OFFSET, _BUFFER, _IMMEDIATE = 1, 2, 8, 16, 32, 64, 128  # as in core.h
_DPP, _MATRIX, _SIGNS = 256, 512, 1024
_MODIFIERS = {
    **dict.fromkeys(("offset", "offset0", "offset1"), _OFFSET),
    **dict.fromkeys(("offen", "lds", "sc0", "sc1", "nt", "glc", "slc"), _BUFFER),
    **dict.fromkeys(("dst_sel", "dst_unused", "src0_sel", "src1_sel"), _SDWA),
    **dict.fromkeys(("op_sel", "op_sel_hi"), _OP_SEL),
    **dict.fromkeys(("neg_lo", "neg_hi"), _NEG),
    **dict.fromkeys(("cbsz", "blgp"), _MATRIX),
    "clamp": _CLAMP,
    "bitop3": _IMMEDIATE,
}
_MOST_OPERANDS = 6

OPERAND = np.dtype(
    [(name, np.int32) for name in ("file", "first", "count", "negate", "absolute", "sign_extend")]
    + [("literal", np.uint64), ("floating", np.float64)],
    align=True,
)
OP = np.dtype(
    [
        *((name, np.int32) for name in ("opcode", "operands", "target", "states", "touches_at", "touches")),
        *((name, np.int32) for name in ("offset", "size", "pieces")),
        ("pieces_offset", np.int32, 2),
        *((name, np.int32) for name in ("half", "high", "sign", "dst_sel", "dst_unused")),
        ("src_sel", np.int32, 2),
        *((name, np.int32) for name in ("clamp", "omod", "op_sel", "op_sel_hi", "neg_lo", "neg_hi")),
        *((name, np.int32) for name in ("immediate", "immediate1", "buffer", "offen", "to_lds", "fnuz")),
        *((name, np.int32) for name in ("halves", "dpp", "dpp_zero", "cbsz", "abid", "blgp")),
        ("o", OPERAND, _MOST_OPERANDS),
        ("dpp_enabled", np.uint64),
        ("dpp_source", np.int8, LANES),
    ],
    align=True,
)
FAULT = np.dtype(
    [(name, np.int32) for name in ("code", "pc", "other", "wave", "other_wave", "row")]
    + [(name, np.int64) for name in ("detail", "detail1")],
    align=True,
)


class Packed(NamedTuple):
    """Records of a program, and the rows that each may not touch too early."""

    ops: NDArray[Any]
    pool: NDArray[np.int32]


def pack(program: KernelProgram) -> Packed | None:
    """The records of a program; None if the core lacks an opcode, an operand or a modifier of it."""
    known = opcodes()
    ops = np.zeros(len(program.steps), OP)
    pool: list[int] = []
    for record, step in zip(ops, program.steps, strict=True):
        found = known.get(_ENCODING.sub("", step.instruction.opcode))
        if found is None or not _packed(record, step, accepts=found[1]):
            return None
        record["opcode"] = found[0]
        record["fnuz"] = program.architecture.float8 is Float8.FNUZ
        record["touches_at"], record["touches"] = len(pool), len(step.touches)
        pool.extend(sorted(step.touches))
    return Packed(ops, np.array(pool or [0], np.int32))


def _packed(record: Any, step: Step, *, accepts: int) -> bool:  # noqa: ANN401  # a record of an array
    instruction = step.instruction
    record["states"] = step.states
    record["target"] = -1 if instruction.target is None else instruction.target
    record["dst_sel"] = record["src_sel"][:] = 6
    if instruction.opcode == "s_waitcnt":
        return _counts(record, instruction)
    if instruction.opcode.startswith(("s_branch", "s_cbranch", "s_nop", "s_setprio", "s_sleep", "s_endpgm")):
        return True
    texts = instruction.operands
    if len(texts) > _MOST_OPERANDS:
        return False
    record["operands"] = len(texts)
    needs = 0
    for slot, text in zip(record["o"], texts, strict=False):
        _operand(
            slot, parse_operand(text.removeprefix("sext(").removesuffix(")") if "sext(" in text else text, instruction)
        )
        slot["sign_extend"] = "sext(" in text
        if slot["negate"] or slot["absolute"]:
            needs = _SIGNS
    if needs & ~accepts:
        return False
    if instruction.opcode.endswith("_dpp"):
        return bool(accepts & _DPP) and _crossing(record, instruction)
    return _memory(record, instruction) and _modifiers(record, instruction, accepts)


def _crossing(record: Any, instruction: Instruction) -> bool:  # noqa: ANN401
    crossing = crossing_of(instruction)
    record["dpp"], record["dpp_zero"] = 1, crossing.zero
    record["dpp_source"] = crossing.source
    record["dpp_enabled"] = lane_bits(crossing.enabled)
    return True


def _operand(slot: Any, operand: Operand) -> None:  # noqa: ANN401
    slot["file"] = 4 if operand.floating is not None else _FILES[operand.file]
    slot["first"], slot["count"] = operand.first, operand.count
    slot["negate"], slot["absolute"] = operand.negate, operand.absolute
    slot["literal"] = operand.literal & 0xFFFF_FFFF_FFFF_FFFF
    slot["floating"] = operand.floating or 0.0


def _counts(record: Any, instruction: Instruction) -> bool:  # noqa: ANN401
    counts = {name: int(count) for name, count in _COUNTS.findall(instruction.text)}
    both = 0 if not counts else -1
    record["immediate"], record["immediate1"] = counts.get("vmcnt", both), counts.get("lgkmcnt", both)
    return True


def _memory(record: Any, instruction: Instruction) -> bool:  # noqa: ANN401
    """How many bytes a lane moves, and in which pieces."""
    opcode = instruction.opcode
    fields = dict(modifier.partition(":")[::2] for modifier in instruction.modifiers)
    if (found := _MEMORY.match(opcode)) is not None:
        width = found["width"]
        record["buffer"] = found["space"] == "buffer"
        record["sign"] = width[0] == "s" and width != "short"
        record["size"] = _SIZES[width if width in _SIZES else width[1:]]
        record["to_lds"], record["offen"] = "lds" in fields or "_lds_" in opcode, "offen" in fields
    elif (found := _LDS.match(opcode)) is not None:
        record["size"] = size = int(found["bits"]) // 8
        record["sign"] = found["kind"] == "i"
        record["pieces"] = 2 if found["two"] else 1
        unit = size * (64 if found["far"] else 1)
        names = ("offset0", "offset1") if found["two"] else ("offset",)
        for piece, name in enumerate(names):
            record["pieces_offset"][piece] = int(fields.get(name, "0"), 0) * (unit if found["two"] else 1)
    if found is not None:
        record["half"], record["high"] = bool(found["half"]), bool(found["high"])
    record["offset"] = int(fields.get("offset", "0"), 0)
    return True


def _modifiers(record: Any, instruction: Instruction, accepts: int) -> bool:  # noqa: ANN401
    """Does the core honour all of them?  Those that it does are put into the record."""
    packed = instruction.opcode.startswith("v_pk_")
    if packed:
        record["op_sel_hi"] = 0b111
    needs = 0
    for modifier in instruction.modifiers:
        name, _, value = modifier.partition(":")
        if name not in _MODIFIERS:
            return False
        needs |= _MODIFIERS[name]
        if name in {"dst_sel", "dst_unused"}:
            record[name] = {**_SELECTIONS, **_UNUSED}[value]
        elif name in {"src0_sel", "src1_sel"}:
            record["src_sel"][int(name[3])] = _SELECTIONS[value]
        elif name in {"op_sel", "op_sel_hi", "neg_lo", "neg_hi"}:
            record[name] = _bits(value) if packed else _half_choice(value)
            record["halves"] = not packed
        elif name in {"clamp", "bitop3", "cbsz", "blgp"}:
            record["immediate" if name == "bitop3" else name] = int(value or "1", 0)
    return needs & ~accepts == 0


@cache
def _half_choice(flags: str) -> int:
    """Bits 0 to 2 for the sources, 3 for the destination, which is named last."""
    *sources, target = flags.strip("[]").split(",")
    return int(target) << 3 | sum(int(flag) << place for place, flag in enumerate(sources))


@cache
def _bits(flags: str) -> int:
    return sum(int(flag) << place for place, flag in enumerate(flags.strip("[]").split(",")))
