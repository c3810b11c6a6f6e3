"""Attention forward by values: takes rows, keys and head size, gives a `LoopSpec` over tiles of keys and values.

Each wave keeps its rows of Q in registers.  The softmax is online: a running maximum and sum are carried from tile to
tile, and the output is rescaled when the maximum grows.
"""

from __future__ import annotations

from dataclasses import dataclass

from rota.check import check_ints
from rota.kernels.attention_instructions import by_instruction
from rota.kernels.fitting import check_fit
from rota.kernels.wave_size import LANES, REGISTER_BYTES
from rota.program.loop_spec import LoopSpec, Read
from rota.values.loop import Loop

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
        check_fit(self, {"rows": side, "keys": max(side, k), "head": max(side, k)})  # both are powers of two
        return by_instruction(self) if instructions else _by_tile(self)


def _by_tile(shape: AttentionShape) -> LoopSpec:
    loop = Loop(shape.name, waves=shape.waves)
    size = shape.keys * shape.head * shape.element_bytes
    q = loop.input("q", registers=shape.rows * shape.head * shape.element_bytes // (REGISTER_BYTES * LANES))
    fragments = {}
    for tile, fragment in (("K", "k"), ("V", "v")):
        loop.load(
            loop.tile(tile, size=size),
            instructions=max(size // (shape.dma_bytes * LANES * shape.waves), 1),
            moved=size,
        )
        fragments[fragment] = loop.fragment(
            fragment,
            tile,
            registers=size // (REGISTER_BYTES * LANES),
            instructions=size // (shape.read_bytes * LANES),
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
    name="attention_bf16_head128_mi300x",
    instruction="v_mfma_f32_32x32x8_bf16",
    mma=(32, 8),
    dma_bytes=4,
    read_bytes=8,
)
"""The same for MI300X."""
