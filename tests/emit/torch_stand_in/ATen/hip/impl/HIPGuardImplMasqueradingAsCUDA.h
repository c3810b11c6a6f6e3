// A stand-in for PyTorch's header, for tests alone.
#pragma once
#include <torch/extension.h>

namespace at::hip {
struct OptionalHIPGuardMasqueradingAsCUDA {
  explicit OptionalHIPGuardMasqueradingAsCUDA(std::optional<c10::Device>);
  ~OptionalHIPGuardMasqueradingAsCUDA();
};
}  // namespace at::hip
