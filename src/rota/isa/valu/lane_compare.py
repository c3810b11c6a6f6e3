"""Vector comparisons: takes a v_cmp or v_cmpx instruction, gives a `Step` that writes a bit per lane."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.valu.access import access, parsed
from rota.isa.valu.floating import signalling
from rota.isa.wave.mode import heeding
from rota.isa.wave.operand import named, scalar_writer, unknown
from rota.isa.wave.step import Step, make_step

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

_NAME = re.compile(
    r"^v_cmp(?P<x>x?)_(?P<order>class|tru|f|t|n?lt|n?le|n?eq|n?gt|n?ge|n?lg|ne|u|o)_(?P<kind>[uif])(?P<bits>16|32|64)$"
)
_KINDS = {
    "u16": "w", "i16": "s", "f16": "h", "u32": "u", "i32": "i", "f32": "f", "u64": "U", "i64": "I", "f64": "d",
}  # fmt: skip
_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "ne": np.not_equal,
    "lg": lambda a, b: (a < b) | (a > b), "nlt": lambda a, b: ~np.less(a, b), "nle": lambda a, b: ~np.less_equal(a, b),
    "neq": np.not_equal, "ngt": lambda a, b: ~np.greater(a, b), "nge": lambda a, b: ~np.greater_equal(a, b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b), "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "f": lambda *_: np.zeros(LANES, np.bool_), "t": lambda *_: np.ones(LANES, np.bool_),
}  # fmt: skip
_ORDERS["tru"] = _ORDERS["t"]
_BIT = np.uint64(1) << np.arange(LANES, dtype=np.uint64)


def lane_bits(lanes: Any) -> int:  # noqa: ANN401
    """A mask with a bit per lane."""
    return int(np.bitwise_or.reduce(np.where(lanes, _BIT, np.uint64(0))))


def lanes_of(bits: int) -> Any:  # noqa: ANN401
    """The lanes that a mask names."""
    return np.uint64(bits) & _BIT != 0


def decode_compare(instruction: Instruction, opcode: str) -> Step | None:
    """The step of a comparison, or None; `opcode` is the instruction's without its encoding."""
    found = _NAME.match(opcode)
    if found is None:
        return None
    target, *sources = parsed(instruction)
    kind = _KINDS[found["kind"] + found["bits"]]
    is_class = found["order"] == "class"
    form = access(instruction, None, "u", tuple(sources), kind + ("u" if is_class else kind))
    if form.clamp or "op_sel" in instruction.text:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    left, right = map(heeding, form.readers) if kind == "f" and not is_class else form.readers
    order, put = _of_class if is_class else _ORDERS[found["order"]], scalar_writer(target, wide=True)
    new_exec = scalar_writer(named("exec"), wide=True)

    def act(wave: Wave) -> None:
        bits = lane_bits(np.broadcast_to(order(left(wave), right(wave)), LANES) & wave.active)
        put(wave, bits)
        if found["x"]:
            new_exec(wave, bits)

    written = (target, named("exec")) if found["x"] else (target,)
    return make_step(instruction, act, reads=tuple(sources), writes=written)


def _of_class(a: Any, wanted: Any) -> Any:  # noqa: ANN401
    """Is it of one of the wanted classes?

    Bit 0 is for signalling NaNs, 1 for quiet ones, 2 to 5 for negative numbers from infinity to zero, and 6 to 9 for
    positive ones from zero to infinity.
    """
    values = np.asarray(a)
    tiny = np.finfo(values.dtype).tiny
    size = np.abs(values)
    rank = np.where(np.isinf(values), 3, np.where(size >= tiny, 2, np.where(size > 0, 1, 0)))
    place = np.where(np.signbit(values), 5 - rank, 6 + rank)
    place = np.where(np.isnan(values), np.where(signalling(values), 0, 1), place)
    return np.asarray(wanted).astype(np.int64) >> place & 1 == 1
