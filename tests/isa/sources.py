"""HIP sources of small kernels, compiled once per test run: takes a body and an architecture, gives a program."""

from __future__ import annotations

from functools import cache

from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import KernelProgram, load_program

PREAMBLE = """
#define LDS __attribute__((address_space(3)))
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned u32; typedef unsigned long u64;
typedef _Float16 f16; typedef __bf16 bf16;
template <class T, int N> using vec = T __attribute__((ext_vector_type(N)));
#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(64, 256))) void k
#define ID __builtin_amdgcn_workitem_id_x()
#define SHARED __attribute__((shared)) static
#define SYNC __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); \
             __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
"""


@cache
def compiled(source: str, arch: str) -> CodeObject:
    return find_toolchain().compile(PREAMBLE + source, arch)


@cache
def program(source: str, arch: str) -> KernelProgram:
    code = compiled(source, arch)
    return load_program(code.kernel(), code.instructions())


GEMM = """
#define SB __builtin_amdgcn_sched_barrier(0);
#define DMA(lds, offset, resource, k) \
  asm volatile("s_mov_b32 m0, %0\\n\\ts_nop 0\\n\\tbuffer_load_@DMA@ %1, %2, %3 offen lds" \
               :: "s"(lds), "v"(offset), "s"(resource), "s"(k) : "memory"); SB
KERNEL(const u8* A, const u8* B, float* C, int N, int row_bytes, int tiles) {
  SHARED u8 shared[16384];  // two stages of 64 rows of A and of B, 64 bytes of K each
  const int lane = ID & 63, wave = __builtin_amdgcn_readfirstlane(ID >> 6);
  const int bm = __builtin_amdgcn_workgroup_id_x(), bn = __builtin_amdgcn_workgroup_id_y();
  const u64 a = (u64)(A + (u64)bm * 64 * row_bytes), b = (u64)(B + (u64)bn * 64 * row_bytes);
  const u32 records = 64 * row_bytes;
  const vec<u32, 4> ra = {(u32)a, (u32)(a >> 32) & 0xffff, records, 0x27000};
  const vec<u32, 4> rb = {(u32)b, (u32)(b >> 32) & 0xffff, records, 0x27000};
  const u32 into = (u32)(u64)(LDS u8*)shared + wave * 1024;
  LDS u8* const pa = (LDS u8*)shared + (wave * 16 + (lane & 15)) * 64 + (lane >> 4) * 16;
  LDS u8* const pb = (LDS u8*)shared + 4096 + (lane & 15) * 64 + (lane >> 4) * 16;
  int offset[@LOADS@];
  for (int i = 0; i < @LOADS@; i++)
    offset[i] = (wave * 16 + i * (16 / @LOADS@) + lane / @LANES@) * row_bytes + lane % @LANES@ * (64 / @LANES@);
  vec<float, 4> c[4] = {};
  for (int j = 0; j < 4; j++) asm volatile("" : "+v"(c[j]));
  for (int i = 0; i < @LOADS@; i++) {
    DMA(into + i * (1024 / @LOADS@), offset[i], ra, 0) DMA(into + 4096 + i * (1024 / @LOADS@), offset[i], rb, 0)
  }
  int stage = 0;
  for (int tile = 0; tile < tiles; tile++) {
    __builtin_amdgcn_s_waitcnt(0xf70); SB
    __builtin_amdgcn_s_barrier(); SB
    if (tile + 1 < tiles) {
      const u32 next = into + (stage ^ 8192);
      for (int i = 0; i < @LOADS@; i++) {
        DMA(next + i * (1024 / @LOADS@), offset[i], ra, (tile + 1) * 64)
        DMA(next + 4096 + i * (1024 / @LOADS@), offset[i], rb, (tile + 1) * 64)
      }
    }
    vec<u32, 4> x = *(LDS const vec<u32, 4>*)(pa + stage), y[4]; SB
    for (int j = 0; j < 4; j++) { y[j] = *(LDS const vec<u32, 4>*)(pb + stage + j * 1024); SB }
    __builtin_amdgcn_s_waitcnt(0xc07f); SB
    for (int j = 0; j < 4; j++) { @MULTIPLY@ }
    stage ^= 8192;
  }
  asm volatile("s_nop 15");
  for (int j = 0; j < 4; j++)
    for (int r = 0; r < 4; r++)
      C[(u64)(bm * 64 + wave * 16 + (lane >> 4) * 4 + r) * N + bn * 64 + j * 16 + (lane & 15)] = c[j][r];
}
"""
_WHOLE = 'asm volatile("{0} %0, %1, %2, %0" : "+v"(c[j]) : "v"(x), "v"(y[j])); SB'
_HALVES = (
    "{{ vec<u32, 2> p = x.lo, q = y[j].lo, s = x.hi, t = y[j].hi;"
    ' asm volatile("{0} %0, %1, %2, %0" : "+v"(c[j]) : "v"(p), "v"(q)); SB'
    ' asm volatile("{0} %0, %1, %2, %0" : "+v"(c[j]) : "v"(s), "v"(t)); SB }}'
)


def gemm_source(arch: str, opcode: str) -> str:
    """C = A B^T in tiles of 64 by 64 and 64 bytes of K: four waves, double buffer, loads to LDS, one barrier a tile."""
    loads, lanes, width = (4, 16, "dword") if arch == "gfx942" else (1, 4, "dwordx4")
    takes_all = opcode in {"v_mfma_f32_16x16x32_bf16", "v_mfma_f32_16x16x32_f16", "v_mfma_i32_16x16x64_i8"}
    return (
        GEMM.replace("@DMA@", width)
        .replace("@LOADS@", str(loads))
        .replace("@LANES@", str(lanes))
        .replace("@MULTIPLY@", (_WHOLE if takes_all else _HALVES).format(opcode))
    )
