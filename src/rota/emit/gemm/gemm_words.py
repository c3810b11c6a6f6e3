"""Types, macros, registers and statements in which a GEMM kernel is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import (
    SCALING_OPCODES,
    BlockAdd,
    BoundInstruction,
    ColumnPair,
    Factor,
    GemmTile,
    LdsRead,
    Mfma,
    PairPack,
    PairRead,
    Piece,
    ScaleRead,
)
from rota.emit.text import apart_words, sync_words
from rota.targets.architecture import architecture_of


def list_filled(read: LdsRead | ScaleRead | PairRead) -> str:
    if isinstance(read, LdsRead):
        return of_piece(read.operand, read.copy, read.part, read.piece)
    if isinstance(read, ScaleRead):
        return of_scale(read.operand, read.copy, read.part)
    return of_pair(read.pair, read.copy)


def list_multiplied(mfma: Mfma) -> list[str]:
    """Factors and their scales."""
    return [*_of_factor(mfma, Factor.A), *_of_factor(mfma, Factor.B), *scaling(mfma)]


def scaling(each: Mfma | BlockAdd) -> list[str]:
    """The scales of a part of A and of one of B; none where there are none."""
    parts = zip(Factor, (each.a_part, each.b_part), each.scale_copies, strict=False)
    return [of_scale(operand, copy, part) for operand, part, copy in parts]


def of_piece(operand: Factor, copy: int, part: int, piece: int) -> str:
    return f"{operand.value}[{copy}][{part}][{piece}]"


def of_scale(operand: Factor, copy: int, part: int) -> str:
    return f"{operand.value}_scale[{copy}][{part}]"


def of_pair(pair: ColumnPair, copy: int) -> str:
    """One k of a pair of columns of B, as it is read."""
    return f"b_pairs[{copy}][{pair.pair}][{pair.number}]"


def read_for_nothing(instructions: Iterable[BoundInstruction]) -> list[str]:
    """Registers that are read once more than they are used; the compiler would drop the read."""
    unused: dict[str, None] = {}
    for each in instructions:
        for register in _list_used(each):
            unused.pop(register, None)
        if isinstance(each, LdsRead | ScaleRead | PairRead):
            unused[list_filled(each)] = None
    return list(unused)


def _list_used(instruction: BoundInstruction) -> Sequence[str]:
    if isinstance(instruction, Mfma):
        return list_multiplied(instruction)
    if isinstance(instruction, BlockAdd):
        return scaling(instruction)
    if isinstance(instruction, PairPack):
        return [*map(of_pair, instruction.sources, instruction.copies)]
    return ()


def _of_factor(mfma: Mfma, operand: Factor) -> list[str]:
    part, copies = mfma.factor(operand)
    first = mfma.step * len(copies)
    return [of_piece(operand, copy, part, first + number) for number, copy in enumerate(copies)]


PAIR_READ, PACK = "ds_read_b32", "v_perm_b32"
"""What reads a pair of columns of a k, and what makes of two of them a register of one column."""
# B in pairs of columns, as source.
#
# A read brings a lane two columns of one k; of two such k one v_perm_b32 makes a register of the even column,
# another one a register of the odd. No load of half a register takes part: with ECC, as MI300X has it, LLVM doesn't
# count on such a load keeping the other half (`d16PreservesUnusedBits`).

COLUMN_HALVES = (0x05040100, 0x07060302)
"""The bytes that it takes, for the even column and for the odd one."""
_NAMES = ("ROTA_EVEN", "ROTA_ODD")


def pair_words() -> Iterator[str]:
    yield from apart_words()
    yield "#define ROTA_READ_PAIR(target, lane, lds) target = *(ROTA_LDS const u32*)((lane) + (lds)); ROTA_FENCE"
    for name, bytes_ in zip(_NAMES, COLUMN_HALVES, strict=True):
        yield f"#define {name} {bytes_:#010x}u  // these halves of two registers"
    yield (
        "#define ROTA_PACK(target, low, high, halves) "
        f'{{ u32 made; asm volatile("{PACK} %0, %1, %2, %3" : "=v"(made) : "v"(high), "v"(low), "s"(halves)); '
        "target = made; } ROTA_FENCE"
    )


def pair_text(binding: GemmBinding, each: PairRead | PairPack) -> str:
    """A read, or what makes a register of a piece."""
    if isinstance(each, PairRead):
        lane = binding.lane(binding.read_of(each.pair))
        return f"ROTA_READ_PAIR({of_pair(each.pair, each.copy)}, b_lane{lane}, {each.lds})"
    sources = ", ".join(map(of_pair, each.sources, each.copies))
    target = f"b[{each.copy}][{each.part}][{each.piece}][{each.register}]"
    return f"ROTA_PACK({target}, {sources}, {_NAMES[each.part % 2]})"


def lane_column(binding: GemmBinding) -> str:
    """The column that a lane has of a part's first, in source."""
    return f"lane_row * {binding.column_step}" if binding.column_step > 1 else "lane_row"


class PackSpacing:
    """Wait states between a pack and the matrix instruction that reads it: the compiler doesn't look into asm.

    Each instruction between counts as one, waits and barriers as none: the compiler may join them.
    """

    def __init__(self, tile: GemmTile) -> None:
        self._due = architecture_of(tile.machine).hazards.operand.value
        self._made: dict[tuple[int, int, int], int] = {}
        self._now = 0

    def before(self, instruction: BoundInstruction) -> int:
        """Wait states that are missing before an instruction; they count as spent from here on."""
        missing = 0
        if isinstance(instruction, Mfma):
            part, copies = instruction.factor(Factor.B)
            pieces = enumerate(copies, instruction.step * len(copies))
            made = [self._made.get((part, piece, copy), -self._due) for piece, copy in pieces]
            missing = self._missing(made)
        self._now += missing + 1
        if isinstance(instruction, PairPack):
            self._made[instruction.part, instruction.piece, instruction.copy] = self._now
        return missing

    def at_the_end(self) -> int:
        """Wait states that are missing if a matrix instruction that reads any of it follows at once."""
        return self._missing([*self._made.values(), -self._due])

    def _missing(self, made: list[int]) -> int:
        return max(0, max(made) + self._due - self._now)


def read_text(binding: GemmBinding, read: LdsRead | ScaleRead | PairRead) -> str:
    """A piece of A or B, the scales of a part, or a pair of columns."""
    if isinstance(read, PairRead):
        return pair_text(binding, read)
    operand = read.operand
    if isinstance(read, ScaleRead):
        return f"ROTA_SCALE_READ({list_filled(read)}, {operand.value}_scale_lane, {read.lds})"
    word = "ROTA_READ_TRANSPOSED" if binding.tile.transposes(operand) else "ROTA_READ"
    lane = binding.lane(Piece(operand, read.part, read.piece))
    return f"{word}({list_filled(read)}, {operand.value}_lane{lane}, {read.lds})"


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
    size, words = tile.element.bytes, tile.dma_bytes // tile.register_bytes
    yield f"u32 words[{words}];"
    yield '_Pragma("unroll")'
    yield f"for (int word = 0; word < {words}; ++word) {{"
    yield "  words[word] = 0;"
    yield '  _Pragma("unroll")'
    yield f"  for (int e = 0; e < {tile.register_bytes // size}; ++e) {{"
    yield f"    const int from = {element};"
    yield f"    const u32 offset = {offset};"
    yield (
        f"    words[word] |= (u32)(unsigned {'char' if size == 1 else 'short'})"
        f"__builtin_amdgcn_raw_buffer_load_b{8 * size}({name}_bytes, offset, 0, 0) << ({8 * size} * e);"
    )
    yield "  }"
    yield "}"
    yield f"ROTA_LDS u32* const to = (ROTA_LDS u32*)(memory + {lds} + thread * {tile.dma_bytes});"
    yield '_Pragma("unroll")'
    yield f"for (int word = 0; word < {words}; ++word) to[word] = words[word];"


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
    named = {operand: _name(operand.value, tile.step_pieces(operand)) for operand in Factor}
    names = ", ".join(name for each in named.values() for name in each)
    factors = ", ".join(f'"v"({_join(each)})' for each in named.values())
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


def _name(name: str, count: int) -> list[str]:
    """What the pieces of a factor are called in a macro."""
    return [name, f"{name}_next", f"{name}_third", f"{name}_fourth"][:count]


def _join(names: Sequence[str]) -> str:
    """One, two or four pieces as a factor; of four, each pair is as wide as a plain read first."""
    if len(names) > _TWO:
        return f"ROTA_JOIN(ROTA_PAIR({', '.join(names[:2])}), ROTA_PAIR({', '.join(names[2:])}))"
    return f"ROTA_JOIN({', '.join(names)})" if len(names) == _TWO else names[0]


def macros(words: Iterable[str]) -> list[str]:
    """The names that lines define."""
    return [match[1] for line in words if (match := _MACRO.match(line))]


def _factor_registers(tile: GemmTile) -> int:
    return tile.pieces_per_step * tile.read_bytes // tile.register_bytes
