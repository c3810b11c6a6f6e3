"""Vector instructions: takes an operation, gives what a squad's registers hold behind it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from rota.isa.wave.operand import EXEC, SCALAR, File, Operand, named
from rota.prove.arithmetic import multiply_high
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.lane_mask import Mask, lanes_of
from rota.prove.operation import EXEC_BITS, Operation, rows_of
from rota.prove.squad import Half, Squad
from rota.prove.symbol import GROUP, LANE, M32, WAVE, Linear, Value, key_of, simple, spread_of

_EXEC_ROW = SCALAR + EXEC
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
_COMPARE = re.compile(r"^v_cmp(?P<x>x?)_(?P<kind>eq|ne|lt|gt|ge|le)_(?P<sign>[ui])32$")
_ANY_COMPARE = re.compile(r"^v_cmp(?P<x>x?)_")


def evaluate_vector(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """Does what the instruction does; what isn't followed becomes unknown."""
    name = operation.name
    if operation.odd or name.startswith(("v_mfma", "v_smfmac")):
        _forget(one, squad, operation, known)
        return
    try:
        if name in _DONE:
            _DONE[name](one, squad, operation, known)
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
        elif (found := _COMPARE.match(name)) is not None:
            a, b = (one.read(squad, each, known) for each in operation.operands[1:])
            _compared(
                one, squad, operation, one.mask_of(one.compare(found["kind"], found["sign"], a, b), len(squad.waves))
            )
        else:
            _forget(one, squad, operation, known)
    except (ValueError, OverflowError):  # a form that the arithmetic doesn't follow
        _forget(one, squad, operation, known)


def _put(one: Evaluator, squad: Squad, operation: Operation, value: Value) -> None:
    one.write(squad, operation.operands[0].rows[0], value)


def _compared(one: Evaluator, squad: Squad, operation: Operation, mask: Mask) -> None:
    """Lanes that are not active compare as false."""
    result = one.tamed(one.masks.combine("and", squad.exec, mask))
    rows = operation.operands[0].rows
    if operation.name.startswith("v_cmpx"):
        squad.exec = result
    if rows and rows[0] >= SCALAR:
        one.write_pair(squad, rows[0], result)


def _chosen(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
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
            _forget(one, squad, operation, known)
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
        _forget(one, squad, operation, known)
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


def _forget(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:  # noqa: C901
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
        values += [one.row(squad, row, known) for row in named("vcc").rows]
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


_DONE: dict[str, Callable[..., Any]] = {
    "v_cndmask_b32": _chosen,
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
