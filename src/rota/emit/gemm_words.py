"""The words of a GEMM kernel: takes a tile, gives the types and macros in which its instructions are written."""

from __future__ import annotations

from collections.abc import Iterator

from rota.emit.gemm_tile import GemmTile
from rota.emit.sync_text import sync_words
from rota.targets.rates import REGISTER_BYTES


def gemm_words(tile: GemmTile) -> Iterator[str]:
    """Types and macros."""
    kept = "a" if tile.accumulates_in_agprs else "v"
    fragment = tile.read_bytes // REGISTER_BYTES
    yield "#define LDS __attribute__((address_space(3)))"
    yield "typedef unsigned int u32;"
    yield "typedef unsigned long long u64;"
    yield "typedef u32 resource __attribute__((ext_vector_type(4)));"
    yield f"typedef u32 piece __attribute__((ext_vector_type({fragment})));"
    yield f"typedef float part __attribute__((ext_vector_type({tile.part_registers})));"
    yield from sync_words()
    yield (
        "#define DMA(rsrc, lds, lane_offset, offset) "
        'asm volatile("s_add_u32 m0, %0, %1\\n\\ts_nop 0\\n\\t'
        f'{tile.dma_instruction} %2, %3, %4 offen lds" '
        ':: "s"(lds_wave), "i"(lds), "v"(lane_offset), "s"(rsrc), "s"(offset) : "memory", "m0", "scc"); FENCE'
    )
    yield "#define READ(target, lane, lds) target = *(LDS const piece*)((lane) + (lds)); FENCE"
    names, factors = "a, b", '"v"(a), "v"(b)'
    if tile.pieces_per_step > 1:
        registers = tile.pieces_per_step * fragment
        yield f"typedef u32 factor __attribute__((ext_vector_type({registers})));"
        yield f"#define JOIN(x, y) ((factor)__builtin_shufflevector(x, y, {', '.join(map(str, range(registers)))}))"
        names, factors = "a, a_next, b, b_next", '"v"(JOIN(a, a_next)), "v"(JOIN(b, b_next))'
    yield (
        f'#define MFMA(c, {names}) asm volatile("{tile.instruction} %0, %1, %2, %0" : "+{kept}"(c) : {factors}); FENCE'
    )
    yield f'#define PIN(c) asm volatile("" : "+{kept}"(c));'
