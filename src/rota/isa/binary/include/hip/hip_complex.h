// rota's small stand-in for HIP's device headers, where no ROCm is installed: complex numbers as two parts.
#ifndef ROTA_HIP_COMPLEX_H
#define ROTA_HIP_COMPLEX_H

#include "hip_runtime.h"

typedef float2 hipFloatComplex;
typedef double2 hipDoubleComplex;
typedef float2 hipComplex;

#define ROTA_COMPLEX(complex, part, f, make)                                                                         \
  ROTA_PART complex make(part a, part b) { return complex(a, b); }                                                   \
  ROTA_PART part hipCreal##f(complex a) { return a.x; }                                                              \
  ROTA_PART part hipCimag##f(complex a) { return a.y; }                                                              \
  ROTA_PART complex hipConj##f(complex a) { return complex(a.x, -a.y); }                                             \
  ROTA_PART part hipCsqabs##f(complex a) { return a.x * a.x + a.y * a.y; }                                           \
  ROTA_PART complex hipCadd##f(complex a, complex b) { return complex(a.x + b.x, a.y + b.y); }                       \
  ROTA_PART complex hipCsub##f(complex a, complex b) { return complex(a.x - b.x, a.y - b.y); }                       \
  ROTA_PART complex hipCmul##f(complex a, complex b) { return complex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); } \
  ROTA_PART complex hipCdiv##f(complex a, complex b) {                                                               \
    part size = hipCsqabs##f(b);                                                                                     \
    return complex((a.x * b.x + a.y * b.y) / size, (a.y * b.x - a.x * b.y) / size);                                  \
  }                                                                                                                  \
  ROTA_PART complex hipCfma##f(complex a, complex b, complex c) { return hipCadd##f(hipCmul##f(a, b), c); }          \
  ROTA_DEVICE part hipCabs##f(complex a) { return hypot(a.x, a.y); }
ROTA_COMPLEX(hipFloatComplex, float, f, make_hipFloatComplex)
ROTA_COMPLEX(hipDoubleComplex, double, , make_hipDoubleComplex)
ROTA_PART hipComplex make_hipComplex(float a, float b) { return hipComplex(a, b); }

#endif
