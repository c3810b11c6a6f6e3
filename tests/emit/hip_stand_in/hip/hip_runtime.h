// A stand-in for HIP's header, for tests alone: what the emitted host code uses of it, on the host's own memory.
//
// A launch is recorded and runs nothing.  What is declared here and nowhere else in HIP would be a mistake of this file.
#pragma once
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __global__

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorOutOfMemory = 2 };
enum hipMemcpyKind { hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2, hipMemcpyDeviceToDevice = 3 };
typedef struct ihipStream_t* hipStream_t;
typedef struct stand_in_event* hipEvent_t;
struct stand_in_event {
  std::chrono::steady_clock::time_point at;
};
struct hipDeviceProp_t {
  int multiProcessorCount;
};

struct stand_in_launch {
  const void* kernel;
  dim3 grid, block;
};

inline std::vector<stand_in_launch>& stand_in_launches() {
  static std::vector<stand_in_launch> all;
  return all;
}

inline hipError_t hipLaunchKernel(const void* kernel, dim3 grid, dim3 block, void**, size_t, hipStream_t) {
  stand_in_launches().push_back({kernel, grid, block});
  return hipSuccess;
}
inline const char* hipGetErrorString(hipError_t status) { return status == hipSuccess ? "success" : "invalid value"; }
inline hipError_t hipMalloc(void** to, size_t bytes) {
  *to = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *to ? hipSuccess : hipErrorOutOfMemory;
}
inline hipError_t hipFree(void* from) {
  std::free(from);
  return hipSuccess;
}
inline hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind) {
  std::memcpy(to, from, bytes);
  return hipSuccess;
}
inline hipError_t hipDeviceSynchronize() { return hipSuccess; }
enum hipDeviceAttribute_t { hipDeviceAttributeMultiprocessorCount = 63 };
inline hipError_t hipGetDevice(int* device) {
  *device = 0;
  return hipSuccess;
}
inline hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t, int) {
  *value = 256;
  return hipSuccess;
}
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* device, int) {
  device->multiProcessorCount = 256;
  return hipSuccess;
}
inline hipError_t hipEventCreate(hipEvent_t* event) {
  *event = new stand_in_event();
  return hipSuccess;
}
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t) {
  event->at = std::chrono::steady_clock::now();
  return hipSuccess;
}
inline hipError_t hipEventSynchronize(hipEvent_t) { return hipSuccess; }
inline hipError_t hipEventElapsedTime(float* to, hipEvent_t start, hipEvent_t stop) {
  *to = std::chrono::duration<float, std::milli>(stop->at - start->at).count();
  return hipSuccess;
}
