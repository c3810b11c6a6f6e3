"""What an op of attention is in source: its statement, its opcodes, and what it may follow.

Registers are named by the place that holds them and its copy. Vector and matrix instructions are opaque to the
compiler, which therefore doesn't know how far apart they must be: the wait states between them are counted here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rota.check import bad_field, check_ints, check_types
from rota.emit.gemm.program_form import count_copies
from rota.emit.planning import Issue, Maker
from rota.errors import DeclarationError
from rota.program.entry import Entry, Place, Space
from rota.program.kinds import Phase
from rota.program.loop_spec import LoopSpec, Read
from rota.program.lowered import LoweredProgram
from rota.program.machine import LANES
from rota.values.loop import Loop

# Attention forward as the machine executes it.
#
# Scores are computed transposed (keys x rows of Q), so that a lane holds scores of one row: its running maximum
# takes two exchanges between lanes, and what it makes of the scores is, as it lies in registers, a factor of the
# next product. V is read from LDS transposed. A matrix instruction, an LDS read and a DMA is an op of its own; a
# vector op is what one block of registers takes.

SIDE = 16
"""Rows and columns of a block."""
DEPTH = 32
"""What a matrix instruction sums over."""
BLOCK = 4
"""Registers of a block, of scores or of the output, and of a factor."""
DMA_BYTES = 16
ELEMENT_BYTES = 2
INSTRUCTION = "v_mfma_f32_16x16x32_bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardShape:
    """Rows of Q per wave, keys per tile, head size and waves, for bf16 on MI355X."""

    name: str
    rows: int = 32
    keys: int = 64
    head: int = 128
    waves: int = 4

    def __post_init__(self) -> None:
        check_types(self, {"name": str})
        check_ints(self, ("rows", "keys", "head", "waves"), least=1)

    @property
    def row_blocks(self) -> range:
        return range(self.rows // SIDE)

    @property
    def key_blocks(self) -> range:
        return range(self.keys // SIDE)

    @property
    def key_steps(self) -> range:
        """Matrix instructions that one block of the output takes for a tile."""
        return range(self.keys // DEPTH)

    @property
    def head_steps(self) -> range:
        """Matrix instructions that one block of scores takes."""
        return range(self.head // DEPTH)

    @property
    def head_blocks(self) -> range:
        return range(self.head // SIDE)

    @property
    def tile_bytes(self) -> int:
        return self.keys * self.head * ELEMENT_BYTES

    @property
    def row_bytes(self) -> int:
        return self.head * ELEMENT_BYTES

    @property
    def chunks(self) -> int:
        """What lanes fetch of a row."""
        return self.row_bytes // DMA_BYTES

    @property
    def dma_rows(self) -> int:
        return DMA_BYTES * LANES * self.waves // self.row_bytes

    @property
    def loads(self) -> range:
        return range(self.tile_bytes // (DMA_BYTES * LANES * self.waves))

    def loop(self) -> LoopSpec:
        self._check()
        loop = Loop(self.name, waves=self.waves)
        queries = {(r, j): loop.input(f"q{r}_{j}", registers=BLOCK) for r in self.row_blocks for j in self.head_steps}
        for tile in "KV":
            loop.tile(tile, size=self.tile_bytes)
            for number in self.loads:
                loop.load(tile, name=f"load_{tile}{number}", moved=DMA_BYTES * LANES * self.waves)
        keys = {
            (c, j): loop.fragment(f"k{c}_{j}", "K", registers=BLOCK) for c in self.key_blocks for j in self.head_steps
        }
        values = {
            (t, h): loop.transposed(f"v{t}_{h}", "V", registers=BLOCK, instructions=2)
            for t in self.key_steps
            for h in self.head_blocks
        }
        for r in self.row_blocks:
            self._rows(loop, r, queries, keys, values)
        return loop.build()

    def _check(self) -> None:
        """A rest would be left out; rows change places in LDS in a pattern that each DMA must begin anew."""
        for name, part in (("rows", SIDE), ("keys", DEPTH), ("head", DEPTH)):
            if getattr(self, name) % part:
                raise bad_field(self, name, getattr(self, name), f"a multiple of {part}")
        if self.chunks & (self.chunks - 1) or self.chunks > SIDE:
            raise bad_field(self, "head", self.head, "a power of two, at most 128")
        if self.keys % self.dma_rows or self.dma_rows % self.chunks:
            raise bad_field(self, "keys", self.keys, f"a multiple of {self.dma_rows}, the rows that a DMA brings")

    def _rows(
        self,
        loop: Loop,
        r: int,
        queries: dict[tuple[int, int], str],
        keys: dict[tuple[int, int], str],
        values: dict[tuple[int, int], str],
    ) -> None:
        scores: list[str] = []
        for c in self.key_blocks:
            block = ""
            for j in self.head_steps:
                operands = [keys[c, j], queries[r, j], *([block] if block else [])]
                block = loop.product(f"s{r}_{c}_{j}", operands, registers=BLOCK, instruction=INSTRUCTION, into=block)
            scores.append(block)
        best, before = "", Read(value=f"m{r}", distance=1)
        for c, block in enumerate(scores):
            best = loop.valu(f"b{r}_{c}", [block, best or before], registers=1, instructions=2, into=best)
        best = loop.valu(f"m{r}", [best], registers=1, instructions=6, into=best)
        shift = loop.valu(f"n{r}", [best], registers=2)
        grown = loop.valu(f"g{r}", [before, shift], registers=2)
        alpha = loop.transcendental(f"alpha{r}", [grown], registers=2, into=grown)
        weights: list[str] = []
        for c, block in enumerate(scores):
            less = loop.valu(f"d{r}_{c}", [block, shift], registers=BLOCK, instructions=2, into=block)
            weights.append(loop.transcendental(f"e{r}_{c}", [less], registers=BLOCK, instructions=4, into=less))
        last = f"l{r}_{len(weights)}"
        total = loop.valu(f"l{r}_0", [alpha, Read(value=last, distance=1)], registers=BLOCK, instructions=2)
        for c, weight in enumerate(weights, 1):
            total = loop.valu(f"l{r}_{c}", [total, weight], registers=BLOCK, instructions=2, into=total)
        packed = [
            loop.valu(f"p{r}_{t}", weights[2 * t : 2 * t + 2], registers=BLOCK, instructions=4) for t in self.key_steps
        ]
        for h in self.head_blocks:
            output = loop.valu(
                f"o{r}_{h}_0",
                [alpha, Read(value=f"o{r}_{h}_{len(packed)}", distance=1)],
                registers=BLOCK,
                instructions=2,
            )
            for t, weight in enumerate(packed):
                output = loop.product(
                    f"o{r}_{h}_{t + 1}",
                    [values[t, h], weight, output],
                    registers=BLOCK,
                    instruction=INSTRUCTION,
                    into=output,
                )


def forward_shape(loop: LoopSpec) -> ForwardShape | None:
    """The shape whose loop this is, op by op; None if it is none of these."""
    names = {value.name for value in loop.values}

    def count(name: str) -> int:
        number = 0
        while name.format(number) in names:
            number += 1
        return number

    rows, head, keys = (count(each) for each in ("q{}_0", "q0_{}", "k{}_0"))
    if not (rows and head and keys):
        return None
    shape = ForwardShape(name=loop.name, rows=rows * SIDE, keys=keys * SIDE, head=head * DEPTH, waves=loop.waves)
    try:
        return shape if shape.loop() == loop else None
    except DeclarationError:
        return None


DMA = "buffer_load_dwordx4"
READ = "ds_read_b128"
READ_TRANSPOSED = "ds_read_b64_tr_b16"
_NAME = re.compile(r"(?:load|read|mma|make)_([A-Za-z]+)(\d+(?:_\d+)*)")


class AttentionStatement(NamedTuple):
    """A statement, the opcodes it is made of in order, and what wait states depend on."""

    text: str
    opcodes: tuple[str, ...]
    issue: Issue


class AttentionOps:
    """Gives the statement of each entry."""

    def __init__(self, shape: ForwardShape, program: LoweredProgram) -> None:
        self.shape = shape
        spaces = (Space.LDS, Space.REGISTER)
        self.copies = {name: count for (space, name), count in count_copies(program).items() if space in spaces}

    @property
    def lds_bytes(self) -> int:
        return sum(self.copies[tile] for tile in "KV") * self.shape.tile_bytes

    def start(self, tile: str) -> int:
        """Where the copies of a tile begin in LDS."""
        return 0 if tile == "K" else self.copies["K"] * self.shape.tile_bytes

    def translate(self, entry: Entry, phase: Phase) -> AttentionStatement:
        kind, numbers = _parse_name(entry)
        effect = entry.effect
        if kind in ("K", "V"):
            return AttentionStatement(self._dma(kind, numbers[0], entry, phase), (DMA,), Issue(Maker.MEMORY))
        if kind in ("k", "v"):
            text, opcodes = self._fragment(kind, entry)
            return AttentionStatement(text, opcodes, Issue(Maker.MEMORY, (), effect.writes, len(opcodes)))
        return _compute(entry, kind, numbers)

    def lds(self, entry: Entry) -> int:
        """Where in LDS a DMA's bytes begin, those of the first wave."""
        tile, number = _parse_name(entry)
        copy = entry.effect.writes[0].copy
        return self.start(tile) + copy * self.shape.tile_bytes + number[0] * self.shape.dma_rows * self.shape.row_bytes

    def fragment_bytes(self, entry: Entry) -> tuple[int, tuple[int, ...]]:
        """Through which lane address a fragment is read, and how far after it each of its reads begins."""
        kind, (first, second) = _parse_name(entry)
        row, start = self.shape.row_bytes, entry.effect.reads[0].copy * self.shape.tile_bytes
        if kind == "k":
            return second, (start + first * SIDE * row,)
        start += first * DEPTH * row
        return second, (start, start + SIDE * row)

    def _dma(self, tile: str, number: int, entry: Entry, phase: Phase) -> str:
        name, ahead = tile.lower(), entry.effect.instance.iteration
        terms = [f"{name}_at"] if phase is not Phase.PROLOGUE else []
        terms += [f"{ahead} * {name}_tile"] if ahead else []
        terms += [f"{number} * {name}_dma"] if number else []
        return f"ROTA_DMA({name}_global, {self.lds(entry)}, {name}_fetch, {' + '.join(terms) or '0'})"

    def _fragment(self, kind: str, entry: Entry) -> tuple[str, tuple[str, ...]]:
        target = name_registers(entry.effect.writes[0])
        lane, starts = self.fragment_bytes(entry)
        at = ", ".join(map(str, starts))
        if kind == "k":
            return f"ROTA_READ({target}, k_lane[{lane}], {at})", (READ,)
        return f"ROTA_READ_TRANSPOSED({target}, v_lane[{lane}], {at})", (READ_TRANSPOSED, READ_TRANSPOSED)


class _Word(NamedTuple):
    """How one kind of matrix or vector op is written: its words, opcodes, and what made its result.

    Words name what is read by the letters of its value, `old` what another value leaves in other registers; where it is
    in the op's own, `in_place` is written.
    """

    text: str
    opcodes: tuple[str, ...]
    maker: Maker
    in_place: str = ""


_ROW_BEST = ("v_mov_b32", "v_permlane32_swap_b32", "v_max_f32", "v_mov_b32", "v_permlane16_swap_b32", "v_max_f32")
_BEST = _Word("ROTA_BEST_FROM({made}, {old}, {s[0]})", ("v_max3_f32",) * 2, Maker.VECTOR, "ROTA_BEST({made}, {s[0]})")
_SCALED = _Word(
    "ROTA_SCALED_FROM({made}, {old}, {alpha[0]})",
    ("v_pk_mul_f32",) * 2,
    Maker.PACKED,
    "ROTA_SCALED({made}, {alpha[0]})",
)
_WORDS: Mapping[str, _Word] = {
    "s0": _Word("ROTA_SCORE({made}, {k[0]}, q[{0}][{2}])", (INSTRUCTION,), Maker.MATRIX),
    "s": _Word("ROTA_SCORE_ADD({made}, {k[0]}, q[{0}][{2}])", (INSTRUCTION,), Maker.MATRIX),
    "b": _BEST,
    "m": _Word("ROTA_ROW_BEST({made})", _ROW_BEST, Maker.VECTOR),
    "n": _Word("ROTA_SHIFT({made}, {m[0]})", ("v_mul_f32",), Maker.VECTOR),
    "g": _Word("ROTA_GROWN({made}, {old}, {n[0]})", ("v_fma_f32",), Maker.VECTOR),
    "alpha": _Word("ROTA_ALPHA({made})", ("v_exp_f32",), Maker.TRANSCENDENTAL),
    "d": _Word("ROTA_LESS({made}, {n[0]})", ("v_pk_fma_f32",) * 2, Maker.PACKED),
    "e": _Word("ROTA_WEIGHTS({made})", ("v_exp_f32",) * 4, Maker.TRANSCENDENTAL),
    "l0": _SCALED,
    "l": _Word("ROTA_ADDED({made}, {e[0]})", ("v_pk_add_f32",) * 2, Maker.PACKED),
    "p": _Word("ROTA_PACKED({made}, {e[0]}, {e[1]})", ("v_cvt_pk_bf16_f32",) * 4, Maker.VECTOR),
    "o0": _SCALED,
    "o": _Word("ROTA_OUTPUT({made}, {v[0]}, {p[0]})", (INSTRUCTION,), Maker.MATRIX),
}
"""By the letters of what an op makes; with a 0 the first of several steps, where that differs."""
VECTOR_WORDS = frozenset(opcode for word in _WORDS.values() for opcode in word.opcodes) - {INSTRUCTION}
"""The vector instructions of the loop."""


def _compute(entry: Entry, kind: str, numbers: tuple[int, ...]) -> AttentionStatement:
    effect = entry.effect
    made, read = name_registers(effect.makes[0][0]), dict[str, list[str]]()
    carried: list[str] = []  # from the iteration before
    for place, version in effect.wants:
        own = version.iteration == effect.instance.iteration
        (read.setdefault(version.name.rstrip("_0123456789"), []) if own else carried).append(name_registers(place))
    word = _WORDS.get(f"{kind}0", _WORDS.get(kind)) if numbers[-1] == 0 else _WORDS[kind]
    assert word is not None  # noqa: S101  # the loop is a shape's, op by op
    old = [*carried, *read.get(kind, []), ""][0]
    text = word.in_place if word.in_place and old == made else word.text
    issue = Issue(word.maker, effect.reads, effect.writes, len(word.opcodes))
    return AttentionStatement(text.format(*numbers, made=made, old=old, **read), word.opcodes, issue)


def _parse_name(entry: Entry) -> tuple[str, tuple[int, ...]]:
    """An op's kind and numbers, by its name: the loop is a shape's, op by op."""
    kind, numbers = _NAME.findall(entry.op.name)[0]
    return kind, tuple(map(int, numbers.split("_")))


def name_registers(place: Place) -> str:
    return f"{place.name}_at{place.copy}"
