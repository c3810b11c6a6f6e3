// rota's small stand-in for HIP's device headers, where no ROCm is installed: __half and __half2.
//
// + - * / fma and sqrt round once, to nearest even; exp, log, sin and cos are computed in float and rounded.
#ifndef ROTA_HIP_FP16_H
#define ROTA_HIP_FP16_H

#include "hip_runtime.h"

#define ROTA_HALF static inline __attribute__((host, device, always_inline, nodebug, unused))

struct __half_raw {
  unsigned short x;
};
struct __half2_raw {
  unsigned short x, y;
};

struct __half {
  _Float16 data;
  __half() = default;
  ROTA_MEMBER __half(_Float16 x) : data(x) {}
  ROTA_MEMBER __half(float x) : data((_Float16)x) {}
  ROTA_MEMBER __half(double x) : data((_Float16)x) {}
  ROTA_MEMBER __half(int x) : data((_Float16)x) {}
  ROTA_MEMBER __half(unsigned x) : data((_Float16)x) {}
  ROTA_MEMBER __half(long x) : data((_Float16)x) {}
  ROTA_MEMBER __half(unsigned long x) : data((_Float16)x) {}
  ROTA_MEMBER __half(long long x) : data((_Float16)x) {}
  ROTA_MEMBER __half(unsigned long long x) : data((_Float16)x) {}
  ROTA_MEMBER __half(short x) : data((_Float16)x) {}
  ROTA_MEMBER __half(unsigned short x) : data((_Float16)x) {}
  ROTA_MEMBER __half(const __half_raw &raw) : data(__builtin_bit_cast(_Float16, raw.x)) {}
  ROTA_MEMBER operator _Float16() const { return data; }
  ROTA_MEMBER operator float() const { return (float)data; }
  ROTA_MEMBER operator __half_raw() const { return {__builtin_bit_cast(unsigned short, data)}; }
  ROTA_MEMBER explicit operator double() const { return (double)data; }
  template <typename T, typename = typename rota_integer<T>::type>
  ROTA_MEMBER explicit operator T() const { return (T)data; }
  ROTA_MEMBER explicit operator bool() const { return data != 0; }
  ROTA_MEMBER __half &operator+=(const __half &x) { return data += x.data, *this; }
  ROTA_MEMBER __half &operator-=(const __half &x) { return data -= x.data, *this; }
  ROTA_MEMBER __half &operator*=(const __half &x) { return data *= x.data, *this; }
  ROTA_MEMBER __half &operator/=(const __half &x) { return data /= x.data, *this; }
  ROTA_MEMBER __half &operator++() { return data += (_Float16)1, *this; }
  ROTA_MEMBER __half &operator--() { return data -= (_Float16)1, *this; }
};
typedef __half half;

struct __attribute__((aligned(4))) __half2 {
  __half x, y;
  __half2() = default;
  ROTA_MEMBER __half2(const __half &a, const __half &b) : x(a), y(b) {}
  ROTA_MEMBER explicit __half2(const __half &a) : x(a), y(a) {}
};
typedef __half2 half2;

#define ROTA_HALF_OPERATOR(op)                                                                                  \
  ROTA_PART __half operator op(const __half &a, const __half &b) { return __half((_Float16)(a.data op b.data)); } \
  ROTA_PART __half2 operator op(const __half2 &a, const __half2 &b) { return {a.x op b.x, a.y op b.y}; }          \
  ROTA_PART __half2 &operator op##=(__half2 &a, const __half2 &b) { return a = a op b; }
ROTA_HALF_OPERATOR(+)
ROTA_HALF_OPERATOR(-)
ROTA_HALF_OPERATOR(*)
ROTA_HALF_OPERATOR(/)
ROTA_PART __half operator-(const __half &a) { return __half((_Float16)-a.data); }
ROTA_PART __half operator+(const __half &a) { return a; }
ROTA_PART __half2 operator-(const __half2 &a) { return {-a.x, -a.y}; }
#define ROTA_HALF_ORDER(op) \
  ROTA_PART bool operator op(const __half &a, const __half &b) { return a.data op b.data; }
ROTA_HALF_ORDER(==)
ROTA_HALF_ORDER(!=)
ROTA_HALF_ORDER(<)
ROTA_HALF_ORDER(>)
ROTA_HALF_ORDER(<=)
ROTA_HALF_ORDER(>=)

// Conversions.

ROTA_HALF __half __float2half(float x) { return __half(x); }
ROTA_HALF __half __float2half_rn(float x) { return __half(x); }
ROTA_HALF __half __double2half(double x) { return __half(x); }
ROTA_HALF float __half2float(__half x) { return (float)x.data; }
ROTA_DEVICE __half __float2half_rz(float x) {
  return __half(__builtin_bit_cast(_Float16, (unsigned short)__builtin_bit_cast(
                                                 unsigned, __builtin_amdgcn_cvt_pkrtz(x, 0.0f))));
}
ROTA_HALF __half2 __float2half2_rn(float x) { return __half2(__half(x)); }
ROTA_HALF __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
ROTA_HALF __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
ROTA_HALF float2 __half22float2(__half2 v) { return {(float)v.x.data, (float)v.y.data}; }
ROTA_HALF float __low2float(__half2 v) { return (float)v.x.data; }
ROTA_HALF float __high2float(__half2 v) { return (float)v.y.data; }
ROTA_HALF __half __low2half(__half2 v) { return v.x; }
ROTA_HALF __half __high2half(__half2 v) { return v.y; }
ROTA_HALF __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
ROTA_HALF __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
ROTA_HALF __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }
ROTA_HALF __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
ROTA_HALF __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
ROTA_HALF __half2 __halves2half2(__half a, __half b) { return {a, b}; }
ROTA_HALF __half2 __half2half2(__half a) { return {a, a}; }
ROTA_HALF __half2 make_half2(__half a, __half b) { return {a, b}; }
ROTA_HALF unsigned short __half_as_ushort(__half x) { return __builtin_bit_cast(unsigned short, x.data); }
ROTA_HALF short __half_as_short(__half x) { return __builtin_bit_cast(short, x.data); }
ROTA_HALF __half __ushort_as_half(unsigned short x) { return __half(__builtin_bit_cast(_Float16, x)); }
ROTA_HALF __half __short_as_half(short x) { return __half(__builtin_bit_cast(_Float16, x)); }
ROTA_HALF __half __int2half_rn(int x) { return __half(x); }
ROTA_HALF __half __uint2half_rn(unsigned x) { return __half(x); }
ROTA_HALF __half __short2half_rn(short x) { return __half(x); }
ROTA_HALF __half __ushort2half_rn(unsigned short x) { return __half(x); }
ROTA_DEVICE int __half2int_rn(__half x) { return (int)__builtin_rintf((float)x.data); }
ROTA_DEVICE int __half2int_rz(__half x) { return (int)(float)x.data; }
ROTA_DEVICE unsigned __half2uint_rn(__half x) { return (unsigned)__builtin_rintf((float)x.data); }
ROTA_DEVICE unsigned __half2uint_rz(__half x) { return (unsigned)(float)x.data; }

// Arithmetic by name, of one and of two.

#define ROTA_HALF_NAMED(name, op)                                                      \
  ROTA_DEVICE __half __h##name(__half a, __half b) { return a op b; }                   \
  ROTA_DEVICE __half __h##name##_rn(__half a, __half b) { return a op b; }              \
  ROTA_DEVICE __half2 __h##name##2(__half2 a, __half2 b) { return a op b; }
ROTA_HALF_NAMED(add, +)
ROTA_HALF_NAMED(sub, -)
ROTA_HALF_NAMED(mul, *)
ROTA_DEVICE __half __hdiv(__half a, __half b) { return a / b; }
ROTA_DEVICE __half2 __h2div(__half2 a, __half2 b) { return a / b; }
ROTA_DEVICE __half __hneg(__half a) { return -a; }
ROTA_DEVICE __half2 __hneg2(__half2 a) { return -a; }
ROTA_DEVICE __half __habs(__half a) { return __half(__builtin_fabsf16(a.data)); }
ROTA_DEVICE __half2 __habs2(__half2 a) { return {__habs(a.x), __habs(a.y)}; }
ROTA_DEVICE __half __hfma(__half a, __half b, __half c) { return __half(__builtin_fmaf16(a.data, b.data, c.data)); }
ROTA_DEVICE __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
ROTA_DEVICE __half __hmax(__half a, __half b) { return __half(__builtin_fmaxf16(a.data, b.data)); }
ROTA_DEVICE __half __hmin(__half a, __half b) { return __half(__builtin_fminf16(a.data, b.data)); }
ROTA_DEVICE __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
ROTA_DEVICE __half2 __hmin2(__half2 a, __half2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
ROTA_DEVICE bool __hisnan(__half a) { return a.data != a.data; }
ROTA_DEVICE int __hisinf(__half a) { return __builtin_isinf((float)a.data); }
#define ROTA_HALF_COMPARED(name, op)                                           \
  ROTA_DEVICE bool __h##name(__half a, __half b) { return a.data op b.data; }  \
  ROTA_DEVICE __half2 __h##name##2(__half2 a, __half2 b) {                     \
    return {__half((int)(a.x op b.x)), __half((int)(a.y op b.y))};             \
  }
ROTA_HALF_COMPARED(eq, ==)
ROTA_HALF_COMPARED(ne, !=)
ROTA_HALF_COMPARED(lt, <)
ROTA_HALF_COMPARED(gt, >)
ROTA_HALF_COMPARED(le, <=)
ROTA_HALF_COMPARED(ge, >=)
#define ROTA_HALF_FUNCTION(name, ...)                              \
  ROTA_DEVICE __half h##name(__half a) {                           \
    float x = (float)a.data;                                       \
    return __half((float)(__VA_ARGS__));                           \
  }                                                                \
  ROTA_DEVICE __half2 h2##name(__half2 a) { return {h##name(a.x), h##name(a.y)}; }
ROTA_HALF_FUNCTION(exp, expf(x))
ROTA_HALF_FUNCTION(exp2, exp2f(x))
ROTA_HALF_FUNCTION(exp10, exp10f(x))
ROTA_HALF_FUNCTION(log, logf(x))
ROTA_HALF_FUNCTION(log2, log2f(x))
ROTA_HALF_FUNCTION(log10, log10f(x))
ROTA_HALF_FUNCTION(sqrt, sqrtf(x))
ROTA_HALF_FUNCTION(rsqrt, 1.0 / __builtin_sqrt((double)x))
ROTA_HALF_FUNCTION(rcp, 1.0f / x)
ROTA_HALF_FUNCTION(sin, sinf(x))
ROTA_HALF_FUNCTION(cos, cosf(x))
ROTA_HALF_FUNCTION(floor, floorf(x))
ROTA_HALF_FUNCTION(ceil, ceilf(x))
ROTA_HALF_FUNCTION(trunc, truncf(x))
ROTA_HALF_FUNCTION(rint, rintf(x))

#endif
