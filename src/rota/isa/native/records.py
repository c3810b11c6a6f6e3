"""A program for the native core: takes decoded steps, gives their records, or None if the core can't run it.

An instruction that only uses registers and that the core lacks becomes a record that asks NumPy to execute it; what
the core lacks of memory and of control flow is not run by it at all.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rota.isa.binary.image import CODE_BASE
from rota.isa.binary.kernel_facts import LANES
from rota.isa.native.library import opcodes
from rota.isa.native.matrix_records import matrix_record
from rota.isa.native.memory_records import memory_record
from rota.isa.valu.dpp import crossing_of
from rota.isa.valu.lane_compare import lane_bits
from rota.isa.wave.control import wait_counts
from rota.isa.wave.operand import File, Operand, parse_operand
from rota.isa.wave.scalar import decode_scalar
from rota.targets.architecture import Float8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction
    from rota.isa.decoded import KernelProgram
    from rota.isa.wave.step import Step
    from rota.targets.architecture import Architecture

_OTHER_SCALARS = ("s_setreg", "s_getreg")
_INDEXING = ("s_set_gpr_idx", "s_movrel")  # the core looks at registers that are named, not at those that are meant
_CALLS = ("s_getpc", "s_setpc", "s_swappc", "s_call")
_BARE = ("s_branch", "s_cbranch", "s_nop", "s_setprio", "s_sleep", "s_endpgm", "s_sendmsg", "s_barrier", "buffer_inv")
_BY_NUMPY = "rota_numpy"
_SELECTIONS = {f"BYTE_{n}": n for n in range(4)} | {"WORD_0": 4, "WORD_1": 5, "DWORD": 6}
_UNUSED = {"UNUSED_PAD": 0, "UNUSED_SEXT": 1, "UNUSED_PRESERVE": 2}
_FILES = {File.NONE: 0, File.VECTOR: 1, File.SCALAR: 2, File.LITERAL: 3}
_SDWA, _CLAMP, _OP_SEL, _NEG, _OFFSET, _BUFFER, _IMMEDIATE = 1, 2, 8, 16, 32, 64, 128  # as in core.h
_DPP, _SIGNS = 256, 1024
_MODIFIERS = {
    **dict.fromkeys(("offset", "offset0", "offset1"), _OFFSET),
    **dict.fromkeys(("offen", "lds", "sc0", "sc1", "nt", "glc", "slc"), _BUFFER),
    **dict.fromkeys(("dst_sel", "dst_unused", "src0_sel", "src1_sel"), _SDWA),
    **dict.fromkeys(("op_sel", "op_sel_hi"), _OP_SEL),
    **dict.fromkeys(("neg_lo", "neg_hi"), _NEG),
    "clamp": _CLAMP,
    "bitop3": _IMMEDIATE,
}
_MOST_OPERANDS = 6
_ANY = 0xFFFF_FFFF  # modifiers that have no effect on values

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
        *((name, np.int32) for name in ("halves", "dpp", "dpp_zero", "vector", "verb", "returns", "element")),
        ("matrix", np.int32, 20),
        ("align_m0", np.int32),
        ("behind", np.uint64),
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
    """Records of a program, the rows that each may not touch too early, and where each starts in the code.

    `code_at` has for each dword of the code the number of the instruction that starts there, or -1.
    """

    ops: NDArray[Any]
    pool: NDArray[np.int32]
    code_at: NDArray[np.int32]


def pack(program: KernelProgram) -> Packed | None:
    """The records of a program; None without a core, or if it lacks a memory access, a jump or a form of one."""
    if not opcodes():
        return None
    ops = np.zeros(len(program.steps), OP)
    pool: list[int] = []
    for number, step in enumerate(program.steps):
        name = _filled(ops[number], step, program.architecture)
        if name is None:
            if not only_registers(step.instruction):
                return None
            ops[number] = np.zeros((), OP)  # nothing that was put into it counts
            ops[number]["dst_sel"] = ops[number]["src_sel"][:] = 6
            name = _BY_NUMPY
        record = ops[number]
        record["opcode"] = opcodes()[name][0]
        record["vector"] = step.instruction.opcode.startswith("v_")
        record["fnuz"] = program.architecture.float8 is Float8.FNUZ
        record["touches_at"], record["touches"] = len(pool), len(step.touches)
        pool.extend(sorted(step.touches))
    return Packed(ops, np.array(pool or [0], np.int32), _places(program))


def _places(program: KernelProgram) -> NDArray[np.int32]:
    found = [(step.instruction.address, number) for number, step in enumerate(program.steps)]
    known = [(address // 4, number) for address, number in found if address is not None and address % 4 == 0]
    places = np.full(max((place for place, _ in known), default=0) + 1, -1, np.int32)
    for place, number in reversed(known):
        places[place] = number
    return places


def only_registers(instruction: Instruction) -> bool:
    """Does it use nothing but registers, and go on with the next one?"""
    opcode = instruction.opcode
    if opcode.startswith(_INDEXING):
        return False
    if opcode.startswith(("v_", *_OTHER_SCALARS)):
        return True
    return opcode.startswith("s_") and not opcode.startswith(_BARE) and decode_scalar(instruction) is not None


def _filled(record: Any, step: Step, architecture: Architecture) -> str | None:  # noqa: ANN401  # a record of an array
    """Fills a record; gives the name of what the core executes it by, None if it lacks the instruction."""
    instruction = step.instruction
    record["states"] = step.states
    record["target"] = -1 if instruction.target is None else instruction.target
    record["dst_sel"] = record["src_sel"][:] = 6
    if instruction.opcode.startswith(("v_mfma_", "v_smfmac_")):
        name = matrix_record(record, instruction, architecture)
        return name if name is not None and _operands(record, instruction, accepts=0) else None
    name = memory_record(record, instruction, architecture) or instruction.mnemonic
    if name not in opcodes():
        return None
    return name if _packed(record, instruction, architecture, accepts=opcodes()[name][1]) else None


def _packed(record: Any, instruction: Instruction, architecture: Architecture, *, accepts: int) -> bool:  # noqa: ANN401
    opcode = instruction.opcode
    if opcode == "s_waitcnt":
        counts = (-1 if count is None else count for count in wait_counts(instruction, architecture))
        record["immediate"], record["immediate1"] = counts
        return True
    if opcode.startswith(_BARE) or accepts == _ANY:
        return True
    if opcode.startswith(_CALLS):
        if instruction.follows is None:
            return False
        record["behind"] = CODE_BASE + instruction.follows
    if not _operands(record, instruction, accepts=accepts):
        return False
    if opcode.endswith("_dpp"):
        return (
            bool(accepts & _DPP) and not (_dpp_names(instruction) & set(_MODIFIERS)) and _crossing(record, instruction)
        )
    return _modifiers(record, instruction, accepts)


def _operands(record: Any, instruction: Instruction, *, accepts: int) -> bool:  # noqa: ANN401
    """Fills in the operands, if the core reads what is written."""
    texts = instruction.operands
    if instruction.opcode == "ds_swizzle_b32":
        texts = tuple(text.split()[0] for text in texts[:2])
    if len(texts) > _MOST_OPERANDS:
        return False
    record["operands"] = len(texts)
    wide = instruction.opcode.startswith("v_") and "64" in instruction.opcode
    for slot, text in zip(record["o"], texts, strict=False):
        extended = text.startswith("sext(")
        operand = parse_operand(text.removeprefix("sext(").removesuffix(")") if extended else text, instruction)
        if operand.file is File.STATUS or (wide and operand.written):
            return False
        _operand(slot, operand)
        slot["sign_extend"] = extended
        if operand.signed and not accepts & _SIGNS:
            return False
    return True


def _dpp_names(instruction: Instruction) -> set[str]:
    return {modifier.partition(":")[0] for modifier in instruction.modifiers}


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


def _modifiers(record: Any, instruction: Instruction, accepts: int) -> bool:  # noqa: ANN401
    """Does the core honour all of them?  Those that it does are put into the record."""
    packed = instruction.opcode.startswith("v_pk_")
    if packed:
        record["op_sel_hi"] = 0b111
    needs = 0
    for modifier in instruction.modifiers:
        name, _, value = modifier.partition(":")
        if instruction.opcode.startswith("ds_swizzle"):
            continue  # its pattern is in the record already
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
        elif name in {"clamp", "bitop3"}:
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
