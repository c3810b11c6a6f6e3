"""A GEMM loop of your own by values: takes what one iteration does, gives a proved schedule and its HIP kernel.

`rota check examples/own_gemm_by_values.py:gemm` proves it, `rota audit` compiles it, `rota run` executes it.
"""

from __future__ import annotations

from rota import CompiledLoop, KernelGeometry, Loop, LoopSpec, compile_loop

WAVES, LANES, REGISTER_BYTES = 4, 64, 4
DMA_BYTES = READ_BYTES = 16  # what one lane moves with one instruction
GEOMETRY = KernelGeometry(BM=128, BN=256)
INSTRUCTION = "v_mfma_f32_16x16x32_bf16"


def gemm(geometry: KernelGeometry = GEOMETRY) -> LoopSpec:
    """C = A x B^T: halves of A and B in LDS; waves stand 2 x 2, and each computes four quadrants of its tile."""
    loop = Loop("own_gemm", waves=WAVES)
    for operand, extent in (("A", geometry.BM), ("B", geometry.BN)):
        size = extent // 2 * geometry.BK * geometry.elem_bytes
        own = size // 2
        for half in (0, 1):
            tile = loop.tile(f"{operand}{half}", size=size, operand=operand)
            loop.load(tile, instructions=size // (DMA_BYTES * LANES * WAVES), moved=size)
            loop.fragment(
                f"{operand.lower()}{half}",
                tile,
                registers=own // (REGISTER_BYTES * LANES),
                instructions=own // (READ_BYTES * LANES),
            )
    rows, columns = geometry.BM // 4, geometry.BN // 4
    products = (rows // geometry.MMA_M) * (columns // geometry.MMA_N) * (geometry.BK // geometry.MMA_K)
    for row in (0, 1):
        for column in (0, 1):
            quadrant = loop.accumulator(f"c{row}{column}", registers=rows * columns // LANES)
            loop.mma(quadrant, f"a{row}", f"b{column}", instruction=INSTRUCTION, instructions=products)
    return loop.build()


def compiled() -> CompiledLoop:
    """The loop with its least initiation interval, buffers, waits and barriers, proved."""
    return compile_loop(gemm())


def main() -> None:
    """Print what rota found, and write the kernel."""
    from pathlib import Path

    from rota.emit.gemm.hip_gemm import emit_gemm

    found = compiled()
    print(found.modulo)
    print(found.placement)
    print(str(found.certificate).splitlines()[0])
    Path("own_gemm.hip").write_text(emit_gemm(found, GEOMETRY), "utf-8")
    print("own_gemm.hip")


if __name__ == "__main__":
    main()
