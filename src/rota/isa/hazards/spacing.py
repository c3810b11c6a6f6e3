"""What matters for wait states: the registers and traits of an instruction, as its `Spacing`.

Registers are numbered in rows as operands are.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from rota.isa.disassembly import Instruction
from rota.isa.wave.operand import ACC, EXEC, M0, SCALAR, VCC
from rota.program.machine import Confidence, Fact
from rota.targets.architecture import ANY, SOURCES, Architecture, Hazards, Pipe

Rows = frozenset[int]
NO_ROWS: Rows = frozenset()
VCC_ROWS: Rows = frozenset({SCALAR + VCC, SCALAR + VCC + 1})
EXEC_ROWS: Rows = frozenset({SCALAR + EXEC, SCALAR + EXEC + 1})
M0_ROWS: Rows = frozenset({SCALAR + M0})
_REGISTER = re.compile(r"(?<![\w.])(?P<file>[vas])(?:(?P<one>\d+)|\[(?P<first>\d+):(?P<last>\d+)\])(?!\w)")
_NAMED = {
    "vcc": VCC_ROWS, "vcc_lo": frozenset({SCALAR + VCC}), "vcc_hi": frozenset({SCALAR + VCC + 1}), "m0": M0_ROWS,
    "exec": EXEC_ROWS, "exec_lo": frozenset({SCALAR + EXEC}), "exec_hi": frozenset({SCALAR + EXEC + 1}),
}  # fmt: skip
_ZERO_FLAGS = {"src_vccz": VCC_ROWS, "src_execz": EXEC_ROWS}
_WORD = re.compile(r"[a-z_0-9]+")


class Kind(enum.Enum):
    SCALAR = "SALU"
    VECTOR = "VALU"
    MATRIX = "matrix core"
    MEMORY = "vector memory"
    LDS = "LDS"
    OTHER = "other"


class Trait(enum.Flag):
    NONE = 0
    TRANSCENDENTAL = enum.auto()
    DOT = enum.auto()
    PARTIAL = enum.auto()  # writes a part of a register
    PACKED = enum.auto()  # LLVM treats it as partial
    DPP = enum.auto()
    LANE = enum.auto()  # reads or writes one lane
    READS_LANE = enum.auto()
    DIVISION = enum.auto()  # v_div_fmas
    DOUBLE_FMA = enum.auto()
    PERMLANE = enum.auto()
    COMPARES_EXEC = enum.auto()  # v_cmpx
    USES_M0 = enum.auto()
    NOT_NAMED = enum.auto()  # uses M0, but no row of the manual names it
    TO_LDS = enum.auto()  # a load from memory to LDS, which counts as a VALU instruction too
    SETS_MODE = enum.auto()
    READS_MODE = enum.auto()
    SETS_VSKIP = enum.auto()  # s_setreg of that bit
    SKIPS = enum.auto()  # s_setvskip
    BY_OFFSET = enum.auto()  # a buffer store whose offset is a register
    RETURNS = enum.auto()  # s_rfe


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A requirement: wait states between two instructions that share `rows`, by the name of its rule in `Hazards`."""

    states: int
    rows: Rows
    why: str
    rule: str
    fact: Fact
    reads: bool = False  # the second one reads the rows
    matrix: bool = False  # the rows are an MFMA's results: a later MFMA that writes them takes its place

    @property
    def source(self) -> str:
        return SOURCES.get(self.fact.confidence, self.fact.confidence.value)

    @property
    def required(self) -> bool:
        """True for rules of the manual and measured ones, False for those of LLVM alone."""
        return self.fact.confidence is not Confidence.COMPILER_MODEL


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spacing:
    """The registers and traits of one instruction that wait states depend on.

    `reads` are explicit sources (of an MFMA: factors, scales, index); `sums` is the addend of an MFMA or dot product
    and `sum_range` its first row and length; `held` the data of a wide store; `select` the rows of a lane select. Of
    `reads`, `masks` are read only as mask or carry, `exchanged` are the lanes that DPP moves, `kept` is the old target
    where lanes may keep it. `zeros` are the registers whose zero flags are read, `ends` the scalar registers that it
    overwrites for sure. `known` caches the needs of pairs that start with this instruction.
    """

    opcode: str
    kind: Kind
    states: int = 1
    reads: Rows = NO_ROWS
    sums: Rows = NO_ROWS
    sum_range: tuple[int, int] = (-1, 0)
    writes: Rows = NO_ROWS
    write_range: tuple[int, int] = (-1, 0)
    held: Rows = NO_ROWS
    select: Rows = NO_ROWS
    masks: Rows = NO_ROWS
    exchanged: Rows = NO_ROWS
    kept: Rows = NO_ROWS
    zeros: Rows = NO_ROWS
    ends: Rows = NO_ROWS
    traits: Trait = Trait.NONE
    hwreg: str = ""
    pipe: Pipe | None = None
    passes: int = 0
    large: bool = False  # of products of float64: 16x16
    reach: int = 0  # wait states after it within which something may come too early
    known: dict[Spacing, tuple[Need, ...]] = field(default_factory=dict, repr=False)

    @property
    def valu(self) -> bool:
        """True for VALU instructions, MFMA and loads to LDS included."""
        return self.kind in {Kind.VECTOR, Kind.MATRIX} or Trait.TO_LDS in self.traits

    @property
    def all_reads(self) -> Rows:
        return self.reads | self.sums


NOTHING = Spacing(opcode="", kind=Kind.OTHER)


@lru_cache(maxsize=4096)  # an unrolled loop names the same registers again and again
def rows_in(text: str) -> Rows:
    rows: set[int] = set()
    for found in _REGISTER.finditer(text):
        first, last = int(found["one"] or found["first"]), int(found["one"] or found["last"])
        base = {"v": 0, "a": ACC, "s": SCALAR}[found["file"]]
        rows.update(range(base + first, base + last + 1))
    for word in _WORD.findall(text):
        rows |= _NAMED.get(word, NO_ROWS)
    return frozenset(rows)


def vector_rows(rows: Rows) -> Rows:
    return frozenset(row for row in rows if row < SCALAR)


def scalar_rows(rows: Rows) -> Rows:
    return frozenset(row for row in rows if row >= SCALAR)


# Decoding reads the text only, so that instructions which the interpreter lacks have wait states too. The roles of
# operands follow from the kind of instruction, as LLVM prints it.

_TRANSCENDENTAL = re.compile(r"^v_(?:exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos)(?:_legacy)?_f(?:16|32|64)$")
_SUFFIX = re.compile(r"_(?:e32|e64|dpp|sdwa|e64_dpp)$")
_CARRIES = re.compile(r"^v_(?:(?:add|sub|subrev|addc|subb|subbrev)_co_u32|div_scale_f\d\d|mad_[ui]64_[ui]32)$")
_TIED = re.compile(r"^v_(?:(?:pk_)?fmac|mac|dot\w*c|writelane|fmac_legacy)_")
_EXCHANGES = re.compile(r"^v_(?:swap_b32|permlane(?:16|32)_swap_b32)$")
_DPP = re.compile(r"^(?:quad_perm|row_\w+|wave_\w+|row_newbcast)(?::|$)")
_MOVREL = re.compile(r"^(?:s_movrel|ds_(?:read|write)_addtid|s_sendmsg|s_ttracedata|ds_gws_|ds_ordered_count)")
_NOT_NAMED = re.compile(r"^(?:s_ttracedata|ds_gws_|ds_ordered_count|buffer_)")  # use M0; not in the manual's table
_HWREG = re.compile(r"hwreg\((?P<name>\w+)(?:, *(?P<first>\d+), *(?P<bits>\d+))?")
_VSKIP = 28  # its bit of MODE
_MASKED = re.compile(r"^v_(?:cndmask|addc|subb|subbrev)_")
_WHOLE = re.compile(r"^(?:quad_perm|row_ror|row_newbcast|row_mirror|row_half_mirror|wave_ro[lr])")
_SCALAR_LOADS = ("s_load", "s_buffer_load", "s_scratch_load")
_MAY_WRITE = re.compile(r"^s_(?:cmov|movreld)")
_LOADS = re.compile(r"^ds_(?:read|\w+_rtn|bpermute|permute|swizzle|consume|append|ordered)")
_PACKED = re.compile(r"^v_(?:pk_|dot\d(?!\w*c_)|(?:mad|fma)_mix)")
_BY_BYTES = re.compile(r"^v_cvt_(?:scalef32_)?sr_(?:fp8|bf8)_")
_NO_TARGET = re.compile(
    r"^s_(?:cmp|bitcmp|cbranch|branch|setreg|sendmsg|barrier|wait|nop|setpc|set_gpr_idx|endpgm|set)"
)


def _reach(first: Spacing, hazards: Hazards) -> int:
    """An upper bound on the wait states that any later instruction must keep."""
    if first.kind is Kind.MATRIX:
        large = (hazards.double_large, hazards.double_large_memory)
        return max(first.passes + max(hazards.result.value, hazards.overlap.value, 2), *(fact.value for fact in large))
    if first.kind is Kind.VECTOR:
        far = (hazards.dot, hazards.dpp, hazards.operand)
        if any(row >= SCALAR for row in first.writes):
            far = (hazards.scalar, hazards.exec_dpp, hazards.zero)
        return max(fact.value for fact in far)
    if first.kind is not Kind.OTHER and (first.held or first.writes or first.traits):
        near = (hazards.store, hazards.dpp_other, hazards.mode, hazards.m0, hazards.vskip, hazards.vskip_read)
        return max(fact.value for fact in near)
    return 0


def spacing_of(instruction: Instruction, architecture: Architecture) -> Spacing:
    opcode = instruction.opcode
    operands = [rows_in(text) for text in instruction.operands]
    if opcode.startswith(("v_mfma_", "v_smfmac_")):
        spacing = _matrix(instruction, operands, architecture)
    elif opcode.startswith("v_"):
        spacing = _vector(instruction, operands)
    elif opcode.startswith(("buffer_", "global_", "flat_", "scratch_", "tbuffer_")):
        spacing = _memory(instruction, operands)
    elif opcode.startswith("ds_"):
        loads = _LOADS.match(opcode) is not None
        reads, writes = (_union(operands[1:]), _union(operands[:1])) if loads else (_union(operands), NO_ROWS)
        traits = _m0_traits(opcode) if _MOVREL.match(opcode) or "gds" in instruction.modifiers else Trait.NONE
        spacing = Spacing(opcode=opcode, kind=Kind.LDS, reads=reads, writes=writes, traits=traits)
    else:
        spacing = _scalar(instruction, operands)
    ends = spacing.ends or (NO_ROWS if spacing.kind is Kind.SCALAR else scalar_rows(spacing.writes))
    return replace(spacing, reach=_reach(spacing, architecture.hazards), ends=ends)


def _m0_traits(opcode: str) -> Trait:
    return Trait.USES_M0 | Trait.NOT_NAMED if _NOT_NAMED.match(opcode) else Trait.USES_M0


def _union(operands: list[Rows]) -> Rows:
    return NO_ROWS.union(*operands)


def _range(rows: Rows) -> tuple[int, int]:
    return (min(rows), len(rows)) if rows else (-1, 0)


def _modifier(instruction: Instruction, name: str) -> str:
    return next((each.partition(":")[2] for each in instruction.modifiers if each.startswith(f"{name}:")), "")


def _bits(instruction: Instruction, name: str) -> list[str]:
    return _modifier(instruction, name).strip("[]").split(",") if _modifier(instruction, name) else []


def _matrix(instruction: Instruction, operands: list[Rows], architecture: Architecture) -> Spacing:
    form = next((each for each in architecture.matrix_forms if each.name == instruction.opcode), None)
    if form is None or len(operands) < 4:  # the interpreter refuses it; nothing is known of its time
        reads, writes = _union(operands[1:]), _union(operands[:1])
        return Spacing(opcode=instruction.opcode, kind=Kind.MATRIX, reads=reads, writes=writes)
    target, left, right, third, *scales = operands
    sums = target if form.sparse else third
    passes = form.passes.value
    if form.left == ANY and form.narrow_passes is not None:
        wide = any(int(_modifier(instruction, name) or "0") < 2 for name in ("cbsz", "blgp"))
        passes = passes if wide else form.narrow_passes.value
    return Spacing(
        opcode=instruction.opcode,
        kind=Kind.MATRIX,
        reads=_union([left, right, *scales, third if form.sparse else NO_ROWS]),
        sums=sums,
        sum_range=_range(sums),
        writes=target,
        write_range=_range(target),
        pipe=form.pipe,
        passes=passes,
        large=form.rows > 4,
    )


def _vector(instruction: Instruction, operands: list[Rows]) -> Spacing:
    name = _SUFFIX.sub("", instruction.opcode)
    targets = 2 if _CARRIES.match(name) else 1
    writes, reads = _union(operands[:targets]), _union(operands[targets:])
    traits, select, sums, masked = _vector_traits(instruction, name), NO_ROWS, NO_ROWS, _MASKED.match(name)
    if name == "v_nop":
        writes = reads = NO_ROWS
    if name.startswith("v_cmpx"):
        writes |= EXEC_ROWS
    if Trait.DIVISION in traits:
        reads |= VCC_ROWS
    if _EXCHANGES.match(name):
        writes, reads = _union(operands), _union(operands)
    elif Trait.DOT in traits:
        sums = operands[3] if len(operands) > 3 else writes
        reads = _union(operands[1:3])
    elif _TIED.match(name):
        reads |= writes
    kept = NO_ROWS
    if Trait.DPP in traits:  # lanes may keep the old target: by its masks, or for lack of a source lane
        full = all(_modifier(instruction, f"{name}_mask") in {"", "0xf"} for name in ("row", "bank"))
        inside = any(_WHOLE.match(each) or each.startswith("bound_ctrl") for each in instruction.modifiers)
        kept = NO_ROWS if full and inside else vector_rows(writes)
    if name in {"v_readlane_b32", "v_writelane_b32"}:
        select = frozenset(row for row in operands[2] if row >= SCALAR)
    return Spacing(
        opcode=instruction.opcode,
        kind=Kind.VECTOR,
        reads=reads | kept,
        sums=sums,
        sum_range=_range(sums),
        writes=writes,
        write_range=_range(writes),
        select=select,
        masks=_union(operands[targets + 2 :]) - _union(operands[targets : targets + 2]) if masked else NO_ROWS,
        exchanged=vector_rows(_union(operands[targets : targets + 1])) if Trait.DPP in traits else NO_ROWS,
        kept=kept,
        zeros=_union([rows for flag, rows in _ZERO_FLAGS.items() if flag in instruction.operands]),
        traits=traits,
    )


def _vector_traits(instruction: Instruction, name: str) -> Trait:
    traits = Trait.NONE
    for trait, holds in (
        (Trait.TRANSCENDENTAL, _TRANSCENDENTAL.match(name) is not None),
        (Trait.DOT, name.startswith("v_dot")),
        (Trait.PARTIAL, _writes_a_part(instruction, name)),
        (Trait.PACKED, _packed(instruction, name)),
        (Trait.DPP, "_dpp" in instruction.opcode or any(_DPP.match(each) for each in instruction.modifiers)),
        (Trait.LANE, name in {"v_readlane_b32", "v_readfirstlane_b32", "v_writelane_b32"}),
        (Trait.READS_LANE, name in {"v_readlane_b32", "v_readfirstlane_b32"}),
        (Trait.DIVISION, name.startswith("v_div_fmas_")),
        (Trait.DOUBLE_FMA, name in {"v_fma_f64", "v_fmac_f64"}),
        (Trait.PERMLANE, name.startswith("v_permlane")),
        (Trait.COMPARES_EXEC, name.startswith("v_cmpx")),
    ):
        if holds:
            traits |= trait
    return traits


def _writes_a_part(instruction: Instruction, name: str) -> bool:
    if "_sdwa" in instruction.opcode or _modifier(instruction, "dst_sel"):
        return _modifier(instruction, "dst_sel") not in {"", "DWORD"}
    if name.startswith("v_cvt_scalef32_sr_pk_fp4_"):  # whatever its bits
        return True
    select = _bits(instruction, "op_sel")
    if _PACKED.match(name):
        return False
    if _BY_BYTES.match(name):
        return "1" in select[2:]
    return len(select) > 1 and select[-1] == "1" and len(select) == len(instruction.operands)


def _packed(instruction: Instruction, name: str) -> bool:
    """True if the first bit of a packed instruction's op_sel_hi is set, which is the default."""
    if not _PACKED.match(name):
        return False
    high = _bits(instruction, "op_sel_hi")
    return (high[0] if high else "0" if "_mix" in name else "1") == "1"


def _memory(instruction: Instruction, operands: list[Rows]) -> Spacing:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    to_lds = "lds" in modifiers or "_load_lds_" in opcode
    returns = "_load" in opcode or ("_atomic_" in opcode and ("sc0" in modifiers or "glc" in modifiers))
    buffer = opcode.startswith(("buffer_", "tbuffer_"))
    loads = returns and not to_lds
    stores = "_store_" in opcode or "_atomic_" in opcode
    reads, writes = _union(operands), NO_ROWS
    if loads:
        writes = operands[0]
        reads = reads if "_atomic_" in opcode and buffer else _union(operands[1:])
    held, traits = NO_ROWS, Trait.NONE
    if stores:
        place = 0 if buffer else 2 if loads else 1
        data = vector_rows(operands[place]) if len(operands) > place else NO_ROWS
        held = data if len(data) > 2 else NO_ROWS
        if held and buffer and len(operands) > 3 and operands[3]:
            traits = Trait.BY_OFFSET
    reads |= EXEC_ROWS
    if to_lds:
        reads |= M0_ROWS
        traits = Trait.TO_LDS | _m0_traits(opcode)
    return Spacing(opcode=opcode, kind=Kind.MEMORY, reads=reads, writes=writes, held=held, traits=traits)


def _scalar(instruction: Instruction, operands: list[Rows]) -> Spacing:
    opcode = instruction.opcode
    if opcode == "s_nop":
        return Spacing(opcode=opcode, kind=Kind.OTHER, states=int(instruction.operands[0], 0) + 1)
    if opcode.startswith(("s_load", "s_buffer_load", "s_scratch_load", "s_store", "s_dcache", "s_atomic")):
        loads = opcode.startswith(_SCALAR_LOADS)
        return Spacing(opcode=opcode, kind=Kind.OTHER, writes=_union(operands[:1]) if loads else NO_ROWS)
    found = _HWREG.search(instruction.text)
    writes = NO_ROWS if _NO_TARGET.match(opcode) else _union(operands[:1])
    if opcode in {"s_set_gpr_idx_on", "s_set_gpr_idx_idx"}:
        writes = M0_ROWS
    if "saveexec" in opcode or "wrexec" in opcode:
        writes |= EXEC_ROWS
    ends, hwreg = NO_ROWS if _MAY_WRITE.match(opcode) else writes, found["name"] if found else ""
    traits = _scalar_traits(opcode, found)
    return Spacing(opcode=opcode, kind=Kind.SCALAR, writes=writes, ends=ends, traits=traits, hwreg=hwreg)


def _scalar_traits(opcode: str, hwreg: re.Match[str] | None) -> Trait:
    if opcode.startswith("s_setreg"):
        traits = Trait.SETS_MODE | Trait.READS_MODE
        if hwreg is not None and hwreg["name"] == "HW_REG_MODE":
            first, bits = int(hwreg["first"] or 0), int(hwreg["bits"] or 32)
            traits |= Trait.SETS_VSKIP if first <= _VSKIP < first + bits else Trait.NONE
        return traits
    if opcode.startswith("s_getreg"):
        return Trait.READS_MODE
    if opcode == "s_setvskip":
        return Trait.SKIPS
    if opcode.startswith("s_rfe"):
        return Trait.RETURNS
    return _m0_traits(opcode) if _MOVREL.match(opcode) else Trait.NONE
