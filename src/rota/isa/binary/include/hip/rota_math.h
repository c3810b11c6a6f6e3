// rota's small stand-in for HIP's device headers, where no ROCm is installed: keywords and math. Device code alone.
//
// It is included before every other file, since libstdc++ must see these functions before its own: a constexpr function
// of <cmath> that has a device twin stays host code, and device code calls the twin.
//
// Accuracy. + - * / fma sqrt and rounding are as IEEE 754 says. float: exp, log and their kin are clang's expansions
// (within 3 ulp); the others are computed in double and rounded once. double: within 2^-47 of the value, except erf and
// erfc (1e-12), and sin, cos and tan, whose error grows with arguments beyond 2^30. __sinf, __expf and other names with
// underscores are the hardware's approximations.
#ifndef ROTA_HIP_MATH_H
#define ROTA_HIP_MATH_H

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __forceinline__ inline __attribute__((always_inline))

// Without debug lines of their own, their instructions have the line of the call: findings name the user's source.
#define ROTA_DEVICE static inline __attribute__((device, always_inline, nodebug, unused))
#define ROTA_BOTH static inline __attribute__((host, device, always_inline, nodebug, unused))

// Arithmetic that both precisions need, in double.

ROTA_DEVICE bool rota_is_nan(double x) { return x != x; }
ROTA_DEVICE double rota_infinity() { return __builtin_huge_val(); }

struct rota_sum {  // a number as the sum of a double and a much smaller one
  double high, low;
};

ROTA_DEVICE double rota_exp_sum(rota_sum x) {
  double n = __builtin_rint(x.high * 0x1.71547652b82fep+0);
  double r = __builtin_fma(-n, 0x1.62e42fefa39efp-1, x.high);
  r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, r + x.low);
  double sum = 1.0 / 87178291200.0;  // 1 / 14!
  double factor = 87178291200.0;
#pragma unroll
  for (int k = 14; k > 0; k--) {
    factor /= k;
    sum = __builtin_fma(sum, r, 1.0 / factor);
  }
  double y = __builtin_ldexp(sum, (int)n);
  y = x.high > 710.0 ? rota_infinity() : y;
  y = x.high < -746.0 ? 0.0 : y;
  return rota_is_nan(x.high) ? x.high : y;
}
ROTA_DEVICE double rota_exp(double x) { return rota_exp_sum({x, 0.0}); }

ROTA_DEVICE double rota_expm1(double x) {
  double sum = 1.0 / 355687428096000.0;  // 1 / 17!
  double factor = 355687428096000.0;
#pragma unroll
  for (int k = 17; k > 1; k--) {
    factor /= k;
    sum = __builtin_fma(sum, x, 1.0 / factor);
  }
  return __builtin_fabs(x) < 0.5 ? sum * x : rota_exp(x) - 1.0;
}

ROTA_DEVICE rota_sum rota_log_sum(double x) {  // of a positive number
  int e = __builtin_amdgcn_frexp_exp(x);
  double m = __builtin_amdgcn_frexp_mant(x);  // from 1/2 up to 1
  bool low = m < 0x1.6a09e667f3bcdp-1;
  m = low ? 2.0 * m : m;
  e = low ? e - 1 : e;
  double f = (m - 1.0) / (m + 1.0), s = f * f, sum = 1.0 / 25;
#pragma unroll
  for (int k = 23; k > 1; k -= 2) sum = __builtin_fma(sum, s, 1.0 / k);
  // log m = 2f + 2f^3 (1/3 + ...), where 2f alone is large: what its division and the sum m + 1 lost is put back.
  double below = m + 1.0, slip = 1.0 - (below - m);
  double lost = 2.0 * (__builtin_fma(-f, below, m - 1.0) - f * slip) / below;
  double high = 2.0 * f, rest = __builtin_fma(high * s, sum, lost);
  double whole = e * 0x1.62e42fefa39efp-1, both = whole + high;
  double left = __builtin_fma(e, 0x1.62e42fefa39efp-1, -whole) + ((whole - both) + high);
  left += __builtin_fma(e, 0x1.abc9e3b39803fp-56, rest);
  double total = both + left;
  return {total, left - (total - both)};
}

ROTA_DEVICE double rota_log(double x) {
  double y = rota_log_sum(x).high;
  y = x == 0.0 ? -rota_infinity() : y;
  y = x == rota_infinity() ? x : y;
  return x < 0.0 ? __builtin_nan("") : rota_is_nan(x) ? x : y;
}

ROTA_DEVICE double rota_log1p(double x) {
  double u = 1.0 + x;
  double y = rota_log(u) - ((u - 1.0) - x) / u;
  y = u == 1.0 ? x : y;
  return x == rota_infinity() || x == -1.0 ? rota_log(u) : y;
}

ROTA_DEVICE double rota_exp2(double x) {
  double n = __builtin_rint(x);
  double y = __builtin_ldexp(rota_exp((x - n) * 0x1.62e42fefa39efp-1), (int)(__builtin_fabs(n) > 2000 ? 0.0 : n));
  y = x >= 1024.0 ? rota_infinity() : y;
  return x < -1080.0 ? 0.0 : y;
}

ROTA_DEVICE double rota_exp10(double x) {
  double n = __builtin_rint(x * 0x1.a934f0979a371p+1);
  double r = __builtin_fma(-n, 0x1.34413509f79ffp-2, x);  // log10 2 in two parts
  r = __builtin_fma(-n, -0x1.9dc1da994fd21p-59, r);
  double y = __builtin_ldexp(rota_exp(r * 0x1.26bb1bbb55516p+1), (int)(__builtin_fabs(n) > 2000 ? 0.0 : n));
  y = x > 308.2547155599167 ? rota_infinity() : y;
  return x < -324.0 ? 0.0 : y;
}

struct rota_angle {
  double rest;  // within a quarter of pi
  int quadrant;
};

ROTA_DEVICE rota_angle rota_reduce(double x) {
  double n = __builtin_rint(x * 0x1.45f306dc9c883p-1);
  double r = __builtin_fma(-n, 0x1.921fb54442d18p+0, x);
  r = __builtin_fma(-n, 0x1.1a62633145c07p-54, r);
  r = __builtin_fma(-n, -0x1.f1976b7ed8fbcp-110, r);
  double turns = n - 4.0 * __builtin_floor(n * 0.25);
  return {r, (int)turns};
}

ROTA_DEVICE double rota_sin_near(double r) {
  double s = r * r, sum = -1.0 / 121645100408832000.0;  // 1 / 19!
  double factor = -121645100408832000.0;
#pragma unroll
  for (int k = 19; k > 1; k -= 2) {
    factor = -factor / (k * (k - 1.0));
    sum = __builtin_fma(sum, s, 1.0 / factor);
  }
  return r * sum;
}

ROTA_DEVICE double rota_cos_near(double r) {
  double s = r * r, sum = 1.0 / 2432902008176640000.0;  // 1 / 20!
  double factor = 2432902008176640000.0;
#pragma unroll
  for (int k = 20; k > 0; k -= 2) {
    factor = -factor / (k * (k - 1.0));
    sum = __builtin_fma(sum, s, 1.0 / factor);
  }
  return sum;
}

ROTA_DEVICE double rota_quadrant(const rota_angle &angle, int shift) {
  int quadrant = angle.quadrant + shift;
  double s = rota_sin_near(angle.rest), c = rota_cos_near(angle.rest);
  double y = quadrant & 1 ? c : s;
  return quadrant & 2 ? -y : y;
}

ROTA_DEVICE double rota_sin(double x) {
  double y = rota_quadrant(rota_reduce(x), 0);
  return x == 0.0 ? x : __builtin_fabs(x) == rota_infinity() ? __builtin_nan("") : y;
}
ROTA_DEVICE double rota_cos(double x) {
  double y = rota_quadrant(rota_reduce(x), 1);
  return __builtin_fabs(x) == rota_infinity() ? __builtin_nan("") : y;
}
ROTA_DEVICE double rota_tan(double x) { return rota_sin(x) / rota_cos(x); }

ROTA_DEVICE double rota_turn(double x) {  // x in units of pi, brought between -1 and 1
  return x - 2.0 * __builtin_rint(x * 0.5);
}
ROTA_DEVICE double rota_sinpi(double x) {
  double t = rota_turn(x), a = __builtin_fabs(t);
  double y = __builtin_copysign(rota_sin(0x1.921fb54442d18p+1 * (a > 0.5 ? 1.0 - a : a)), t);
  return x == 0.0 ? x : y;
}
ROTA_DEVICE double rota_cospi(double x) { return rota_sinpi(0.5 - __builtin_fabs(rota_turn(x))); }

ROTA_DEVICE double rota_atan(double x) {
  double a = __builtin_fabs(x);
  bool large = a > 1.0;
  double t = large ? 1.0 / a : a;
  bool upper = t > 0x1.a827999fcef32p-2;  // tan(pi / 8)
  double u = upper ? (t - 1.0) / (t + 1.0) : t;
  u = u / (1.0 + __builtin_sqrt(__builtin_fma(u, u, 1.0)));  // half of the angle
  double s = u * u, sum = 1.0 / 27;
#pragma unroll
  for (int k = 25; k > 0; k -= 2) sum = __builtin_fma(sum, -s, 1.0 / k);
  double y = 2.0 * u * sum;
  y = upper ? 0x1.921fb54442d18p-1 + (y + 0x1.1a62633145c07p-55) : y;
  y = large ? 0x1.921fb54442d18p+0 - (y - 0x1.1a62633145c07p-54) : y;
  return __builtin_copysign(y, x);
}

ROTA_DEVICE double rota_atan2(double y, double x) {
  double a = __builtin_fabs(x), b = __builtin_fabs(y);
  bool infinite = a == rota_infinity() && b == rota_infinity();
  double angle = infinite ? 0x1.921fb54442d18p-1 : b == 0.0 ? 0.0 : rota_atan(b / a);
  bool left = __builtin_signbit(x);
  angle = left ? 0x1.921fb54442d18p+1 - (angle - 0x1.1a62633145c07p-53) : angle;
  return rota_is_nan(x) || rota_is_nan(y) ? x + y : __builtin_copysign(angle, y);
}

ROTA_DEVICE double rota_beside(double x) { return __builtin_sqrt((1.0 - x) * (1.0 + x)); }
ROTA_DEVICE double rota_asin(double x) { return rota_atan2(x, rota_beside(x)); }
ROTA_DEVICE double rota_acos(double x) { return rota_atan2(rota_beside(x), x); }

ROTA_DEVICE double rota_sinh(double x) {
  double a = __builtin_fabs(x), e = rota_expm1(a), half = rota_exp(0.5 * a);
  double y = a > 700.0 ? 0.5 * half * half : 0.5 * (e + e / (e + 1.0));
  return __builtin_copysign(y, x);
}
ROTA_DEVICE double rota_cosh(double x) {
  double a = __builtin_fabs(x), e = rota_exp(a), half = rota_exp(0.5 * a);
  return a > 700.0 ? 0.5 * half * half : 0.5 * (e + 1.0 / e);
}
ROTA_DEVICE double rota_tanh(double x) {
  double e = rota_expm1(-2.0 * __builtin_fabs(x));
  double y = __builtin_copysign(-e / (2.0 + e), x);
  return rota_is_nan(x) ? x : y;
}
ROTA_DEVICE double rota_asinh(double x) {
  double a = __builtin_fabs(x);
  double y = rota_log1p(a + a * a / (1.0 + __builtin_sqrt(__builtin_fma(a, a, 1.0))));
  y = a > 1e150 ? rota_log(a) + 0x1.62e42fefa39efp-1 : y;
  return __builtin_copysign(y, x);
}
ROTA_DEVICE double rota_acosh(double x) {
  double t = x - 1.0;
  double y = rota_log1p(t + __builtin_sqrt(__builtin_fma(t, t, 2.0 * t)));
  return x > 1e150 ? rota_log(x) + 0x1.62e42fefa39efp-1 : y;
}
ROTA_DEVICE double rota_atanh(double x) { return 0.5 * rota_log1p(2.0 * x / (1.0 - x)); }

ROTA_DEVICE double rota_cbrt(double x) {
  double a = __builtin_fabs(x), y = rota_exp(rota_log(a) * (1.0 / 3.0));
  y = y - (y * y * y - a) / (3.0 * y * y);
  return x == 0.0 || a == rota_infinity() || rota_is_nan(x) ? x : __builtin_copysign(y, x);
}

ROTA_DEVICE double rota_hypot(double x, double y) {
  double a = __builtin_fabs(x), b = __builtin_fabs(y), most = __builtin_fmax(a, b);
  int e = __builtin_amdgcn_frexp_exp(most);
  double u = __builtin_ldexp(a, -e), v = __builtin_ldexp(b, -e);
  double z = __builtin_ldexp(__builtin_sqrt(__builtin_fma(u, u, v * v)), e);
  return most == rota_infinity() ? most : most == 0.0 ? 0.0 : z;
}

ROTA_DEVICE double rota_pow(double x, double y) {
  double a = __builtin_fabs(x);
  rota_sum log = rota_log_sum(a);
  double product = y * log.high, lost = __builtin_fma(y, log.high, -product) + y * log.low;
  double z = rota_exp_sum({product, __builtin_fabs(product) < 1000.0 ? lost : 0.0});
  z = a == rota_infinity() ? (y < 0.0 ? 0.0 : a) : z;
  bool whole = __builtin_trunc(y) == y, odd = whole && __builtin_trunc(y * 0.5) != y * 0.5;
  z = a == 0.0 ? (y < 0.0 ? rota_infinity() : 0.0) : z;
  z = a == 1.0 ? 1.0 : z;
  z = x < 0.0 && !whole && a != rota_infinity() ? __builtin_nan("") : z;
  z = odd && __builtin_signbit(x) ? -z : z;
  z = rota_is_nan(x) || rota_is_nan(y) ? x + y : z;
  return y == 0.0 || x == 1.0 ? 1.0 : z;
}

// erfc x = t exp(g(t) - x^2) with t = 2 / (2 + x); g as a Chebyshev series that we fitted for x from 0 to 26.
ROTA_DEVICE double rota_erfc(double x) {
  constexpr double c[] = {
      -0.6092679598644087,     0.6040158823276667,      0.01371148382885029,     -0.00821747841072303,
      -0.0005296465789364185,  0.0002857297081531855,   1.4928076140821153e-05,  -1.3583334852915839e-05,
      3.004956036662548e-08,   6.984316893172527e-07,   -5.847343337620185e-08,  -3.306831312953831e-08,
      6.6623009912854094e-09,  1.1390099855900282e-09,  -5.181299644058929e-10,  7.210365087020855e-13,
      2.9627863469346505e-11,  -4.2596964497291695e-12, -1.0359375510448918e-12, 3.960596630560367e-13};
  double a = __builtin_fmin(__builtin_fabs(x), 30.0), t = 2.0 / (2.0 + a);
  double u = (t - 1.0 / 14.0) * (28.0 / 13.0) - 1.0, b = 0.0, last = 0.0;
#pragma unroll
  for (int k = 19; k > 0; k--) {
    double next = __builtin_fma(2.0 * u, b, c[k] - last);
    last = b;
    b = next;
  }
  double g = __builtin_fma(u, b, c[0] - last);
  double square = a * a, lost = __builtin_fma(a, a, -square);
  double y = a > 27.0 ? 0.0 : t * rota_exp(g - square - lost);
  y = x < 0.0 ? 2.0 - y : y;
  return rota_is_nan(x) ? x : y;
}

ROTA_DEVICE double rota_erf(double x) {
  double s = x * x, factor = 355687428096000.0, sum = -1.0 / (35.0 * factor);  // 17!
#pragma unroll
  for (int k = 17; k > 0; k--) {
    factor = factor / k;
    sum = __builtin_fma(sum, s, (k & 1 ? 1.0 : -1.0) / ((2 * k - 1) * factor));
  }
  double far = __builtin_copysign(1.0 - rota_erfc(__builtin_fabs(x)), x);
  return __builtin_fabs(x) < 1.0 ? 0x1.20dd750429b6dp+0 * x * sum : far;
}

// The functions of <math.h>: for float with and without its suffix, for double.

#define ROTA_FLOAT(name, parameters, ...)                   \
  ROTA_DEVICE float name##f parameters { return __VA_ARGS__; } \
  ROTA_DEVICE float name parameters { return __VA_ARGS__; }
#define ROTA_BUILTIN1(name)                                       \
  ROTA_FLOAT(name, (float x), __builtin_##name##f(x))             \
  ROTA_DEVICE double name(double x) { return __builtin_##name(x); }
#define ROTA_BUILTIN2(name)                                                   \
  ROTA_FLOAT(name, (float x, float y), __builtin_##name##f(x, y))             \
  ROTA_DEVICE double name(double x, double y) { return __builtin_##name(x, y); }
#define ROTA_OWN1(name)                                      \
  ROTA_FLOAT(name, (float x), (float)rota_##name((double)x)) \
  ROTA_DEVICE double name(double x) { return rota_##name(x); }
#define ROTA_OWN2(name)                                                           \
  ROTA_FLOAT(name, (float x, float y), (float)rota_##name((double)x, (double)y)) \
  ROTA_DEVICE double name(double x, double y) { return rota_##name(x, y); }
#define ROTA_MIXED(name)                                           \
  ROTA_FLOAT(name, (float x), __builtin_##name##f(x))              \
  ROTA_DEVICE double name(double x) { return rota_##name(x); }

ROTA_DEVICE double rota_log2(double x) {
  double y = rota_log(x) * 0x1.71547652b82fep+0;
  int e = __builtin_amdgcn_frexp_exp(x) - 1;
  return __builtin_ldexp(1.0, e) == x ? e : y;
}
ROTA_DEVICE double rota_log10(double x) { return rota_log(x) * 0x1.bcb7b1526e50ep-2; }

ROTA_MIXED(exp)
ROTA_MIXED(exp2)
ROTA_MIXED(exp10)
ROTA_MIXED(log)
ROTA_MIXED(log2)
ROTA_MIXED(log10)
ROTA_BUILTIN1(sqrt)
ROTA_BUILTIN1(fabs)
ROTA_BUILTIN1(floor)
ROTA_BUILTIN1(ceil)
ROTA_BUILTIN1(trunc)
ROTA_BUILTIN1(round)
ROTA_BUILTIN1(rint)
ROTA_BUILTIN1(nearbyint)
ROTA_BUILTIN2(fmin)
ROTA_BUILTIN2(fmax)
ROTA_BUILTIN2(fmod)
ROTA_BUILTIN2(copysign)
ROTA_OWN1(expm1)
ROTA_OWN1(log1p)
ROTA_OWN1(sin)
ROTA_OWN1(cos)
ROTA_OWN1(tan)
ROTA_OWN1(sinpi)
ROTA_OWN1(cospi)
ROTA_OWN1(asin)
ROTA_OWN1(acos)
ROTA_OWN1(atan)
ROTA_OWN2(atan2)
ROTA_OWN1(sinh)
ROTA_OWN1(cosh)
ROTA_OWN1(tanh)
ROTA_OWN1(asinh)
ROTA_OWN1(acosh)
ROTA_OWN1(atanh)
ROTA_OWN1(cbrt)
ROTA_OWN2(hypot)
ROTA_OWN2(pow)
ROTA_OWN1(erf)
ROTA_OWN1(erfc)

ROTA_DEVICE double rota_normcdf(double x) { return 0.5 * rota_erfc(x * -0x1.6a09e667f3bcdp-1); }
ROTA_DEVICE double rota_rcbrt(double x) { return 1.0 / rota_cbrt(x); }
ROTA_DEVICE double rota_rhypot(double x, double y) { return 1.0 / rota_hypot(x, y); }
ROTA_DEVICE double rota_rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
ROTA_OWN1(normcdf)
ROTA_OWN1(rcbrt)
ROTA_OWN2(rhypot)
ROTA_OWN1(rsqrt)

ROTA_DEVICE float pow(float x, int n) { return (float)rota_pow((double)x, (double)n); }
ROTA_DEVICE double pow(double x, int n) { return rota_pow(x, (double)n); }
ROTA_DEVICE float powif(float x, int n) { return (float)rota_pow((double)x, (double)n); }
ROTA_DEVICE double powi(double x, int n) { return rota_pow(x, (double)n); }

ROTA_FLOAT(fma, (float x, float y, float z), __builtin_fmaf(x, y, z))
ROTA_DEVICE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
ROTA_FLOAT(fdim, (float x, float y), x != x || y != y ? x + y : x > y ? x - y : 0.0f)
ROTA_DEVICE double fdim(double x, double y) { return x != x || y != y ? x + y : x > y ? x - y : 0.0; }
ROTA_FLOAT(ldexp, (float x, int n), __builtin_ldexpf(x, n))
ROTA_DEVICE double ldexp(double x, int n) { return __builtin_ldexp(x, n); }
ROTA_FLOAT(scalbn, (float x, int n), __builtin_ldexpf(x, n))
ROTA_DEVICE double scalbn(double x, int n) { return __builtin_ldexp(x, n); }
ROTA_DEVICE float frexpf(float x, int *e) { return __builtin_frexpf(x, e); }
ROTA_DEVICE float frexp(float x, int *e) { return __builtin_frexpf(x, e); }
ROTA_DEVICE double frexp(double x, int *e) { return __builtin_frexp(x, e); }
ROTA_DEVICE double modf(double x, double *whole) {
  *whole = __builtin_trunc(x);
  return __builtin_copysign(__builtin_fabs(x) == rota_infinity() ? 0.0 : x - *whole, x);
}
ROTA_DEVICE float modff(float x, float *whole) {
  *whole = __builtin_truncf(x);
  return __builtin_copysignf(__builtin_fabsf(x) == __builtin_huge_valf() ? 0.0f : x - *whole, x);
}
ROTA_DEVICE float modf(float x, float *whole) { return modff(x, whole); }
ROTA_DEVICE int ilogbf(float x) { return __builtin_amdgcn_frexp_expf(x) - 1; }
ROTA_DEVICE int ilogb(float x) { return __builtin_amdgcn_frexp_expf(x) - 1; }
ROTA_DEVICE int ilogb(double x) { return __builtin_amdgcn_frexp_exp(x) - 1; }
ROTA_FLOAT(logb, (float x), (float)(__builtin_amdgcn_frexp_expf(x) - 1))
ROTA_DEVICE double logb(double x) { return __builtin_amdgcn_frexp_exp(x) - 1; }
ROTA_DEVICE double remainder(double x, double y) {
  double r = __builtin_fmod(x, y), a = __builtin_fabs(r), b = __builtin_fabs(y);
  bool odd = __builtin_fabs(__builtin_fmod(x, 2.0 * y)) >= b;
  r = a > b - a || (a == b - a && odd) ? r - __builtin_copysign(b, r) : r;
  return __builtin_copysign(r, r == 0.0 ? x : r);
}
ROTA_FLOAT(remainder, (float x, float y), (float)remainder((double)x, (double)y))
ROTA_DEVICE float nextafterf(float x, float y) {
  unsigned bits = __builtin_bit_cast(unsigned, x);
  unsigned next = x == 0.0f ? (y < 0.0f ? 0x80000001u : 1u) : (x < y) == (x > 0.0f) ? bits + 1 : bits - 1;
  return x != x || y != y ? x + y : x == y ? y : __builtin_bit_cast(float, next);
}
ROTA_DEVICE float nextafter(float x, float y) { return nextafterf(x, y); }
ROTA_DEVICE double nextafter(double x, double y) {
  unsigned long long bits = __builtin_bit_cast(unsigned long long, x), one = 1;
  unsigned long long next = x == 0.0 ? (y < 0.0 ? one << 63 | 1 : 1) : (x < y) == (x > 0.0) ? bits + 1 : bits - 1;
  return x != x || y != y ? x + y : x == y ? y : __builtin_bit_cast(double, next);
}

#define ROTA_ROUNDED(name, type, builtin)                                              \
  ROTA_DEVICE type name##f(float x) { return (type)__builtin_##builtin##f(x); }         \
  ROTA_DEVICE type name(float x) { return (type)__builtin_##builtin##f(x); }            \
  ROTA_DEVICE type name(double x) { return (type)__builtin_##builtin(x); }
ROTA_ROUNDED(lrint, long, rint)
ROTA_ROUNDED(llrint, long long, rint)
ROTA_ROUNDED(lround, long, round)
ROTA_ROUNDED(llround, long long, round)

ROTA_DEVICE void sincos(double x, double *s, double *c) {
  *s = rota_sin(x);
  *c = rota_cos(x);
}
ROTA_DEVICE void sincosf(float x, float *s, float *c) {
  *s = (float)rota_sin((double)x);
  *c = (float)rota_cos((double)x);
}
ROTA_DEVICE void sincos(float x, float *s, float *c) { sincosf(x, s, c); }
ROTA_DEVICE void sincospi(double x, double *s, double *c) {
  *s = rota_sinpi(x);
  *c = rota_cospi(x);
}
ROTA_DEVICE void sincospif(float x, float *s, float *c) {
  *s = (float)rota_sinpi((double)x);
  *c = (float)rota_cospi((double)x);
}

ROTA_DEVICE int abs(int x) { return __builtin_abs(x); }
ROTA_DEVICE long abs(long x) { return __builtin_labs(x); }
ROTA_DEVICE long long abs(long long x) { return __builtin_llabs(x); }
ROTA_DEVICE long labs(long x) { return __builtin_labs(x); }
ROTA_DEVICE long long llabs(long long x) { return __builtin_llabs(x); }
ROTA_DEVICE float abs(float x) { return __builtin_fabsf(x); }
ROTA_DEVICE double abs(double x) { return __builtin_fabs(x); }

#define ROTA_ASKED(name, builtin)                                        \
  ROTA_DEVICE bool name(float x) { return __builtin_##builtin(x) != 0; } \
  ROTA_DEVICE bool name(double x) { return __builtin_##builtin(x) != 0; }
ROTA_ASKED(isnan, isnan)
ROTA_ASKED(isinf, isinf)
ROTA_ASKED(isfinite, isfinite)
ROTA_ASKED(isnormal, isnormal)
ROTA_ASKED(signbit, signbit)

// Intrinsics.

ROTA_DEVICE float __expf(float x) { return __builtin_amdgcn_exp2f(x * 0x1.715476p+0f); }
ROTA_DEVICE float __exp10f(float x) { return __builtin_amdgcn_exp2f(x * 0x1.a934f0p+1f); }
ROTA_DEVICE float __log2f(float x) { return __builtin_amdgcn_logf(x); }
ROTA_DEVICE float __logf(float x) { return __builtin_amdgcn_logf(x) * 0x1.62e430p-1f; }
ROTA_DEVICE float __log10f(float x) { return __builtin_amdgcn_logf(x) * 0x1.344136p-2f; }
ROTA_DEVICE float __powf(float x, float y) { return __builtin_amdgcn_exp2f(y * __builtin_amdgcn_logf(x)); }
ROTA_DEVICE float __sinf(float x) { return __builtin_amdgcn_sinf(__builtin_amdgcn_fractf(x * 0x1.45f306p-3f)); }
ROTA_DEVICE float __cosf(float x) { return __builtin_amdgcn_cosf(__builtin_amdgcn_fractf(x * 0x1.45f306p-3f)); }
ROTA_DEVICE float __tanf(float x) { return __sinf(x) * __builtin_amdgcn_rcpf(__cosf(x)); }
ROTA_DEVICE void __sincosf(float x, float *s, float *c) {
  *s = __sinf(x);
  *c = __cosf(x);
}
ROTA_DEVICE float __fdividef(float x, float y) { return x / y; }
ROTA_DEVICE float fdividef(float x, float y) { return x / y; }
ROTA_DEVICE float __frsqrt_rn(float x) { return __builtin_amdgcn_rsqf(x); }
ROTA_DEVICE float __saturatef(float x) { return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x == x ? x : 0.0f; }

#define ROTA_EXACT(prefix, type, suffix)                                                        \
  ROTA_DEVICE type __##prefix##add_rn(type x, type y) {                                         \
    _Pragma("clang fp contract(off)") return x + y;                                             \
  }                                                                                             \
  ROTA_DEVICE type __##prefix##sub_rn(type x, type y) {                                         \
    _Pragma("clang fp contract(off)") return x - y;                                             \
  }                                                                                             \
  ROTA_DEVICE type __##prefix##mul_rn(type x, type y) {                                         \
    _Pragma("clang fp contract(off)") return x * y;                                             \
  }                                                                                             \
  ROTA_DEVICE type __##prefix##div_rn(type x, type y) { return x / y; }                         \
  ROTA_DEVICE type __##prefix##rcp_rn(type x) { return (type)1 / x; }                           \
  ROTA_DEVICE type __##prefix##sqrt_rn(type x) { return __builtin_sqrt##suffix(x); }
ROTA_EXACT(f, float, f)
ROTA_EXACT(d, double, )
ROTA_DEVICE float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
ROTA_DEVICE double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }

#endif
