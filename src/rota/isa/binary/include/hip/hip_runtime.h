// rota's small stand-in for HIP's headers, where no ROCm is installed: what device code needs.
#ifndef ROTA_HIP_RUNTIME_H
#define ROTA_HIP_RUNTIME_H

#include "rota_math.h"

// What sources expect to be included with it, where the machine has a C++ library.
#if __has_include(<cmath>) && __has_include(<stdio.h>)
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <tuple>
#include <type_traits>
#include <utility>
#endif

#include "hip_runtime_api.h"
#include "rota_device.h"

#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#if defined(HIP_TEMPLATE_KERNEL_LAUNCH)  // the name of a kernel may then have commas, or stand for a template
template <typename... Arguments, typename Kernel = void (*)(Arguments...)>
void hipLaunchKernelGGL(Kernel, dim3, dim3, unsigned, hipStream_t, Arguments...) {}
#else
#define hipLaunchKernelGGL(kernel, grid, block, lds, stream, ...) kernel<<<grid, block, lds, stream>>>(__VA_ARGS__)
#endif

#endif
