"""Sums with a carry per lane: takes an instruction, gives a `Step` that reads and writes masks beside its registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.valu.access import access, keeps, parsed
from rota.isa.valu.lane_compare import lane_bits, lanes_of
from rota.isa.valu.modifiers import only
from rota.isa.wave.operand import Operand, reader, scalar_reader, scalar_writer, unknown, writer
from rota.isa.wave.step import Step, make_step

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

_SUMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "v_add_co_u32": lambda a, b, c: a + b + c,
    "v_addc_co_u32": lambda a, b, c: a + b + c,
    "v_sub_co_u32": lambda a, b, c: a - b - c,
    "v_subb_co_u32": lambda a, b, c: a - b - c,
    "v_subrev_co_u32": lambda a, b, c: b - a - c,
    "v_subbrev_co_u32": lambda a, b, c: b - a - c,
}


def decode_carry(instruction: Instruction, opcode: str) -> Step | None:
    """The step of a sum with carry or of a selection by mask, or None; `opcode` comes without its encoding."""
    if opcode in _SUMS:
        return _carried(instruction, _SUMS[opcode])
    if opcode in {"v_mad_u64_u32", "v_mad_i64_i32"}:
        return _multiply_add(instruction, signed="i64" in opcode)
    return _selected(instruction) if opcode == "v_cndmask_b32" else None


def _carried(instruction: Instruction, compute: Callable[[Any, Any, Any], Any]) -> Step:
    """Adds or subtracts with a carry per lane, out of it and sometimes into it."""
    target, carry, *rest = parsed(instruction)
    form = access(instruction, target, "u", tuple(rest[:2]), "uu", first=2)
    if form.clamp or form.crossing is not None or "op_sel" in instruction.text:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    first, second = form.readers
    into = scalar_reader(rest[2], wide=True) if len(rest) > 2 else None
    put, out = form.put, scalar_writer(carry, wide=True)
    assert put is not None  # noqa: S101  # a target was given

    def act(wave: Wave) -> None:
        more = lanes_of(into(wave)).astype(np.int64) if into is not None else np.int64(0)
        total = compute(np.asarray(first(wave), np.int64), np.asarray(second(wave), np.int64), more)
        put(wave, np.broadcast_to(total, LANES).astype(np.uint32))
        out(wave, lane_bits(np.broadcast_to((total < 0) | (total >> 32 != 0), LANES) & wave.active))

    kept = (target,) if keeps(instruction) else ()
    return make_step(instruction, act, reads=(*rest, *kept), writes=(target, carry))


def _multiply_add(instruction: Instruction, *, signed: bool) -> Step:
    """The 64-bit sum of a 32-bit product; the carry is bit 64 of the sum of 65-bit numbers."""
    only(instruction, ())
    target, carry, left, right, addend = parsed(instruction)
    narrow, wide, kind = ("i", "I", np.int64) if signed else ("u", "U", np.uint64)
    first, second, third = reader(left, narrow), reader(right, narrow), reader(addend, wide)
    put, out = writer(target, wide), scalar_writer(carry, wide=True)

    def act(wave: Wave) -> None:
        product = np.broadcast_to(np.asarray(first(wave), kind) * np.asarray(second(wave), kind), LANES)
        more = np.broadcast_to(third(wave), LANES)
        total = product + more
        if signed:
            over = (product ^ total) & (more ^ total) < 0
            top = (total < 0) ^ over
        else:
            top = total < product
        put(wave, total)
        out(wave, lane_bits(top & wave.active))

    return make_step(instruction, act, reads=(left, right, addend), writes=(target, carry))


def _selected(instruction: Instruction) -> Step:
    target, no, yes, which = parsed(instruction)
    form = access(instruction, target, "u", (no, yes), "bb")
    if form.clamp or "op_sel" in instruction.text:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    when_clear, when_set = form.readers
    put, bits = form.put, scalar_reader(which, wide=True)
    assert put is not None  # noqa: S101  # a target was given
    kept: tuple[Operand, ...] = (target,) if keeps(instruction) else ()
    return make_step(
        instruction,
        lambda wave: put(wave, np.where(lanes_of(bits(wave)), when_set(wave), when_clear(wave))),
        reads=(no, yes, which, *kept),
        writes=(target,),
    )
