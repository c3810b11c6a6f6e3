"""Types, macros, registers and statements in which a GEMM kernel is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import (
    SCALING_OPCODES,
    BlockAdd,
    Factor,
    GemmTile,
    LdsRead,
    Mfma,
    PairPack,
    PairRead,
    Piece,
    ScaleRead,
)
from rota.emit.text import WORDS, Template

TEMPLATE = Template("rota.emit", "gemm.hip.txt")


PAIR_READ, PACK = "ds_read_b32", "v_perm_b32"
"""What reads a pair of columns of a k, and what makes of two of them a register of one column."""
# B in pairs of columns, as source.
#
# A read brings a lane two columns of one k; of two such k one v_perm_b32 makes a register of the even column,
# another one a register of the odd. No load of half a register takes part: with ECC, as MI300X has it, LLVM doesn't
# count on such a load keeping the other half (`d16PreservesUnusedBits`).

COLUMN_HALVES = (0x05040100, 0x07060302)
"""The bytes that it takes, for the even column and for the odd one."""


def write_statement(binding: GemmBinding, each: LdsRead | ScaleRead | PairRead | PairPack | Mfma | BlockAdd) -> str:
    """Any instruction but a DMA, whose offset is the kernel's own."""
    if isinstance(each, PairRead):
        lane = binding.lane(binding.read_of(each.pair))
        return f"ROTA_READ_PAIR({each.target}, b_lane{lane}, {each.lds})"
    if isinstance(each, PairPack):
        sources = ", ".join(map(str, each.uses))
        return f"ROTA_PACK({each.target}[{each.register}], {sources}, {'ROTA_ODD' if each.part % 2 else 'ROTA_EVEN'})"
    if isinstance(each, ScaleRead):
        return f"ROTA_SCALE_READ({each.target}, {each.operand.value}_scale_lane, {each.lds})"
    if isinstance(each, LdsRead):
        word = "ROTA_READ_TRANSPOSED" if binding.tile.transposes(each.operand) else "ROTA_READ"
        lane = binding.lane(Piece(each.operand, each.part, each.piece))
        return f"{word}({each.target}, {each.operand.value}_lane{lane}, {each.lds})"
    if isinstance(each, Mfma):
        return f"{_mfma_name(binding.tile, each.step)}({', '.join(map(str, (each.block, *each.uses)))})"
    half, scaled, (of_a, of_b) = ("xy", "zw")[each.half], f"scaled[{each.half}]", each.scales
    added = f"ROTA_BLOCK_ADD(c[{each.a_part}][{each.b_part}], {half}, {scaled}, {of_a})"
    return added if each.adds else f"ROTA_BLOCK_SCALE({scaled}, {each.block}, {half}, {of_b})"


def lane_column(binding: GemmBinding) -> str:
    """The column that a lane has of a part's first, in source."""
    return f"lane_row * {binding.column_step}" if binding.column_step > 1 else "lane_row"


# Buffer resources in HIP.
#
# Loads beyond a resource's size give 0, and stores there have no effect.

NOWHERE = "0x80000000u"
"""An offset beyond any buffer resource."""
RAW = "0x00027000"
"""The last word of a resource of bytes."""


def asm_resource(name: str, size: str) -> str:
    """`NAME_global`, from `NAME_base` on, as asm takes it."""
    return f"const resource {name}_global = {{(u32){name}_base, (u32)({name}_base >> 32) & 0xffff, {size}, {RAW}u}};"


def builtin_resource(name: str, size: str) -> str:
    """`NAME_bytes`, the same as builtins take it."""
    return (
        f"const __amdgpu_buffer_rsrc_t {name}_bytes = "
        f"__builtin_amdgcn_make_buffer_rsrc((void*){name}_base, 0, (int){size}, {RAW});"
    )


def element_fetch(tile: GemmTile, name: str, *, element: str, offset: str, lds: str) -> Iterator[str]:
    """What a DMA would bring a lane, one element at a time from `NAME_bytes` to LDS.

    `element` says which one is `from`, of `word` and `e`, and `offset` where that lies, or that it is nowhere; `lds` is
    the lane's place, in bytes.
    """
    size = tile.element.bytes
    return TEMPLATE.lines(
        "fetch",
        tile=tile,
        name=name,
        element=element,
        offset=offset,
        lds=lds,
        words=tile.dma_bytes // tile.register_bytes,
        elements=tile.register_bytes // size,
        type="char" if size == 1 else "short",
        bits=8 * size,
    )


_TWO = 2
_TRANSPOSED = {1: "__builtin_amdgcn_ds_read_tr8_b64_v2i32", 2: "__builtin_amdgcn_ds_read_tr16_b64_v4i16"}
SCALE_DMA = "buffer_load_dword"
"""What brings scales to LDS."""
_MACRO = re.compile(r"^#define (\w+)")


def gemm_words(tile: GemmTile) -> Iterator[str]:
    """Macros, which use the types below and the kernel's `lds_wave`.

    A DMA takes its LDS address from m0, which is an output of the asm: the compiler refuses it as a clobber.
    """
    named = {operand: _name(operand.value, tile.step_pieces(operand)) for operand in Factor}
    names = ", ".join(name for each in named.values() for name in each)
    factors = ", ".join(f'"v"({_join(each)})' for each in named.values())
    if tile.scaled:
        names, factors = f"{names}, a_scale, b_scale", f'{factors}, "v"(a_scale), "v"(b_scale)'
    scale, add = SCALING_OPCODES
    return TEMPLATE.lines(
        "words",
        sync=WORDS.lines("sync"),
        dma=WORDS.lines("dma", name="ROTA_DMA", instruction=tile.dma_instruction, wave="lds_wave"),
        reads=_read_words(tile),
        scales=_scale_words(tile) if tile.has_scales else (),
        sums=TEMPLATE.lines("sums", apart=WORDS.lines("apart"), first=WORDS.lines("first"), scale=scale, add=add)
        if tile.block_sums
        else (),
        mfmas=(line for step in range(_mfma_words(tile)) for line in _mfma_word(tile, step, names, factors)),
        kept="a" if tile.accumulates_in_agprs else "v",
        stores=" ".join(
            f"out[(u64)(row + {register // 4 * 4 * tile.lane_groups + register % 4}) * N + column] = value[{register}];"
            for register in range(tile.part_registers)
        ),
    )


def _read_words(tile: GemmTile) -> Iterator[str]:
    if tile.pairs:
        even, odd = (f"{halves:#010x}" for halves in COLUMN_HALVES)
        yield from TEMPLATE.lines("pairs", apart=WORDS.lines("apart"), even=even, odd=odd, pack=PACK)
    if tile.transposes(Factor.B):
        yield from TEMPLATE.lines("transposed", builtin=_TRANSPOSED[tile.element.bytes])
        if tile.step_pieces(Factor.B) > _TWO:
            yield "#define ROTA_PAIR(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3)"
    if any(tile.step_pieces(operand) > 1 for operand in Factor):
        joined = ", ".join(map(str, range(_factor_registers(tile))))
        yield f"#define ROTA_JOIN(x, y) ((factor)__builtin_shufflevector(x, y, {joined}))"


def _mfma_word(tile: GemmTile, step: int, names: str, factors: str) -> Iterator[str]:
    before, written = ("0", "=&") if tile.block_sums and step == 0 else ("%0", "+")
    return TEMPLATE.lines(
        "mfma",
        tile=tile,
        name=_mfma_name(tile, step),
        names=names,
        before=before,
        scales=", %3, %4" if tile.scaled else "",
        modifiers="".join(f" {each}" for each in tile.modifiers(step)),
        written=written,
        kept="a" if tile.accumulates_in_agprs else "v",
        factors=factors,
    )


def _scale_words(tile: GemmTile) -> Iterator[str]:
    """DMAs and reads of scales; `scale_wave` is where a wave's four bytes a lane begin."""
    yield from WORDS.lines("dma", name="ROTA_SCALE_DMA", instruction=SCALE_DMA, wave="scale_wave")
    held = "__typeof__(target)" if tile.block_sums else {1: "unsigned char", 2: "unsigned short", 4: "u32"}[tile.steps]
    yield f"#define ROTA_SCALE_READ(target, lane, lds) target = *(ROTA_LDS const {held}*)((lane) + (lds)); ROTA_FENCE"


def _mfma_words(tile: GemmTile) -> int:
    """How many differ: by the byte of their scales, or in that the first begins a sum."""
    if tile.block_sums:
        return min(2, tile.steps)
    return tile.steps if tile.scaled else 1


def _mfma_name(tile: GemmTile, step: int) -> str:
    return f"ROTA_MFMA{min(step, _mfma_words(tile) - 1)}" if tile.has_scales else "ROTA_MFMA"


def gemm_types(tile: GemmTile) -> Iterator[str]:
    wider: list[str] = []
    if tile.transposes(Factor.B):
        held, count = {1: ("int", 2), 2: ("short", 4)}[tile.element.bytes]
        wider = [
            _vector("u32", "half", tile.piece_bytes(Factor.B) // tile.register_bytes),
            _vector(held, "turned", count),
        ]
    if any(tile.step_pieces(operand) > 1 for operand in Factor):
        wider.append(_vector("u32", "factor", _factor_registers(tile)))
    return TEMPLATE.lines(
        "types",
        tile=tile,
        piece=tile.read_bytes // tile.register_bytes,
        wider=wider,
        sums=[_vector("float", "pair", 2), _vector("float", "single", 1)] if tile.block_sums else (),
    )


def _vector(element: str, name: str, count: int) -> str:
    return f"typedef {element} {name} __attribute__((ext_vector_type({count})));"


def _name(name: str, count: int) -> list[str]:
    return [name, f"{name}_next", f"{name}_third", f"{name}_fourth"][:count]


def _join(names: Sequence[str]) -> str:
    """One, two or four pieces as a factor; of four, each pair is as wide as a plain read first."""
    if len(names) > _TWO:
        return f"ROTA_JOIN(ROTA_PAIR({', '.join(names[:2])}), ROTA_PAIR({', '.join(names[2:])}))"
    return f"ROTA_JOIN({', '.join(names)})" if len(names) == _TWO else names[0]


def macros(words: Iterable[str]) -> list[str]:
    return [match[1] for line in words if (match := _MACRO.match(line))]


def _factor_registers(tile: GemmTile) -> int:
    return tile.pieces_per_step * tile.read_bytes // tile.register_bytes
