// rota's small stand-in for HIP's device headers, where no ROCm is installed: indices, barriers, lanes, atomics, bits.
#ifndef ROTA_HIP_DEVICE_H
#define ROTA_HIP_DEVICE_H

#include "rota_math.h"
#include "hip_vector_types.h"

#define __launch_bounds__(...) ROTA_BOUNDS(__VA_ARGS__, 0, 0)
#define ROTA_BOUNDS(most, ...) __attribute__((amdgpu_flat_work_group_size(1, most)))

// Where a work item is. block_count and group_size are the first hidden arguments of code objects from version 5 on
// (LLVM's AMDGPU usage guide, "Kernel Argument Metadata").

ROTA_DEVICE unsigned rota_block_count(int axis) {
  return ((const __attribute__((address_space(4))) unsigned *)__builtin_amdgcn_implicitarg_ptr())[axis];
}
ROTA_DEVICE unsigned rota_group_size(int axis) {
  return ((const __attribute__((address_space(4))) unsigned short *)__builtin_amdgcn_implicitarg_ptr())[6 + axis];
}

#define ROTA_INLINED __attribute__((device, always_inline, nodebug))
#define ROTA_PLACE(type, vector, at_x, at_y, at_z)                                  \
  struct type {                                                                     \
    __declspec(property(get = rota_x)) unsigned x;                                  \
    __declspec(property(get = rota_y)) unsigned y;                                  \
    __declspec(property(get = rota_z)) unsigned z;                                  \
    ROTA_INLINED unsigned rota_x() const { return at_x; }                            \
    ROTA_INLINED unsigned rota_y() const { return at_y; }                            \
    ROTA_INLINED unsigned rota_z() const { return at_z; }                            \
    ROTA_INLINED operator vector() const { return vector(at_x, at_y, at_z); }        \
  };
ROTA_PLACE(rota_thread_place, uint3, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
           __builtin_amdgcn_workitem_id_z())
ROTA_PLACE(rota_block_place, uint3, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
           __builtin_amdgcn_workgroup_id_z())
ROTA_PLACE(rota_block_size, dim3, rota_group_size(0), rota_group_size(1), rota_group_size(2))
ROTA_PLACE(rota_grid_size, dim3, rota_block_count(0), rota_block_count(1), rota_block_count(2))

extern const __attribute__((device, weak)) rota_thread_place threadIdx;
extern const __attribute__((device, weak)) rota_block_place blockIdx;
extern const __attribute__((device, weak)) rota_block_size blockDim;
extern const __attribute__((device, weak)) rota_grid_size gridDim;

#define hipThreadIdx_x (threadIdx.x)
#define hipThreadIdx_y (threadIdx.y)
#define hipThreadIdx_z (threadIdx.z)
#define hipBlockIdx_x (blockIdx.x)
#define hipBlockIdx_y (blockIdx.y)
#define hipBlockIdx_z (blockIdx.z)
#define hipBlockDim_x (blockDim.x)
#define hipBlockDim_y (blockDim.y)
#define hipBlockDim_z (blockDim.z)
#define hipGridDim_x (gridDim.x)
#define hipGridDim_y (gridDim.y)
#define hipGridDim_z (gridDim.z)

#if defined(__HIP_DEVICE_COMPILE__) && !defined(__GFX9__)
constexpr int warpSize = 32;
#else
constexpr int warpSize = 64;
#endif

// Barriers and fences.

ROTA_DEVICE void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
ROTA_DEVICE void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
ROTA_DEVICE void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
ROTA_DEVICE void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }
ROTA_DEVICE void rota_wave_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
ROTA_DEVICE void __syncwarp() { rota_wave_barrier(); }
template <typename Mask>
ROTA_DEVICE void __syncwarp(Mask) {
  static_assert(sizeof(Mask) == 8, "a mask of lanes has 64 bits");
  rota_wave_barrier();
}

// Lanes of a wave.

ROTA_DEVICE unsigned __lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
ROTA_DEVICE unsigned long long __ballot(int predicate) { return __builtin_amdgcn_ballot_w64(predicate != 0); }
ROTA_DEVICE unsigned long long __ballot64(int predicate) { return __ballot(predicate); }
ROTA_DEVICE unsigned long long __activemask() { return __builtin_amdgcn_ballot_w64(true); }
ROTA_DEVICE int __all(int predicate) { return __ballot(predicate) == __activemask(); }
ROTA_DEVICE int __any(int predicate) { return __ballot(predicate) != 0; }
ROTA_DEVICE unsigned long long __lanemask_lt() { return (1ull << __lane_id()) - 1; }
ROTA_DEVICE unsigned long long __lanemask_le() { return __lanemask_lt() << 1 | 1; }
ROTA_DEVICE unsigned long long __lanemask_eq() { return 1ull << __lane_id(); }
ROTA_DEVICE unsigned long long __lanemask_ge() { return ~__lanemask_lt(); }
ROTA_DEVICE unsigned long long __lanemask_gt() { return ~__lanemask_le(); }

template <typename Mask>
ROTA_DEVICE unsigned long long __ballot_sync(Mask mask, int predicate) {
  static_assert(sizeof(Mask) == 8, "a mask of lanes has 64 bits");
  return __ballot(predicate) & (unsigned long long)mask;
}
template <typename Mask>
ROTA_DEVICE int __all_sync(Mask mask, int predicate) {
  return __ballot_sync(mask, predicate) == (unsigned long long)mask;
}
template <typename Mask>
ROTA_DEVICE int __any_sync(Mask mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}

// Values of other lanes, word by word.

template <typename T>
ROTA_DEVICE T rota_from_lane(T value, int lane) {
  constexpr int words = (sizeof(T) + 3) / 4;
  struct {
    int word[words];
  } bits = {};
  __builtin_memcpy(&bits, &value, sizeof(T));
#pragma unroll
  for (int k = 0; k < words; k++) bits.word[k] = __builtin_amdgcn_ds_bpermute(lane << 2, bits.word[k]);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
ROTA_DEVICE T __shfl(T value, int lane, int width = warpSize) {
  int self = (int)__lane_id();
  return rota_from_lane(value, (lane & (width - 1)) + (self & ~(width - 1)));
}
template <typename T>
ROTA_DEVICE T __shfl_up(T value, unsigned delta, int width = warpSize) {
  int self = (int)__lane_id(), from = self - (int)delta;
  return rota_from_lane(value, from < (self & ~(width - 1)) ? self : from);
}
template <typename T>
ROTA_DEVICE T __shfl_down(T value, unsigned delta, int width = warpSize) {
  int self = (int)__lane_id(), from = self + (int)delta;
  return rota_from_lane(value, (self & (width - 1)) + (int)delta >= width ? self : from);
}
template <typename T>
ROTA_DEVICE T __shfl_xor(T value, int mask, int width = warpSize) {
  int self = (int)__lane_id(), from = self ^ mask;
  return rota_from_lane(value, from >= ((self + width) & ~(width - 1)) ? self : from);
}
#define ROTA_SHUFFLED(name, type)                                                     \
  template <typename Mask, typename T>                                                \
  ROTA_DEVICE T name##_sync(Mask, T value, type where, int width = warpSize) {        \
    static_assert(sizeof(Mask) == 8, "a mask of lanes has 64 bits");                  \
    return name(value, where, width);                                                 \
  }
ROTA_SHUFFLED(__shfl, int)
ROTA_SHUFFLED(__shfl_up, unsigned)
ROTA_SHUFFLED(__shfl_down, unsigned)
ROTA_SHUFFLED(__shfl_xor, int)

// Barriers that also count: every wave adds its lanes to a word of LDS.

ROTA_DEVICE int rota_count_items(bool predicate) {
  static __attribute__((shared)) int counted;
  bool first = __builtin_amdgcn_workitem_id_x() == 0 && __builtin_amdgcn_workitem_id_y() == 0 &&
               __builtin_amdgcn_workitem_id_z() == 0;
  __syncthreads();
  if (first) counted = 0;
  __syncthreads();
  if (predicate) __hip_atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  __syncthreads();
  return counted;
}
ROTA_DEVICE int __syncthreads_count(int predicate) { return rota_count_items(predicate != 0); }
ROTA_DEVICE int __syncthreads_or(int predicate) { return rota_count_items(predicate != 0) != 0; }
ROTA_DEVICE int __syncthreads_and(int predicate) { return rota_count_items(predicate == 0) == 0; }

// Atomics: relaxed, in the scope of the device, of the system or of the workgroup.

#define ROTA_ATOMIC(name, type, builtin, suffix, scope)               \
  ROTA_DEVICE type name##suffix(type *address, type value) {          \
    return builtin(address, value, __ATOMIC_RELAXED, scope);          \
  }
#define ROTA_ATOMIC_BITS(type, suffix, scope)                                       \
  ROTA_ATOMIC(atomicAnd, type, __hip_atomic_fetch_and, suffix, scope)               \
  ROTA_ATOMIC(atomicOr, type, __hip_atomic_fetch_or, suffix, scope)                 \
  ROTA_ATOMIC(atomicXor, type, __hip_atomic_fetch_xor, suffix, scope)
#define ROTA_ATOMIC_VALUES(type, suffix, scope)                                     \
  ROTA_ATOMIC(atomicAdd, type, __hip_atomic_fetch_add, suffix, scope)               \
  ROTA_ATOMIC(atomicMin, type, __hip_atomic_fetch_min, suffix, scope)               \
  ROTA_ATOMIC(atomicMax, type, __hip_atomic_fetch_max, suffix, scope)               \
  ROTA_ATOMIC(atomicExch, type, __hip_atomic_exchange, suffix, scope)               \
  ROTA_DEVICE type atomicSub##suffix(type *address, type value) {                   \
    return __hip_atomic_fetch_add(address, -value, __ATOMIC_RELAXED, scope);        \
  }                                                                                 \
  ROTA_DEVICE type atomicCAS##suffix(type *address, type expected, type value) {    \
    __hip_atomic_compare_exchange_strong(address, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED, scope); \
    return expected;                                                                \
  }
#define ROTA_ATOMICS(suffix, scope)                         \
  ROTA_ATOMIC_VALUES(int, suffix, scope)                    \
  ROTA_ATOMIC_VALUES(unsigned, suffix, scope)               \
  ROTA_ATOMIC_VALUES(long, suffix, scope)                   \
  ROTA_ATOMIC_VALUES(unsigned long, suffix, scope)          \
  ROTA_ATOMIC_VALUES(long long, suffix, scope)              \
  ROTA_ATOMIC_VALUES(unsigned long long, suffix, scope)     \
  ROTA_ATOMIC_VALUES(float, suffix, scope)                  \
  ROTA_ATOMIC_VALUES(double, suffix, scope)                 \
  ROTA_ATOMIC_BITS(int, suffix, scope)                      \
  ROTA_ATOMIC_BITS(unsigned, suffix, scope)                 \
  ROTA_ATOMIC_BITS(long, suffix, scope)                     \
  ROTA_ATOMIC_BITS(unsigned long, suffix, scope)            \
  ROTA_ATOMIC_BITS(long long, suffix, scope)                \
  ROTA_ATOMIC_BITS(unsigned long long, suffix, scope)
ROTA_ATOMICS(, __HIP_MEMORY_SCOPE_AGENT)
ROTA_ATOMICS(_system, __HIP_MEMORY_SCOPE_SYSTEM)
ROTA_ATOMICS(_block, __HIP_MEMORY_SCOPE_WORKGROUP)

ROTA_DEVICE unsigned atomicInc(unsigned *address, unsigned most) {
  return __builtin_amdgcn_atomic_inc32(address, most, __ATOMIC_RELAXED, "agent");
}
ROTA_DEVICE unsigned atomicDec(unsigned *address, unsigned most) {
  return __builtin_amdgcn_atomic_dec32(address, most, __ATOMIC_RELAXED, "agent");
}
ROTA_DEVICE void atomicAddNoRet(float *address, float value) { atomicAdd(address, value); }

#if __has_extension(clang_atomic_attributes)
#define ROTA_COARSE_MEMORY [[clang::atomic(no_remote_memory, no_fine_grained_memory, ignore_denormal_mode)]]
#else
#define ROTA_COARSE_MEMORY
#endif
#define ROTA_UNSAFE(name, type, builtin)                                                  \
  ROTA_DEVICE type name(type *address, type value) {                                      \
    ROTA_COARSE_MEMORY {                                                                  \
      return builtin(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);         \
    }                                                                                     \
  }
ROTA_UNSAFE(unsafeAtomicAdd, float, __hip_atomic_fetch_add)
ROTA_UNSAFE(unsafeAtomicAdd, double, __hip_atomic_fetch_add)
ROTA_UNSAFE(unsafeAtomicMin, float, __hip_atomic_fetch_min)
ROTA_UNSAFE(unsafeAtomicMin, double, __hip_atomic_fetch_min)
ROTA_UNSAFE(unsafeAtomicMax, float, __hip_atomic_fetch_max)
ROTA_UNSAFE(unsafeAtomicMax, double, __hip_atomic_fetch_max)
ROTA_DEVICE float safeAtomicAdd(float *address, float value) { return atomicAdd(address, value); }
ROTA_DEVICE double safeAtomicAdd(double *address, double value) { return atomicAdd(address, value); }

// Bits and integers.

ROTA_DEVICE unsigned __popc(unsigned x) { return (unsigned)__builtin_popcount(x); }
ROTA_DEVICE unsigned __popcll(unsigned long long x) { return (unsigned)__builtin_popcountll(x); }
ROTA_DEVICE int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
ROTA_DEVICE int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
ROTA_DEVICE int __ffs(unsigned x) { return x == 0 ? 0 : __builtin_ctz(x) + 1; }
ROTA_DEVICE int __ffs(int x) { return __ffs((unsigned)x); }
ROTA_DEVICE int __ffsll(unsigned long long x) { return x == 0 ? 0 : __builtin_ctzll(x) + 1; }
ROTA_DEVICE int __ffsll(long long x) { return __ffsll((unsigned long long)x); }
ROTA_DEVICE int __ffsll(unsigned long x) { return __ffsll((unsigned long long)x); }
ROTA_DEVICE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
ROTA_DEVICE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
ROTA_DEVICE int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
ROTA_DEVICE int __umul24(unsigned x, unsigned y) { return (int)((x & 0xffffffu) * (y & 0xffffffu)); }
ROTA_DEVICE int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
ROTA_DEVICE unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
ROTA_DEVICE long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
ROTA_DEVICE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
ROTA_DEVICE int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
ROTA_DEVICE int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
ROTA_DEVICE unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y) >> 1); }
ROTA_DEVICE unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y + 1) >> 1); }
ROTA_DEVICE unsigned __sad(int x, int y, unsigned z) { return (x > y ? (unsigned)x - y : (unsigned)y - x) + z; }
ROTA_DEVICE unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x > y ? x - y : y - x) + z; }
ROTA_DEVICE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned result = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) result |= (unsigned)(both >> (selector >> 4 * k & 7) * 8 & 255) << 8 * k;
  return result;
}
ROTA_DEVICE unsigned __bitextract_u32(unsigned x, unsigned from, unsigned bits) {
  from &= 31, bits &= 31;
  return bits == 0 ? 0 : x << (from + bits < 32 ? 32 - from - bits : 0) >> (from + bits < 32 ? 32 - bits : from);
}
ROTA_DEVICE unsigned long long __bitextract_u64(unsigned long long x, unsigned from, unsigned bits) {
  from &= 63, bits &= 63;
  return bits == 0 ? 0 : x << (from + bits < 64 ? 64 - from - bits : 0) >> (from + bits < 64 ? 64 - bits : from);
}
ROTA_DEVICE unsigned __bitinsert_u32(unsigned x, unsigned y, unsigned from, unsigned bits) {
  from &= 31, bits &= 31;
  unsigned mask = ((1u << bits) - 1) << from;
  return (x & ~mask) | (y << from & mask);
}
ROTA_DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((unsigned long long)high << 32 | low) << (by & 31) >> 32);
}
ROTA_DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (by & 31));
}
ROTA_DEVICE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((unsigned long long)high << 32 | low) << (by < 32 ? by : 32) >> 32);
}
ROTA_DEVICE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (by < 32 ? by : 32));
}

#define ROTA_SMALLER(type)                                           \
  ROTA_BOTH type min(type x, type y) { return y < x ? y : x; }       \
  ROTA_BOTH type max(type x, type y) { return x < y ? y : x; }
ROTA_SMALLER(int)
ROTA_SMALLER(unsigned)
ROTA_SMALLER(long)
ROTA_SMALLER(unsigned long)
ROTA_SMALLER(long long)
ROTA_SMALLER(unsigned long long)
#define ROTA_SMALLER_MIXED(one, other, type)                                              \
  ROTA_BOTH type min(one x, other y) { return min((type)x, (type)y); }                    \
  ROTA_BOTH type min(other x, one y) { return min((type)x, (type)y); }                    \
  ROTA_BOTH type max(one x, other y) { return max((type)x, (type)y); }                    \
  ROTA_BOTH type max(other x, one y) { return max((type)x, (type)y); }
ROTA_SMALLER_MIXED(int, unsigned, unsigned)
ROTA_SMALLER_MIXED(long, unsigned long, unsigned long)
ROTA_SMALLER_MIXED(long long, unsigned long long, unsigned long long)
ROTA_BOTH float min(float x, float y) { return __builtin_fminf(x, y); }
ROTA_BOTH float max(float x, float y) { return __builtin_fmaxf(x, y); }
ROTA_BOTH double min(double x, double y) { return __builtin_fmin(x, y); }
ROTA_BOTH double max(double x, double y) { return __builtin_fmax(x, y); }
ROTA_SMALLER_MIXED(float, double, double)

// Bits of numbers, and conversions. A number beyond all integers of a type becomes the nearest of these, and NaN
// becomes 0, as by the hardware's conversions.

ROTA_DEVICE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
ROTA_DEVICE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
ROTA_DEVICE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
ROTA_DEVICE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
ROTA_DEVICE long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
ROTA_DEVICE double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
ROTA_DEVICE int __double2hiint(double x) { return (int)(__builtin_bit_cast(long long, x) >> 32); }
ROTA_DEVICE int __double2loint(double x) { return (int)__builtin_bit_cast(long long, x); }
ROTA_DEVICE double __hiloint2double(int high, int low) {
  return __builtin_bit_cast(double, (unsigned long long)(unsigned)high << 32 | (unsigned)low);
}

template <typename Integer, typename Number>
ROTA_DEVICE Integer rota_nearest(Number x) {
  constexpr bool has_sign = (Integer)~0 < 0;
  constexpr Integer most = (Integer)(~0ull >> (64 - 8 * sizeof(Integer) + has_sign));
  constexpr Integer least = has_sign ? -most - 1 : 0;
  return x != x ? 0 : x >= (Number)most ? most : x <= (Number)least ? least : (Integer)x;
}
#define ROTA_CONVERTED(from, number, to, integer, suffix)                                                          \
  ROTA_DEVICE integer __##from##2##to##_rz(number x) { return rota_nearest<integer>(__builtin_trunc##suffix(x)); } \
  ROTA_DEVICE integer __##from##2##to##_rn(number x) { return rota_nearest<integer>(__builtin_rint##suffix(x)); }  \
  ROTA_DEVICE integer __##from##2##to##_rd(number x) { return rota_nearest<integer>(__builtin_floor##suffix(x)); } \
  ROTA_DEVICE integer __##from##2##to##_ru(number x) { return rota_nearest<integer>(__builtin_ceil##suffix(x)); }
ROTA_CONVERTED(float, float, int, int, f)
ROTA_CONVERTED(float, float, uint, unsigned, f)
ROTA_CONVERTED(float, float, ll, long long, f)
ROTA_CONVERTED(float, float, ull, unsigned long long, f)
ROTA_CONVERTED(double, double, int, int, )
ROTA_CONVERTED(double, double, uint, unsigned, )
ROTA_CONVERTED(double, double, ll, long long, )
ROTA_CONVERTED(double, double, ull, unsigned long long, )
ROTA_DEVICE float __int2float_rn(int x) { return (float)x; }
ROTA_DEVICE float __uint2float_rn(unsigned x) { return (float)x; }
ROTA_DEVICE float __ll2float_rn(long long x) { return (float)x; }
ROTA_DEVICE float __ull2float_rn(unsigned long long x) { return (float)x; }
ROTA_DEVICE double __int2double_rn(int x) { return x; }
ROTA_DEVICE double __uint2double_rn(unsigned x) { return x; }
ROTA_DEVICE double __ll2double_rn(long long x) { return (double)x; }
ROTA_DEVICE double __ull2double_rn(unsigned long long x) { return (double)x; }
ROTA_DEVICE float __double2float_rn(double x) { return (float)x; }

// Loads and stores with a hint, clocks, and what only ends or discards.

template <typename T>
ROTA_DEVICE T __ldg(const T *address) {
  return *address;
}
template <typename T>
ROTA_DEVICE T __ldcg(const T *address) {
  return *address;
}
template <typename T>
ROTA_DEVICE T __ldcs(const T *address) {
  return __builtin_nontemporal_load(address);
}
template <typename T>
ROTA_DEVICE void __stcs(T *address, T value) {
  __builtin_nontemporal_store(value, address);
}

ROTA_DEVICE long long clock64() { return (long long)__builtin_readcyclecounter(); }
ROTA_DEVICE long long clock() { return clock64(); }
ROTA_DEVICE long long wall_clock64() { return (long long)__builtin_readsteadycounter(); }
ROTA_DEVICE void __nanosleep(unsigned) { __builtin_amdgcn_s_sleep(1); }
ROTA_DEVICE void __trap() { __builtin_trap(); }
ROTA_DEVICE void abort() { __builtin_trap(); }

// What a device prints is discarded; its arguments are computed.
template <typename... Values>
ROTA_DEVICE int printf(const char *, Values...) {
  return 0;
}

ROTA_DEVICE void *memcpy(void *to, const void *from, __SIZE_TYPE__ bytes) {
  return __builtin_memcpy(to, from, bytes);
}
ROTA_DEVICE void *memset(void *to, int value, __SIZE_TYPE__ bytes) { return __builtin_memset(to, value, bytes); }

// What an assertion would print is dropped, and with it the name of the file.
extern "C" {
ROTA_INLINED __attribute__((noreturn)) inline void __assert_fail(const char *, const char *, unsigned, const char *) {
  __builtin_trap();
}
}

#endif
