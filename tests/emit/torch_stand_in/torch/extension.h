// A stand-in for PyTorch's header, for tests alone: declarations of what the emitted extension uses, and no more.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>

namespace c10 {
using std::optional;
enum class ScalarType { Byte, BFloat16, Half, Float, Float8_e4m3fn, Float8_e4m3fnuz };
struct Device {};
struct IntArrayRef {};
}  // namespace c10

namespace at {
struct TensorOptions {
  TensorOptions dtype(c10::ScalarType) const;
};
struct Tensor {
  bool is_cuda() const;
  bool is_contiguous() const;
  c10::Device device() const;
  c10::IntArrayRef sizes() const;
  c10::IntArrayRef strides() const;
  Tensor unsqueeze(int64_t) const;
  Tensor squeeze(int64_t) const;
  c10::ScalarType scalar_type() const;
  int64_t dim() const;
  int64_t numel() const;
  int64_t size(int64_t) const;
  int64_t stride(int64_t) const;
  void* data_ptr() const;
  TensorOptions options() const;
};
std::optional<c10::Device> device_of(const Tensor&);
}  // namespace at

namespace torch {
using at::Tensor;
using c10::ScalarType;
constexpr ScalarType kUInt8 = ScalarType::Byte, kBFloat16 = ScalarType::BFloat16, kFloat16 = ScalarType::Half,
                     kFloat32 = ScalarType::Float, kFloat8_e4m3fn = ScalarType::Float8_e4m3fn,
                     kFloat8_e4m3fnuz = ScalarType::Float8_e4m3fnuz;
Tensor empty(std::initializer_list<int64_t>, const at::TensorOptions&);
}  // namespace torch

template <typename... Words>
void stand_in_check(bool, const Words&...);
#define TORCH_CHECK(condition, ...) stand_in_check((condition), __VA_ARGS__)
#define TORCH_EXTENSION_NAME extension

namespace py {
struct none {};
struct arg {
  explicit arg(const char*);
  template <typename Value>
  arg& operator=(const Value&);
};
struct module_ {
  template <typename Function, typename... Words>
  void def(const char*, Function, const Words&...);
};
}  // namespace py
#define PYBIND11_MODULE(name, variable) void stand_in_module([[maybe_unused]] py::module_& variable)
