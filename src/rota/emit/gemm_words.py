"""The words of a GEMM kernel: takes a tile, gives the types and macros in which its instructions are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rota.emit.gemm_tile import GemmTile
from rota.emit.sync_text import sync_words

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
    names, factors = "a, b", '"v"(a), "v"(b)'
    if tile.pieces_per_step > 1:
        joined = ", ".join(map(str, range(_factor_registers(tile))))
        yield f"#define ROTA_JOIN(x, y) ((factor)__builtin_shufflevector(x, y, {joined}))"
        names, factors = "a, a_next, b, b_next", '"v"(ROTA_JOIN(a, a_next)), "v"(ROTA_JOIN(b, b_next))'
    modifiers = "".join(f" {each}" for each in tile.element.modifiers)
    yield (
        f'#define ROTA_MFMA(c, {names}) asm volatile("{tile.instruction} %0, %1, %2, %0{modifiers}" : "+{kept}"(c) '
        f": {factors}); "
        "ROTA_FENCE"
    )
    yield f'#define ROTA_PIN(c) asm volatile("" : "+{kept}"(c));'
    stores = " ".join(
        f"out[(u64)(row + {register // 4 * 4 * tile.lane_groups + register % 4}) * N + column] = value[{register}];"
        for register in range(tile.part_registers)
    )
    yield f"#define ROTA_STORE(value, row, column) {stores}"


def gemm_types(tile: GemmTile) -> Iterator[str]:
    """Types, local to a kernel."""
    yield "typedef unsigned int u32;"
    yield "typedef unsigned long long u64;"
    yield "typedef u32 resource __attribute__((ext_vector_type(4)));"
    yield f"typedef u32 piece __attribute__((ext_vector_type({tile.read_bytes // tile.register_bytes})));"
    if tile.pieces_per_step > 1:
        yield f"typedef u32 factor __attribute__((ext_vector_type({_factor_registers(tile)})));"
    yield f"typedef float part __attribute__((ext_vector_type({tile.part_registers})));"


def macros(words: Iterable[str]) -> list[str]:
    """The names that lines define."""
    return [match[1] for line in words if (match := _MACRO.match(line))]


def _factor_registers(tile: GemmTile) -> int:
    return tile.pieces_per_step * tile.read_bytes // tile.register_bytes
