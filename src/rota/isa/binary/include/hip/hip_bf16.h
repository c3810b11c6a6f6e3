// rota's small stand-in for HIP's device headers, where no ROCm is installed: __hip_bfloat16 and __hip_bfloat162.
//
// Arithmetic is done in float and rounded to nearest even.
#ifndef ROTA_HIP_BF16_H
#define ROTA_HIP_BF16_H

#include "hip_runtime.h"

#define ROTA_BF16 static inline __attribute__((host, device, always_inline, nodebug, unused))

struct __hip_bfloat16_raw {
  unsigned short x;
};

struct __hip_bfloat16 {
  unsigned short rota_bits;
  __hip_bfloat16() = default;
  ROTA_MEMBER __hip_bfloat16(float x) : rota_bits(__builtin_bit_cast(unsigned short, (__bf16)x)) {}
  ROTA_MEMBER __hip_bfloat16(double x) : __hip_bfloat16(rota_odd(x)) {}
  ROTA_MEMBER __hip_bfloat16(int x) : __hip_bfloat16((double)x) {}
  ROTA_MEMBER __hip_bfloat16(unsigned x) : __hip_bfloat16((double)x) {}
  ROTA_MEMBER __hip_bfloat16(short x) : __hip_bfloat16((float)x) {}
  ROTA_MEMBER __hip_bfloat16(unsigned short x) : __hip_bfloat16((float)x) {}
  ROTA_MEMBER __hip_bfloat16(const __hip_bfloat16_raw &raw) : rota_bits(raw.x) {}
  ROTA_MEMBER operator __hip_bfloat16_raw() const { return {rota_bits}; }
  ROTA_MEMBER operator float() const { return __builtin_bit_cast(float, (unsigned)rota_bits << 16); }
  ROTA_MEMBER explicit operator double() const { return (float)*this; }
  template <typename T, typename = typename rota_integer<T>::type>
  ROTA_MEMBER explicit operator T() const { return (T)(float)*this; }
  ROTA_MEMBER explicit operator bool() const { return (float)*this != 0.0f; }

 private:
  // A float between the same two bf16 numbers: the double cut off, with its last bit set if bits were lost.
  static ROTA_MEMBER float rota_odd(double x) {
    float near = (float)x;
    if ((double)near == x || x != x) return near;
    unsigned bits = __builtin_bit_cast(unsigned, near);
    bool away = near < 0 ? (double)near < x : (double)near > x;
    return __builtin_bit_cast(float, (away ? bits - 1 : bits) | 1u);
  }
};

struct __attribute__((aligned(4))) __hip_bfloat162 {
  __hip_bfloat16 x, y;
  __hip_bfloat162() = default;
  ROTA_MEMBER __hip_bfloat162(const __hip_bfloat16 &a, const __hip_bfloat16 &b) : x(a), y(b) {}
};
typedef __hip_bfloat16 __nv_bfloat16;
typedef __hip_bfloat162 __nv_bfloat162;

#define ROTA_BF16_OPERATOR(op)                                                                       \
  ROTA_PART __hip_bfloat16 operator op(const __hip_bfloat16 &a, const __hip_bfloat16 &b) {           \
    return __hip_bfloat16((float)a op(float) b);                                                     \
  }                                                                                                  \
  ROTA_PART __hip_bfloat16 &operator op##=(__hip_bfloat16 &a, const __hip_bfloat16 &b) { return a = a op b; } \
  ROTA_PART __hip_bfloat162 operator op(const __hip_bfloat162 &a, const __hip_bfloat162 &b) {        \
    return {a.x op b.x, a.y op b.y};                                                                 \
  }                                                                                                  \
  ROTA_PART __hip_bfloat162 &operator op##=(__hip_bfloat162 &a, const __hip_bfloat162 &b) { return a = a op b; }
ROTA_BF16_OPERATOR(+)
ROTA_BF16_OPERATOR(-)
ROTA_BF16_OPERATOR(*)
ROTA_BF16_OPERATOR(/)
ROTA_PART __hip_bfloat16 operator-(const __hip_bfloat16 &a) {
  return __hip_bfloat16(__hip_bfloat16_raw{(unsigned short)(a.rota_bits ^ 0x8000)});
}
ROTA_PART __hip_bfloat162 operator-(const __hip_bfloat162 &a) { return {-a.x, -a.y}; }
#define ROTA_BF16_ORDER(name, op)                                                                           \
  ROTA_PART bool operator op(const __hip_bfloat16 &a, const __hip_bfloat16 &b) { return (float)a op(float) b; } \
  ROTA_DEVICE bool __h##name(__hip_bfloat16 a, __hip_bfloat16 b) { return (float)a op(float) b; }
ROTA_BF16_ORDER(eq, ==)
ROTA_BF16_ORDER(ne, !=)
ROTA_BF16_ORDER(lt, <)
ROTA_BF16_ORDER(gt, >)
ROTA_BF16_ORDER(le, <=)
ROTA_BF16_ORDER(ge, >=)

ROTA_BF16 __hip_bfloat16 __float2bfloat16(float x) { return __hip_bfloat16(x); }
ROTA_BF16 __hip_bfloat16 __float2bfloat16_rn(float x) { return __hip_bfloat16(x); }
ROTA_BF16 __hip_bfloat16 __double2bfloat16(double x) { return __hip_bfloat16(x); }
ROTA_BF16 __hip_bfloat16 __int2bfloat16_rn(int x) { return __hip_bfloat16(x); }
ROTA_BF16 float __bfloat162float(__hip_bfloat16 x) { return (float)x; }
ROTA_BF16 __hip_bfloat162 __float2bfloat162_rn(float x) { return {__hip_bfloat16(x), __hip_bfloat16(x)}; }
ROTA_BF16 __hip_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__hip_bfloat16(x), __hip_bfloat16(y)}; }
ROTA_BF16 __hip_bfloat162 __float22bfloat162_rn(float2 v) { return {__hip_bfloat16(v.x), __hip_bfloat16(v.y)}; }
ROTA_BF16 float2 __bfloat1622float2(__hip_bfloat162 v) { return {(float)v.x, (float)v.y}; }
ROTA_BF16 __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return {x, x}; }
ROTA_BF16 __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 a, __hip_bfloat16 b) { return {a, b}; }
ROTA_BF16 __hip_bfloat162 make_bfloat162(__hip_bfloat16 a, __hip_bfloat16 b) { return {a, b}; }
ROTA_BF16 __hip_bfloat16 __low2bfloat16(__hip_bfloat162 v) { return v.x; }
ROTA_BF16 __hip_bfloat16 __high2bfloat16(__hip_bfloat162 v) { return v.y; }
ROTA_BF16 float __low2float(__hip_bfloat162 v) { return (float)v.x; }
ROTA_BF16 float __high2float(__hip_bfloat162 v) { return (float)v.y; }
ROTA_BF16 unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) { return x.rota_bits; }
ROTA_BF16 short __bfloat16_as_short(__hip_bfloat16 x) { return (short)x.rota_bits; }
ROTA_BF16 __hip_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __hip_bfloat16_raw{x}; }
ROTA_BF16 __hip_bfloat16 __short_as_bfloat16(short x) { return __hip_bfloat16_raw{(unsigned short)x}; }

#define ROTA_BF16_NAMED(name, op)                                                                    \
  ROTA_DEVICE __hip_bfloat16 __h##name(__hip_bfloat16 a, __hip_bfloat16 b) { return a op b; }         \
  ROTA_DEVICE __hip_bfloat162 __h##name##2(__hip_bfloat162 a, __hip_bfloat162 b) { return a op b; }
ROTA_BF16_NAMED(add, +)
ROTA_BF16_NAMED(sub, -)
ROTA_BF16_NAMED(mul, *)
ROTA_DEVICE __hip_bfloat16 __hdiv(__hip_bfloat16 a, __hip_bfloat16 b) { return a / b; }
ROTA_DEVICE __hip_bfloat16 __hneg(__hip_bfloat16 a) { return -a; }
ROTA_DEVICE __hip_bfloat162 __hneg2(__hip_bfloat162 a) { return -a; }
ROTA_DEVICE __hip_bfloat16 __habs(__hip_bfloat16 a) {
  return __hip_bfloat16_raw{(unsigned short)(a.rota_bits & 0x7fff)};
}
ROTA_DEVICE __hip_bfloat16 __hfma(__hip_bfloat16 a, __hip_bfloat16 b, __hip_bfloat16 c) {
  return __hip_bfloat16(__builtin_fmaf((float)a, (float)b, (float)c));
}
ROTA_DEVICE __hip_bfloat162 __hfma2(__hip_bfloat162 a, __hip_bfloat162 b, __hip_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
ROTA_DEVICE __hip_bfloat16 __hmax(__hip_bfloat16 a, __hip_bfloat16 b) {
  return __hip_bfloat16(__builtin_fmaxf((float)a, (float)b));
}
ROTA_DEVICE __hip_bfloat16 __hmin(__hip_bfloat16 a, __hip_bfloat16 b) {
  return __hip_bfloat16(__builtin_fminf((float)a, (float)b));
}
ROTA_DEVICE bool __hisnan(__hip_bfloat16 a) { return (float)a != (float)a; }
ROTA_DEVICE bool __hisinf(__hip_bfloat16 a) { return (a.rota_bits & 0x7fff) == 0x7f80; }
#define ROTA_BF16_FUNCTION(name, ...)                              \
  ROTA_DEVICE __hip_bfloat16 h##name(__hip_bfloat16 a) {           \
    float x = (float)a;                                            \
    return __hip_bfloat16((float)(__VA_ARGS__));                   \
  }
ROTA_BF16_FUNCTION(exp, expf(x))
ROTA_BF16_FUNCTION(exp2, exp2f(x))
ROTA_BF16_FUNCTION(log, logf(x))
ROTA_BF16_FUNCTION(log2, log2f(x))
ROTA_BF16_FUNCTION(sqrt, sqrtf(x))
ROTA_BF16_FUNCTION(rsqrt, 1.0 / __builtin_sqrt((double)x))
ROTA_BF16_FUNCTION(rcp, 1.0f / x)
ROTA_BF16_FUNCTION(sin, sinf(x))
ROTA_BF16_FUNCTION(cos, cosf(x))

#endif
