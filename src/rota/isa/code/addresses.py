"""Addresses of code in registers: takes an instruction and what registers may hold, gives what they may hold behind it.

Compilers make the address of a function with s_getpc_b64 and a sum, and keep return addresses in lanes of a vector
register.  That much is followed; whatever else an instruction names is not known behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

from rota.isa.code.code_listing import CodeLine

Key = str | int | tuple[int, int]  # SCC, a scalar register, or a lane of a vector register
Values = frozenset[int]
State = dict[Key, Values]  # what is not in it is not known
_Written = dict[Key, Values | None]

_MOST_VALUES = 16  # of one register: from so many places a function may be called
_ANY_LANE = -1
_SCC = "scc"
_M32 = 0xFFFF_FFFF
_REGISTERS = re.compile(r"(?<!\w)(?P<file>[sv])(?:(?P<one>\d+)|\[(?P<first>\d+):(?P<last>\d+)\])(?!\w)")
_RELATIVE = ("s_movrel", "v_movrel", "s_set_gpr_idx")  # write registers that they don't name
_LEAVE_SCC = ("s_mov_", "s_getpc_", "s_setpc_", "s_waitcnt", "s_nop", "s_branch", "s_cbranch_", "s_barrier")
_SUMS = {"s_add_u32": (1, False), "s_addc_u32": (1, True), "s_sub_u32": (-1, False), "s_subb_u32": (-1, True)}


def joined(one: State, other: State) -> State:
    """What is known wherever one comes from."""
    both = {key: one[key] | other[key] for key in one.keys() & other.keys()}
    return {key: values for key, values in both.items() if len(values) <= _MOST_VALUES}


def jump_targets(line: CodeLine, state: State) -> Values | None:
    """Where s_setpc_b64 or s_swappc_b64 may go, if that is known."""
    halves = [state.get(key) for key in _keys(line.text.split()[-1])]
    if len(halves) != 2 or halves[0] is None or halves[1] is None:
        return None
    return frozenset(low | high << 32 for low, high in product(halves[0], halves[1]))


def behind(line: CodeLine, state: State) -> State:
    """What the registers may hold behind an instruction."""
    opcode, _, rest = line.text.partition(" ")
    if opcode.startswith(_RELATIVE):
        return {}
    operands = [operand.strip() for operand in rest.split(",")]
    follow = _FOLLOWED.get(opcode)
    try:
        written = None if follow is None else follow(line, operands, state)
    except (IndexError, ValueError):  # an operand too few: the decoder has a word about that
        written = None
    if written is None:
        named = {key for operand in operands for key in _keys(operand)}
        written = {key: None for key in state if key in named or _lane_of(key, named)}
    after = dict(state)
    if opcode.startswith("s_") and not opcode.startswith(_LEAVE_SCC):
        after.pop(_SCC, None)
    for key, values in written.items():
        if values is not None and 0 < len(values) <= _MOST_VALUES:
            after[key] = values
        else:
            after.pop(key, None)
    return after


def _lane_of(key: Key, named: set[Key]) -> bool:
    return isinstance(key, tuple) and (key[0], _ANY_LANE) in named


def _keys(operand: str) -> list[Key]:
    """The scalar registers, and the vector registers with all of their lanes, that an operand names."""
    keys: list[Key] = []
    for found in _REGISTERS.finditer(operand):
        first, last = int(found["one"] or found["first"]), int(found["one"] or found["last"])
        numbers = range(first, min(last, first + 31) + 1)
        keys += [number if found["file"] == "s" else (number, _ANY_LANE) for number in numbers]
    return keys


def _here(line: CodeLine, operands: list[str], _: State) -> _Written:
    """The address behind the instruction: of s_getpc_b64, and where a call returns to."""
    halves = (frozenset({line.follows & _M32}), frozenset({line.follows >> 32}))
    return dict(zip(_keys(operands[0]), halves, strict=True))


def _moved(_: CodeLine, operands: list[str], state: State) -> _Written:
    return {_keys(operands[0])[0]: _value(state, operands[1])}


def _moved_pair(_: CodeLine, operands: list[str], state: State) -> _Written:
    targets, sources = _keys(operands[0]), _keys(operands[1])
    if sources:
        return {target: state.get(source) for target, source in zip(targets, sources, strict=True)}
    literal = _literal(operands[1])
    if literal is None:
        return dict.fromkeys(targets)
    return dict(zip(targets, (frozenset({literal & _M32}), frozenset({literal >> 32 & _M32})), strict=True))


def _summed(line: CodeLine, operands: list[str], state: State) -> _Written:
    sign, takes = _SUMS[line.opcode]
    target = _keys(operands[0])[0]
    one, other = (_value(state, operand) for operand in operands[1:3])
    carry = state.get(_SCC) if takes else frozenset({0})
    if one is None or other is None or carry is None:
        return {target: None, _SCC: None}
    totals = {a + sign * (b + c) for a, b, c in product(one, other, carry)}
    return {
        target: frozenset(total & _M32 for total in totals),
        _SCC: frozenset(int(not 0 <= total <= _M32) for total in totals),
    }


def _put_in_lane(_: CodeLine, operands: list[str], state: State) -> _Written:
    vector, lane = _vector(operands[0]), _literal(operands[2])
    if lane is None:
        return {key: None for key in state if isinstance(key, tuple) and key[0] == vector}
    return {(vector, lane & 63): _value(state, operands[1])}


def _taken_from_lane(_: CodeLine, operands: list[str], state: State) -> _Written:
    vector, lane = _vector(operands[1]), _literal(operands[2])
    return {_keys(operands[0])[0]: None if lane is None else state.get((vector, lane & 63))}


_FOLLOWED: dict[str, Callable[[CodeLine, list[str], State], _Written]] = {
    "s_getpc_b64": _here,
    "s_swappc_b64": _here,
    "s_call_b64": _here,
    "s_setpc_b64": lambda *_: {},
    "s_mov_b32": _moved,
    "s_mov_b64": _moved_pair,
    "v_writelane_b32": _put_in_lane,
    "v_readlane_b32": _taken_from_lane,
    **dict.fromkeys(_SUMS, _summed),
}


def _vector(operand: str) -> int:
    (key,) = _keys(operand)
    if not isinstance(key, tuple):
        raise ValueError(f"{operand} is no vector register")  # noqa: TRY004  # caught above
    return key[0]


def _value(state: State, operand: str) -> Values | None:
    keys = _keys(operand)
    if keys:
        return state.get(keys[0])
    literal = _literal(operand)
    return None if literal is None else frozenset({literal & _M32})


def _literal(operand: str) -> int | None:
    try:
        return int(operand.removeprefix("lit(").removesuffix(")"), 0)
    except ValueError:
        return None
