"""A kernel in skeleton mode: takes a loop that is no GEMM, gives a kernel of rota's order and your own functions.

X has 64 rows.  Wave w multiplies its 16 rows with those of the next wave, C_w = X_w x X_(w+1)^T, over K-tiles of 32
columns.  The rows come through LDS, because every wave needs its neighbour's.  rota decides on order, buffers, waits
and barriers; what a load, a read and a product are is written here, and a compiler's result is compared with the
schedule and executed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota import CompiledLoop, Loop, LoopSpec, compile_loop
from rota.emit.forms import emit_skeleton

if TYPE_CHECKING:
    import numpy as np

    from rota.audit.audit import Audit
    from rota.errors import Finding
    from rota.isa.binary.code_object import CodeObject

ARCH, WAVES, ROWS, TILE = "gfx950", 4, 16, 32
SLICE = ROWS * TILE * 2  # bytes of bf16 that one wave brings: 64 lanes of 16 bytes, one DMA
INSTRUCTION = "v_mfma_f32_16x16x32_bf16"

# Each function issues exactly the instructions that the loop declares for its op, and is told which K-tile it works on,
# which here only the load needs.  A DMA is inline assembly, so that
# the compiler adds no wait of its own; an LDS read is a load, so that it still guards the registers.
OPS = f"""
#define LDS __attribute__((address_space(3)))
#define INLINE __attribute__((device, always_inline))
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u32 words __attribute__((ext_vector_type(4)));
typedef float floats __attribute__((ext_vector_type(4)));

struct Ops {{
  words x;                // buffer resource of X
  u32 from;               // where in X this lane's 16 bytes of K-tile 0 lie
  u32 to;                 // where in LDS this wave's slice of copy 0 begins
  LDS const char* own;    // this lane's bytes of its own wave's slice
  LDS const char* next;   // and of the next wave's
  words a[COPIES_a], b[COPIES_b];
  floats c;

  template <int to_X> INLINE void load_X(int k) {{
    u32 m0;  // an output: the compiler knows that it changes
    asm volatile("s_add_u32 m0, %1, %2\\n\\ts_nop 0\\n\\tbuffer_load_dwordx4 %3, %4, %5 offen lds"
                 : "=&{{m0}}"(m0)
                 : "s"(to), "i"(to_X * {WAVES * SLICE}), "v"(from), "s"(x), "s"(k * {TILE * 2})
                 : "memory", "scc");
  }}
  template <int to_a, int from_X> INLINE void read_a(int) {{
    a[to_a] = *(LDS const words*)(own + from_X * {WAVES * SLICE});
  }}
  template <int to_b, int from_X> INLINE void read_b(int) {{
    b[to_b] = *(LDS const words*)(next + from_X * {WAVES * SLICE});
  }}
  template <int from_a, int from_b> INLINE void mma_c(int) {{
    asm volatile("{INSTRUCTION} %0, %1, %2, %0" : "+v"(c) : "v"(a[from_a]), "v"(b[from_b]));
  }}
}};

// X: {WAVES * ROWS} x K, bf16, row-major; C: {WAVES} times {ROWS} x {ROWS}, fp32.
extern "C" __attribute__((global, amdgpu_flat_work_group_size({64 * WAVES}, {64 * WAVES})))
void kernel(const void* X, float* C, int K) {{
  __attribute__((shared, aligned(16))) static char memory[LDS_BYTES];
  const int thread = __builtin_amdgcn_workitem_id_x(), lane = thread & 63;
  const int wave = __builtin_amdgcn_readfirstlane(thread >> 6);
  const u64 base = (u64)X;
  Ops ops;
  ops.x = words{{(u32)base, (u32)(base >> 32) & 0xffff, (u32){WAVES * ROWS} * K * 2, 0x00027000u}};
  ops.from = ((wave * {ROWS} + lane % {ROWS}) * K + lane / {ROWS} * 8) * 2;
  ops.to = (u32)(u64)(LDS char*)memory + wave * {SLICE};
  ops.own = (LDS const char*)memory + wave * {SLICE} + lane * 16;
  ops.next = (LDS const char*)memory + (wave + 1) % {WAVES} * {SLICE} + lane * 16;
  ops.c = floats{{0, 0, 0, 0}};
  asm volatile("" : "+v"(ops.c));  // zeroed here: a matrix instruction in asm can't follow such a write at once
  neighbours(ops, (K / {TILE} - OUTSIDE) / UNROLL);
  asm volatile("s_nop 15\\n\\ts_nop 3" : "+v"(ops.c));  // the compiler doesn't see that a matrix instruction made it
  for (int row = 0; row < 4; ++row) C[(wave * {ROWS} + lane / 16 * 4 + row) * {ROWS} + lane % 16] = ops.c[row];
}}
"""


def neighbours() -> LoopSpec:
    """One K-tile: all waves bring their slice, each reads two of them, and multiplies."""
    loop = Loop("neighbours", waves=WAVES)
    tile = loop.tile("X", size=WAVES * SLICE)
    loop.load(tile, moved=WAVES * SLICE)
    a, b = (loop.fragment(name, tile, registers=4) for name in "ab")
    loop.mma(loop.accumulator("c", registers=4), a, b, instruction=INSTRUCTION)
    return loop.build()


def source(compiled: CompiledLoop) -> str:
    """The order, the functions, and the kernel around them."""
    program, copies = compiled.lowered, dict(compiled.placement.copies)
    sizes = {
        "COPIES_a": copies.get("a", 1),
        "COPIES_b": copies.get("b", 1),
        "LDS_BYTES": compiled.lds_bytes,
        "OUTSIDE": program.tiles_outside,
        "UNROLL": program.tiles_per_trip,
    }
    defines = [f"#define {name} {value}" for name, value in sizes.items()]
    return "\n".join([*defines, emit_skeleton(compiled), OPS])


def audited(compiled: CompiledLoop) -> tuple[CodeObject, Audit]:
    """The machine code, and whether it is the schedule."""
    from rota.audit.audit import audit_skeleton
    from rota.isa.binary.toolchain import find_toolchain

    code = find_toolchain().compile(source(compiled), ARCH)
    return code, audit_skeleton(compiled, code)


def run(compiled: CompiledLoop, code: CodeObject, trips: int) -> tuple[np.ndarray[Any, Any], Any, tuple[Finding, ...]]:
    """What the machine code computes, what NumPy does, and what went wrong on the way; integers, so exactly."""
    import numpy as np

    from rota.isa.decoded import load_program
    from rota.isa.launch.run import run_kernel

    columns = compiled.lowered.total_tiles(trips) * TILE
    numbers = np.random.default_rng(trips).integers(-4, 5, (WAVES * ROWS, columns)).astype(np.float32)
    bf16 = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    result = np.zeros((WAVES, ROWS, ROWS), np.float32)
    ended = run_kernel(
        load_program(code.kernel(), code.disassembly), args=[bf16, result, columns], block=(64 * WAVES, 1, 1)
    )
    slices = numbers.reshape(WAVES, ROWS, columns)
    due = slices @ np.roll(slices, -1, axis=0).transpose(0, 2, 1)
    return ended.buffers[1], due, ended.findings


def main() -> None:
    """Print the audit and the comparison."""
    compiled = compile_loop(neighbours())
    print(compiled.placement)
    code, audit = audited(compiled)
    print(audit)
    for trips in (0, 1, 3):
        got, due, findings = run(compiled, code, trips)
        print(f"{trips} trips:", "right" if (got == due).all() and not findings else "wrong")


if __name__ == "__main__":
    main()
