"""Indices, barriers, lanes, atomics, bits, vectors and groups of rota's stand-in for HIP's headers, executed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from rota.isa.launch.loaded_kernel import LoadedKernel, load_kernel
from tests.isa.binary.hip_run import ARCH, compiled

pytestmark = pytest.mark.thorough

TEXT = """
#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_complex.h>
#define KERNEL extern "C" __global__ void __launch_bounds__(1024)
#define I (blockIdx.x * blockDim.x + threadIdx.x)

KERNEL indices(unsigned* o) {
  unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned item = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  dim3 size = blockDim, grid = gridDim;
  uint3 at = threadIdx;
  unsigned* mine = o + 8 * (block * size.x * size.y * size.z + item);
  mine[0] = at.x; mine[1] = at.y; mine[2] = at.z; mine[3] = blockIdx.x; mine[4] = blockIdx.y; mine[5] = blockIdx.z;
  mine[6] = size.x | size.y << 8 | size.z << 16; mine[7] = grid.x | grid.y << 8 | grid.z << 16;
}
KERNEL reverse(const float* a, float* o) {
  extern __shared__ float part[];
  part[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  o[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
}
KERNEL counted(const int* a, int* o) {
  int x = a[I];
  int count = __syncthreads_count(x), every = __syncthreads_and(x), some = __syncthreads_or(x);
  int nothing = __syncthreads_or(0), all = __syncthreads_and(1);
  o[I] = count | every << 12 | some << 13 | nothing << 14 | all << 15;
}
KERNEL shuffles(const int* a, int* o) {
  int i = threadIdx.x, x = a[i], n = blockDim.x;
  o[i] = __shfl(x, 5);
  o[n + i] = __shfl(x, i * 7, 16);
  o[2 * n + i] = __shfl_up(x, 3);
  o[3 * n + i] = __shfl_up(x, 3, 8);
  o[4 * n + i] = __shfl_down(x, 9);
  o[5 * n + i] = __shfl_down(x, 9, 32);
  o[6 * n + i] = __shfl_xor(x, 33);
  o[7 * n + i] = __shfl_xor(x, 12, 8);
  o[8 * n + i] = __shfl_xor_sync(~0ull, x, 1) + __shfl_sync(~0ull, x, 2) + __shfl_up_sync(~0ull, x, 1u)
               + __shfl_down_sync(~0ull, x, 1u);
}
KERNEL wide_shuffles(const double* a, double* o, const short* b, short* p) {
  int i = threadIdx.x;
  o[i] = __shfl_xor(a[i], 21);
  p[i] = __shfl_xor(b[i], 21);
}
KERNEL votes(const int* a, unsigned long long* o) {
  int x = a[I];
  unsigned long long* mine = o + 8 * I;
  mine[0] = __ballot(x > 0); mine[1] = __any(x > 0); mine[2] = __all(x > 0); mine[3] = __activemask();
  mine[4] = __lane_id(); mine[5] = __lanemask_lt(); mine[6] = __ballot_sync(0xffffull, x > 0);
  mine[7] = __all_sync(0xffull, x > 0) + 2 * __any_sync(0xff00ull, x > 0);
  if (x > 0) mine[3] = __activemask();
}
KERNEL integers(const int* a, const unsigned* u, int* i4, unsigned* u4, unsigned long long* l4) {
  int x = a[I], one;
  unsigned y = u[I], more;
  one = atomicAdd(&i4[0], x), atomicSub(&i4[1], x), atomicMin(&i4[2], x), atomicMax(&i4[3], x);
  atomicAdd(&u4[0], y), atomicMin(&u4[1], y), atomicMax(&u4[2], y), atomicAnd(&u4[3], y), atomicOr(&u4[4], y);
  atomicXor(&u4[5], y), atomicInc(&u4[6], 9u), atomicDec(&u4[7], 9u);
  atomicAdd(&l4[0], (unsigned long long)y), atomicMin(&l4[1], (unsigned long long)y << 20);
  atomicMax(&l4[2], (unsigned long long)y << 20), atomicXor(&l4[3], (unsigned long long)y << 32);
  for (unsigned seen = 0;;) {  // a sum by compare and swap
    unsigned found = atomicCAS(&u4[8], seen, seen + y);
    if (found == seen) break;
    seen = found;
  }
}
KERNEL exchanged(int* lock, int* o) { o[threadIdx.x] = atomicExch(lock, (int)threadIdx.x); }
KERNEL reals(const float* a, float* f4, double* d4) {
  float x = a[I];
  atomicAdd(&f4[0], x), atomicMin(&f4[1], x), atomicMax(&f4[2], x), unsafeAtomicAdd(&f4[3], x);
  atomicAdd(&d4[0], (double)x), atomicMin(&d4[1], (double)x), atomicMax(&d4[2], (double)x);
  unsafeAtomicAdd(&d4[3], (double)x);
}
KERNEL in_lds(const float* a, float* o) {
  __shared__ float sum;
  __shared__ int most;
  if (threadIdx.x == 0) sum = 0, most = 0;
  __syncthreads();
  atomicAdd(&sum, a[threadIdx.x]);
  atomicMax(&most, (int)threadIdx.x);
  __syncthreads();
  o[threadIdx.x] = sum + most;
}
KERNEL bits(const unsigned* u, const unsigned* v, unsigned* o) {
  unsigned x = u[I], y = v[I];
  unsigned long long both = (unsigned long long)x << 32 | y;
  unsigned* mine = o + 24 * I;
  mine[0] = __popc(x); mine[1] = __clz((int)x); mine[2] = __ffs(x); mine[3] = __brev(x); mine[4] = __popcll(both);
  mine[5] = __clzll((long long)both); mine[6] = __ffsll(both); mine[7] = (unsigned)__brevll(both);
  mine[8] = (unsigned)__mulhi((int)x, (int)y); mine[9] = __umulhi(x, y); mine[10] = (unsigned)__mul24((int)x, (int)y);
  mine[11] = __byte_perm(x, y, 0x6143); mine[12] = __bitextract_u32(x, 5, 9); mine[13] = __funnelshift_l(x, y, 7);
  mine[14] = __funnelshift_r(x, y, 39); mine[15] = __usad(x, y, 3); mine[16] = (unsigned)__hadd((int)x, (int)y);
  mine[17] = (unsigned)__umul64hi(both, both); mine[18] = min(x, y); mine[19] = (unsigned)max((int)x, (int)y);
  mine[20] = __float_as_uint(__uint_as_float(x)); mine[21] = __bitinsert_u32(x, y, 4, 8);
  mine[22] = __funnelshift_lc(x, y, 40); mine[23] = __funnelshift_rc(x, y, 40);
}
KERNEL vectors(const float4* a, const int3* b, float4* o, int3* p, uchar4* q) {
  float4 x = a[I];
  int3 y = b[I];
  float4 z = x * 2.0f + make_float4(1, 2, 3, 4);
  z /= float4(2.0f);
  z -= x;
  o[I] = 1.0f + z;
  p[I] = (y << make_int3(1, 2, 3)) ^ -y;
  q[I] = make_uchar4(y.x, y.y, y.z, x == x);
}
KERNEL complexes(const float2* a, float2* o) {
  o[I] = hipCdivf(hipCmulf(a[I], hipConjf(a[I])), make_hipFloatComplex(0, 2));
}
KERNEL groups(const int* a, int* o) {
  namespace cg = cooperative_groups;
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  int x = a[block.thread_rank()], sum = x;
  for (int d = 8; d > 0; d /= 2) sum += tile.shfl_down(sum, d);
  sum = tile.shfl(sum, 0);
  int* mine = o + 8 * block.thread_rank();
  mine[0] = sum; mine[1] = tile.thread_rank(); mine[2] = tile.meta_group_rank(); mine[3] = tile.size();
  mine[4] = (int)tile.ballot(x & 1); mine[5] = tile.any(x == 7) + 2 * tile.all(x < 1000);
  cg::thread_group any = tile;
  any.sync();
  mine[6] = any.size() * 100 + any.thread_rank();
  if (x & 1) {
    auto odd = cg::coalesced_threads();
    mine[7] = odd.size() * 10000 + odd.thread_rank() * 100 + odd.shfl((int)threadIdx.x, 1);
  }
}
KERNEL checked(const int* a, int* o, int n) {
  assert(a[I] < n);
  if (a[I] < 0) printf("%d is negative\\n", a[I]);
  o[I] = a[I] + (clock64() < 0);
}
"""
RNG = np.random.default_rng(5)
LANES = 64


@pytest.fixture(scope="module")
def kernel() -> Callable[[str], LoadedKernel]:
    code = compiled(TEXT)
    return lambda name: load_kernel(code.hsaco, name)


Kernels = Callable[[str], LoadedKernel]


def test_indices_of_three_dimensions(kernel: Kernels) -> None:
    grid, block = (3, 2, 2), (4, 3, 2)
    out = np.zeros((2, 2, 3, 2, 3, 4, 8), np.uint32)
    kernel("indices").launch(out, grid=grid, block=block, orders=1)
    for (bz, by, bx, tz, ty, tx), _ in np.ndenumerate(out[..., 0]):
        assert out[bz, by, bx, tz, ty, tx].tolist() == [tx, ty, tz, bx, by, bz, 0x020304, 0x020203]


def test_barriers_and_dynamic_lds(kernel: Kernels) -> None:
    a = RNG.standard_normal(256).astype(np.float32)
    out = np.zeros_like(a)
    kernel("reverse").launch(a, out, block=256, dynamic_lds=1024, orders=8)
    np.testing.assert_array_equal(out, a[::-1])


def test_barriers_that_count(kernel: Kernels) -> None:
    a = np.concatenate([RNG.integers(0, 2, 256), np.ones(256), np.zeros(256)]).astype(np.int32)
    out = np.zeros_like(a)
    kernel("counted").launch(a, out, grid=3, block=256, orders=4)
    for each, got in zip(a.reshape(3, 256), out.reshape(3, 256), strict=True):
        want = int(each.sum()) | int(each.all()) << 12 | int(each.any()) << 13 | 1 << 15
        np.testing.assert_array_equal(got, want)


def _from(lane: int, source: int, width: int) -> int:
    """The lane that is read: `source` if it is in the same part of `width` lanes, else the lane itself."""
    return source if source // width == lane // width and source >= 0 else lane


def test_shuffles(kernel: Kernels) -> None:
    a = RNG.integers(0, 1000, LANES).astype(np.int32)
    out = np.zeros((9, LANES), np.int32)
    kernel("shuffles").launch(a, out, block=LANES, orders=1)
    lanes = range(LANES)
    want = [
        [5] * LANES,
        [i // 16 * 16 + i * 7 % 16 for i in lanes],
        [_from(i, i - 3, 64) for i in lanes],
        [_from(i, i - 3, 8) for i in lanes],
        [_from(i, i + 9, 64) for i in lanes],
        [_from(i, i + 9, 32) for i in lanes],
        [i ^ 33 for i in lanes],
        [i ^ 12 if (i ^ 12) < (i // 8 + 1) * 8 else i for i in lanes],  # a lower part may be read, as ROCm has it
    ]
    for row, sources in zip(out, want, strict=False):
        np.testing.assert_array_equal(row, a[sources])
    both = a[[i ^ 1 for i in lanes]] + a[2] + a[[max(i - 1, 0) for i in lanes]] + a[[min(i + 1, 63) for i in lanes]]
    np.testing.assert_array_equal(out[8], both)


def test_shuffles_of_other_sizes(kernel: Kernels) -> None:
    a, b = RNG.standard_normal(LANES), RNG.integers(-999, 999, LANES).astype(np.int16)
    out, other = np.zeros_like(a), np.zeros_like(b)
    kernel("wide_shuffles").launch(a, out, b, other, block=LANES, orders=1)
    sources = [i ^ 21 for i in range(LANES)]
    np.testing.assert_array_equal(out, a[sources])
    np.testing.assert_array_equal(other, b[sources])


def test_votes(kernel: Kernels) -> None:
    a = RNG.integers(-5, 5, 128).astype(np.int32)
    a[:20] = 1
    out = np.zeros((128, 8), np.uint64)
    kernel("votes").launch(a, out, block=128, orders=1)
    for i in range(128):
        wave = a[i // LANES * LANES :][:LANES] > 0
        mask = sum(1 << lane for lane in range(LANES) if wave[lane])
        active = mask if a[i] > 0 else 2**64 - 1
        lane = i % LANES
        some = int(wave[:8].all()) + 2 * int(wave[8:16].any())
        every = int(wave.all())
        want = [mask, int(mask != 0), every, active, lane, (1 << lane) - 1, mask & 0xFFFF, some]
        assert out[i].tolist() == want


def test_atomics_of_integers(kernel: Kernels) -> None:
    a = RNG.integers(-1000, 1000, 256).astype(np.int32)
    u = RNG.integers(0, 2**32, 256).astype(np.uint32)
    whole = np.array([7, 8, 5, -5], np.int32)
    words = np.array([1, 2**32 - 1, 0, 2**32 - 1, 0, 0, 3, 4, 0], np.uint32)
    long = np.array([1, 2**64 - 1, 0, 5], np.uint64)
    kernel("integers").launch(a, u, whole, words, long, grid=2, block=128, orders=1)
    assert whole.tolist() == [7 + a.sum(), 8 - a.sum(), min(5, a.min()), max(-5, a.max())]
    total, folded = int(u.astype(np.uint64).sum()), int(np.bitwise_xor.reduce(u))
    counter, back = 3, 4
    for _ in range(256):
        counter = 0 if counter >= 9 else counter + 1
        back = 9 if back == 0 or back > 9 else back - 1
    held = [int(np.bitwise_and.reduce(u)), int(np.bitwise_or.reduce(u)), folded, counter, back, total % 2**32]
    assert words.tolist() == [(1 + total) % 2**32, u.min(), u.max(), *held]
    assert long.tolist() == [1 + total, int(u.min()) << 20, int(u.max()) << 20, 5 ^ folded << 32]


def test_an_exchange_loses_nothing(kernel: Kernels) -> None:
    lock, out = np.array([999], np.int32), np.zeros(LANES, np.int32)
    kernel("exchanged").launch(lock, out, block=LANES, orders=1)
    assert sorted([*out.tolist(), int(lock[0])]) == [*range(LANES), 999]


def test_atomics_of_reals(kernel: Kernels) -> None:
    a = (RNG.integers(-500, 500, 256) / 4).astype(np.float32)  # whose sums are exact in any order
    singles, doubles = np.array([1, 9, -9, 2], np.float32), np.array([1, 9, -9, 2], np.float64)
    # The first load of a loop of compare and swap is a plain one, which the check for races reports.
    kernel("reals").launch(a, singles, doubles, grid=2, block=128, orders=1, check=False)
    want = [1 + a.sum(), min(9, a.min()), max(-9, a.max()), 2 + a.sum()]
    assert singles.tolist() == doubles.tolist() == want


def test_atomics_in_lds(kernel: Kernels) -> None:
    a = (RNG.integers(-500, 500, 256) / 4).astype(np.float32)
    out = np.zeros_like(a)
    kernel("in_lds").launch(a, out, block=256, orders=4)
    np.testing.assert_array_equal(out, a.sum() + 255)


def _signed(x: int, bits: int = 32) -> int:
    return x - (1 << bits) if x >> (bits - 1) & 1 else x


def test_bits(kernel: Kernels) -> None:
    u, v = (RNG.integers(0, 2**32, 256).astype(np.uint32) for _ in range(2))
    u[:4], v[:4] = (0, 1, 2**32 - 1, 2**31), (0, 0, 2**31, 2**32 - 1)
    u[5:8] &= np.uint32(0x7F7FFFFF)
    out = np.zeros((256, 24), np.uint32)
    kernel("bits").launch(u, v, out, grid=2, block=128, orders=1)
    for x, y, got in zip(u.tolist(), v.tolist(), out.tolist(), strict=True):
        both, swapped = x << 32 | y, y << 32 | x
        octets = swapped.to_bytes(8, "little")
        low = [_signed(each & 0xFFFFFF, 24) for each in (x, y)]
        mask = 0xFF0
        want = [
            x.bit_count(), 32 - x.bit_length(), (x & -x).bit_length(), int(f"{x:032b}"[::-1], 2), both.bit_count(),
            64 - both.bit_length(), (both & -both).bit_length(), int(f"{both:064b}"[::-1], 2),
            _signed(x) * _signed(y) >> 32, x * y >> 32, low[0] * low[1],
            int.from_bytes(bytes(octets[k] for k in (3, 4, 1, 6)), "little"), x >> 5 & 511, swapped << 7 >> 32,
            swapped >> 7, abs(x - y) + 3, _signed(x) + _signed(y) >> 1, both * both >> 64, min(x, y),
            max(_signed(x), _signed(y)), x, x & ~mask | y << 4 & mask, swapped << 32 >> 32, swapped >> 32,
        ]  # fmt: skip
        assert got == [each % 2**32 for each in want], (x, y)


def test_vectors(kernel: Kernels) -> None:
    a = RNG.integers(-50, 50, (64, 4)).astype(np.float32)
    b = RNG.integers(-50, 50, (64, 3)).astype(np.int32)
    out, other, octets = np.zeros_like(a), np.zeros_like(b), np.zeros((64, 4), np.uint8)
    kernel("vectors").launch(a, b, out, other, octets, block=64, orders=1)
    np.testing.assert_array_equal(out, 1 + (a * 2 + np.array([1, 2, 3, 4])) / 2 - a)
    np.testing.assert_array_equal(other, (b << np.array([1, 2, 3])) ^ -b)
    np.testing.assert_array_equal(octets, np.concatenate([b.astype(np.uint8), np.ones((64, 1), np.uint8)], axis=1))


def test_complex_numbers(kernel: Kernels) -> None:
    a = RNG.integers(-9, 9, (64, 2)).astype(np.float32)
    out = np.zeros_like(a)
    kernel("complexes").launch(a, out, block=64, orders=1)
    numbers: NDArray[np.complex128] = a[:, 0].astype(np.complex128) + 1j * a[:, 1]
    want = numbers * numbers.conj() / 2j
    np.testing.assert_allclose(out, np.stack([want.real, want.imag], axis=1), rtol=1e-6)


def test_cooperative_groups(kernel: Kernels) -> None:
    a = RNG.integers(0, 100, 128).astype(np.int32)
    out = np.zeros((128, 8), np.int32)
    kernel("groups").launch(a, out, block=128, orders=1)
    for i in range(128):
        tile = a[i // 16 * 16 :][:16]
        ballot = sum(1 << k for k in range(16) if tile[k] & 1)
        odd = [j for j in range(i // LANES * LANES, (i // LANES + 1) * LANES) if a[j] & 1]
        together = len(odd) * 10000 + odd.index(i) * 100 + odd[1] if a[i] & 1 else 0
        asked = int((tile == 7).any()) + 2
        assert out[i].tolist() == [tile.sum(), i % 16, i // 16, 16, ballot, asked, 1600 + i % 16, together]


def test_what_a_device_prints_is_discarded(kernel: Kernels) -> None:
    a = np.arange(-32, 32, dtype=np.int32)
    out = np.zeros_like(a)
    kernel("checked").launch(a, out, 1000, block=64, orders=1)
    np.testing.assert_array_equal(out, a)


def test_the_stand_in_compiles_for_both_architectures_and_with_ziglang() -> None:
    assert {each.name for each in compiled(TEXT, "gfx942").kernels} == {each.name for each in compiled(TEXT).kernels}
    zig = compiled(TEXT, ARCH, "ziglang")
    assert {each.name for each in zig.kernels} == {each.name for each in compiled(TEXT).kernels}
