"""The words of a GEMM kernel: takes a tile, gives the types and macros in which its instructions are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rota.emit.gemm.gemm_factors import Factor
from rota.emit.gemm.gemm_instructions import SCALING_OPCODES, BlockAdd
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.gemm.pair_words import pair_words
from rota.emit.text.sync_text import apart_words, sync_words

_TWO = 2
_TRANSPOSED = {1: "__builtin_amdgcn_ds_read_tr8_b64_v2i32", 2: "__builtin_amdgcn_ds_read_tr16_b64_v4i16"}
SCALE_DMA = "buffer_load_dword"
"""What brings scales to LDS."""
_MACRO = re.compile(r"^#define (\w+)")


def gemm_words(tile: GemmTile) -> Iterator[str]:
    """Macros, which use the types below and the kernel's `lds_wave`.

    A DMA takes its LDS address from m0, which is an output of the asm: the compiler refuses it as a clobber.
    """
    kept = "a" if tile.accumulates_in_agprs else "v"
    yield "#define ROTA_LDS __attribute__((address_space(3)))"
    yield from sync_words()
    yield (
        "#define ROTA_DMA(rsrc, lds, lane_offset, offset) "
        '{ u32 m0; asm volatile("s_add_u32 m0, %1, %2\\n\\ts_nop 0\\n\\t'
        f'{tile.dma_instruction} %3, %4, %5 offen lds" : "=&{{m0}}"(m0) '
        ': "s"(lds_wave), "i"(lds), "v"(lane_offset), "s"(rsrc), "s"(offset) : "memory", "scc"); } ROTA_FENCE'
    )
    yield "#define ROTA_READ(target, lane, lds) target = *(ROTA_LDS const piece*)((lane) + (lds)); ROTA_FENCE"
    if tile.pairs:
        yield from pair_words()
    if tile.transposes(Factor.B):
        yield (
            "#define ROTA_READ_TRANSPOSED(target, lane, lds) target = __builtin_bit_cast(half, "
            f"{_TRANSPOSED[tile.element.bytes]}((ROTA_LDS turned*)((lane) + (lds)))); ROTA_FENCE"
        )
        if tile.step_pieces(Factor.B) > _TWO:
            yield "#define ROTA_PAIR(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3)"
    if any(tile.step_pieces(operand) > 1 for operand in Factor):
        joined = ", ".join(map(str, range(_factor_registers(tile))))
        yield f"#define ROTA_JOIN(x, y) ((factor)__builtin_shufflevector(x, y, {joined}))"
    named = {operand: _named(operand.value, tile.step_pieces(operand)) for operand in Factor}
    names = ", ".join(name for each in named.values() for name in each)
    factors = ", ".join(f'"v"({_joined(each)})' for each in named.values())
    if tile.has_scales:
        yield from _scale_words(tile)
    if tile.block_sums:
        yield from _block_words()
    if tile.scaled:
        names, factors = f"{names}, a_scale, b_scale", f'{factors}, "v"(a_scale), "v"(b_scale)'
    for step in range(_mfma_words(tile)):
        yield _mfma_word(tile, step, names, factors)
    yield f'#define ROTA_PIN(c) asm volatile("" : "+{kept}"(c));'
    stores = " ".join(
        f"out[(u64)(row + {register // 4 * 4 * tile.lane_groups + register % 4}) * N + column] = value[{register}];"
        for register in range(tile.part_registers)
    )
    yield f"#define ROTA_STORE(value, row, column) {stores}"


def _mfma_word(tile: GemmTile, step: int, names: str, factors: str) -> str:
    kept = "a" if tile.accumulates_in_agprs else "v"
    scales = ", %3, %4" if tile.scaled else ""
    modifiers = "".join(f" {each}" for each in tile.modifiers(step))
    before, written = ("0", "=&") if tile.block_sums and step == 0 else ("%0", "+")
    return (
        f'#define {_mfma_name(tile, step)}(c, {names}) asm volatile("{tile.instruction} %0, %1, %2, {before}{scales}'
        f'{modifiers}" : "{written}{kept}"(c) : {factors}); ROTA_FENCE'
    )


def _scale_words(tile: GemmTile) -> Iterator[str]:
    """DMAs and reads of scales; `scale_wave` is where a wave's four bytes a lane begin."""
    yield (
        "#define ROTA_SCALE_DMA(rsrc, lds, lane_offset, offset) "
        '{ u32 m0; asm volatile("s_add_u32 m0, %1, %2\\n\\ts_nop 0\\n\\t'
        f'{SCALE_DMA} %3, %4, %5 offen lds" : "=&{{m0}}"(m0) '
        ': "s"(scale_wave), "i"(lds), "v"(lane_offset), "s"(rsrc), "s"(offset) : "memory", "scc"); } ROTA_FENCE'
    )
    held = "__typeof__(target)" if tile.block_sums else {1: "unsigned char", 2: "unsigned short", 4: "u32"}[tile.steps]
    yield f"#define ROTA_SCALE_READ(target, lane, lds) target = *(ROTA_LDS const {held}*)((lane) + (lds)); ROTA_FENCE"


def _block_words() -> Iterator[str]:
    """Half of a block's sum scaled by B's scale, of which a lane has one, and added by A's to C."""
    yield from apart_words()
    yield "#define ROTA_FIRST(x) __builtin_shufflevector((single)(x), (single)(x), 0, -1)  // the other is never read"
    scales, adds = SCALING_OPCODES
    yield (
        f'#define ROTA_BLOCK_SCALE(to, sum, half, scale) asm volatile("{scales} %0, %1, %2 op_sel_hi:[1,0]" : "=v"(to) '
        ': "v"((sum).half), "v"(ROTA_FIRST(scale))); ROTA_FENCE'
    )
    yield (
        "#define ROTA_BLOCK_ADD(c, half, scaled, scale) { pair w = (c).half; "
        f'asm volatile("{adds} %0, %1, %2, %0" : "+v"(w) : "v"(scaled), "v"((scale).half)); (c).half = w; }} ROTA_FENCE'
    )


def _mfma_words(tile: GemmTile) -> int:
    """How many differ: by the byte of their scales, or in that the first begins a sum."""
    if tile.block_sums:
        return min(2, tile.steps)
    return tile.steps if tile.scaled else 1


def _mfma_name(tile: GemmTile, step: int) -> str:
    return f"ROTA_MFMA{min(step, _mfma_words(tile) - 1)}" if tile.has_scales else "ROTA_MFMA"


def block_add_text(add: BlockAdd, total: str, summed: str, scales: Sequence[str]) -> str:
    """One vector instruction on half of a block's sum, with A's scales and B's."""
    half, scaled = ("xy", "zw")[add.half], f"scaled[{add.half}]"
    if add.adds:
        return f"ROTA_BLOCK_ADD({total}, {half}, {scaled}, {scales[0]})"
    return f"ROTA_BLOCK_SCALE({scaled}, {summed}, {half}, {scales[1]})"


def mfma_text(tile: GemmTile, step: int, total: str, *operands: str) -> str:
    """A matrix instruction: what it adds to, its factors, and their scales if it has any."""
    return f"{_mfma_name(tile, step)}({', '.join([total, *operands])})"


def gemm_types(tile: GemmTile) -> Iterator[str]:
    """Types, local to a kernel."""
    yield "typedef unsigned int u32;"
    yield "typedef unsigned long long u64;"
    yield "typedef u32 resource __attribute__((ext_vector_type(4)));"
    yield f"typedef u32 piece __attribute__((ext_vector_type({tile.read_bytes // tile.register_bytes})));"
    if tile.transposes(Factor.B):
        yield f"typedef u32 half __attribute__((ext_vector_type({tile.piece_bytes(Factor.B) // tile.register_bytes})));"
        held, count = {1: ("int", 2), 2: ("short", 4)}[tile.element.bytes]
        yield f"typedef {held} turned __attribute__((ext_vector_type({count})));"
    if any(tile.step_pieces(operand) > 1 for operand in Factor):
        yield f"typedef u32 factor __attribute__((ext_vector_type({_factor_registers(tile)})));"
    yield f"typedef float part __attribute__((ext_vector_type({tile.part_registers})));"
    if tile.block_sums:
        yield "typedef float pair __attribute__((ext_vector_type(2)));"
        yield "typedef float single __attribute__((ext_vector_type(1)));"


def _named(name: str, count: int) -> list[str]:
    """What the pieces of a factor are called in a macro."""
    return [name, f"{name}_next", f"{name}_third", f"{name}_fourth"][:count]


def _joined(names: Sequence[str]) -> str:
    """One, two or four pieces as a factor; of four, each pair is as wide as a plain read first."""
    if len(names) > _TWO:
        return f"ROTA_JOIN(ROTA_PAIR({', '.join(names[:2])}), ROTA_PAIR({', '.join(names[2:])}))"
    return f"ROTA_JOIN({', '.join(names)})" if len(names) == _TWO else names[0]


def macros(words: Iterable[str]) -> list[str]:
    """The names that lines define."""
    return [match[1] for line in words if (match := _MACRO.match(line))]


def _factor_registers(tile: GemmTile) -> int:
    return tile.pieces_per_step * tile.read_bytes // tile.register_bytes
