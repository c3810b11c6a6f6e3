"""What an op of attention is in source: its statement, its opcodes, and what it may follow.

Registers are named by the place that holds them and its copy. Vector and matrix instructions are opaque to the
compiler, which therefore doesn't know how far apart they must be: the wait states between them are counted here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rota.check import bad_field, check_ints, check_types
from rota.emit.wait_states import Issue, Maker
from rota.errors import DeclarationError
from rota.program.entry import Entry, Place, Space
from rota.program.kinds import Phase
from rota.program.loop_spec import LoopSpec, Read
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
VECTOR_WORDS = (
    "v_max3_f32",
    "v_mov_b32",
    "v_permlane32_swap_b32",
    "v_permlane16_swap_b32",
    "v_max_f32",
    "v_mul_f32",
    "v_fma_f32",
    "v_exp_f32",
    "v_pk_fma_f32",
    "v_pk_mul_f32",
    "v_pk_add_f32",
    "v_cvt_pk_bf16_f32",
)
"""The vector instructions of the loop."""
_NAME = re.compile(r"(?:load|read|mma|make)_([A-Za-z]+)(\d+(?:_\d+)*)")


class AttentionStatement(NamedTuple):
    """A statement, the opcodes it is made of in order, and what wait states depend on."""

    text: str
    opcodes: tuple[str, ...]
    issue: Issue


class _Operands(NamedTuple):
    """The values of an op: what it reads by name, with `before` for the one of the iteration before; what it makes."""

    read: Mapping[str, str]
    before: Mapping[str, str]
    made: str


class AttentionOps:
    """Gives the statement of each entry."""

    def __init__(self, shape: ForwardShape, copies: Mapping[str, int]) -> None:
        self.shape = shape
        self.copies = copies
        self._makers: Mapping[str, Callable[[tuple[int, ...], _Operands], tuple[str, tuple[str, ...], Maker]]] = {
            "s": self._score,
            "b": self._best,
            "m": self._row_best,
            "n": self._shift,
            "g": self._growth,
            "alpha": self._alpha,
            "d": self._less,
            "e": self._weights,
            "l": self._total,
            "p": self._pack,
            "o": self._output,
        }

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
        own = effect.instance.iteration
        wants = {version.name: (name_registers(place), version.iteration == own) for place, version in effect.wants}
        operands = _Operands(
            {name: place for name, (place, now) in wants.items() if now},
            {name: place for name, (place, now) in wants.items() if not now},
            name_registers(effect.makes[0][0]),
        )
        text, opcodes, maker = self._makers[kind](numbers, operands)
        return AttentionStatement(text, opcodes, Issue(maker, effect.reads, effect.writes, len(opcodes)))

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

    @staticmethod
    def _score(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        r, c, j = numbers
        word = "ROTA_SCORE_ADD" if j else "ROTA_SCORE"
        return f"{word}({operands.made}, {operands.read[f'k{c}_{j}']}, q[{r}][{j}])", (INSTRUCTION,), Maker.MATRIX

    @staticmethod
    def _best(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        r, c = numbers
        scores = next(place for name, place in operands.read.items() if name.startswith("s"))
        before = operands.read[f"b{r}_{c - 1}"] if c else operands.before[f"m{r}"]
        word = "ROTA_BEST" if before == operands.made else "ROTA_BEST_FROM"
        source = "" if before == operands.made else f"{before}, "
        return f"{word}({operands.made}, {source}{scores})", ("v_max3_f32",) * 2, Maker.VECTOR

    @staticmethod
    def _row_best(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        del numbers
        swaps = ("v_permlane32_swap_b32", "v_permlane16_swap_b32")
        opcodes = tuple(each for swap in swaps for each in ("v_mov_b32", swap, "v_max_f32"))
        return f"ROTA_ROW_BEST({operands.made})", opcodes, Maker.VECTOR

    @staticmethod
    def _shift(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        return f"ROTA_SHIFT({operands.made}, {operands.read[f'm{numbers[0]}']})", ("v_mul_f32",), Maker.VECTOR

    @staticmethod
    def _growth(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        before, shift = operands.before[f"m{numbers[0]}"], operands.read[f"n{numbers[0]}"]
        return f"ROTA_GROWN({operands.made}, {before}, {shift})", ("v_fma_f32",), Maker.VECTOR

    @staticmethod
    def _alpha(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        del numbers
        return f"ROTA_ALPHA({operands.made})", ("v_exp_f32",), Maker.TRANSCENDENTAL

    @staticmethod
    def _less(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        shift = operands.read[f"n{numbers[0]}"]
        return f"ROTA_LESS({operands.made}, {shift})", ("v_pk_fma_f32",) * 2, Maker.PACKED

    @staticmethod
    def _weights(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        del numbers
        return f"ROTA_WEIGHTS({operands.made})", ("v_exp_f32",) * 4, Maker.TRANSCENDENTAL

    @staticmethod
    def _rescale(before: str, alpha: str, made: str) -> tuple[str, tuple[str, ...], Maker]:
        text = f"ROTA_SCALED({made}, {alpha})" if before == made else f"ROTA_SCALED_FROM({made}, {before}, {alpha})"
        return text, ("v_pk_mul_f32",) * 2, Maker.PACKED

    def _total(self, numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        r, c = numbers
        if c == 0:
            (before,) = operands.before.values()
            return self._rescale(before, operands.read[f"alpha{r}"], operands.made)
        return f"ROTA_ADDED({operands.made}, {operands.read[f'e{r}_{c - 1}']})", ("v_pk_add_f32",) * 2, Maker.PACKED

    @staticmethod
    def _pack(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        r, t = numbers
        first, second = (operands.read[f"e{r}_{2 * t + each}"] for each in (0, 1))
        return f"ROTA_PACKED({operands.made}, {first}, {second})", ("v_cvt_pk_bf16_f32",) * 4, Maker.VECTOR

    def _output(self, numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        r, h, t = numbers
        if t == 0:
            (before,) = operands.before.values()
            return self._rescale(before, operands.read[f"alpha{r}"], operands.made)
        factors = f"{operands.read[f'v{t - 1}_{h}']}, {operands.read[f'p{r}_{t - 1}']}"
        return f"ROTA_OUTPUT({operands.made}, {factors})", (INSTRUCTION,), Maker.MATRIX


def _parse_name(entry: Entry) -> tuple[str, tuple[int, ...]]:
    """An op's kind and numbers, by its name: the loop is a shape's, op by op."""
    kind, numbers = _NAME.findall(entry.op.name)[0]
    return kind, tuple(map(int, numbers.split("_")))


def name_registers(place: Place) -> str:
    return f"{place.name}_at{place.copy}"


def copies_of(entries: tuple[Entry, ...]) -> dict[str, int]:
    """How many copies each place has, LDS tiles and registers alike."""
    found: dict[str, int] = {}
    for entry in entries:
        for place in (*entry.effect.reads, *entry.effect.writes):
            if place.space in (Space.LDS, Space.REGISTER):
                found[place.name] = max(found.get(place.name, 0), place.copy + 1)
    return found
