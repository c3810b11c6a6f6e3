"""Scalar instructions: takes an operation, gives what a squad's scalar registers hold behind it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from rota.isa.binary.image import CODE_BASE
from rota.isa.wave.operand import EXEC, SCALAR
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.lane_mask import ALL64, Mask
from rota.prove.operation import EXEC_BITS, SCC_BIT, SCC_ROW, Operation
from rota.prove.squad import Squad
from rota.prove.symbol import GROUP, M32, WAVE, Linear, Value, simple, spread_of

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
_COMPARE = re.compile(r"^s_cmpk?_(?P<kind>eq|lg|lt|gt|ge|le)_(?P<sign>[ui])32$")
_SAVE = re.compile(r"^s_(?P<op>and|or|xor|andn2|orn2|nand|nor|xnor|andn1|orn1)_saveexec_b64$")
_WRITE = re.compile(r"^s_(?P<op>andn1|andn2)_wrexec_b64$")
_MASK = re.compile(r"^s_(?P<op>and|or|xor|andn2|orn2|nand|nor|xnor)_b64$")
_SHIFTED = re.compile(r"^s_lshl(?P<by>[1-4])_add_u32$")


def evaluate_scalar(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """Does what the instruction does; what isn't followed becomes unknown."""
    name = operation.name
    if name in _DONE:
        _DONE[name](one, squad, operation, known)
    elif name in _PLAIN or name in _LOGIC:
        _plain(one, squad, operation, known)
    elif (found := _COMPARE.match(name)) is not None:
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
        _forget(one, squad, operation, known)


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


def _chosen(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
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
        _forget(one, squad, operation, known)
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


def _forget(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
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


_DONE: dict[str, Callable[..., Any]] = {
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
    "s_cselect_b32": _chosen,
    "s_cselect_b64": _chosen,
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
