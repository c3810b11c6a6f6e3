"""Attention forward by values: a loop over tiles of keys and values.

Each wave keeps its rows of Q in registers. The softmax is online: a running maximum and sum are carried from tile to
tile, and the output is rescaled when the maximum grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rota.check import check_ints
from rota.emit.attention.attention_ops import ForwardShape
from rota.kernels.gemm import LANES, REGISTER_BYTES, check_fit
from rota.program.loop_spec import LoopSpec, Read
from rota.values.loop import Loop

# Attention forward in single instructions.
#
# Rows are computed in blocks of the matrix instruction's side (r), keys likewise (c), the head in its K steps (j)
# for the scores and in blocks (h) for the output, which takes the keys in K steps (t). Vector ops are single
# instructions too; an exponential holds the vector unit for four slots and is counted as four.

_EXPONENTIAL_SLOTS = 4  # slots: a quarter of the rate of other vector instructions


class _Writer:
    """Declares all ops of one tile of keys, in the order of the computation."""

    def __init__(self, shape: AttentionShape) -> None:
        self.shape = shape
        self.loop = Loop(shape.name, waves=shape.waves)
        side, depth = shape.mma
        self.row_blocks, self.key_blocks = range(shape.rows // side), range(shape.keys // side)
        self.head_steps, self.head_blocks = range(shape.head // depth), range(shape.head // side)
        self.key_steps = range(shape.keys // depth)
        self.scores = side * side // LANES
        operand = side * depth * shape.element_bytes // (REGISTER_BYTES * LANES)
        self.reads = max(operand * REGISTER_BYTES // shape.read_bytes, 1)
        self.operand = operand
        self.q = [[self.loop.input(f"q{r}_{j}", registers=operand) for j in self.head_steps] for r in self.row_blocks]

    def write(self) -> LoopSpec:
        self.move("K")
        self.move("V")
        keys = {(c, j): self.fragment(f"k{c}_{j}", "K") for c in self.key_blocks for j in self.head_steps}
        values = {(t, h): self.fragment(f"v{t}_{h}", "V") for t in self.key_steps for h in self.head_blocks}
        weights = {}
        for r in self.row_blocks:
            scores = [self.score(r, c, keys) for c in self.key_blocks]
            best = self.best(r, scores)
            alpha = self.loop.valu(
                f"alpha{r}",
                [best, Read(value=best, distance=1)],
                registers=self.scores,
                instructions=_EXPONENTIAL_SLOTS,
            )
            for c, scaled in enumerate(scores):
                weights[r, c] = self.weight(r, c, scaled, best)
            self.total(r, [weights[r, c] for c in self.key_blocks], alpha)
            for h in self.head_blocks:
                self.output(r, h, weights, values, alpha)
        return self.loop.build()

    def move(self, tile: str) -> None:
        shape = self.shape
        size = shape.keys * shape.head * shape.element_bytes
        each = shape.dma_bytes * LANES * shape.waves
        self.loop.tile(tile, size=size)
        for number in range(size // each):
            self.loop.load(tile, name=f"load_{tile}{number}", moved=each)

    def fragment(self, name: str, tile: str) -> str:
        return self.loop.fragment(name, tile, registers=self.operand, instructions=self.reads)

    def score(self, r: int, c: int, keys: dict[tuple[int, int], str]) -> str:
        """Q K^T of one block, summed over the head, then scaled."""
        block = ""
        for j in self.head_steps:
            operands = [self.q[r][j], keys[c, j], *([block] if block else [])]
            block = self.loop.product(
                f"s{r}_{c}_{j}", operands, registers=self.scores, instruction=self.shape.instruction, into=block
            )
        return self.one_by_one(f"x{r}_{c}", block, [], self.scores)

    def one_by_one(self, name: str, block: str, others: Sequence[str | Read], count: int, slots: int = 1) -> str:
        """Vector instructions that treat the registers of a block in turn; each reads `others` too."""
        for number in range(count):
            block = self.loop.valu(
                f"{name}_{number}", [block, *others], registers=self.scores, instructions=slots, into=block
            )
        return block

    def best(self, r: int, scores: list[str]) -> str:
        """The running maximum of each row, from that of the tiles before; an instruction takes in two scores."""
        each = self.scores // 2
        last = f"m{r}_{len(scores) - 1}_{each - 1}"
        found = ""
        for c, block in enumerate(scores):
            for number in range(each):
                before: str | Read = found or Read(value=last, distance=1)
                found = self.loop.valu(f"m{r}_{c}_{number}", [block, before], registers=self.scores, into=found)
        return found

    def weight(self, r: int, c: int, scores: str, best: str) -> str:
        """exp(scores - maximum), in the registers of the scores, then packed to the element type."""
        block = self.one_by_one(f"d{r}_{c}", scores, [best], self.scores)
        block = self.one_by_one(f"e{r}_{c}", block, [], self.scores, _EXPONENTIAL_SLOTS)
        packed = ""
        for number in range(self.scores // 2):
            reads = [block, *([packed] if packed else [])]
            packed = self.loop.valu(f"p{r}_{c}_{number}", reads, registers=self.scores // 2, into=packed)
        return packed

    def total(self, r: int, weights: list[str], alpha: str) -> str:
        """The running sum of the weights, rescaled first."""
        last = f"l{r}_{len(weights)}_{self.scores - 1}"
        found = self.rescale(f"l{r}_0", last, alpha)
        for c, weight in enumerate(weights, 1):
            found = self.one_by_one(f"l{r}_{c}", found, [weight], self.scores)
        return found

    def rescale(self, name: str, last: str, alpha: str) -> str:
        """What the tiles before left in `last`, times alpha, in place."""
        first = self.loop.valu(f"{name}_0", [alpha, Read(value=last, distance=1)], registers=self.scores)
        for number in range(1, self.scores):
            first = self.loop.valu(f"{name}_{number}", [first, alpha], registers=self.scores, into=first)
        return first

    def output(
        self, r: int, h: int, weights: dict[tuple[int, int], str], values: dict[tuple[int, int], str], alpha: str
    ) -> str:
        """The output so far, rescaled in place, plus weights times V."""
        found = self.rescale(f"o{r}_{h}_0", f"o{r}_{h}_{len(self.key_steps)}", alpha)
        blocks_of = len(self.key_blocks) / len(self.key_steps)  # a step takes several blocks, or its part of one
        for t in self.key_steps:
            first = int(t * blocks_of)
            blocks = [weights[r, c] for c in range(first, max(first + 1, int((t + 1) * blocks_of)))]
            found = self.loop.product(
                f"o{r}_{h}_{t + 1}",
                [*blocks, values[t, h], found],
                registers=self.scores,
                instruction=self.shape.instruction,
                into=found,
            )
        return found


_SCALE_AND_MAX, _EXPONENTIAL, _SUM = 3, 11, 5  # vector instructions per two scores, counted for packed arithmetic


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    """Rows of Q per wave, keys per tile, head size, waves; `mma` is the matrix instruction's side and K step."""

    name: str
    instruction: str
    mma: tuple[int, int]
    rows: int = 32
    keys: int = 64
    head: int = 128
    waves: int = 4
    element_bytes: int = 2
    dma_bytes: int = 16
    read_bytes: int = 16

    def __post_init__(self) -> None:
        check_ints(self, ("rows", "keys", "head", "waves", "element_bytes", "dma_bytes", "read_bytes"), least=1)

    def loop(self, *, instructions: bool = True) -> LoopSpec:
        """Scores, softmax and output of one tile of keys, in single instructions or, quicker to schedule, in tiles."""
        side, k = self.mma
        check_fit(
            self, self.instruction, self.mma, {"rows": side, "keys": max(side, k), "head": max(side, k)}
        )  # both are powers of two
        return _Writer(self).write() if instructions else _by_tile(self)


def _by_tile(shape: AttentionShape) -> LoopSpec:
    loop = Loop(shape.name, waves=shape.waves)
    size = shape.keys * shape.head * shape.element_bytes
    q = loop.input("q", registers=shape.rows * shape.head * shape.element_bytes // (REGISTER_BYTES * LANES))
    fragments = {}
    for tile, fragment in (("K", "k"), ("V", "v")):
        loop.load(
            loop.tile(tile, size=size), instructions=max(size // (shape.dma_bytes * LANES * shape.waves), 1), moved=size
        )
        fragments[fragment] = loop.fragment(
            fragment, tile, registers=size // (REGISTER_BYTES * LANES), instructions=size // (shape.read_bytes * LANES)
        )
    scores, output = shape.rows * shape.keys // LANES, shape.rows * shape.head // LANES
    side, k = shape.mma
    s = loop.product(
        "s",
        [q, fragments["k"]],
        registers=scores,
        instruction=shape.instruction,
        instructions=(shape.rows // side) * (shape.keys // side) * (shape.head // k),
    )
    m = loop.valu("m", [s, Read(value="m", distance=1)], registers=1, instructions=scores * _SCALE_AND_MAX // 2)
    alpha = loop.valu("alpha", [m, Read(value="m", distance=1)], registers=1, instructions=8)
    p = loop.valu("p", [s, m], registers=scores // 2, instructions=scores * _EXPONENTIAL // 2)
    loop.valu("l", [p, alpha, Read(value="l", distance=1)], registers=1, instructions=scores * _SUM // 4)
    scaled = loop.valu("scaled", [alpha, Read(value="o", distance=1)], registers=output, instructions=output)
    loop.product(
        "o",
        [p, fragments["v"], scaled],
        registers=output,
        instruction=shape.instruction,
        instructions=(shape.rows // side) * (shape.head // side) * (shape.keys // k),
        into=scaled,
    )
    return loop.build()


ATTENTION = AttentionShape(name="attention_bf16_head128", instruction="v_mfma_f32_16x16x32_bf16", mma=(16, 32))
"""Attention forward for MI355X: four waves of 32 rows, 64 keys a tile."""

MI300X_ATTENTION = AttentionShape(
    name="attention_bf16_head128_mi300x", instruction="v_mfma_f32_32x32x8_bf16", mma=(32, 8), dma_bytes=4, read_bytes=8
)
"""The same for MI300X."""


# Attention forward to be shipped.
#
# `rota.emit.attention.attention_ops` says how it is computed.

HEAD_128 = ForwardShape(name="attention_forward_bf16_head128")
"""Attention forward for MI355X: four waves of 32 rows, 64 keys a tile, head size 128."""

HEAD_64 = ForwardShape(name="attention_forward_bf16_head64", head=64)
"""The same with head size 64."""

SMALL_TILE = ForwardShape(name="attention_forward_bf16_head64_small", rows=16, keys=32, head=64)
"""Less of everything, quickly scheduled."""
