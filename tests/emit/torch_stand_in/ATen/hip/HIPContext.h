// A stand-in for PyTorch's header, for tests alone.
#pragma once
#include <hip/hip_runtime.h>

namespace at::hip {
struct HIPStream {
  operator hipStream_t() const;
};
HIPStream getCurrentHIPStream();
}  // namespace at::hip
