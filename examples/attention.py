"""Attention forward by values: takes the online softmax of one tile of keys, gives a proved schedule.

Q stays in registers; K and V come through LDS.  The running maximum, sum and output are carried from tile to tile:
reads of the iteration before, which are the recurrences that a pipeline has to respect.
"""

from __future__ import annotations

from rota import CompiledLoop, Loop, LoopSpec, Read, compile_loop

WAVES, LANES = 4, 64
ROWS, KEYS, HEAD = 32, 64, 128  # rows of Q per wave, keys per tile, head size
INSTRUCTION = "v_mfma_f32_16x16x32_bf16"


def attention() -> LoopSpec:
    """One tile of keys and values: scores, softmax, output."""
    loop = Loop("own_attention", waves=WAVES)
    size = KEYS * HEAD * 2
    q = loop.input("q", registers=ROWS * HEAD * 2 // (4 * LANES))
    for tile in ("K", "V"):
        loop.load(loop.tile(tile, size=size), instructions=size // (16 * LANES * WAVES), moved=size)
    k = loop.fragment("k", "K", registers=size // (4 * LANES), instructions=size // (16 * LANES))
    v = loop.fragment("v", "V", registers=size // (4 * LANES), instructions=size // (16 * LANES))

    scores, output = ROWS * KEYS // LANES, ROWS * HEAD // LANES  # registers per lane
    products = ROWS * KEYS * HEAD // (16 * 16 * 32)
    s = loop.product("s", [q, k], registers=scores, instruction=INSTRUCTION, instructions=products)
    m = loop.valu("m", [s, Read(value="m", distance=1)], registers=1, instructions=scores)
    alpha = loop.valu("alpha", [m, Read(value="m", distance=1)], registers=1, instructions=8)
    p = loop.valu("p", [s, m], registers=scores // 2, instructions=4 * scores)
    loop.valu("l", [p, alpha, Read(value="l", distance=1)], registers=1, instructions=scores)
    scaled = loop.valu("scaled", [alpha, Read(value="o", distance=1)], registers=output, instructions=output)
    loop.product(
        "o", [p, v, scaled], registers=output, instruction=INSTRUCTION, instructions=products, into=scaled
    )  # a matrix instruction adds to what stands in its registers
    return loop.build()


def compiled() -> CompiledLoop:
    """The loop, proved."""
    return compile_loop(attention())


def main() -> None:
    """Print what binds, what was found, and the functions that a kernel has to supply."""
    from rota.cycles.predict import predict
    from rota.emit.forms import emit_skeleton

    found = compiled()
    print(found.modulo)
    print(found.placement)
    print(str(found.certificate).splitlines()[0])
    print(str(predict(found, band=False)).splitlines()[0])
    print(*[line for line in emit_skeleton(found).splitlines() if line.startswith("//   ")], sep="\n")


if __name__ == "__main__":
    main()
