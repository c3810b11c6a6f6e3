"""A program for the native core: records of its decoded steps, or None if the core can't run it.

An instruction that only uses registers and that the core lacks becomes a record that asks NumPy to execute it; the core
doesn't run programs with memory or control-flow instructions that it lacks.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.isa.binary.elf import CODE_BASE
from rota.isa.binary.kernel_facts import LANES
from rota.isa.decoded import KernelProgram
from rota.isa.disassembly import SKIPPING, Instruction
from rota.isa.hazards.spacing import NOTHING, Need
from rota.isa.hazards.wait_states import SpacingWalk, needs
from rota.isa.matrix import fields_of, index_start
from rota.isa.matrix_elements import BITS
from rota.isa.memory.atomic_ops import combine_of
from rota.isa.memory.lds_ops import source_lanes
from rota.isa.memory.scalar_memory import signed_offset
from rota.isa.memory.vector_memory import SHORT_M0
from rota.isa.opcodes import IsaFlow, IsaUnit, MemAccess, MemSpace, MemVerb, Trait, wait_counts
from rota.isa.races import Scope, scope_of
from rota.isa.registers import SCALAR, Rows
from rota.isa.valu.access import crossing_of
from rota.isa.valu.vector import lane_bits
from rota.isa.wave.operand import File, parse_operand
from rota.isa.wave.wave import Step
from rota.native_library import load
from rota.targets.architecture import ANY, Architecture, Float8, Pipe

NAME = "librota_core.so"
_POINTER: Final = ctypes.c_void_p
OTHER: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)
"""What executes one instruction of a wave instead of the core: takes the wave's number and the instruction's."""
_SIGNATURES: dict[str, tuple[object, tuple[object, ...]]] = {
    "rota_opcode_name": (ctypes.c_char_p, (ctypes.c_int,)),
    "rota_opcode_accepts": (ctypes.c_uint32, (ctypes.c_int,)),
    "rota_size": (ctypes.c_int64, (ctypes.c_int,)),
    "rota_check": (ctypes.c_int, (_POINTER, ctypes.c_int32, _POINTER, ctypes.c_int32)),
    "rota_acts": (ctypes.c_int, (_POINTER, ctypes.c_int32, _POINTER)),
    "rota_group_new": (_POINTER, (_POINTER, ctypes.c_int32, _POINTER, ctypes.c_int32, ctypes.c_int64, ctypes.c_int64)),
    "rota_group_code": (None, (_POINTER, _POINTER, ctypes.c_int64, ctypes.c_uint64, OTHER)),
    "rota_lds": (_POINTER, (_POINTER, ctypes.c_int32)),
    "rota_private": (_POINTER, (_POINTER,)),
    "rota_scc": (ctypes.c_int32, (_POINTER, ctypes.c_int32)),
    "rota_set_scc": (None, (_POINTER, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)),
    "rota_group_free": (None, (_POINTER,)),
    "rota_group_start": (None, (_POINTER, ctypes.c_int32)),
    "rota_group_memory": (
        None,
        (
            _POINTER, _POINTER, ctypes.c_uint64, _POINTER, _POINTER, ctypes.c_int32, _POINTER, _POINTER, _POINTER,
            ctypes.c_int32,
        ),
    ),
    "rota_group_order": (
        None,
        (
            _POINTER, ctypes.c_int32, ctypes.c_int32, ctypes.c_uint64, _POINTER, ctypes.c_int64, ctypes.c_int32,
            ctypes.c_int32,
        ),
    ),
    "rota_scalars": (_POINTER, (_POINTER, ctypes.c_int32)),
    "rota_vectors": (_POINTER, (_POINTER, ctypes.c_int32)),
    "rota_set_exec": (None, (_POINTER, ctypes.c_int32, ctypes.c_uint64)),
    "rota_set_pc": (None, (_POINTER, ctypes.c_int32, ctypes.c_int32)),
    "rota_wave_end": (
        None,
        (_POINTER, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_int32)),
    ),
    "rota_executed": (ctypes.c_int64, (_POINTER,)),
    "rota_run": (ctypes.c_int, (_POINTER, _POINTER, ctypes.c_int64)),
    "rota_faults": (_POINTER, (_POINTER, ctypes.POINTER(ctypes.c_int32))),
    "rota_notes": (_POINTER, (_POINTER, ctypes.POINTER(ctypes.c_int32))),
    "rota_group_spacings": (None, (_POINTER, _POINTER)),
}  # fmt: skip


@cache
def library() -> ctypes.CDLL | None:
    """The core built into the package; None without one, or if ROTA_NATIVE=0 asks for NumPy."""
    return load(Path(__file__).parent / "lib" / NAME, _SIGNATURES)  # not beside modules: Python would import it


@cache
def opcodes() -> dict[str, tuple[int, int]]:
    """For each opcode of the core its number, and the modifiers that it honours as bits."""
    core, found = library(), dict[str, tuple[int, int]]()
    while core is not None and (name := core.rota_opcode_name(len(found))) is not None:
        found[name.decode()] = len(found), core.rota_opcode_accepts(len(found))
    return found


_KINDS = ("bf16", "f16", "i8", "f32", "xf32", "fp8", "bf8", "fp6", "bf6", "fp4")  # as in matrix.c
_TOTALS = ("f32", "i32")


def matrix_record(record: Any, instruction: Instruction, architecture: Architecture) -> str | None:  # noqa: ANN401
    """None for products of float64, whose sums depend on their order: NumPy decides those."""
    form = next(each for each in architecture.matrix_forms if each.name == instruction.opcode)
    fields = fields_of(instruction, form)
    third = parse_operand(instruction.operands[3], instruction)
    if form.total not in _TOTALS or form.rows != form.columns or third.file not in {File.VECTOR, File.LITERAL}:
        return None
    if form.rows * form.depth * form.blocks % LANES:
        return None
    record["matrix"][:16] = (
        form.rows, form.depth, form.blocks, _KINDS.index(fields.left), _KINDS.index(fields.right),
        form.total == "i32", form.sparse, form.scaled, fields.cbsz, fields.abid, fields.blgp,
        index_start(form, fields), *fields.bytes_of_scales,
        *(form.left == ANY and BITS[kind] > 4 for kind in (fields.left, fields.right)),
    )  # fmt: skip
    return "rota_matrix"


# Memory instructions. The core has one routine for all atomics on LDS and one for those on memory; other instructions
# keep their names.

_LOST = 2  # a load of half a register that loses the other one
_VERBS = (
    "add", "sub", "rsub", "inc", "dec", "umin", "umax", "smin", "smax", "and", "or", "xor", "swap", "mskor", "cmpswap",
    "add_f32", "add_f64", "pk_add_f16", "pk_add_bf16", "min_f32", "max_f32", "min_f64", "max_f64",
)  # fmt: skip  # as in atomic.c


def memory_record(record: Any, instruction: Instruction, architecture: Architecture) -> str | None:  # noqa: ANN401
    """The routine for an atomic; None for instructions that the core knows by their own name."""
    access, fields = instruction.spec.access, instruction.fields
    if access is None or access.verb is MemVerb.EXCHANGE:
        if instruction.spec.root == "swizzle":
            record["dpp_source"] = source_lanes(instruction)
        elif access is not None:
            record["offset"] = instruction.offset
        return None
    record["offset"], record["buffer"] = instruction.offset, access.buffer
    if access.space is MemSpace.SCALAR:
        return _scalar_record(record, instruction, access)
    record["size"], record["offen"], record["idxen"] = access.size, "offen" in fields, "idxen" in fields
    if access.space is MemSpace.LDS:
        record["pieces"] = access.pieces
        record["pieces_offset"][: access.pieces] = instruction.piece_offsets
    if access.verb is MemVerb.ATOMIC:
        if combine_of(access) is None or access.space is MemSpace.FLAT:
            return None
        record["verb"], record["returns"] = _VERBS.index(access.atomic), instruction.returns
        return "rota_lds_atomic" if access.space is MemSpace.LDS else "rota_memory_atomic"
    record["sign"], record["element"] = access.signed, access.transposed
    record["to_lds"] = instruction.to_lds
    record["align_m0"] = SHORT_M0 - 1 if architecture.lds_bytes.value <= SHORT_M0 else -1
    record["half"], record["high"] = access.half * (1 if architecture.d16_kept.value else _LOST), access.high
    return None


def _scalar_record(record: Any, instruction: Instruction, access: MemAccess) -> str | None:  # noqa: ANN401
    offset = parse_operand(instruction.operands[2], instruction)
    record["offset"] += signed_offset(offset.literal) if offset.file is File.LITERAL else 0
    if access.verb is MemVerb.LOAD:
        return None
    record["size"], record["returns"] = access.size, "glc" in instruction.modifiers
    if access.verb is MemVerb.STORE or access.buffer or combine_of(access) is None or access.atomic == "cmpswap":
        return None
    record["verb"] = _VERBS.index(access.atomic)
    return "rota_scalar_atomic"


_BY_NUMPY = "rota_numpy"
_QUEUES = ["vmcnt", "lgkmcnt"]  # that the core has
_SELECTIONS = {f"BYTE_{n}": n for n in range(4)} | {"WORD_0": 4, "WORD_1": 5, "DWORD": 6}
_UNUSED = {"UNUSED_PAD": 0, "UNUSED_SEXT": 1, "UNUSED_PRESERVE": 2}
_FILES = {File.NONE: 0, File.VECTOR: 1, File.SCALAR: 2, File.LITERAL: 3}
_SDWA, _CLAMP, _OP_SEL, _NEG, _OFFSET, _BUFFER, _IMMEDIATE = 1, 2, 8, 16, 32, 64, 128  # as in core.h
_DPP, _SIGNS = 256, 1024
_MODIFIERS = {
    **dict.fromkeys(("offset", "offset0", "offset1"), _OFFSET),
    **dict.fromkeys(("offen", "idxen", "lds", "sc0", "sc1", "nt", "glc", "slc"), _BUFFER),
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
        *((name, np.int32) for name in ("immediate", "immediate1", "buffer", "offen", "idxen", "to_lds", "fnuz")),
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


ROWS = 512  # VGPRs and AGPRs
_SCALAR_ROWS = 256  # operand numbers of the scalar registers
_SETS = (ROWS + _SCALAR_ROWS) // 64
SPACING = np.dtype(
    [(name, np.int32) for name in ("reach", "pipe", "passes", "pairs_at", "pairs")]
    + [(name, np.uint64, _SETS) for name in ("writes", "ends")],
    align=True,
)
PAIR = np.dtype([(name, np.int32) for name in ("first", "needs_at", "needs")], align=True)
NEED = np.dtype(
    [(name, np.int32) for name in ("states", "matrix", "reads", "required")] + [("rows", np.uint64, _SETS)], align=True
)


class PackedSpacings(NamedTuple):
    """The wait states of a program in which some path lacks them.

    `needs` are those of the pairs of instructions that may come too close, in the order of the core's array.
    """

    arrays: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    pointers: NDArray[np.uint64]  # to the arrays, as the core reads them
    needs: tuple[Need, ...]


class Packed(NamedTuple):
    """The records of a program, the rows that each must not touch while in flight, and a map of the code."""

    ops: NDArray[Any]
    pool: NDArray[np.int32]
    code_at: NDArray[np.int32]  # by dword of the code: the number of the instruction that starts there, or -1
    spacings: PackedSpacings | None = None
    shared: bool = False  # cache bits or atomics may order accesses of memory


def pack(program: KernelProgram) -> Packed | None:
    """The records of a program; None without a core, or if it lacks a memory or control-flow instruction."""
    architecture = program.architecture
    if not opcodes() or architecture.lanes.value != LANES or [each.counter for each in architecture.queues] != _QUEUES:
        return None
    ops = np.zeros(len(program.steps), OP)
    pool: list[int] = []
    for number, step in enumerate(program.steps):
        name = _fill(ops[number], step, program.architecture)
        if name is None:
            if not only_registers(step.instruction):
                return None
            ops[number] = np.zeros((), OP)  # drop what was filled in
            ops[number]["dst_sel"] = ops[number]["src_sel"][:] = 6
            name = _BY_NUMPY
        record = ops[number]
        record["opcode"] = opcodes()[name][0]
        record["vector"] = step.instruction.spec.unit.computes_lanes
        record["fnuz"] = program.architecture.float8 is Float8.FNUZ
        record["touches_at"], record["touches"] = len(pool), len(step.touches)
        pool.extend(sorted(map(_row_of, step.touches)))
    shared = any(_is_shared(step.instruction) for step in program.steps)
    return Packed(ops, np.array(pool or [0], np.int32), _places(program), pack_spacings(program), shared)


def _is_shared(instruction: Instruction) -> bool:
    access = instruction.spec.access
    if access is None or access.space is MemSpace.LDS:
        return False
    return access.verb is MemVerb.ATOMIC or scope_of(instruction.modifiers) is not Scope.WAVE


def pack_spacings(program: KernelProgram) -> PackedSpacings | None:
    """None if every path has its wait states, or the program is not subject to them."""
    if all(step.spacing is NOTHING for step in program.steps):
        return None
    walk = SpacingWalk([step.instruction for step in program.steps], program.architecture)
    early: dict[int, list[int]] = {}
    for each in walk.early():
        early.setdefault(each.then, []).append(each.first)
    if not early:
        return None
    spacings, pipes = np.zeros(len(program.steps), SPACING), [None, *Pipe]
    pairs: list[tuple[int, int, int]] = []
    needed: list[Need] = []
    for number, spacing in enumerate(walk.spacings):
        firsts = early.get(number, [])
        writes, ends = _row_bits(spacing.writes), _row_bits(spacing.ends)
        spacings[number] = (
            spacing.reach, pipes.index(spacing.pipe), spacing.passes, len(pairs), len(firsts), writes, ends,
        )  # fmt: skip
        for first in firsts:
            found = needs(walk.spacings[first], spacing, program.architecture.hazards)
            pairs.append((first, len(needed), len(found)))
            needed += found
    rows = [(each.states, each.matrix, each.reads, each.required, _row_bits(each.rows)) for each in needed]
    arrays = spacings, np.array(pairs, PAIR), np.array(rows, NEED)
    pointers = np.array([each.ctypes.data for each in arrays], np.uint64)
    return PackedSpacings(arrays, pointers, tuple(needed))


def _row_of(row: int) -> int:
    """A row as the core numbers it: scalar registers follow VGPRs and AGPRs, 256 of each."""
    return row if row < ROWS else row - SCALAR + ROWS


def _row_bits(rows: Rows) -> list[int]:
    bits = sum(1 << _row_of(row) for row in rows)
    return [bits >> 64 * place & 0xFFFF_FFFF_FFFF_FFFF for place in range(_SETS)]


def _places(program: KernelProgram) -> NDArray[np.int32]:
    found = [(step.instruction.address, number) for number, step in enumerate(program.steps)]
    known = [(address // 4, number) for address, number in found if address is not None and address % 4 == 0]
    places = np.full(max((place for place, _ in known), default=0) + 1, -1, np.int32)
    for place, number in reversed(known):
        places[place] = number
    return places


def only_registers(instruction: Instruction) -> bool:
    spec = instruction.spec
    if Trait.INDEXES in spec.traits:  # the core reads registers by their names
        return False
    return spec.unit is IsaUnit.SALU or spec.unit.computes_lanes or (spec.unit is IsaUnit.SMEM and spec.targets > 0)


def _fill(record: Any, step: Step, architecture: Architecture) -> str | None:  # noqa: ANN401  # a record of an array
    """Fills a record; returns the name of the core's routine, None if it lacks the instruction."""
    instruction = step.instruction
    record["states"] = step.states
    record["target"] = -1 if instruction.target is None else instruction.target
    record["dst_sel"] = record["src_sel"][:] = 6
    if instruction.spec.unit is IsaUnit.MATRIX:
        name = matrix_record(record, instruction, architecture)
        return name if name is not None and _fill_operands(record, instruction, accepts=0) else None
    name = memory_record(record, instruction, architecture) or instruction.mnemonic
    if name not in opcodes():
        return None
    return name if _fill_rest(record, instruction, architecture, accepts=opcodes()[name][1]) else None


def _fill_rest(record: Any, instruction: Instruction, architecture: Architecture, *, accepts: int) -> bool:  # noqa: ANN401, PLR0911
    spec = instruction.spec
    if spec.flow is IsaFlow.WAIT:
        counts = wait_counts(spec, instruction.text, architecture)
        record["immediate"], record["immediate1"] = (counts.get(each.counter, -1) for each in architecture.queues)
        return True
    if Trait.SKIPS in spec.traits:
        record["immediate"] = SKIPPING not in instruction.modifiers
        return _fill_operands(record, instruction, accepts=0)
    calls = spec.flow.is_call or spec.flow.is_indirect or spec.name == "s_getpc_b64"
    if (spec.unit is IsaUnit.CONTROL and not calls) or spec.is_hint or accepts == _ANY:
        return True
    if calls:
        if instruction.follows is None:
            return False
        record["behind"] = CODE_BASE + instruction.follows
    if not _fill_operands(record, instruction, accepts=accepts):
        return False
    if instruction.is_dpp:
        if not accepts & _DPP or any(each.partition(":")[0] in _MODIFIERS for each in instruction.modifiers):
            return False
        crossing = crossing_of(instruction)
        record["dpp"], record["dpp_zero"] = 1, crossing.zero
        record["dpp_source"] = crossing.source
        record["dpp_enabled"] = lane_bits(crossing.enabled)
        return True
    return _fill_modifiers(record, instruction, accepts)


def _fill_operands(record: Any, instruction: Instruction, *, accepts: int) -> bool:  # noqa: ANN401
    texts = instruction.operands
    swizzles = instruction.spec.root == "swizzle"
    if swizzles:
        texts = tuple(text.split()[0] for text in texts[:2])
    if len(texts) > _MOST_OPERANDS:
        return False
    record["operands"] = len(texts)
    wide = instruction.spec.unit is IsaUnit.VALU and any(each.endswith("64") for each in instruction.spec.types)
    for slot, text in zip(record["o"], texts, strict=False):
        extended = text.startswith("sext(")
        operand = parse_operand(text.removeprefix("sext(").removesuffix(")") if extended else text, instruction)
        if operand.file is File.STATUS or (wide and operand.written):
            return False
        slot["file"] = 4 if operand.floating is not None else _FILES[operand.file]
        slot["first"], slot["count"] = operand.first, operand.count
        slot["negate"], slot["absolute"] = operand.negate, operand.absolute
        slot["literal"] = operand.literal & 0xFFFF_FFFF_FFFF_FFFF
        slot["floating"] = operand.floating or 0.0
        slot["sign_extend"] = extended
        if operand.signed and not accepts & _SIGNS:
            return False
    return True


def _fill_modifiers(record: Any, instruction: Instruction, accepts: int) -> bool:  # noqa: ANN401
    packed = instruction.spec.words[:1] == ("pk",)
    if packed:
        record["op_sel_hi"] = 0b111
    needs = 0
    for modifier in instruction.modifiers:
        name, _, value = modifier.partition(":")
        if instruction.spec.root == "swizzle":
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
    """Bits 0 to 2 for the sources, 3 for the destination, which op_sel names last."""
    *sources, target = flags.strip("[]").split(",")
    return int(target) << 3 | sum(int(flag) << place for place, flag in enumerate(sources))


@cache
def _bits(flags: str) -> int:
    return sum(int(flag) << place for place, flag in enumerate(flags.strip("[]").split(",")))
