"""Attention forward as the machine executes it: takes rows, keys and head size, gives a `LoopSpec` that can be emitted.

Scores are computed transposed (keys x rows of Q), so that a lane holds scores of one row: its running maximum takes two
exchanges between lanes, and what it makes of the scores is, as it lies in registers, a factor of the next product.  V
is read from LDS transposed.  A matrix instruction, an LDS read and a DMA is an op of its own; a vector op is what one
block of registers takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from rota.check import bad_field, check_ints, check_types
from rota.errors import DeclarationError
from rota.program.loop_spec import LoopSpec, Read
from rota.program.machine import LANES
from rota.values.loop import Loop

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
        """Blocks of a wave's rows."""
        return range(self.rows // SIDE)

    @property
    def key_blocks(self) -> range:
        """Blocks of a tile's keys."""
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
        """Blocks of the output's columns."""
        return range(self.head // SIDE)

    @property
    def tile_bytes(self) -> int:
        """A tile of K, or of V."""
        return self.keys * self.head * ELEMENT_BYTES

    @property
    def row_bytes(self) -> int:
        """A row of K, or of V, in LDS."""
        return self.head * ELEMENT_BYTES

    @property
    def chunks(self) -> int:
        """What lanes fetch of a row."""
        return self.row_bytes // DMA_BYTES

    @property
    def dma_rows(self) -> int:
        """Rows that a DMA of all waves brings."""
        return DMA_BYTES * LANES * self.waves // self.row_bytes

    @property
    def loads(self) -> range:
        """DMAs of a tile."""
        return range(self.tile_bytes // (DMA_BYTES * LANES * self.waves))

    def loop(self) -> LoopSpec:
        """Scores, softmax and output of one tile of keys."""
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
        """One block of rows."""
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
