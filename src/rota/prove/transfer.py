"""Registers that are chosen while running: takes operations, gives those between s_set_gpr_idx_on and off marked.

In index mode M0 is added to the vector registers that its bits name.  While the index is known the very registers are
used; else a read may be of any register from the named one on, and a write forgets all of these.  The mode must begin
and end in one stretch of code, and what stands there makes single registers of others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from rota.isa.binary.elf import CODE_BASE
from rota.isa.wave.operand import ACC, EXEC, M0, SCALAR, File, Operand, named_register
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
from rota.prove.state import ALL64, Half, Mask, Squad, lanes_of
from rota.prove.symbol import (
    GROUP,
    LANE,
    M32,
    WAVE,
    Linear,
    Plain,
    Value,
    key_of,
    multiply_high,
    of_waves,
    simple,
    spread_of,
)

_EXEC_ROW = SCALAR + EXEC
_PLAIN = {
    "s_mov_b32": None, "s_movk_i32": None, "s_mul_i32": "mul", "s_mul_hi_u32": "mulhi_u", "s_mul_hi_i32": "mulhi_i",
    "s_bfm_b32": "bfm", "s_brev_b32": "brev", "s_pack_ll_b32_b16": "pack_ll", "s_pack_lh_b32_b16": "pack_lh",
    "s_pack_hh_b32_b16": "pack_hh", "s_sext_i32_i8": "sext8", "s_sext_i32_i16": "sext16",
}  # fmt: skip
_LOGIC = {
    "s_lshl_b32": "shl", "s_lshr_b32": "shr", "s_ashr_i32": "sar", "s_and_b32": "and", "s_or_b32": "or",
    "s_xor_b32": "xor", "s_andn2_b32": "andn2", "s_orn2_b32": "orn2", "s_nand_b32": "nand", "s_nor_b32": "nor",
    "s_xnor_b32": "xnor", "s_not_b32": "not", "s_abs_i32": "abs",
}  # fmt: skip
_LEAST = {"s_min_u32": "min_u", "s_max_u32": "max_u", "s_min_i32": "min_i", "s_max_i32": "max_i"}
_SCALAR_COMPARE = re.compile(r"^s_cmpk?_(?P<kind>eq|lg|lt|gt|ge|le)_(?P<sign>[ui])32$")
_SAVE = re.compile(r"^s_(?P<op>and|or|xor|andn2|orn2|nand|nor|xnor|andn1|orn1)_saveexec_b64$")
_WRITE = re.compile(r"^s_(?P<op>andn1|andn2)_wrexec_b64$")
_MASK = re.compile(r"^s_(?P<op>and|or|xor|andn2|orn2|nand|nor|xnor)_b64$")
_SHIFTED = re.compile(r"^s_lshl(?P<by>[1-4])_add_u32$")


def evaluate_scalar(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """Does what the instruction does; what isn't followed becomes unknown."""
    name = operation.name
    if name in _SCALAR_STEPS:
        _SCALAR_STEPS[name](one, squad, operation, known)
    elif name in _PLAIN or name in _LOGIC:
        _plain(one, squad, operation, known)
    elif (found := _SCALAR_COMPARE.match(name)) is not None:
        a, b = (one.read(squad, each, known) for each in operation.operands)
        if name.startswith("s_cmpk") and isinstance(b, int):
            b = _immediate(b, found["sign"])
        _flag(squad, one.flag_of(one.compare(found["kind"], found["sign"], a, b)))
    elif (found := _MASK.match(name)) is not None:
        left, right = (one.pair(squad, each, known) for each in operation.operands[1:])
        _masked(one, squad, operation, one.masks.combine(found["op"], left, right))
    elif (found := _SAVE.match(name)) is not None:
        _save(one, squad, operation, known, found["op"])
    elif (found := _WRITE.match(name)) is not None:
        source, old = one.pair(squad, operation.operands[1], known), one.masks.settled(squad.exec, known.decided)
        left, right = (old, source) if found["op"] == "andn1" else (source, old)
        squad.exec = one.tamed(one.masks.combine("andn2", left, right))
        _masked(one, squad, operation, squad.exec)
    elif (found := _SHIFTED.match(name)) is not None:
        a, b = (one.read(squad, each, known) for each in operation.operands[1:])
        _put(one, squad, operation, one.compute("add", one.compute("shl", a, int(found["by"])), b))
        _flag(squad, one.symbols.fresh("carry", _widest(a, b), 1))
    else:
        _forget_scalar(one, squad, operation, known)


def _immediate(number: int, sign: str) -> int:
    number &= 0xFFFF
    return number if sign == "u" else (number ^ 0x8000) - 0x8000 & M32


def _widest(*values: Value) -> int:
    return max(map(spread_of, values))


def _put(one: Evaluator, squad: Squad, operation: Operation, value: Value) -> None:
    one.write(squad, operation.operands[0].rows[0], value)


def _flag(squad: Squad, value: Value) -> None:
    squad.registers[SCC_ROW] = value


def _plain(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    values = [one.read(squad, each, known) for each in operation.operands[1:]]
    if operation.name == "s_movk_i32":
        values = [_immediate(each, "i") if isinstance(each, int) else each for each in values]
    op = _PLAIN.get(operation.name) or _LOGIC.get(operation.name)
    result = values[0] if op is None else one.compute(op, *values)
    _put(one, squad, operation, result)
    if operation.name in _LOGIC:
        _flag(squad, one.flag_of(one.compare("ne", "u", result, 0)))


def _summed(*, sign: int, takes: bool, signed: bool) -> Callable[..., None]:
    def act(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
        a, b = (one.read(squad, each, known) for each in operation.operands[1:])
        carry = one.row(squad, SCC_ROW, known) if takes else 0
        if sign < 0:
            total = one.compute("sub", one.compute("sub", a, b), carry)
        else:
            total = one.compute("add", one.compute("add", a, b), carry)
        _put(one, squad, operation, total)
        if any(isinstance(each, Linear) for each in (a, b, carry)):
            _flag(squad, one.symbols.opaque(operation.name, (a, b, carry), bits=1))
            return
        if signed:
            sa, sb = ((np.asarray(each) ^ 1 << 31) - (1 << 31) for each in (a, b))
            whole = sa + sign * sb
            over = (whole < -(1 << 31)) | (whole >= 1 << 31)
        else:
            whole = np.asarray(a) + sign * (np.asarray(b) + np.asarray(carry))
            over = (whole < 0) | (whole > M32)
        _flag(squad, int(over) if over.ndim == 0 else simple(over.astype(np.int64)))

    return act


def _immediate_op(op: str) -> Callable[..., None]:
    def act(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
        a, b = (one.read(squad, each, known) for each in operation.operands)
        _put(one, squad, operation, one.compute(op, a, _immediate(b, "i") if isinstance(b, int) else b))
        if op == "add":
            _flag(squad, one.symbols.fresh("carry", _widest(a, b), 1))

    return act


def _least(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    a, b = (one.read(squad, each, known) for each in operation.operands[1:])
    op = _LEAST[operation.name]
    first = one.flag_of(one.compare("lt" if op.startswith("min") else "gt", op[-1], a, b))
    _flag(squad, first)
    if isinstance(first, int):
        _put(one, squad, operation, a if first else b)
    elif isinstance(first, Linear) and first.base.spread == GROUP and isinstance(first.offset, int):
        a, b = (a, b) if first.scale == 1 else (b, a)
        _put(one, squad, operation, one.select(first.base, a, b))
    else:
        _put(one, squad, operation, one.compute(op, a, b))


def _field(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    a, b = (one.read(squad, each, known) for each in operation.operands[1:])
    kind = "bfe_u" if operation.name.endswith("u32") else "bfe_i"
    if isinstance(b, int):
        width = b >> 16 & 0x7F
        result = (
            0 if not width else one.compute(kind, a, b & 31, width) if width < 32 else one.compute("shr", a, b & 31)
        )
    else:
        result = one.symbols.opaque(kind, (a, b))
    _put(one, squad, operation, result)
    _flag(squad, one.flag_of(one.compare("ne", "u", result, 0)))


def _select_scalar(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    flag = one.row(squad, SCC_ROW, known)
    wide = operation.name.endswith("b64")
    decided = _decided(flag, known)
    if wide:
        a, b = (one.pair(squad, each, known) for each in operation.operands[1:])
        if decided is not None:
            mask = a if decided else b
        else:
            chooser = _as_mask(one, flag, len(squad.waves))
            both = one.masks.combine("and", a, chooser), one.masks.combine("andn2", b, chooser)
            mask = one.masks.combine("or", *both)
        one.write_pair(squad, operation.operands[0].rows[0], mask)
        return
    x, y = (one.read(squad, each, known) for each in operation.operands[1:])
    if decided is not None:
        result: Value = x if decided else y
    elif not isinstance(flag, Linear):
        result = (
            simple(np.where(np.asarray(flag) != 0, x, y))
            if not isinstance(x, Linear) and not isinstance(y, Linear)
            else one.symbols.opaque("choose", (flag, x, y))
        )
    elif flag.base.spread == GROUP and isinstance(flag.offset, int):
        result = one.select(flag.base, x, y) if flag.scale == 1 else one.select(flag.base, y, x)
    else:
        result = one.symbols.opaque("choose", (flag, x, y))
    _put(one, squad, operation, result)


def _decided(flag: Value, known: Decisions) -> bool | None:
    if isinstance(flag, int):
        return bool(flag)
    if isinstance(flag, Linear) and flag.base.spread == GROUP and isinstance(flag.offset, int):
        found = known.decided(flag.base)
        return None if found is None else found == (flag.scale == 1)
    return None


def _as_mask(one: Evaluator, flag: Value, waves: int) -> Mask:
    if isinstance(flag, Linear):
        mask = one.masks.unknown(flag.base, waves)
        return mask if flag.scale == 1 else one.masks.inverted(mask)
    numbers = np.broadcast_to(np.asarray(flag), (waves, 1))[:, 0].tolist()
    return one.masks.leaf(tuple(ALL64 if number else 0 for number in numbers))


def _bit(wanted: int) -> Callable[..., None]:
    def act(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
        a, b = (one.read(squad, each, known) for each in operation.operands)
        bit = one.compute("and", one.compute("shr", a, b), 1)
        _flag(squad, one.flag_of(one.compare("eq", "u", bit, wanted)))

    return act


def _masked(one: Evaluator, squad: Squad, operation: Operation, mask: Mask) -> None:
    one.write_pair(squad, operation.operands[0].rows[0], mask)
    if operation.writes & SCC_BIT:
        _flag(squad, one.any_of(mask))


def _save(one: Evaluator, squad: Squad, operation: Operation, known: Decisions, op: str) -> None:
    source, old = one.pair(squad, operation.operands[1], known), one.masks.settled(squad.exec, known.decided)
    left, right = source, old
    if op in {"andn1", "orn1"}:
        left, right, op = old, source, op.replace("n1", "n2")
    one.write_pair(squad, operation.operands[0].rows[0], old)
    squad.exec = one.tamed(one.masks.combine(op, left, right))
    _flag(squad, one.any_of(squad.exec))


def _moved_pair(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    target, source = operation.operands[0].rows[0], operation.operands[1]
    if target != _EXEC_ROW and source.rows and source.rows[0] != _EXEC_ROW:
        for part in (0, 1):
            held = squad.registers.get(source.rows[0] + part)
            squad.registers[target + part] = held if held is not None else one.row(squad, source.rows[0] + part, known)
        return
    one.write_pair(squad, target, one.pair(squad, source, known))


def _inverted(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    _masked(one, squad, operation, one.masks.inverted(one.pair(squad, operation.operands[1], known)))


def _equal_pairs(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    left, right = (one.pair(squad, each, known) for each in operation.operands)
    differs = one.any_of(one.masks.combine("xor", left, right))
    turned = "_eq_" in operation.name
    _flag(squad, one.compute("sub", 1, differs) if turned else differs)


def _shifted_pair(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    mask, by = one.pair(squad, operation.operands[1], known), one.read(squad, operation.operands[2], known)
    if mask.leaf is None or isinstance(by, Linear):
        _forget_scalar(one, squad, operation, known)
        return
    places = np.broadcast_to(np.asarray(by), (len(squad.waves), 1))[:, 0].tolist()
    left = "lshl" in operation.name
    moved = tuple(
        (number << (place & 63) if left else number >> (place & 63)) & ALL64
        for number, place in zip(mask.leaf, places, strict=True)
    )
    _masked(one, squad, operation, one.masks.leaf(moved))


def _here(one: Evaluator, squad: Squad, operation: Operation, _: Decisions) -> None:
    follows = operation.instruction.follows
    place = CODE_BASE + follows if follows is not None else 0
    one.write_pair(squad, operation.operands[0].rows[0], one.masks.leaf((place,) * len(squad.waves)))


def _forget_scalar(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """An operation that isn't followed: the same on the same values gives the same."""
    values: list[Value] = []
    for each in operation.operands[1 if operation.writes & ~SCC_BIT else 0 :]:
        values += [one.row(squad, row, known) for row in each.rows] or [one.read(squad, each, known)]
    if operation.reads & SCC_BIT:
        values.append(one.row(squad, SCC_ROW, known))
    if "getreg" in operation.name or "_saveexec" in operation.name:
        values = [one.symbols.fresh(operation.name, WAVE)]
    text = operation.instruction.text if not values else operation.name
    rows = operation.operands[0].rows if operation.writes & ~SCC_BIT else ()
    if "_cmov" in operation.name or "bitset" in operation.name:
        values += [one.row(squad, row, known) for row in rows]
    for place, row in enumerate(rows):
        if row in {_EXEC_ROW, _EXEC_ROW + 1}:
            continue
        squad.registers[row] = one.symbols.opaque(text, tuple(values), place)
    if operation.writes & EXEC_BITS:
        squad.exec = one.masks.unknown(one.symbols.fresh("exec", 2).base, len(squad.waves))
    if operation.writes & SCC_BIT:
        _flag(squad, one.symbols.opaque(text, tuple(values), "scc", bits=1))


_SCALAR_STEPS: dict[str, Callable[..., Any]] = {
    "s_add_u32": _summed(sign=1, takes=False, signed=False),
    "s_addc_u32": _summed(sign=1, takes=True, signed=False),
    "s_sub_u32": _summed(sign=-1, takes=False, signed=False),
    "s_subb_u32": _summed(sign=-1, takes=True, signed=False),
    "s_add_i32": _summed(sign=1, takes=False, signed=True),
    "s_sub_i32": _summed(sign=-1, takes=False, signed=True),
    "s_addk_i32": _immediate_op("add"),
    "s_mulk_i32": _immediate_op("mul"),
    **dict.fromkeys(_LEAST, _least),
    "s_bfe_u32": _field,
    "s_bfe_i32": _field,
    "s_cselect_b32": _select_scalar,
    "s_cselect_b64": _select_scalar,
    "s_bitcmp0_b32": _bit(0),
    "s_bitcmp1_b32": _bit(1),
    "s_mov_b64": _moved_pair,
    "s_not_b64": _inverted,
    "s_cmp_eq_u64": _equal_pairs,
    "s_cmp_lg_u64": _equal_pairs,
    "s_lshl_b64": _shifted_pair,
    "s_lshr_b64": _shifted_pair,
    "s_getpc_b64": _here,
}


_BINARY = {
    "v_add_u32": "add", "v_sub_u32": "sub", "v_mul_lo_u32": "mul", "v_mul_hi_u32": "mulhi_u", "v_mul_u32_u24": "mul24",
    "v_mul_i32_i24": "mul24i", "v_and_b32": "and", "v_or_b32": "or", "v_xor_b32": "xor", "v_min_u32": "min_u",
    "v_max_u32": "max_u", "v_min_i32": "min_i", "v_max_i32": "max_i", "v_bfe_u32": "bfe_u", "v_bfe_i32": "bfe_i",
    "v_bfi_b32": "bfi", "v_not_b32": "not", "v_bfrev_b32": "brev", "v_perm_b32": "perm", "v_xnor_b32": "xnor",
    "v_alignbit_b32": "alignbit", "v_add_i32": "add", "v_sub_i32": "sub", "v_bfm_b32": "bfm",
    "v_alignbyte_b32": "alignbyte",
}  # fmt: skip
_REVERSED = {"v_subrev_u32": "sub", "v_lshlrev_b32": "shl", "v_lshrrev_b32": "shr", "v_ashrrev_i32": "sar"}
_FUSED = {  # the second op is done with the first one's result and the third operand
    "v_add3_u32": ("add", "add"), "v_or3_b32": ("or", "or"), "v_and_or_b32": ("and", "or"),
    "v_lshl_or_b32": ("shl", "or"),
    "v_lshl_add_u32": ("shl", "add"), "v_add_lshl_u32": ("add", "shl"), "v_xad_u32": ("xor", "add"),
    "v_mad_u32_u24": ("mul24", "add"), "v_mad_i32_i24": ("mul24i", "add"),
}  # fmt: skip
_MOVES = frozenset({"v_mov_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32"})
_VECTOR_COMPARE = re.compile(r"^v_cmp(?P<x>x?)_(?P<kind>eq|ne|lt|gt|ge|le)_(?P<sign>[ui])32$")
_ANY_COMPARE = re.compile(r"^v_cmp(?P<x>x?)_")


def evaluate_vector(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """Does what the instruction does; what isn't followed becomes unknown."""
    name = operation.name
    if operation.odd or name.startswith(("v_mfma", "v_smfmac")):
        _forget_vector(one, squad, operation, known)
        return
    try:
        if name in _VECTOR_STEPS:
            _VECTOR_STEPS[name](one, squad, operation, known)
        elif name in _MOVES:
            _put(one, squad, operation, one.read(squad, operation.operands[1], known))
        elif name in _BINARY:
            values = [one.read(squad, each, known) for each in operation.operands[1:]]
            _put(one, squad, operation, one.compute(_BINARY[name], *values))
        elif name in _REVERSED:
            a, b = (one.read(squad, each, known) for each in operation.operands[1:])
            _put(one, squad, operation, one.compute(_REVERSED[name], b, a))
        elif name in _FUSED:
            a, b, c = (one.read(squad, each, known) for each in operation.operands[1:])
            first, then = _FUSED[name]
            _put(one, squad, operation, one.compute(then, one.compute(first, a, b), c))
        elif (found := _VECTOR_COMPARE.match(name)) is not None:
            a, b = (one.read(squad, each, known) for each in operation.operands[1:])
            _compared(
                one, squad, operation, one.mask_of(one.compare(found["kind"], found["sign"], a, b), len(squad.waves))
            )
        else:
            _forget_vector(one, squad, operation, known)
    except (ValueError, OverflowError):  # a form that the arithmetic doesn't follow
        _forget_vector(one, squad, operation, known)


def _compared(one: Evaluator, squad: Squad, operation: Operation, mask: Mask) -> None:
    """Lanes that are not active compare as false."""
    result = one.tamed(one.masks.combine("and", squad.exec, mask))
    rows = operation.operands[0].rows
    if operation.name.startswith("v_cmpx"):
        squad.exec = result
    if rows and rows[0] >= SCALAR:
        one.write_pair(squad, rows[0], result)


def _select_lanes(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    a, b = (one.read(squad, each, known) for each in operation.operands[1:3])
    mask = one.pair(squad, operation.operands[3], known)
    _put(one, squad, operation, choose(one, mask, b, a, squad))


def choose(one: Evaluator, mask: Mask, high: Value, low: Value, squad: Squad) -> Value:
    """In the lanes of the mask one value, in the others another; lanes that are not active don't matter."""
    if key_of(high) == key_of(low):
        return high
    if not any(one.masks.possible(one.masks.combine("andn2", squad.exec, mask))):
        return high
    if not any(one.masks.possible(one.masks.combine("and", squad.exec, mask))):
        return low
    atom = mask.atom
    if atom is not None and atom.spread == GROUP and mask.high is not None and mask.low is not None:
        return one.select(atom, choose(one, mask.high, high, low, squad), choose(one, mask.low, high, low, squad))
    return one.merged(mask, high, low)


def _first_lane(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """The first active lane's value; of lane 0 if none is active."""
    empty = not all(one.masks.certain(squad.exec))  # then lane 0 is read, which isn't active
    value = one.read(squad, operation.operands[1], known, everywhere=empty)
    _put(one, squad, operation, first_lane(one, squad, value))


def first_lane(one: Evaluator, squad: Squad, value: Value) -> Value:
    """A value for all lanes, from the first that is active."""
    if isinstance(value, int) or (not isinstance(value, Linear) and value.shape[1] == 1):
        return value
    if isinstance(value, Linear):
        if value.base.spread == LANE:
            return one.symbols.opaque("first", (value,), squad.exec, spread=WAVE)
        offset = first_lane(one, squad, value.offset)
        return (
            Linear(value.base, value.scale, offset)
            if not isinstance(offset, Linear)
            else one.symbols.opaque("first", (value,), squad.exec, spread=WAVE)
        )
    if squad.exec.leaf is not None:
        lanes = [(number & -number).bit_length() - 1 if number else 0 for number in squad.exec.leaf]
        return simple(value[np.arange(len(lanes)), lanes][:, None])
    active = lanes_of(one.masks.possible(squad.exec))
    firsts = np.where(active.any(axis=1), active.argmax(axis=1), 0)
    first = value[np.arange(len(value)), firsts][:, None]
    if bool((np.where(active, value, first) == first).all()) and bool((value[:, :1] == first).all()):
        return simple(first)
    return one.symbols.opaque("first", (value,), squad.exec, spread=WAVE)


def _one_lane(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    value = one.read(squad, operation.operands[1], known, everywhere=True)  # EXEC doesn't matter here
    place = one.read(squad, operation.operands[2], known)
    if isinstance(value, int):
        result: Value = value
    elif isinstance(place, int) and not isinstance(value, Linear):
        result = simple(value[:, [place & 63 if value.shape[1] > 1 else 0]])
    elif (
        isinstance(value, Linear)
        and value.base.spread != LANE
        and isinstance(place, int)
        and not isinstance(value.offset, int)
    ):
        offset = value.offset[:, [place & 63 if value.offset.shape[1] > 1 else 0]]
        result = Linear(value.base, value.scale, simple(offset))
    elif isinstance(value, Linear) and value.base.spread != LANE and isinstance(value.offset, int):
        result = value
    else:
        result = one.symbols.opaque("lane", (value, place), spread=WAVE)
    _put(one, squad, operation, result)


def _into_lane(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    value, place = (one.read(squad, each, known) for each in operation.operands[1:3])
    write_lane(one, squad, operation.operands[0].rows[0], value, place)


def write_lane(one: Evaluator, squad: Squad, row: int, value: Value, place: Value) -> None:
    """A value to one lane of a register, whatever EXEC is."""
    held = squad.registers.get(row)
    start = Linear(one.symbols.make("start", (row,), spread=LANE), 1, 0)
    old: Value = start if held is None or isinstance(held, Half) else held
    if isinstance(place, int):
        mask = one.masks.leaf((1 << (place & 63),) * len(squad.waves))
        squad.registers[row] = one.merged(mask, value, old)
    else:
        squad.registers[row] = one.symbols.opaque("writelane", (value, place, old), spread=LANE)


def _carried(*, sign: int, takes: bool, turned: bool) -> Callable[..., None]:
    def act(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
        a, b = (one.read(squad, each, known) for each in operation.operands[2:4])
        a, b = (b, a) if turned else (a, b)
        total = one.compute("add" if sign > 0 else "sub", a, b)
        carry: Value = 0
        if takes:
            mask = one.pair(squad, operation.operands[4], known)
            carry = choose(one, mask, 1, 0, squad)
            total = one.compute("add" if sign > 0 else "sub", total, carry)
        if any(isinstance(each, Linear) for each in (a, b, carry)):
            atom = one.symbols.opaque(operation.name, (a, b, carry), "carry", bits=1, spread=LANE).base
            out = one.masks.unknown(atom, len(squad.waves))
        else:
            whole = np.asarray(a) + sign * (np.asarray(b) + np.asarray(carry))
            out = one.masks.of_lanes((whole < 0) | (whole > M32), len(squad.waves))
        _put(one, squad, operation, total)
        one.write_pair(squad, operation.operands[1].rows[0], one.masks.combine("and", squad.exec, out))

    return act


def _counted(*, high: bool) -> Callable[..., None]:
    """The set bits of a mask below the lane, plus a number."""

    def act(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
        mask, more = (one.read(squad, each, known) for each in operation.operands[1:3])
        if isinstance(mask, Linear):
            _forget_vector(one, squad, operation, known)
            return
        lane = np.arange(64)
        below = np.array([(1 << min(max(int(each) - 32 * high, 0), 32)) - 1 for each in lane], np.int64)
        chosen = np.asarray(mask) & below
        count = np.zeros(np.broadcast_shapes(chosen.shape, (1, 64)), np.int64)
        for place in range(32):
            count += chosen >> place & 1
        full = np.broadcast_to(count, (len(squad.waves), 64)).copy()
        _put(one, squad, operation, one.compute("add", full, more))

    return act


def _multiplied_wide(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """A product of 64 bits, plus a number of 64 bits; only its low half is followed where it is unknown."""
    a, b = (one.read(squad, each, known) for each in operation.operands[2:4])
    parts = one.halves(squad, operation.operands[4], known)
    low = one.compute("add", one.compute("mul", a, b), parts[0])
    target = operation.operands[0].rows[0]
    values = (a, b, *parts)
    if any(isinstance(each, Linear) for each in values) or "i64" in operation.name:
        high: Value = one.symbols.opaque(operation.name, values, "high")
    else:
        carry = (np.asarray(one.compute("mul", a, b)) + np.asarray(parts[0])) >> 32
        high = one.compute(
            "add", one.compute("add", multiply_high(a, b), parts[1]), carry if carry.ndim else int(carry)
        )
    one.write(squad, target, low)
    one.write(squad, target + 1, high)
    atom = one.symbols.opaque(operation.name, values, "carry", bits=1, spread=LANE).base
    if operation.operands[1].rows:
        one.write_pair(squad, operation.operands[1].rows[0], one.masks.unknown(atom, len(squad.waves)))


def _bit_operation(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """v_bitop3_b32: bit by bit a table of three operands."""
    table = int(operation.instruction.modifiers[0].partition(":")[2], 0)
    values = [one.read(squad, each, known) for each in operation.operands[1:4]]
    total: Value = 0
    for row in range(8):
        if table >> row & 1:
            term: Value = M32
            for place, value in enumerate(values):
                term = one.compute("and", term, value if row >> (2 - place) & 1 else one.compute("not", value))
            total = one.compute("or", total, term)
    _put(one, squad, operation, total)


def _moved_wide(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    target, source = operation.operands
    for row, value in zip(target.rows, one.halves(squad, source, known), strict=True):
        one.write(squad, row, value)


def _added_wide(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """v_lshl_add_u64: the low half is a sum of 32 bits."""
    first, by, third = operation.operands[1:4]
    shift = one.read(squad, by, known)
    (low_one, high_one), (low_two, high_two) = (one.halves(squad, each, known) for each in (first, third))
    low = one.compute("add", one.compute("shl", low_one, shift), low_two)
    one.write(squad, operation.operands[0].rows[0], low)
    high = one.symbols.opaque(operation.name, (low_one, low_two, high_one, high_two, shift), "high")
    one.write(squad, operation.operands[0].rows[1], high)


def _swapped(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """v_swap_b32: two registers change places in the active lanes."""
    values = [one.read(squad, each, known) for each in operation.operands]
    for target, value in zip(operation.operands, reversed(values), strict=True):
        one.write(squad, target.rows[0], value)


def _rows_swapped(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """The odd rows of the first register change places with the even rows of the second, if all lanes are active."""
    first, second = (one.read(squad, each, known) for each in operation.operands)
    if not squad.exec.full or isinstance(first, Linear) or isinstance(second, Linear):
        _forget_vector(one, squad, operation, known)
        return
    above, below = (np.broadcast_to(np.asarray(each), (len(squad.waves), 64)) for each in (first, second))
    targets = [each.rows[0] for each in operation.operands]
    lanes, size = np.arange(64), 32 if "32_swap" in operation.name else 16
    odd, across = lanes & size != 0, lanes ^ size
    stay = across if targets[0] == targets[1] else lanes  # a register's own rows change places
    one.write(squad, targets[0], np.where(odd, below[:, across], above[:, stay]))
    one.write(squad, targets[1], np.where(odd, below[:, stay], above[:, across]))


def _values(one: Evaluator, squad: Squad, operands: tuple[Operand, ...], known: Decisions) -> list[Value]:
    values: list[Value] = []
    for each in operands:
        if each.file is File.LITERAL:
            values.append(each.literal & M32)
        else:
            values += [one.row(squad, row, known) for row in each.rows]
    return values


def _forget_vector(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:  # noqa: C901
    """An operation that isn't followed: the same on the same values gives the same."""
    name, operands = operation.name, operation.operands
    text = operation.instruction.text.partition(" ")[0]
    written = operation.writes
    if not operands or name.startswith(("v_mfma", "v_smfmac")):
        for row in rows_of(written):
            one.write(squad, row, one.symbols.fresh(name, LANE))
        return
    values = _values(one, squad, operands if operation.keeps else operands[operation.targets :], known)
    if name.startswith("v_div_fmas"):
        values += [one.row(squad, row, known) for row in named_register("vcc").rows]
    if "permlane" in name or name.startswith("v_swap"):
        values = _values(one, squad, operands, known)
    signs = tuple(each.text for each in operands if each.signed)
    extra = (text, signs, operation.instruction.modifiers, operation.number if name.startswith("v_prng") else 0)
    across = (
        "_dpp" in text
        or "permlane" in name
        or name.startswith("v_mbcnt")
        or any(each.startswith(("quad_perm", "row_", "wave_")) for each in operation.instruction.modifiers)
    )
    shared = (*extra, squad.exec) if across else extra
    if (compared := _ANY_COMPARE.match(name)) is not None:
        spread = max(map(spread_of, values), default=GROUP)
        atom = one.symbols.opaque(text, tuple(values), shared, bits=1, spread=LANE if across else spread).base
        _compared(one, squad, operation, one.masks.unknown(atom, len(squad.waves)))
        del compared
        return
    made: list[tuple[int, Value]] = []
    pairs: set[int] = set()
    for row in rows_of(written & ~EXEC_BITS):
        if row >= SCALAR and not name.startswith(("v_readlane", "v_readfirstlane")):
            pairs.add(row - (row & 1))
        else:
            spread = LANE if row < SCALAR and across else WAVE if row >= SCALAR else -1
            made.append((row, one.symbols.opaque(text, tuple(values), (*shared, row), spread=spread)))
    for row, value in made:
        one.write(squad, row, value)
    for row in pairs:
        atom = one.symbols.opaque(text, tuple(values), (*shared, "mask"), bits=1, spread=LANE).base
        one.write_pair(squad, row, one.masks.unknown(atom, len(squad.waves)))
    if written & EXEC_BITS:
        squad.exec = one.masks.unknown(one.symbols.fresh("exec", LANE).base, len(squad.waves))


_VECTOR_STEPS: dict[str, Callable[..., Any]] = {
    "v_cndmask_b32": _select_lanes,
    "v_readfirstlane_b32": _first_lane,
    "v_readlane_b32": _one_lane,
    "v_writelane_b32": _into_lane,
    "v_add_co_u32": _carried(sign=1, takes=False, turned=False),
    "v_addc_co_u32": _carried(sign=1, takes=True, turned=False),
    "v_sub_co_u32": _carried(sign=-1, takes=False, turned=False),
    "v_subb_co_u32": _carried(sign=-1, takes=True, turned=False),
    "v_subrev_co_u32": _carried(sign=-1, takes=False, turned=True),
    "v_subbrev_co_u32": _carried(sign=-1, takes=True, turned=True),
    "v_mbcnt_lo_u32_b32": _counted(high=False),
    "v_mbcnt_hi_u32_b32": _counted(high=True),
    "v_mad_u64_u32": _multiplied_wide,
    "v_mad_i64_i32": _multiplied_wide,
    "v_bitop3_b32": _bit_operation,
    "v_mov_b64": _moved_wide,
    "v_lshl_add_u64": _added_wide,
    "v_swap_b32": _swapped,
    "v_permlane16_swap_b32": _rows_swapped,
    "v_permlane32_swap_b32": _rows_swapped,
}


_NAMES = re.compile(r"gpr_idx\((?P<names>[A-Z0-9,]*)\)")
_PLACES = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}
_OWN_WAYS = ("v_mfma", "v_smfmac", "v_accvgpr", "v_swap", "v_permlane")  # of using registers


def mark_indexed(operations: Sequence[Operation]) -> list[Operation]:
    """The operations, those in index mode with all registers that they may use."""
    marked, mode = list(operations), 0
    targets = {each.instruction.target for each in operations}
    for number, each in enumerate(operations):
        opcode = each.instruction.opcode
        if opcode == "s_set_gpr_idx_on":
            mode = _mode(each)
        elif opcode == "s_set_gpr_idx_off":
            mode = 0
        elif opcode.startswith("s_set_gpr_idx") and opcode != "s_set_gpr_idx_idx":
            raise UnknownOperationError(each.instruction)
        elif mode and (number in targets or each.kind in {OperationKind.BRANCH, OperationKind.CALL, OperationKind.END}):
            raise UnknownOperationError(each.instruction, "register index")
        elif mode and each.vector:
            marked[number] = _wide(each, mode)
    return marked


def _mode(operation: Operation) -> int:
    found = _NAMES.search(operation.instruction.text.replace(" ", ""))
    if found is None:
        raise UnknownOperationError(operation.instruction, "form")
    return sum(_PLACES[name] for name in found["names"].split(",") if name)


def _wide(operation: Operation, mode: int) -> Operation:
    if not _is_plain(operation, mode):
        raise UnknownOperationError(operation.instruction, "register index")
    reads, writes = operation.reads, operation.writes
    for place, operand in _meant(operation.operands, mode):
        if place:
            reads |= _from(operand)
        else:  # what lies beyond the last register is the first
            writes, reads = writes | _from(operand) | 1, reads | _from(operand) | 1
    return replace(operation, reads=reads, writes=writes, indexed=mode)


def _is_plain(operation: Operation, mode: int) -> bool:
    """Does it make one register of others, each as its operand names it?"""
    if operation.name == "v_writelane_b32":
        return mode == _PLACES["DST"] and not operation.odd
    vectors = [operand for operand in operation.operands if operand.file is File.VECTOR]
    return (
        bool(vectors)
        and operation.operands[0] is vectors[0]
        and operation.targets == 1
        and not (operation.odd or operation.keeps or operation.name.startswith(_OWN_WAYS))
        and all(operand.count == 1 and operand.first < ACC for operand in vectors)
    )


def _meant(operands: Sequence[Operand], mode: int) -> Iterator[tuple[int, Operand]]:
    """The vector registers that the mode adds the index to: the target's place is 0, sources follow."""
    for place, operand in enumerate(operands[: len(_PLACES)]):
        if mode >> (place - 1) % len(_PLACES) & 1 and operand.file is File.VECTOR:
            yield place, operand


def _from(operand: Operand) -> int:
    """All registers of the file from an operand's on."""
    return (1 << ACC) - (1 << operand.first)


def in_place(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> Operation | None:
    """The operation with the registers that are meant, of all waves together; None if these are not known."""
    found = _by_index(one, squad, operation, known)
    if not found:
        return None
    reads, writes = (reduce(or_, (getattr(each, name) for each in found.values())) for name in ("reads", "writes"))
    return replace(next(iter(found.values())), reads=reads, writes=writes)


def _by_index(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> dict[int, Operation]:
    """By each index that a wave has: the operation on the very registers that are meant; nothing if it isn't known."""
    index = one.row(squad, SCALAR + M0, known)
    if isinstance(index, Linear):
        return {}
    indices = {int(each) & 0xFF for each in np.asarray(index).flat}
    last = max((operand.first for _, operand in _meant(operation.operands, operation.indexed)), default=0)
    if last + max(indices) >= ACC or (len(indices) > 1 and operation.indexed & _PLACES["DST"]):
        return {}
    return {each: _moved(operation, each) for each in sorted(indices)}


def _moved(operation: Operation, index: int) -> Operation:
    operands = list(operation.operands)
    for place, operand in _meant(operation.operands, operation.indexed):
        operands[place] = replace(operand, first=operand.first + index)
    target, *sources = (sum(1 << row for row in operand.rows) & VECTORS for operand in operands)
    reads, writes = operation.reads & ~VECTORS | reduce(or_, sources, 0), operation.writes & ~VECTORS | target
    return replace(operation, operands=tuple(operands), reads=reads, writes=writes, indexed=0)


def set_index(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """s_set_gpr_idx_on and s_set_gpr_idx_idx."""
    old, new = one.row(squad, SCALAR + M0, known), one.read(squad, operation.operands[0], known)
    on = operation.instruction.opcode == "s_set_gpr_idx_on"
    if isinstance(new, Linear):
        squad.registers[SCALAR + M0] = one.symbols.fresh("index", WAVE)
        return
    kept = 0 if isinstance(old, Linear) else old & (0xFFFF_0F00 if on else 0xFFFF_FF00)
    squad.registers[SCALAR + M0] = simple(kept | new & 0xFF | (_mode(operation) << 12 if on else 0))


def evaluate_indexed(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """An operation in index mode."""
    found = _by_index(one, squad, operation, known)
    row = operation.operands[0].first
    if len(found) == 1:
        evaluate_vector(one, squad, next(iter(found.values())), known)
    elif found:  # waves have an index each
        index = np.broadcast_to(np.asarray(one.row(squad, SCALAR + M0, known)) & 0xFF, (len(squad.waves), 1))
        before, made = squad.registers.get(row), list[Value]()
        for number in index[:, 0].tolist():
            evaluate_vector(one, squad, found[number], known)
            made.append(one.row(squad, row, known, everywhere=True))
            if before is None:
                del squad.registers[row]
            else:
                squad.registers[row] = before
        squad.registers[row] = _of_each(one, made)
    elif operation.indexed & _PLACES["DST"]:
        for each in range(ACC):
            if operation.writes >> each & 1:
                squad.registers[each] = one.symbols.fresh("indexed", LANE)
    else:
        one.write(squad, row, one.symbols.fresh("indexed", LANE))


def _of_each(one: Evaluator, values: Sequence[Value]) -> Value:
    """The first wave's part of the first value, the second's of the second, and so on."""
    own = [of_waves(value, [wave]) for wave, value in enumerate(values)]
    first = own[0]
    if isinstance(first, Linear):
        if not all(isinstance(each, Linear) and (each.base, each.scale) == (first.base, first.scale) for each in own):
            return one.symbols.fresh("indexed", LANE)
        return Linear(first.base, first.scale, _stacked([each.offset for each in own if isinstance(each, Linear)]))
    plain = [each for each in own if not isinstance(each, Linear)]
    return _stacked(plain) if len(plain) == len(own) else one.symbols.fresh("indexed", LANE)


def _stacked(rows: Sequence[Plain]) -> Plain:
    each = [np.atleast_2d(np.asarray(row, np.int64)) for row in rows]
    wide = max(row.shape[1] for row in each)
    return simple(np.concatenate([np.broadcast_to(row, (1, wide)) for row in each]))
