// rota's small stand-in for HIP's device headers, where no ROCm is installed: vectors such as float4, and dim3.
#ifndef ROTA_HIP_VECTOR_TYPES_H
#define ROTA_HIP_VECTOR_TYPES_H

#include "rota_math.h"

#define ROTA_MEMBER __attribute__((host, device, always_inline, nodebug)) constexpr
#define ROTA_PART static inline __attribute__((host, device, always_inline, nodebug, unused)) constexpr

// The integer types, of which a conversion is wanted that no other one competes with.
template <typename T, bool = __is_integral(T) && !__is_same(T, bool)> struct rota_integer {};
template <typename T> struct rota_integer<T, true> {
  using type = T;
};

// Constructors convert each part, as C does, and leave a vector trivial: it may be in LDS or be copied as bytes.

#define ROTA_VECTOR1(type, part)                                  \
  struct __attribute__((aligned(sizeof(part)))) type {            \
    using value_type = part;                                      \
    part x;                                                       \
    type() = default;                                             \
    template <typename A>                                         \
    ROTA_MEMBER type(A a) : x((part)a) {}                         \
  };
#define ROTA_VECTOR2(type, part)                                  \
  struct __attribute__((aligned(2 * sizeof(part)))) type {        \
    using value_type = part;                                      \
    part x, y;                                                    \
    type() = default;                                             \
    ROTA_MEMBER explicit type(part a) : x(a), y(a) {}             \
    template <typename A, typename B>                             \
    ROTA_MEMBER type(A a, B b) : x((part)a), y((part)b) {}        \
    ROTA_MEMBER part &operator[](int k) { return k == 0 ? x : y; } \
    ROTA_MEMBER part operator[](int k) const { return k == 0 ? x : y; } \
  };
#define ROTA_VECTOR3(type, part)                                  \
  struct type {                                                   \
    using value_type = part;                                      \
    part x, y, z;                                                 \
    type() = default;                                             \
    ROTA_MEMBER explicit type(part a) : x(a), y(a), z(a) {}       \
    template <typename A, typename B, typename C>                 \
    ROTA_MEMBER type(A a, B b, C c) : x((part)a), y((part)b), z((part)c) {} \
    ROTA_MEMBER part &operator[](int k) { return k == 0 ? x : k == 1 ? y : z; } \
    ROTA_MEMBER part operator[](int k) const { return k == 0 ? x : k == 1 ? y : z; } \
  };
#define ROTA_VECTOR4(type, part)                                  \
  struct __attribute__((aligned(4 * sizeof(part)))) type {        \
    using value_type = part;                                      \
    part x, y, z, w;                                              \
    type() = default;                                             \
    ROTA_MEMBER explicit type(part a) : x(a), y(a), z(a), w(a) {} \
    template <typename A, typename B, typename C, typename D>     \
    ROTA_MEMBER type(A a, B b, C c, D d) : x((part)a), y((part)b), z((part)c), w((part)d) {} \
    ROTA_MEMBER part &operator[](int k) { return k == 0 ? x : k == 1 ? y : k == 2 ? z : w; } \
    ROTA_MEMBER part operator[](int k) const { return k == 0 ? x : k == 1 ? y : k == 2 ? z : w; } \
  };

#define ROTA_EACH1(op, a, b) {a.x op b.x}
#define ROTA_EACH2(op, a, b) {a.x op b.x, a.y op b.y}
#define ROTA_EACH3(op, a, b) {a.x op b.x, a.y op b.y, a.z op b.z}
#define ROTA_EACH4(op, a, b) {a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w}
#define ROTA_SAME1(a, b) a.x == b.x
#define ROTA_SAME2(a, b) a.x == b.x && a.y == b.y
#define ROTA_SAME3(a, b) ROTA_SAME2(a, b) && a.z == b.z
#define ROTA_SAME4(a, b) ROTA_SAME3(a, b) && a.w == b.w

#define ROTA_OPERATOR(type, part, n, op)                                                            \
  ROTA_PART type operator op(const type &a, const type &b) { return ROTA_EACH##n(op, a, b); }       \
  ROTA_PART type &operator op##=(type &a, const type &b) { return a = a op b; }
#define ROTA_SCALED(type, part, op)                                                                 \
  ROTA_PART type operator op(const type &a, part b) { return a op type(b); }                        \
  ROTA_PART type operator op(part a, const type &b) { return type(a) op b; }                        \
  ROTA_PART type &operator op##=(type &a, part b) { return a = a op type(b); }
#define ROTA_ARITHMETIC(type, part, n)                                                              \
  ROTA_OPERATOR(type, part, n, +)                                                                   \
  ROTA_OPERATOR(type, part, n, -)                                                                   \
  ROTA_OPERATOR(type, part, n, *)                                                                   \
  ROTA_OPERATOR(type, part, n, /)                                                                   \
  ROTA_PART type operator-(const type &a) { return type((part)0) - a; }                             \
  ROTA_PART type operator+(const type &a) { return a; }                                             \
  ROTA_PART bool operator==(const type &a, const type &b) { return ROTA_SAME##n(a, b); }            \
  ROTA_PART bool operator!=(const type &a, const type &b) { return !(a == b); }
#define ROTA_SCALARS(type, part)                                                                    \
  ROTA_SCALED(type, part, +)                                                                        \
  ROTA_SCALED(type, part, -)                                                                        \
  ROTA_SCALED(type, part, *)                                                                        \
  ROTA_SCALED(type, part, /)
#define ROTA_BITS(type, part, n)                                                                    \
  ROTA_OPERATOR(type, part, n, %)                                                                   \
  ROTA_OPERATOR(type, part, n, &)                                                                   \
  ROTA_OPERATOR(type, part, n, |)                                                                   \
  ROTA_OPERATOR(type, part, n, ^)                                                                   \
  ROTA_OPERATOR(type, part, n, <<)                                                                  \
  ROTA_OPERATOR(type, part, n, >>)

#define ROTA_NUMBERS(name, part)                                                                    \
  ROTA_VECTOR1(name##1, part)                                                                       \
  ROTA_VECTOR2(name##2, part)                                                                       \
  ROTA_VECTOR3(name##3, part)                                                                       \
  ROTA_VECTOR4(name##4, part)                                                                       \
  ROTA_ARITHMETIC(name##1, part, 1)                                                                 \
  ROTA_ARITHMETIC(name##2, part, 2)                                                                 \
  ROTA_ARITHMETIC(name##3, part, 3)                                                                 \
  ROTA_ARITHMETIC(name##4, part, 4)                                                                 \
  ROTA_SCALARS(name##2, part)                                                                       \
  ROTA_SCALARS(name##3, part)                                                                       \
  ROTA_SCALARS(name##4, part)                                                                       \
  ROTA_PART name##1 make_##name##1(part x) { return name##1(x); }                                   \
  ROTA_PART name##2 make_##name##2(part x, part y) { return name##2(x, y); }                        \
  ROTA_PART name##3 make_##name##3(part x, part y, part z) { return name##3(x, y, z); }             \
  ROTA_PART name##4 make_##name##4(part x, part y, part z, part w) { return name##4(x, y, z, w); }
#define ROTA_INTEGERS(name, part)                                                                   \
  ROTA_NUMBERS(name, part)                                                                          \
  ROTA_BITS(name##1, part, 1)                                                                       \
  ROTA_BITS(name##2, part, 2)                                                                       \
  ROTA_BITS(name##3, part, 3)                                                                       \
  ROTA_BITS(name##4, part, 4)

ROTA_INTEGERS(char, signed char)
ROTA_INTEGERS(uchar, unsigned char)
ROTA_INTEGERS(short, short)
ROTA_INTEGERS(ushort, unsigned short)
ROTA_INTEGERS(int, int)
ROTA_INTEGERS(uint, unsigned)
ROTA_INTEGERS(long, long)
ROTA_INTEGERS(ulong, unsigned long)
ROTA_INTEGERS(longlong, long long)
ROTA_INTEGERS(ulonglong, unsigned long long)
ROTA_NUMBERS(float, float)
ROTA_NUMBERS(double, double)

struct dim3 {
  unsigned x, y, z;
  ROTA_MEMBER dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
  ROTA_MEMBER dim3(const uint3 &v) : x(v.x), y(v.y), z(v.z) {}
  ROTA_MEMBER operator uint3() const { return uint3(x, y, z); }
};

#endif
