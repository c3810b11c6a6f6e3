// rota's small stand-in for HIP's device headers, where no ROCm is installed: the older hip_bfloat16.
#ifndef ROTA_HIP_BFLOAT16_H
#define ROTA_HIP_BFLOAT16_H

#include "hip_bf16.h"

struct hip_bfloat16 {
  unsigned short data;
  enum truncate_t { truncate };
  hip_bfloat16() = default;
  ROTA_MEMBER explicit hip_bfloat16(float x) : data(__builtin_bit_cast(unsigned short, (__bf16)x)) {}
  ROTA_MEMBER explicit hip_bfloat16(float x, truncate_t)
      : data((unsigned short)(__builtin_bit_cast(unsigned, x) >> 16)) {}
  static ROTA_MEMBER hip_bfloat16 round_to_bfloat16(float x) { return hip_bfloat16(x); }
  ROTA_MEMBER operator float() const { return __builtin_bit_cast(float, (unsigned)data << 16); }
  ROTA_MEMBER hip_bfloat16 &operator=(float x) { return *this = hip_bfloat16(x); }
};

#define ROTA_OLD_BF16_OPERATOR(op)                                                            \
  ROTA_PART hip_bfloat16 operator op(const hip_bfloat16 &a, const hip_bfloat16 &b) {          \
    return hip_bfloat16((float)a op(float) b);                                                \
  }                                                                                           \
  ROTA_PART hip_bfloat16 &operator op##=(hip_bfloat16 &a, const hip_bfloat16 &b) { return a = a op b; }
ROTA_OLD_BF16_OPERATOR(+)
ROTA_OLD_BF16_OPERATOR(-)
ROTA_OLD_BF16_OPERATOR(*)
ROTA_OLD_BF16_OPERATOR(/)

#endif
