"""One vector instruction on plain integers, lane by lane: takes its assembly text and registers, gives them changed.

Encodings and modifiers are read here a second time; what an opcode computes is in `functions` and `special`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.isa.plain import numbers as n
from tests.isa.plain.functions import INTEGERS, PAIRS, REALS, Spec
from tests.isa.plain.numbers import Num

LANES = range(64)
WIDTHS = {"u16": 16, "i16": 16, "f16": 16, "bf16": 16, "u32": 32, "i32": 32, "f32": 32, "u64": 64, "i64": 64, "f64": 64}
NAMED = {"vcc": 106, "vcc_lo": 106, "vcc_hi": 107, "m0": 124, "exec": 126, "exec_lo": 126, "exec_hi": 127}
_SPLIT = re.compile(r",\s*(?![^\[]*\])")


@dataclass(slots=True)
class State:
    """Registers as integers; `loose` says of (register, lane) which parts may be another NaN or some ulps away."""

    v: list[list[int]]
    s: list[int]
    scc: int = 0
    arch: str = "gfx950"
    loose: dict[tuple[int, int], list[tuple[int, str, int]]] = field(default_factory=dict)

    @property
    def exec(self) -> int:
        return self.s[126] | self.s[127] << 32

    def active(self, lane: int) -> bool:
        return bool(self.exec >> lane & 1)

    def put(self, row: int, lane: int, bits: int, width: int = 32) -> None:
        """Writes 32 or 64 bits of a lane; nothing about them is loose any more."""
        for part in range(width // 32):
            self.v[row + part][lane] = bits >> 32 * part & 0xFFFF_FFFF
            self.loose.pop((row + part, lane), None)

    def mask(self, first: int) -> int:
        return self.s[first] | self.s[first + 1] << 32

    def put_mask(self, first: int, bits: int) -> None:
        self.s[first], self.s[first + 1] = bits & 0xFFFF_FFFF, bits >> 32


@dataclass(frozen=True, slots=True)
class Text:
    """An instruction taken apart: name, encoding, operands, modifiers."""

    name: str
    encoding: str
    operands: tuple[str, ...]
    modifiers: dict[str, str]

    def bits(self, name: str, count: int, default: int = 0) -> list[int]:
        given = self.modifiers.get(name)
        return [int(each) for each in given.strip("[]").split(",")] if given else [default] * count


def taken_apart(text: str) -> Text:
    opcode, _, rest = text.strip().partition(" ")
    operands = [each.strip() for each in _SPLIT.split(rest)] if rest else []
    words = operands[-1].split() if operands else [""]
    if operands:
        operands[-1] = words[0]
    found = re.search(r"_(e32|e64|dpp|sdwa)$", opcode)
    modifiers = dict(each.partition(":")[::2] for each in words[1:])
    name = opcode[: found.start()] if found else opcode
    return Text(name, found[1] if found else "", tuple(operands), modifiers)


def inner(text: str) -> tuple[str, bool, bool, bool]:
    """The operand without what surrounds it; whether it is negated, in bars, and sign-extended."""
    extended = text.startswith("sext(")
    text = text[5:-1] if extended else text
    negated = False
    if text.startswith("neg("):
        text, negated = text[4:-1], True
    elif text.startswith(("-v", "-s", "-|", "-a", "-vcc")):
        text, negated = text[1:], True
    bars = text.startswith("|")
    return text.strip("|"), negated, bars, extended


def register(text: str) -> tuple[str, int] | None:
    if text in NAMED:
        return "s", NAMED[text]
    found = re.fullmatch(r"([vsa])(?:(\d+)|\[(\d+):\d+\])", text)
    if found is None:
        return None
    first = int(found[2] or found[3])
    return ("s", first) if found[1] == "s" else ("v", first + 256 * (found[1] == "a"))


def constant(text: str, kind: str) -> int:
    """The bits of a constant as a type; 16-bit types get a register's 32."""
    wide = WIDTHS[kind] == 64
    if text.startswith("0x"):
        value = int(text, 16)
        return value << 32 if kind == "f64" else n.signed(value, 32) & (1 << 64) - 1 if kind == "i64" else value
    if "." in text:
        form = {"f16": "f16", "f64": "f64", "u64": "f64", "i64": "f64"}.get(kind, "f32")
        return n.pack(n.from_float(float(text)), form)
    return int(text) & (1 << (64 if wide else 32)) - 1


def raw(state: State, text: str, kind: str, lane: int) -> int:
    """The 32 or 64 bits that an operand has in a lane."""
    wide = WIDTHS[kind] == 64
    if text == "src_scc":
        return state.scc
    if text in {"src_vccz", "src_execz"}:
        return int(state.mask(106 if "vcc" in text else 126) == 0)
    where = register(text)
    if where is None:
        return constant(text, kind)
    bank, first = where
    if bank == "s":
        pair = wide and ("[" in text or text in {"vcc", "exec"})
        return state.mask(first) if pair else state.s[first]
    return state.v[first][lane] | (state.v[first + 1][lane] << 32 if wide else 0)


def decoded(bits: int, kind: str) -> Any:
    width = WIDTHS[kind]
    bits &= (1 << width) - 1
    if kind in n.FORMATS:
        return n.unpack(bits, kind)
    return n.signed(bits, width) if kind[0] == "i" else bits


def encoded(value: Any, kind: str) -> int:
    return n.pack(value, kind) if isinstance(value, Num) else int(value) & (1 << WIDTHS[kind]) - 1


def part_of(bits: int, selection: str) -> tuple[int, int]:
    """The selected part and its width."""
    if selection == "DWORD":
        return bits, 32
    unit, _, number = selection.partition("_")
    width = 8 if unit == "BYTE" else 16
    return bits >> width * int(number) & (1 << width) - 1, width


def source(state: State, text: Text, place: int, kind: str, lane: int, *, first: int = 1) -> Any:
    """The value of a source in a lane."""
    name, negated, bars, extended = inner(text.operands[first + place])
    if text.encoding == "dpp" and place == 0:
        other = dpp_source(text, lane)
        bits = raw(state, name, kind, other) if other is not None and state.active(other) else 0
    else:
        bits = raw(state, name, kind, lane)
    width = WIDTHS[kind]
    if text.encoding == "sdwa" and place < 2:
        bits, part = part_of(bits, text.modifiers.get(f"src{place}_sel", "DWORD"))
        bits = n.signed(bits, part) & 0xFFFF_FFFF if extended else bits
    elif width == 16 and "op_sel" in text.modifiers:
        bits = bits >> 16 if text.bits("op_sel", 4)[place] else bits
    bits &= (1 << width) - 1
    if bars:
        bits &= (1 << width - 1) - 1
    return decoded(bits ^ (negated << width - 1), kind)


def dpp_source(text: Text, lane: int) -> int | None:
    """Whom a lane reads, or None if that is outside."""
    row, place = divmod(lane, 16)
    for name, value in text.modifiers.items():
        number = int(value) if value.isdigit() else 0
        if name == "quad_perm":
            return lane - lane % 4 + int(value.strip("[]").split(",")[lane % 4])
        if name in {"row_shl", "row_shr"}:
            to = place + number if name == "row_shl" else place - number
            return row * 16 + to if 0 <= to < 16 else None
        if name == "row_ror":
            return row * 16 + (place + 16 - number) % 16
        if name in {"wave_shl", "wave_shr"}:
            to = lane + 1 if name == "wave_shl" else lane - 1
            return to if 0 <= to < 64 else None
        if name in {"wave_rol", "wave_ror"}:
            return (lane + 1) % 64 if name == "wave_rol" else (lane + 63) % 64
        if name == "row_mirror":
            return row * 16 + 15 - place
        if name == "row_half_mirror":
            return lane ^ 7
        if name == "row_bcast":
            return (row * 16 - 1 if row else None) if number == 15 else (31 if row >= 2 else None)
        if name == "row_newbcast":
            return row * 16 + number
    raise AssertionError(text)


def writes(state: State, text: Text, lane: int) -> bool:
    """Does a lane write its result?"""
    if not state.active(lane) or text.encoding != "dpp":
        return state.active(lane)
    rows, banks = int(text.modifiers["row_mask"], 16), int(text.modifiers["bank_mask"], 16)
    if not (rows >> lane // 16 & 1 and banks >> lane % 16 // 4 & 1):
        return False
    other = dpp_source(text, lane)
    return text.modifiers.get("bound_ctrl") == "1" or (other is not None and state.active(other))


def clamped(value: Any, spec: Spec) -> Any:
    if isinstance(value, Num):
        if value.nan or (value.negative and not value.zero):
            return n.ZERO
        return n.number(1) if value.inf or value.size > 1 else value
    width = WIDTHS[spec.result]
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if spec.result[0] == "i" else (0, (1 << width) - 1)
    return min(max(value, low), high)


def store(state: State, text: Text, lane: int, value: Any, spec: Spec) -> None:
    """Writes a result where the encoding and op_sel say."""
    place = register(text.operands[0])
    assert place is not None
    row, width = place[1], WIDTHS[spec.result]
    bits, old = encoded(value, spec.result), state.v[row][lane]
    loose = [(0, spec.result, spec.ulps)] if spec.result in n.FORMATS else []
    if text.encoding == "sdwa" and width < 64:
        bits, loose = _placed(bits, old, text, loose)
    elif spec.halves:
        high = text.bits("op_sel", 4)[-1]
        bits = bits << 16 | old & 0xFFFF if high else bits | old & 0xFFFF_0000
        loose = [(16 * high, form, ulps) for _, form, ulps in loose]
    state.put(row, lane, bits, 64 if width == 64 else 32)
    if loose:
        state.loose[row, lane] = loose


def _placed(bits: int, old: int, text: Text, loose: list[tuple[int, str, int]]) -> tuple[int, Any]:
    selection, unused = text.modifiers.get("dst_sel", "DWORD"), text.modifiers.get("dst_unused", "UNUSED_PAD")
    if selection == "DWORD":
        return bits, loose
    unit, _, number = selection.partition("_")
    width = 8 if unit == "BYTE" else 16
    shift = width * int(number)
    part = bits & (1 << width) - 1
    moved = [(shift, form, ulps) for _, form, ulps in loose if WIDTHS[form] == width]
    if unused == "UNUSED_SEXT":
        return n.signed(part, width) << shift & 0xFFFF_FFFF, []
    rest = old & ~((1 << width) - 1 << shift) if unused == "UNUSED_PRESERVE" else 0
    return part << shift | rest, moved


def run_function(state: State, text: Text, spec: Spec, *, accumulates: bool = False) -> None:
    """An opcode that computes a function per lane; with `accumulates` its last source is its destination."""
    if accumulates:
        text = Text(text.name, text.encoding, (*text.operands, text.operands[0]), text.modifiers)
    results = {}
    for lane in LANES:
        if writes(state, text, lane):
            values = [source(state, text, place, kind, lane) for place, kind in enumerate(spec.sources)]
            value = spec.function(*values)
            results[lane] = clamped(rounded(value, spec.result), spec) if "clamp" in text.modifiers else value
    for lane, value in results.items():
        store(state, text, lane, value, spec)


def rounded(value: Any, kind: str) -> Any:
    return n.unpack(n.pack(value, kind), kind) if isinstance(value, Num) else value


FUNCTIONS = {**INTEGERS, **REALS}
ON_ITSELF = {
    "v_fmac_f32": "v_fma_f32", "v_fmac_f64": "v_fma_f64", "v_dot2c_i32_i16": "v_dot2_i32_i16",
    "v_dot4c_i32_i8": "v_dot4_i32_i8", "v_dot8c_i32_i4": "v_dot8_i32_i4",
}  # fmt: skip
PACKED = {
    **{f"v_pk_{name}": spec for name, spec in PAIRS.items()},
    **{f"v_pk_{name}_f16": REALS[f"v_{name}_f16"] for name in ("add", "mul", "min", "max", "fma")},
    **{f"v_pk_{name}_f16": REALS[f"v_{name}_f32"] for name in ("minimum3", "maximum3")},
    "v_pk_fmac_f16": REALS["v_fma_f16"],
}
