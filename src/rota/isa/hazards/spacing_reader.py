"""Registers and traits for wait states: takes an instruction and an architecture, gives its `Spacing`.

It reads the text alone: an instruction that can't be executed here still keeps its distance.  What an operand's place
means follows from the kind of instruction, as LLVM prints it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rota.isa.hazards.spacing import (
    EXEC_ROWS,
    M0_ROWS,
    NO_ROWS,
    VCC_ROWS,
    Kind,
    Rows,
    Spacing,
    Trait,
    rows_in,
    scalar_rows,
    vector_rows,
)
from rota.isa.wave.operand import SCALAR
from rota.targets.matrix_forms import ANY

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.targets.architecture import Architecture
    from rota.targets.wait_states import Hazards

_TRANSCENDENTAL = re.compile(r"^v_(?:exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos)(?:_legacy)?_f(?:16|32|64)$")
_SUFFIX = re.compile(r"_(?:e32|e64|dpp|sdwa|e64_dpp)$")
_CARRIES = re.compile(r"^v_(?:(?:add|sub|subrev|addc|subb|subbrev)_co_u32|div_scale_f\d\d|mad_[ui]64_[ui]32)$")
_TIED = re.compile(r"^v_(?:(?:pk_)?fmac|mac|dot\w*c|writelane|fmac_legacy)_")
_EXCHANGES = re.compile(r"^v_(?:swap_b32|permlane(?:16|32)_swap_b32)$")
_DPP = re.compile(r"^(?:quad_perm|row_\w+|wave_\w+|row_newbcast)(?::|$)")
_MOVREL = re.compile(r"^(?:s_movrel|ds_(?:read|write)_addtid|s_sendmsg|s_ttracedata|ds_gws_|ds_ordered_count)")
_NOT_NAMED = re.compile(r"^(?:s_ttracedata|ds_gws_|ds_ordered_count|buffer_)")  # among those that use M0 for the manual
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
    """A bound on the wait states that anything may have to keep behind it."""
    if first.kind is Kind.MATRIX:
        large = (hazards.double_large, hazards.double_large_memory)
        return max(first.passes + max(hazards.result.value, hazards.overlap.value, 2), *(fact.value for fact in large))
    if first.kind is Kind.VECTOR:
        scalar = any(row >= SCALAR for row in first.writes)
        far = (
            (hazards.scalar, hazards.exec_dpp, hazards.zero) if scalar else (hazards.dot, hazards.dpp, hazards.operand)
        )
        return max(fact.value for fact in far)
    if first.kind is not Kind.OTHER and (first.held or first.writes or first.traits):
        near = (hazards.store, hazards.dpp_other, hazards.mode, hazards.m0, hazards.vskip, hazards.vskip_read)
        return max(fact.value for fact in near)
    return 0


def spacing_of(instruction: Instruction, architecture: Architecture) -> Spacing:
    """What the instruction reads, writes and is, for wait states."""
    spacing = _spacing(instruction, architecture)
    ends = spacing.ends or (NO_ROWS if spacing.kind is Kind.SCALAR else scalar_rows(spacing.writes))
    return replace(spacing, reach=_reach(spacing, architecture.hazards), ends=ends)


def _spacing(instruction: Instruction, architecture: Architecture) -> Spacing:
    opcode = instruction.opcode
    operands = [rows_in(text) for text in instruction.operands]
    if opcode.startswith(("v_mfma_", "v_smfmac_")):
        return _matrix(instruction, operands, architecture)
    if opcode.startswith("v_"):
        return _vector(instruction, operands)
    if opcode.startswith(("buffer_", "global_", "flat_", "scratch_", "tbuffer_")):
        return _memory(instruction, operands)
    if opcode.startswith("ds_"):
        loads = _LOADS.match(opcode) is not None
        return Spacing(
            opcode=opcode,
            kind=Kind.LDS,
            reads=_union(operands[1:] if loads else operands),
            writes=_union(operands[:1]) if loads else NO_ROWS,
            traits=_m0_traits(opcode) if _MOVREL.match(opcode) or "gds" in instruction.modifiers else Trait.NONE,
        )
    return _scalar(instruction, operands)


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
        return Spacing(
            opcode=instruction.opcode, kind=Kind.MATRIX, reads=_union(operands[1:]), writes=_union(operands[:1])
        )
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
    traits, select, sums = _vector_traits(instruction, name), NO_ROWS, NO_ROWS
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
    kept = vector_rows(writes) if Trait.DPP in traits and _keeps_lanes(instruction) else NO_ROWS
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
        masks=_union(operands[targets + 2 :]) - _union(operands[targets : targets + 2])
        if _MASKED.match(name)
        else NO_ROWS,
        exchanged=vector_rows(_union(operands[targets : targets + 1])) if Trait.DPP in traits else NO_ROWS,
        kept=kept,
        zeros=_zeros(instruction),
        traits=traits,
    )


def _keeps_lanes(instruction: Instruction) -> bool:
    """May lanes of a DPP instruction keep what its target had: by its masks, or because theirs come from outside?"""
    full = all(_modifier(instruction, f"{name}_mask") in {"", "0xf"} for name in ("row", "bank"))
    inside = any(_WHOLE.match(each) or each.startswith("bound_ctrl") for each in instruction.modifiers)
    return not (full and inside)


def _zeros(instruction: Instruction) -> Rows:
    vcc = VCC_ROWS if "src_vccz" in instruction.operands else NO_ROWS
    return vcc | EXEC_ROWS if "src_execz" in instruction.operands else vcc


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
    """Is the result moved to another place of its register: by SDWA, or by the destination's bits of op_sel?"""
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
    """Is the first bit of a packed instruction's op_sel_hi set, as it is unless said otherwise?"""
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
    return Spacing(
        opcode=opcode,
        kind=Kind.MEMORY,
        reads=reads,
        writes=writes,
        held=held,
        traits=traits,
    )


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
    return Spacing(
        opcode=opcode,
        kind=Kind.SCALAR,
        writes=writes,
        ends=NO_ROWS if _MAY_WRITE.match(opcode) else writes,
        traits=_scalar_traits(opcode, found),
        hwreg=found["name"] if found else "",
    )


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
