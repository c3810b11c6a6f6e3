"""Transfer functions: what an instruction does to the values that are known of a wave set.

An instruction that isn't modelled gives an unknown result: the same symbol for the same operands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

import numpy as np

from rota.isa.binary.elf import CODE_BASE
from rota.isa.opcodes import IsaUnit, Opcode, Trait
from rota.isa.registers import ACC, EXEC, M0, SCALAR, is_scalar
from rota.isa.wave.operand import File, Operand, named_register
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.operation import (
    EXEC_BITS,
    SCC_BIT,
    SCC_ROW,
    VECTORS,
    Operation,
    OperationKind,
    UnknownOperationError,
    rows_of,
)
from rota.prove.state import Half, Mask, WaveSet
from rota.prove.symbol import (
    GROUP,
    LANE,
    M32,
    WAVE,
    Linear,
    Value,
    key_of,
    linear,
    multiply_high,
    select_waves,
    simplify,
    spread_of,
)

_EXEC_ROW = SCALAR + EXEC


@dataclass(slots=True, eq=False)
class _Step:
    evaluator: Evaluator
    wave_set: WaveSet
    operation: Operation
    known: Decisions

    @property
    def waves(self) -> int:
        return len(self.wave_set.waves)

    @property
    def lanes(self) -> int:
        return self.evaluator.masks.lanes

    def compute(self, op: str, *values: Value) -> Value:
        return self.evaluator.compute(op, *values)

    def read(self, place: int) -> Value:
        value = self.evaluator.read(self.wave_set, self.operation.operands[place], self.known)
        first, width = self.operation.parts[place] if place < len(self.operation.parts) else (0, 32)
        if width == 32:
            return value
        return self.compute("and", self.compute("shr", value, first), (1 << width) - 1)

    def read_all(self, first: int = 1, last: int | None = None) -> list[Value]:
        return [self.read(place) for place in range(len(self.operation.operands))[first:last]]

    def read_row(self, row: int) -> Value:
        return self.evaluator.read_row(self.wave_set, row, self.known)

    def read_pair(self, place: int) -> Mask:
        return self.evaluator.read_pair(self.wave_set, self.operation.operands[place], self.known)

    def read_exec(self) -> Mask:
        return self.evaluator.masks.settle(self.wave_set.exec, self.known.lookup)

    def write(self, value: Value) -> None:
        self.evaluator.write(self.wave_set, self.operation.operands[0].rows[0], value)

    def write_pair(self, mask: Mask, place: int = 0) -> None:
        if rows := self.operation.operands[place].rows:  # not null
            self.evaluator.write_pair(self.wave_set, rows[0], mask)

    def write_mask(self, mask: Mask) -> None:
        """Write a pair of scalar registers, and SCC if the instruction sets it."""
        self.write_pair(mask)
        if self.operation.writes & SCC_BIT:
            self.write_scc(self.evaluator.any_of(mask))

    def write_scc(self, value: Value) -> None:
        self.wave_set.registers[SCC_ROW] = value

    def write_scc_if_nonzero(self, result: Value) -> None:
        self.write_scc(self.evaluator.flag_of(self.evaluator.compare("ne", "u", result, 0)))


# Scalar instructions.

_PLAIN = {
    "s_mov_b32": None, "s_movk_i32": None, "s_mul_i32": "mul", "s_mul_hi_u32": "mulhi_u", "s_mul_hi_i32": "mulhi_i",
    "s_bfm_b32": "bfm", "s_brev_b32": "brev", "s_pack_ll_b32_b16": "pack_ll", "s_pack_lh_b32_b16": "pack_lh",
    "s_pack_hh_b32_b16": "pack_hh", "s_sext_i32_i8": "sext8", "s_sext_i32_i16": "sext16",
}  # fmt: skip
_LOGIC = {  # these set SCC if the result isn't 0
    "s_lshl_b32": "shl", "s_lshr_b32": "shr", "s_ashr_i32": "sar", "s_and_b32": "and", "s_or_b32": "or",
    "s_xor_b32": "xor", "s_andn2_b32": "andn2", "s_orn2_b32": "orn2", "s_nand_b32": "nand", "s_nor_b32": "nor",
    "s_xnor_b32": "xnor", "s_not_b32": "not", "s_abs_i32": "abs",
}  # fmt: skip
_MIN_MAX = {"s_min_u32": "min_u", "s_max_u32": "max_u", "s_min_i32": "min_i", "s_max_i32": "max_i"}
_RELATIONS = frozenset({"eq", "ne", "lg", "lt", "gt", "ge", "le"})
_ON_MASKS = frozenset({"mov", "cselect", "not", "and", "or", "xor", "andn2", "orn2", "nand", "nor", "xnor"})
_COMBINED = _ON_MASKS - {"mov", "cselect", "not"}
_SHIFT_ADD = {f"lshl{by}_add": by for by in (1, 2, 3, 4)}


def evaluate_scalar(evaluator: Evaluator, wave_set: WaveSet, operation: Operation, known: Decisions) -> None:
    spec, name, step = operation.spec, operation.name, _Step(evaluator, wave_set, operation, known)
    if _works_on_masks(step):
        _MASK_STEPS.get(spec.root, _change_exec if spec.words[-1] in _EXEC_FORMS else _forget_scalar)(step)
    elif name in _SCALAR_STEPS:
        _SCALAR_STEPS[name](step)
    elif name in _PLAIN or name in _LOGIC:
        values = step.read_all()
        if name == "s_movk_i32":
            values = [_extend_immediate(each) for each in values]
        op = _PLAIN.get(name) or _LOGIC.get(name)
        result = values[0] if op is None else step.compute(op, *values)
        step.write(result)
        if name in _LOGIC:
            step.write_scc_if_nonzero(result)
    elif spec.words[0] in {"cmp", "cmpk"} and spec.words[-1] in _RELATIONS and spec.type in {"i32", "u32"}:
        a, b = step.read_all(0)
        sign = spec.type[0]
        if spec.words[0] == "cmpk":
            b = _extend_immediate(b, sign)
        step.write_scc(evaluator.flag_of(evaluator.compare(spec.words[-1], sign, a, b)))
    elif spec.root in _SHIFT_ADD:
        a, b = step.read_all()
        step.write(step.compute("add", step.compute("shl", a, _SHIFT_ADD[spec.root]), b))
        _forget_carry(step, a, b)
    else:
        (_HALF_STEPS.get(spec.root, _forget_scalar) if spec.is_wide else _forget_scalar)(step)


def _works_on_masks(step: _Step) -> bool:
    """True if it is about lanes: in waves of 64 lanes all that have 64 bits; in waves of 32 those that use EXEC."""
    spec, registers, exec_rows = step.operation.spec, step.wave_set.registers, step.evaluator.exec_rows
    if step.evaluator.masks.words == 2:
        return spec.is_wide
    if spec.is_wide:
        return spec.root in {"mov", "getpc"}
    if spec.words[-1] in _EXEC_FORMS:
        return True
    if spec.root not in _ON_MASKS or spec.type != "b32":
        return False
    target, *sources = (each.rows for each in step.operation.operands)
    rows = [row for each in sources for row in each]
    halves = any(isinstance(registers.get(row), Half) for row in rows)
    return halves or any(row in exec_rows for row in (*target, *rows))


_EXEC_FORMS = frozenset({"saveexec", "wrexec"})


def _change_exec(step: _Step) -> None:
    """Combine EXEC with a mask: saveexec keeps the old EXEC in its target, wrexec puts the new one there."""
    evaluator, op = step.evaluator, step.operation.spec.words[0]
    source, old = step.read_pair(1), step.read_exec()
    turned = {"andn1": "andn2", "orn1": "orn2"}
    left, right = (old, source) if op in turned else (source, old)
    if step.operation.spec.words[-1] == "saveexec":
        step.write_pair(old)
    step.wave_set.exec = evaluator.limit_atoms(evaluator.masks.combine(turned.get(op, op), left, right))
    if step.operation.spec.words[-1] == "wrexec":
        step.write_mask(step.wave_set.exec)
    else:
        step.write_scc(evaluator.any_of(step.wave_set.exec))


def _combine_masks(step: _Step) -> None:
    op = step.operation.spec.root
    step.write_mask(step.evaluator.masks.combine(op, step.read_pair(1), step.read_pair(2)))


def _extend_immediate(value: Value, sign: str = "i") -> Value:
    if not isinstance(value, int):
        return value
    number = value & 0xFFFF
    return number if sign == "u" else (number ^ 0x8000) - 0x8000 & M32


def _forget_carry(step: _Step, *values: Value) -> None:
    step.write_scc(step.evaluator.symbols.fresh("carry", max(map(spread_of, values)), 1))


def _add(step: _Step) -> None:
    name, spec = step.operation.name, step.operation.spec
    op, sign = ("sub", -1) if spec.root in {"sub", "subb"} else ("add", 1)
    a, b = step.read_all()
    carry = step.read_row(SCC_ROW) if name in {"s_addc_u32", "s_subb_u32"} else 0
    step.write(step.compute(op, step.compute(op, a, b), carry))
    if any(isinstance(each, Linear) for each in (a, b, carry)):
        step.write_scc(step.evaluator.symbols.opaque(name, (a, b, carry), bits=1))
        return
    if spec.type == "i32":
        sa, sb = ((np.asarray(each) ^ 1 << 31) - (1 << 31) for each in (a, b))
        whole = sa + sign * sb
        over = (whole < -(1 << 31)) | (whole >= 1 << 31)
    else:
        whole = np.asarray(a) + sign * (np.asarray(b) + np.asarray(carry))
        over = (whole < 0) | (whole > M32)
    step.write_scc(int(over) if over.ndim == 0 else simplify(over.astype(np.int64)))


def _compute_immediate(step: _Step) -> None:
    a, b = step.read_all(0)
    adds = step.operation.name == "s_addk_i32"
    step.write(step.compute("add" if adds else "mul", a, _extend_immediate(b)))
    if adds:
        _forget_carry(step, a, b)


def _take_min_or_max(step: _Step) -> None:
    a, b = step.read_all()
    op = _MIN_MAX[step.operation.name]
    first = step.evaluator.flag_of(step.evaluator.compare("lt" if op in {"min_u", "min_i"} else "gt", op[-1], a, b))
    step.write_scc(first)
    if isinstance(first, int):
        step.write(a if first else b)
    elif isinstance(first, Linear) and first.base.spread == GROUP and isinstance(first.offset, int):
        a, b = (a, b) if first.scale == 1 else (b, a)
        step.write(step.evaluator.select(first.base, a, b))
    else:
        step.write(step.compute(op, a, b))


def _extract_field(step: _Step) -> None:
    a, b = step.read_all()
    op = "bfe_u" if step.operation.spec.type == "u32" else "bfe_i"
    if isinstance(b, int):
        at, width = b & 31, b >> 16 & 0x7F
        result = 0 if not width else step.compute(op, a, at, width) if width < 32 else step.compute("shr", a, at)
    else:
        result = step.evaluator.symbols.opaque(op, (a, b))
    step.write(result)
    step.write_scc_if_nonzero(result)


def _select_by_scc(step: _Step) -> None:
    evaluator, flag = step.evaluator, step.read_row(SCC_ROW)
    decided = _decide(flag, step.known)
    x, y = step.read_all()
    if decided is not None:
        result: Value = x if decided else y
    elif isinstance(flag, Linear) and flag.base.spread == GROUP and isinstance(flag.offset, int):
        result = evaluator.select(flag.base, x, y) if flag.scale == 1 else evaluator.select(flag.base, y, x)
    elif isinstance(flag, Linear) or isinstance(x, Linear) or isinstance(y, Linear):
        result = evaluator.symbols.opaque("choose", (flag, x, y))
    else:
        result = simplify(np.where(np.asarray(flag) != 0, x, y))
    step.write(result)


def _select_mask_by_scc(step: _Step) -> None:
    evaluator, flag = step.evaluator, step.read_row(SCC_ROW)
    a, b, decided = step.read_pair(1), step.read_pair(2), _decide(flag, step.known)
    if decided is not None:
        mask = a if decided else b
    else:
        chooser = evaluator.mask_of(flag, step.waves)
        both = evaluator.masks.combine("and", a, chooser), evaluator.masks.combine("andn2", b, chooser)
        mask = evaluator.masks.combine("or", *both)
    step.write_pair(mask)


def _read_both(step: _Step, first: int) -> list[tuple[Value, Value]]:
    """The low halves of two operands of 64 bits, and the high ones."""
    pair = step.operation.operands[first : first + 2]
    halves = [step.evaluator.read_halves(step.wave_set, each, step.known) for each in pair]
    return [(halves[0][half], halves[1][half]) for half in range(2)]


def _combine_halves(step: _Step) -> None:
    evaluator, op = step.evaluator, step.operation.spec.root
    made = [step.compute(op, *both) for both in _read_both(step, 1)]
    for row, value in zip(step.operation.operands[0].rows, made, strict=True):
        evaluator.write(step.wave_set, row, value)
    _write_if_any(step, [evaluator.flag_of(evaluator.compare("ne", "u", each, 0)) for each in made])


def _compare_halves(step: _Step) -> None:
    evaluator = step.evaluator
    differ = [evaluator.flag_of(evaluator.compare("ne", "u", *both)) for both in _read_both(step, 0)]
    _write_if_any(step, differ, holds=step.operation.spec.root == "cmp_lg")


def _write_if_any(step: _Step, flags: list[Value], *, holds: bool = True) -> None:
    """Set SCC to `holds` if one of the flags is 1, as far as that is known."""
    if any(each == 1 for each in flags if isinstance(each, int)):
        step.write_scc(int(holds))
    elif len(unknown := [each for each in flags if not isinstance(each, int)]) == 1:
        step.write_scc(unknown[0] if holds else step.compute("xor", unknown[0], 1))
    elif not unknown:
        step.write_scc(int(not holds))
    else:
        step.write_scc(step.evaluator.symbols.opaque(step.operation.name, tuple(flags), holds, bits=1))


def _set_bit(step: _Step) -> None:
    target, (place,) = step.operation.operands[0], step.read_all()
    old = step.read_row(target.rows[0])
    if not isinstance(place, int):
        _forget_scalar(step)
        return
    bit = 1 << (place & 31)
    kept = step.compute("and", old, M32 & ~bit)
    step.write(step.compute("or", kept, bit) if step.operation.spec.words[0] == "bitset1" else kept)


def _decide(flag: Value, known: Decisions) -> bool | None:
    if isinstance(flag, int):
        return bool(flag)
    if isinstance(flag, Linear) and flag.base.spread == GROUP and isinstance(flag.offset, int):
        found = known.lookup(flag.base)
        return None if found is None else found == (flag.scale == 1)
    return None


def _compare_bit(step: _Step) -> None:
    a, b = step.read_all(0)
    if isinstance(b, int):
        _test_bit(step, a, b & 31)
        return
    bit, wanted = step.compute("and", step.compute("shr", a, b), 1), int(step.operation.spec.root == "bitcmp1")
    step.write_scc(step.evaluator.flag_of(step.evaluator.compare("eq", "u", bit, wanted)))


def _test_bit(step: _Step, word: Value, place: int) -> None:
    kind = "ne" if step.operation.spec.root == "bitcmp1" else "eq"
    bit = step.compute("and", word, 1 << place)
    step.write_scc(step.evaluator.flag_of(step.evaluator.compare(kind, "u", bit, 0)))


def _compare_wide_bit(step: _Step) -> None:
    halves = step.evaluator.read_halves(step.wave_set, step.operation.operands[0], step.known)
    place = step.read(1)
    if not isinstance(place, int):
        _forget_scalar(step)
        return
    _test_bit(step, halves[place >> 5 & 1], place & 31)


def _move_pair(step: _Step) -> None:
    target, source = step.operation.operands[0].rows[0], step.operation.operands[1]
    if step.operation.operands[0].count > step.evaluator.masks.words:  # two numbers, and no mask
        _move_wide(step)
        return
    if target != _EXEC_ROW and source.rows and source.rows[0] != _EXEC_ROW:
        # Word by word, so that two unrelated values don't become an unknown mask.
        registers = step.wave_set.registers
        for part in range(step.evaluator.masks.words):
            held = registers.get(source.rows[0] + part)
            registers[target + part] = held if held is not None else step.read_row(source.rows[0] + part)
        return
    step.write_pair(step.read_pair(1))


def _compare_pairs(step: _Step) -> None:
    left, right = step.read_pair(0), step.read_pair(1)
    differs = step.evaluator.any_of(step.evaluator.masks.combine("xor", left, right))
    step.write_scc(step.compute("sub", 1, differs) if step.operation.spec.words[-1] == "eq" else differs)


def _shift_pair(step: _Step) -> None:
    mask, by = step.read_pair(1), step.read(2)
    if mask.leaf is None or isinstance(by, Linear):
        _forget_scalar(step)
        return
    places = np.broadcast_to(np.asarray(by), (step.waves, 1))[:, 0].tolist()
    left = step.operation.spec.root == "lshl"
    shifted = tuple(
        (number << (place & 63) if left else number >> (place & 63)) & step.evaluator.masks.all
        for number, place in zip(mask.leaf, places, strict=True)
    )
    step.write_mask(step.evaluator.masks.leaf(shifted))


def _read_pc(step: _Step) -> None:
    follows = step.operation.instruction.follows
    place = step.evaluator.masks.leaf((0 if follows is None else CODE_BASE + follows,) * step.waves)
    step.evaluator.write_pair(step.wave_set, step.operation.operands[0].rows[0], place, words=2)


def _forget_scalar(step: _Step) -> None:
    evaluator, wave_set, operation = step.evaluator, step.wave_set, step.operation
    values: list[Value] = []
    for each in operation.operands[1 if operation.writes & ~SCC_BIT else 0 :]:
        values += [step.read_row(row) for row in each.rows] or [evaluator.read(wave_set, each, step.known)]
    if operation.reads & SCC_BIT:
        values.append(step.read_row(SCC_ROW))
    if operation.spec.root == "getreg" or operation.spec.words[-1] == "saveexec":
        values = [evaluator.symbols.fresh(operation.name, WAVE)]
    text = operation.instruction.text if not values else operation.name
    rows = operation.operands[0].rows if operation.writes & ~SCC_BIT else ()
    if operation.spec.tied:
        values += [step.read_row(row) for row in rows]
    for place, row in enumerate(rows):
        if row in evaluator.exec_rows:
            continue
        wave_set.registers[row] = evaluator.symbols.opaque(text, tuple(values), place)
    if operation.writes & EXEC_BITS:
        wave_set.exec = evaluator.masks.unknown(evaluator.symbols.fresh("exec", LANE).base, step.waves)
    if operation.writes & SCC_BIT:
        step.write_scc(evaluator.symbols.opaque(text, tuple(values), "scc", bits=1))


_SCALAR_STEPS: dict[str, Callable[[_Step], None]] = {
    **dict.fromkeys(("s_add_u32", "s_addc_u32", "s_sub_u32", "s_subb_u32", "s_add_i32", "s_sub_i32"), _add),
    **dict.fromkeys(("s_addk_i32", "s_mulk_i32"), _compute_immediate),
    **dict.fromkeys(_MIN_MAX, _take_min_or_max),
    **dict.fromkeys(("s_bfe_u32", "s_bfe_i32"), _extract_field),
    "s_cselect_b32": _select_by_scc,
    **dict.fromkeys(("s_bitset0_b32", "s_bitset1_b32"), _set_bit),
    **dict.fromkeys(("s_bitcmp0_b32", "s_bitcmp1_b32"), _compare_bit),
}
_HALF_STEPS: dict[str, Callable[[_Step], None]] = {  # of 64 bits that are no mask, each half by itself
    **dict.fromkeys(_COMBINED, _combine_halves),
    **dict.fromkeys(("cmp_eq", "cmp_lg"), _compare_halves),
    **dict.fromkeys(("bitcmp0", "bitcmp1"), _compare_wide_bit),
}
_MASK_STEPS: dict[str, Callable[[_Step], None]] = {
    "mov": _move_pair,
    "not": lambda step: step.write_mask(step.evaluator.masks.invert(step.read_pair(1))),
    "cselect": _select_mask_by_scc,
    **dict.fromkeys(_COMBINED, _combine_masks),
    **dict.fromkeys(("cmp_eq", "cmp_lg"), _compare_pairs),
    **dict.fromkeys(("lshl", "lshr"), _shift_pair),
    "getpc": _read_pc,
}


# Vector instructions.

_BINARY = {
    "v_add_u32": "add", "v_sub_u32": "sub", "v_mul_lo_u32": "mul", "v_mul_hi_u32": "mulhi_u", "v_mul_u32_u24": "mul24",
    "v_mul_i32_i24": "mul24i", "v_and_b32": "and", "v_or_b32": "or", "v_xor_b32": "xor", "v_min_u32": "min_u",
    "v_max_u32": "max_u", "v_min_i32": "min_i", "v_max_i32": "max_i", "v_bfe_u32": "bfe_u", "v_bfe_i32": "bfe_i",
    "v_bfi_b32": "bfi", "v_not_b32": "not", "v_bfrev_b32": "brev", "v_perm_b32": "perm", "v_xnor_b32": "xnor",
    "v_alignbit_b32": "alignbit", "v_add_i32": "add", "v_sub_i32": "sub", "v_bfm_b32": "bfm",
    "v_alignbyte_b32": "alignbyte",
}  # fmt: skip
_REVERSED = {"v_subrev_u32": "sub", "v_lshlrev_b32": "shl", "v_lshrrev_b32": "shr", "v_ashrrev_i32": "sar"}
_FUSED = {  # the second op takes the first one's result and the third operand
    "v_add3_u32": ("add", "add"), "v_or3_b32": ("or", "or"), "v_and_or_b32": ("and", "or"),
    "v_lshl_or_b32": ("shl", "or"),
    "v_lshl_add_u32": ("shl", "add"), "v_add_lshl_u32": ("add", "shl"), "v_xad_u32": ("xor", "add"),
    "v_mad_u32_u24": ("mul24", "add"), "v_mad_i32_i24": ("mul24i", "add"), "v_mad_u32": ("mul", "add"),
}  # fmt: skip
_MOVES = frozenset({"v_mov_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32"})


_COMPARES = frozenset({"cmp", "cmpx"})


def evaluate_vector(evaluator: Evaluator, wave_set: WaveSet, operation: Operation, known: Decisions) -> None:
    spec, name, step = operation.spec, operation.name, _Step(evaluator, wave_set, operation, known)
    if operation.unmodelled or spec.unit is IsaUnit.MATRIX:
        _forget_vector(step)
        return
    try:
        if name in _VECTOR_STEPS:
            _VECTOR_STEPS[name](step)
        elif name in _MOVES:
            step.write(step.read(1))
        elif "clamp" in operation.instruction.modifiers:
            _saturate(step)
        elif name in _BINARY:
            step.write(step.compute(_BINARY[name], *step.read_all()))
        elif name in _REVERSED:
            a, b = step.read_all()
            step.write(step.compute(_REVERSED[name], b, a))
        elif name in _FUSED:
            a, b, c = step.read_all()
            first, then = _FUSED[name]
            step.write(step.compute(then, step.compute(first, a, b), c))
        elif spec.words[0] in _COMPARES and spec.words[-1] in _RELATIONS and spec.type in {"i32", "u32"}:
            a, b = step.read_all()
            mask = evaluator.mask_of(evaluator.compare(spec.words[-1], spec.type[0], a, b), step.waves)
            _write_comparison(step, mask)
        else:
            _forget_vector(step)
    except (ValueError, OverflowError):  # a form that the arithmetic doesn't model
        _forget_vector(step)


def _write_comparison(step: _Step, mask: Mask) -> None:
    # Lanes that are not active compare as false.
    result = step.evaluator.limit_atoms(step.evaluator.masks.combine("and", step.wave_set.exec, mask))
    rows = step.operation.operands[0].rows
    if Trait.COMPARES_EXEC in step.operation.spec.traits:
        step.wave_set.exec = result
    if rows and is_scalar(rows[0]):
        step.write_pair(result)


def _select_by_mask(step: _Step) -> None:
    a, b = step.read_all(1, 3)
    step.write(_choose(step, step.read_pair(3), b, a))


def _choose(step: _Step, mask: Mask, high: Value, low: Value) -> Value:
    """One value in the lanes of the mask, the other elsewhere; lanes that are not active don't matter."""
    masks, active = step.evaluator.masks, step.wave_set.exec
    if key_of(high) == key_of(low) or not any(masks.possible(masks.combine("andn2", active, mask))):
        return high
    if not any(masks.possible(masks.combine("and", active, mask))):
        return low
    atom = mask.atom
    if atom is not None and atom.spread == GROUP and mask.high is not None and mask.low is not None:
        return step.evaluator.select(atom, _choose(step, mask.high, high, low), _choose(step, mask.low, high, low))
    return step.evaluator.merge(mask, high, low)


def _read_first_lane(step: _Step) -> None:
    # If no lane is active, lane 0 is read.
    may_be_empty = not all(step.evaluator.masks.certain(step.wave_set.exec))
    source = step.operation.operands[1]
    value = step.evaluator.read(step.wave_set, source, step.known, everywhere=may_be_empty)
    step.write(_first_lane(step, value))


def _first_lane(step: _Step, value: Value) -> Value:
    active = step.wave_set.exec
    if isinstance(value, int) or (not isinstance(value, Linear) and value.shape[1] == 1):
        return value
    if isinstance(value, Linear):
        offset = value if value.base.spread == LANE else _first_lane(step, value.offset)
        if not isinstance(offset, Linear):
            return Linear(value.base, value.scale, offset)
    elif active.leaf is not None:
        lanes = [(number & -number).bit_length() - 1 if number else 0 for number in active.leaf]
        return simplify(value[np.arange(len(lanes)), lanes][:, None])
    else:
        possible = step.evaluator.masks.lanes_of(step.evaluator.masks.possible(active))
        firsts = np.where(possible.any(axis=1), possible.argmax(axis=1), 0)
        first = value[np.arange(len(value)), firsts][:, None]
        if bool((np.where(possible, value, first) == first).all()) and bool((value[:, :1] == first).all()):
            return simplify(first)
        # Bits that all lanes of a wave have alike are known, whichever lane is read.
        differ = int(np.bitwise_or.reduce(value ^ value[:, :1], axis=None))
        which = step.evaluator.symbols.opaque("first", (value & differ,), active, spread=WAVE, bits=differ)
        return linear(which.base, 1, simplify(value[:, :1] & ~differ & M32))
    return step.evaluator.symbols.opaque("first", (value,), active, spread=WAVE)


def _read_lane(step: _Step) -> None:
    source = step.operation.operands[1]
    value = step.evaluator.read(step.wave_set, source, step.known, everywhere=True)  # whatever EXEC is
    place = step.read(2)
    plain = value.offset if isinstance(value, Linear) else value
    if isinstance(value, Linear) and value.base.spread == LANE:
        result: Value = step.evaluator.symbols.opaque("lane", (value, place), spread=WAVE)
    elif isinstance(plain, int):
        result = value
    elif isinstance(place, int):
        lane = simplify(plain[:, [place % step.lanes if plain.shape[1] > 1 else 0]])
        result = Linear(value.base, value.scale, lane) if isinstance(value, Linear) else lane
    else:
        result = step.evaluator.symbols.opaque("lane", (value, place), spread=WAVE)
    step.write(result)


def _write_lane(step: _Step) -> None:
    value, place = step.read_all(1, 3)
    evaluator, registers = step.evaluator, step.wave_set.registers
    row = step.operation.operands[0].rows[0]
    held = registers.get(row)
    initial = Linear(evaluator.symbols.make("start", (row,), spread=LANE), 1, 0)
    old: Value = initial if held is None or isinstance(held, Half) else held
    if isinstance(place, int):  # whatever EXEC is
        registers[row] = evaluator.merge(evaluator.masks.leaf((1 << place % step.lanes,) * step.waves), value, old)
    else:
        registers[row] = evaluator.symbols.opaque("writelane", (value, place, old), spread=LANE)


def _add_with_carry_out(step: _Step) -> None:
    masks, verb = step.evaluator.masks, step.operation.spec.words[0]
    op, sign = ("add", 1) if verb in {"add", "addc"} else ("sub", -1)
    a, b = step.read_all(2, 4)
    a, b = (b, a) if verb in {"subrev", "subbrev"} else (a, b)
    total = step.compute(op, a, b)
    carry: Value = 0
    if verb in {"addc", "subb", "subbrev"}:
        carry = _choose(step, step.read_pair(4), 1, 0)
        total = step.compute(op, total, carry)
    if any(isinstance(each, Linear) for each in (a, b, carry)):
        out = _unknown_carry(step, (a, b, carry))
    else:
        whole = np.asarray(a) + sign * (np.asarray(b) + np.asarray(carry))
        out = masks.from_lanes((whole < 0) | (whole > M32), step.waves)
    step.write(total)
    step.write_pair(masks.combine("and", step.wave_set.exec, out), 1)


def _saturate(step: _Step) -> None:
    """A sum or difference without sign that stays at the largest number, or at 0."""
    a, b = step.read_all()
    adds = step.operation.name == "v_add_u32"
    a, b = (b, a) if step.operation.name == "v_subrev_u32" else (a, b)
    total = step.compute("add" if adds else "sub", a, b)
    one, other = (total, a) if adds else (a, b)
    mask = step.evaluator.mask_of(step.evaluator.compare("lt", "u", one, other), step.waves)
    step.write(_choose(step, mask, M32 if adds else 0, total))


def _unknown_carry(step: _Step, values: tuple[Value, ...]) -> Mask:
    atom = step.evaluator.symbols.opaque(step.operation.name, values, "carry", bits=1, spread=LANE).base
    return step.evaluator.masks.unknown(atom, step.waves)


def _count_bits_below(step: _Step) -> None:
    mask, more = step.read_all(1, 3)
    if isinstance(mask, Linear):
        _forget_vector(step)
        return
    first = 32 * (step.operation.spec.words[-1] == "hi")
    below = np.array([(1 << min(max(lane - first, 0), 32)) - 1 for lane in range(step.lanes)], np.int64)
    chosen = np.asarray(mask) & below
    count = np.zeros(np.broadcast_shapes(chosen.shape, (1, step.lanes)), np.int64)
    for place in range(32):
        count += chosen >> place & 1
    step.write(step.compute("add", np.broadcast_to(count, (step.waves, step.lanes)).copy(), more))


def _multiply_add_wide(step: _Step) -> None:
    # A product of 64 bits plus a number of 64 bits; of symbols only the low word is modelled.
    a, b = step.read_all(2, 4)
    parts = step.evaluator.read_halves(step.wave_set, step.operation.operands[4], step.known)
    product = step.compute("mul", a, b)
    low = step.compute("add", product, parts[0])
    target = step.operation.operands[0].rows[0]
    values = (a, b, *parts)
    if any(isinstance(each, Linear) for each in values) or step.operation.spec.types[0] == "i64":
        high: Value = step.evaluator.symbols.opaque(step.operation.name, values, "high")
    else:
        carry = (np.asarray(product) + np.asarray(parts[0])) >> 32
        above = step.compute("add", multiply_high(a, b), parts[1])
        high = step.compute("add", above, carry if carry.ndim else int(carry))
    step.evaluator.write(step.wave_set, target, low)
    step.evaluator.write(step.wave_set, target + 1, high)
    out = _unknown_carry(step, values)
    if step.operation.operands[1].rows:
        step.write_pair(out, 1)


def _apply_bit_table(step: _Step) -> None:
    # v_bitop3_b32: the truth table of three operands, as a sum of products.
    table = int(step.operation.instruction.modifiers[0].partition(":")[2], 0)
    values = step.read_all(1, 4)
    total: Value = 0
    for row in range(8):
        if table >> row & 1:
            term: Value = M32
            for place, value in enumerate(values):
                term = step.compute("and", term, value if row >> (2 - place) & 1 else step.compute("not", value))
            total = step.compute("or", total, term)
    step.write(total)


def _move_wide(step: _Step) -> None:
    target, source = step.operation.operands
    halves = step.evaluator.read_halves(step.wave_set, source, step.known)
    for row, value in zip(target.rows, halves, strict=True):
        step.evaluator.write(step.wave_set, row, value)


def _shift_add_wide(step: _Step) -> None:
    # v_lshl_add_u64: the low word is a sum of 32 bits, the high one unknown.
    evaluator, target = step.evaluator, step.operation.operands[0]
    shift = step.read(2)
    (low1, high1), (low2, high2) = (
        evaluator.read_halves(step.wave_set, step.operation.operands[place], step.known) for place in (1, 3)
    )
    evaluator.write(step.wave_set, target.rows[0], step.compute("add", step.compute("shl", low1, shift), low2))
    high = evaluator.symbols.opaque(step.operation.name, (low1, low2, high1, high2, shift), "high")
    evaluator.write(step.wave_set, target.rows[1], high)


def _swap(step: _Step) -> None:
    values = step.read_all(0)
    for target, value in zip(step.operation.operands, reversed(values), strict=True):
        step.evaluator.write(step.wave_set, target.rows[0], value)


def _swap_rows(step: _Step) -> None:
    # The odd rows of the first register change places with the even rows of the second.
    first, second = step.read_all(0)
    lanes, size = np.arange(step.lanes), 32 if step.operation.spec.words[0] == "permlane32" else 16
    if size >= step.lanes or not step.wave_set.exec.is_full or isinstance(first, Linear) or isinstance(second, Linear):
        _forget_vector(step)
        return
    above, below = (np.broadcast_to(np.asarray(each), (step.waves, step.lanes)) for each in (first, second))
    targets = [each.rows[0] for each in step.operation.operands]
    odd, across = lanes & size != 0, lanes ^ size
    stay = across if targets[0] == targets[1] else lanes  # a register's own rows change places
    step.evaluator.write(step.wave_set, targets[0], np.where(odd, below[:, across], above[:, stay]))
    step.evaluator.write(step.wave_set, targets[1], np.where(odd, below[:, stay], above[:, across]))


def _read_rows(step: _Step, operands: Sequence[Operand]) -> list[Value]:
    values: list[Value] = []
    for each in operands:
        values += [each.literal & M32] if each.file is File.LITERAL else [step.read_row(row) for row in each.rows]
    return values


def _forget_vector(step: _Step) -> None:  # noqa: C901
    evaluator, wave_set, operation = step.evaluator, step.wave_set, step.operation
    name, operands, modifiers = operation.name, operation.operands, operation.instruction.modifiers
    spec = operation.spec
    if not operands or spec.unit is IsaUnit.MATRIX:
        for row in rows_of(operation.writes):
            evaluator.write(wave_set, row, evaluator.symbols.fresh(name, LANE))
        return
    values = _read_rows(step, operands if operation.keeps_target else operands[operation.targets :])
    if Trait.DIVISION in spec.traits:
        values += [step.read_row(row) for row in named_register("vcc").rows]
    if spec.swaps or Trait.PERMLANE in spec.traits:
        values = _read_rows(step, operands)
    # The key of the result: what else than the operands decides it.
    text = operation.instruction.opcode
    negated = tuple(each.text for each in operands if each.signed)
    halves = tuple(each.endswith(".h") for each in operation.instruction.operands)
    key: tuple[object, ...] = (text, negated, modifiers, halves, operation.number if spec.root == "prng" else 0)
    across_lanes = operation.instruction.is_dpp or Trait.PERMLANE in spec.traits or spec.words[0] == "mbcnt"
    if across_lanes:
        key = (*key, wave_set.exec)
    if spec.words[0] in _COMPARES:
        spread = LANE if across_lanes else max(map(spread_of, values), default=GROUP)
        atom = evaluator.symbols.opaque(text, tuple(values), key, bits=1, spread=spread).base
        _write_comparison(step, evaluator.masks.unknown(atom, step.waves))
        return
    results: list[tuple[int, Value]] = []
    pairs: set[int] = set()
    for row in rows_of(operation.writes & ~EXEC_BITS):
        if is_scalar(row) and Trait.READS_LANE not in spec.traits:
            pairs.add(row - row % evaluator.masks.words)
        else:
            spread = WAVE if is_scalar(row) else LANE if across_lanes else -1
            results.append((row, evaluator.symbols.opaque(text, tuple(values), (*key, row), spread=spread)))
    for row, value in results:
        evaluator.write(wave_set, row, value)
    for row in pairs:
        atom = evaluator.symbols.opaque(text, tuple(values), (*key, "mask"), bits=1, spread=LANE).base
        evaluator.write_pair(wave_set, row, evaluator.masks.unknown(atom, step.waves))
    if operation.writes & EXEC_BITS:
        wave_set.exec = evaluator.masks.unknown(evaluator.symbols.fresh("exec", LANE).base, step.waves)


_VECTOR_STEPS: dict[str, Callable[[_Step], None]] = {
    "v_cndmask_b32": _select_by_mask,
    "v_readfirstlane_b32": _read_first_lane,
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    **{f"v_{op}_co_u32": _add_with_carry_out for op in ("add", "addc", "sub", "subb", "subrev", "subbrev")},
    **dict.fromkeys(("v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32"), _count_bits_below),
    **dict.fromkeys(("v_mad_u64_u32", "v_mad_i64_i32"), _multiply_add_wide),
    "v_bitop3_b32": _apply_bit_table,
    "v_mov_b64": _move_wide,
    "v_lshl_add_u64": _shift_add_wide,
    "v_swap_b32": _swap,
    **dict.fromkeys(("v_permlane16_swap_b32", "v_permlane32_swap_b32"), _swap_rows),
}


# Index mode, between s_set_gpr_idx_on and s_set_gpr_idx_off: the hardware adds M0 to the vector registers that the mode
# selects.  If the index is known, so are the registers; else a read may be of any register from the named one on, and a
# write forgets all of these.  The mode must begin and end in one piece of straight code.

_INDEXED = re.compile(r"gpr_idx\((?P<names>[A-Z0-9,]*)\)")
_PLACES = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}


def mark_indexed(operations: Sequence[Operation]) -> list[Operation]:
    """Give operations in index mode all registers that they may use; raises UnknownOperationError for other uses."""
    marked, mode = list(operations), 0
    targets = {each.instruction.target for each in operations}
    for number, each in enumerate(operations):
        verb = each.spec.words[-1] if Trait.INDEXES in each.spec.traits else ""
        if verb == "on":
            mode = _read_mode(each)
        elif verb == "off":
            mode = 0
        elif verb and verb != "idx":
            raise UnknownOperationError(each.instruction)
        elif mode and (number in targets or each.kind in {OperationKind.BRANCH, OperationKind.CALL, OperationKind.END}):
            raise UnknownOperationError(each.instruction, "register index")
        elif mode and each.is_vector:
            marked[number] = _mark(each, mode)
    return marked


def _read_mode(operation: Operation) -> int:
    found = _INDEXED.search(operation.instruction.text.replace(" ", ""))
    if found is None:
        raise UnknownOperationError(operation.instruction, "form")
    return sum(_PLACES[name] for name in found["names"].split(",") if name)


def _mark(operation: Operation, mode: int) -> Operation:
    if not _can_index(operation, mode):
        raise UnknownOperationError(operation.instruction, "register index")
    reads, writes = operation.reads, operation.writes
    for place, operand in _indexed_operands(operation.operands, mode):
        rows = (1 << ACC) - (1 << operand.first)  # from the named register to the end of the file
        if place:
            reads |= rows
        else:  # an index past the last register writes register 0
            writes, reads = writes | rows | 1, reads | rows | 1
    return replace(operation, reads=reads, writes=writes, indexed=mode)


def _can_index(operation: Operation, mode: int) -> bool:
    """True if it computes one register from others, each as its operand names it."""
    if operation.name == "v_writelane_b32":
        return mode == _PLACES["DST"] and not operation.unmodelled
    vectors = [operand for operand in operation.operands if operand.file is File.VECTOR]
    return (
        bool(vectors)
        and operation.operands[0] is vectors[0]
        and operation.targets == 1
        and not (operation.unmodelled or operation.keeps_target or _has_other_registers(operation.spec))
        and all(operand.count == 1 and operand.first < ACC for operand in vectors)
    )


def _has_other_registers(spec: Opcode) -> bool:
    """True if it uses registers in other ways than the index mode knows."""
    return spec.unit is IsaUnit.MATRIX or spec.swaps or Trait.PERMLANE in spec.traits or spec.words[0] == "accvgpr"


def _indexed_operands(operands: Sequence[Operand], mode: int) -> Iterator[tuple[int, Operand]]:
    """The vector registers that the mode adds the index to, with their places: 0 is the target."""
    for place, operand in enumerate(operands[: len(_PLACES)]):
        if mode >> (place - 1) % len(_PLACES) & 1 and operand.file is File.VECTOR:
            yield place, operand


def resolve_index(evaluator: Evaluator, wave_set: WaveSet, operation: Operation, known: Decisions) -> Operation | None:
    """The operation on the registers that all its waves really use; None if the index isn't known."""
    found = _resolve_by_index(evaluator, wave_set, operation, known)
    if not found:
        return None
    reads, writes = (reduce(or_, (getattr(each, name) for each in found.values())) for name in ("reads", "writes"))
    return replace(next(iter(found.values())), reads=reads, writes=writes)


def _resolve_by_index(
    evaluator: Evaluator, wave_set: WaveSet, operation: Operation, known: Decisions
) -> dict[int, Operation]:
    """For each index that a wave has, the operation on the registers that it uses; empty if one isn't known."""
    m0 = evaluator.read_row(wave_set, SCALAR + M0, known)
    if isinstance(m0, Linear):
        return {}
    indices = {int(each) & 0xFF for each in np.asarray(m0).flat}
    last = max((operand.first for _, operand in _indexed_operands(operation.operands, operation.indexed)), default=0)
    if last + max(indices) >= ACC or (len(indices) > 1 and operation.indexed & _PLACES["DST"]):
        return {}
    found = {}
    for index in sorted(indices):
        operands = list(operation.operands)
        for place, operand in _indexed_operands(operation.operands, operation.indexed):
            operands[place] = replace(operand, first=operand.first + index)
        target, *sources = (sum(1 << row for row in operand.rows) & VECTORS for operand in operands)
        reads, writes = operation.reads & ~VECTORS | reduce(or_, sources, 0), operation.writes & ~VECTORS | target
        found[index] = replace(operation, operands=tuple(operands), reads=reads, writes=writes, indexed=0)
    return found


def set_index(evaluator: Evaluator, wave_set: WaveSet, operation: Operation, known: Decisions) -> None:
    old = evaluator.read_row(wave_set, SCALAR + M0, known)
    new = evaluator.read(wave_set, operation.operands[0], known)
    on = operation.spec.words[-1] == "on"
    if isinstance(new, Linear):
        wave_set.registers[SCALAR + M0] = evaluator.symbols.fresh("index", WAVE)
        return
    kept = 0 if isinstance(old, Linear) else old & (0xFFFF_0F00 if on else 0xFFFF_FF00)
    wave_set.registers[SCALAR + M0] = simplify(kept | new & 0xFF | (_read_mode(operation) << 12 if on else 0))


def evaluate_indexed(evaluator: Evaluator, wave_set: WaveSet, operation: Operation, known: Decisions) -> None:
    found = _resolve_by_index(evaluator, wave_set, operation, known)
    row, registers = operation.operands[0].first, wave_set.registers
    if len(found) == 1:
        evaluate_vector(evaluator, wave_set, next(iter(found.values())), known)
    elif found:  # waves differ in their index: evaluate with each wave's, and take that wave's row
        index = np.asarray(evaluator.read_row(wave_set, SCALAR + M0, known)) & 0xFF
        before, made = registers.get(row), list[Value]()
        for number in np.broadcast_to(index, (len(wave_set.waves), 1))[:, 0].tolist():
            evaluate_vector(evaluator, wave_set, found[number], known)
            made.append(evaluator.read_row(wave_set, row, known, everywhere=True))
            if before is None:
                del registers[row]
            else:
                registers[row] = before
        registers[row] = _join_rows(evaluator, made)
    elif operation.indexed & _PLACES["DST"]:
        for each in rows_of(operation.writes & (1 << ACC) - 1):
            registers[each] = evaluator.symbols.fresh("indexed", LANE)
    else:
        evaluator.write(wave_set, row, evaluator.symbols.fresh("indexed", LANE))


def _join_rows(evaluator: Evaluator, values: Sequence[Value]) -> Value:
    """The first wave's row of the first value, the second wave's of the second, and so on."""
    own = [select_waves(value, [wave]) for wave, value in enumerate(values)]
    if len({(each.base, each.scale) if isinstance(each, Linear) else None for each in own}) > 1:
        return evaluator.symbols.fresh("indexed", LANE)
    rows = [np.atleast_2d(np.asarray(each.offset if isinstance(each, Linear) else each, np.int64)) for each in own]
    wide = max(row.shape[1] for row in rows)
    stacked = simplify(np.concatenate([np.broadcast_to(row, (1, wide)) for row in rows]))
    return Linear(own[0].base, own[0].scale, stacked) if isinstance(own[0], Linear) else stacked
