"""Registers of a wave of 32 lanes as plain integers, and how gfx1250's operands and modifiers name them.

Encodings and modifiers are read here apart from the interpreter; what opcodes compute is in the modules beside this.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.isa.plain import numbers as n
from tests.isa.plain.machine import WIDTHS
from tests.isa.plain.numbers import Num

LANES = range(32)
M32, M64 = (1 << 32) - 1, (1 << 64) - 1
VCC, M0, EXEC = 106, 124, 126
NAMED = {"vcc_lo": VCC, "vcc_hi": VCC + 1, "vcc": VCC, "m0": M0, "exec_lo": EXEC, "exec_hi": EXEC + 1, "exec": EXEC}
PAIRS = {"vcc", "exec"}
_SPLIT = re.compile(r",\s*(?![^\[]*\])")
_REGISTER = re.compile(r"([vs])(?:(\d+)|\[(\d+):(\d+)\])(\.[lh])?")
_FORM = re.compile(r"_(e32|e64_dpp|e64|dpp)$")

ANY_HALF = "any"  # as a format: sixteen bits that mean nothing
Loose = list[tuple[int, str, int]]  # shift, format, ulps: a part that may be another NaN, or so far away


@dataclass(slots=True)
class State:
    """Registers; `loose` says of (row, lane) and `loose_scalars` of a number what needn't be the same bit by bit."""

    v: list[list[int]]
    s: list[int]
    scc: int = 0
    loose: dict[tuple[int, int], Loose] = field(default_factory=dict)
    loose_scalars: dict[int, Loose] = field(default_factory=dict)

    @property
    def exec(self) -> int:
        return self.s[EXEC]

    def active(self, lane: int) -> bool:
        return bool(self.s[EXEC] >> lane & 1)

    def put(self, row: int, lane: int, bits: int, width: int = 32) -> None:
        """Writes 32 or 64 bits of a lane."""
        for part in range(width // 32):
            self.v[row + part][lane] = bits >> 32 * part & M32
            self.loose.pop((row + part, lane), None)

    def put_scalar(self, row: int, bits: int, width: int = 32) -> None:
        for part in range(width // 32):
            self.s[row + part] = bits >> 32 * part & M32

    def wide(self, row: int, lane: int, width: int) -> int:
        return sum(self.v[row + part][lane] << 32 * part for part in range(width // 32))


class Operand(NamedTuple):
    """What an operand names: a file and a number, or a constant; and what surrounds it."""

    file: str  # v, s, or nothing for a constant
    row: int
    size: int
    half: int  # 0 or 1 of a register of lanes; -1 where none is named
    text: str
    negated: bool
    bars: bool


def read_operand(text: str) -> Operand:
    negated = bars = False
    if text.startswith("neg("):
        text, negated = text[4:-1], True
    elif text.startswith(("-v", "-s", "-|", "-m0")):
        text, negated = text[1:], True
    if text.startswith("|"):
        text, bars = text[1:-1], True
    if text in NAMED:
        return Operand("s", NAMED[text], 2 if text in PAIRS else 1, -1, text, negated, bars)
    found = _REGISTER.fullmatch(text)
    if found is None:
        return Operand("", 0, 0, -1, text, negated, bars)
    first, last = int(found[2] or found[3]), int(found[2] or found[4])
    half = {None: -1, ".l": 0, ".h": 1}[found[5]]
    return Operand(found[1], first, last - first + 1, half, text, negated, bars)


@dataclass(frozen=True, slots=True)
class Text:
    """An instruction taken apart."""

    name: str
    encoding: str  # e32, e64, dpp, e64_dpp or nothing
    operands: tuple[Operand, ...]
    modifiers: dict[str, str]

    @property
    def crosses(self) -> bool:
        return self.encoding.endswith("dpp")

    def bits(self, name: str, count: int, default: int = 0) -> list[int]:
        given = self.modifiers.get(name)
        found = [int(each) for each in given.strip("[]").split(",")] if given else []
        return found + [default] * (count - len(found))

    def number(self, name: str, default: int = 0) -> int:
        return int(self.modifiers.get(name, str(default)), 0)


def taken_apart(text: str) -> Text:
    opcode, _, rest = text.strip().partition(" ")
    operands = [each.strip() for each in _SPLIT.split(rest)] if rest else []
    words = operands[-1].split() if operands else [""]
    if operands:
        operands[-1] = words[0]
    found = _FORM.search(opcode)
    modifiers = dict(each.partition(":")[::2] for each in words[1:])
    name = opcode[: found.start()] if found else opcode
    return Text(name, found[1] if found else "", tuple(map(read_operand, operands)), modifiers)


def constant(text: str, kind: str) -> int:
    """The bits of a constant as a type; types of 16 bits get a register's 32."""
    wide = WIDTHS[kind] == 64
    if text.startswith("lit64("):
        return int(text[6:-1], 16)
    if text.startswith("0x"):
        value = int(text, 16)
        narrow = value <= M32
        if kind == "f64" and narrow:
            return value << 32
        return n.signed(value, 32) & M64 if kind == "i64" and narrow else value
    if "." in text:
        form = {"f16": "f16", "bf16": "bf16", "f64": "f64", "u64": "f64", "i64": "f64"}.get(kind, "f32")
        return n.pack(n.from_float(float(text)), form)
    return int(text) & (M64 if wide else M32)


def scalar_bits(state: State, operand: Operand, kind: str) -> int:
    """The 32 or 64 bits of a scalar register or a constant."""
    if operand.text == "src_scc":
        return state.scc
    if operand.text in {"src_vccz", "src_execz"}:
        return int(state.s[VCC if "vcc" in operand.text else EXEC] == 0)
    if operand.text == "null":
        return 0
    if operand.file == "s":
        wide = WIDTHS[kind] == 64 and operand.size > 1
        return state.s[operand.row] | (state.s[operand.row + 1] << 32 if wide else 0)
    return constant(operand.text, kind)


def raw(state: State, operand: Operand, kind: str, lane: int) -> int:
    """The bits of an operand in a lane: 64, or 32; of a half that is named, those 16."""
    if operand.file != "v":
        return scalar_bits(state, operand, kind)
    bits = state.wide(operand.row, lane, 64 if WIDTHS[kind] == 64 else 32)
    return bits >> 16 & 0xFFFF if operand.half == 1 else bits & 0xFFFF if operand.half == 0 else bits


def signed_bits(bits: int, operand: Operand, width: int) -> int:
    """With the operand's bars and sign."""
    bits &= (1 << width) - 1
    if operand.bars:
        bits &= (1 << width - 1) - 1
    return bits ^ (operand.negated << width - 1)


def decoded(bits: int, kind: str) -> Any:
    width = WIDTHS[kind]
    bits &= (1 << width) - 1
    if kind in n.FORMATS:
        return n.unpack(bits, kind)
    return n.signed(bits, width) if kind[0] == "i" else bits


def encoded(value: Any, kind: str) -> int:
    return n.pack(value, kind) if isinstance(value, Num) else int(value) & (1 << WIDTHS[kind]) - 1


def source(state: State, text: Text, place: int, kind: str, lane: int, *, first: int = 1) -> Any:
    """The value of an operand, by its number, in a lane; the `first` source comes from another one with DPP."""
    operand = text.operands[place]
    if text.crosses and place == first:
        other = crossed(text, lane)
        fetched = other is not None and (state.active(other) or "fi" in text.modifiers)
        bits = raw(state, operand, kind, other or 0) if fetched else 0
    else:
        bits = raw(state, operand, kind, lane)
    return decoded(signed_bits(bits, operand, WIDTHS[kind]), kind)


def crossed(text: Text, lane: int) -> int | None:
    """Whom a lane reads by DPP, or None if that is outside of its row."""
    row, place = lane & 16, lane & 15
    for name, value in text.modifiers.items():
        number = int(value) if value.isdigit() else 0
        if name == "dpp8":
            return lane - lane % 8 + text.bits(name, 8)[lane % 8]
        if name == "quad_perm":
            return lane - lane % 4 + text.bits(name, 4)[lane % 4]
        if name in {"row_shl", "row_shr"}:
            to = place + (number if name == "row_shl" else -number)
            return row + to if 0 <= to < 16 else None
        moved = {
            "row_ror": (place - number) % 16,
            "row_mirror": 15 - place,
            "row_half_mirror": place ^ 7,
            "row_share": number,
            "row_xmask": place ^ number,
        }
        if name in moved:
            return row + moved[name]
    raise AssertionError(text)


def writes(state: State, text: Text, lane: int) -> bool:
    """Does a lane write its result?"""
    if not state.active(lane) or not text.crosses or "dpp8" in text.modifiers:
        return state.active(lane)
    rows, banks = text.number("row_mask", 15), text.number("bank_mask", 15)
    if not (rows >> lane // 16 & 1 and banks >> lane % 16 // 4 & 1):
        return False
    other = crossed(text, lane)
    reached = other is not None and (state.active(other) or "fi" in text.modifiers)
    return reached or text.number("bound_ctrl") == 1


def clamped(value: Any, kind: str) -> Any:
    if isinstance(value, Num):
        if value.nan or (value.negative and not value.zero):
            return n.ZERO
        return n.number(1) if value.inf or value.size > 1 else value
    width = WIDTHS[kind]
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "i" else (0, (1 << width) - 1)
    return min(max(value, low), high)


def rounded(value: Any, kind: str) -> Any:
    return n.unpack(n.pack(value, kind), kind) if isinstance(value, Num) else value


def finished(value: Any, kind: str, text: Text) -> Any:
    """Clamped, if the instruction says so."""
    return clamped(rounded(value, kind), kind) if "clamp" in text.modifiers else value


def store(state: State, place: tuple[Operand, int], value: Any, kind: str, ulps: int = 0) -> None:
    """Writes a lane's result, which may be off by so many ulps."""
    target, lane = place
    width, bits = WIDTHS[kind], encoded(value, kind)
    parts: Loose = [(0, kind, ulps)] if kind in n.FORMATS else []
    if width == 16 and target.half >= 0:
        kept = state.v[target.row][lane]
        bits = bits << 16 | kept & 0xFFFF if target.half else bits | kept & 0xFFFF_0000
        parts = [(16 * target.half, form, ulps) for _, form, ulps in parts]
        if (target.row, lane) in state.loose:
            parts += [each for each in state.loose[target.row, lane] if each[0] != 16 * target.half]
    state.put(target.row, lane, bits, 64 if width == 64 else 32)
    if parts:
        state.loose[target.row, lane] = parts


def loose_scalar(kind: str, ulps: int) -> Loose:
    """Of a float in a scalar register; no manual says what a short one leaves in the upper half."""
    return [(0, kind, ulps), (16, ANY_HALF, 0)] if WIDTHS[kind] == 16 else [(0, kind, ulps)]
