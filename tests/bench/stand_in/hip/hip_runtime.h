// A stand-in for HIP's runtime, for tests alone: what the benchmark's host program uses of it, on the host's memory.
//
// Every call is counted and written to the file that STAND_IN_LOG names.  Time is simulated: it goes on only by what is
// said here, so results are the same on every machine.  Modules are numbered in the order in which they are loaded.
//
//   STAND_IN_FAIL=7       the seventh call fails
//   STAND_IN_US=100,90    microseconds of a launch, by module
//   STAND_IN_COLD=20      microseconds more if more than the caches hold was written since the last launch
//   STAND_IN_NOISE=5      up to so many per cent more, drawn
//   STAND_IN_WRONG=1      the module whose results have a bit changed
//   STAND_IN_VARY=1       results have the number of the launch in them
//   STAND_IN_IDLE=1       launches change nothing
//   STAND_IN_ARCH=gfx942  of the device
//
// A launch writes to the last buffer among its arguments what the first one holds, with 1 added to each byte, and adds
// that up: so a launch that doesn't start from equal buffers leaves other results.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorOutOfMemory = 2, hipErrorUnknown = 999 };
enum hipMemcpyKind { hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2, hipMemcpyDeviceToDevice = 3 };
enum hipDeviceAttribute_t {
  hipDeviceAttributeClockRate,
  hipDeviceAttributeMemoryClockRate,
  hipDeviceAttributeMultiprocessorCount
};
struct stand_in_event;
struct stand_in_module;
struct stand_in_function;
typedef stand_in_event* hipEvent_t;
typedef stand_in_module* hipModule_t;
typedef stand_in_function* hipFunction_t;
typedef struct stand_in_stream* hipStream_t;
struct hipDeviceProp_t {
  char name[256];
  char gcnArchName[256];
};
#define HIP_LAUNCH_PARAM_BUFFER_POINTER ((void*)1)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE ((void*)2)
#define HIP_LAUNCH_PARAM_END ((void*)3)

struct stand_in_event {
  double us = -1;
};
struct stand_in_module {
  int number;
};
struct stand_in_function {
  stand_in_module* module;
};

struct stand_in_state {
  int calls = 0, launches = 0, modules = 0;
  double us = 0;
  bool flushed = false;
  std::uint32_t drawn = 12345;
  std::map<char*, std::size_t> memory;
  std::FILE* log = nullptr;

  static const char* setting(const char* name, const char* otherwise = "") {
    const char* found = std::getenv(name);
    return found ? found : otherwise;
  }
  // The allocation that holds an address, or the end.
  std::map<char*, std::size_t>::iterator owner(const void* address) {
    char* const at = const_cast<char*>(static_cast<const char*>(address));
    for (auto each = memory.begin(); each != memory.end(); ++each) {
      if (at >= each->first && at < each->first + each->second) return each;
    }
    return memory.end();
  }
  bool holds(const void* address, std::size_t bytes) {
    const auto found = owner(address);
    return found != memory.end() && static_cast<const char*>(address) + bytes <= found->first + found->second;
  }
};

inline stand_in_state& stand_in() {
  static stand_in_state state;
  return state;
}

inline hipError_t stand_in_call(const std::string& text) {
  stand_in_state& state = stand_in();
  ++state.calls;
  if (!state.log && *stand_in_state::setting("STAND_IN_LOG")) state.log = std::fopen(std::getenv("STAND_IN_LOG"), "w");
  if (state.log) {
    std::fprintf(state.log, "%s\n", text.c_str());
    std::fflush(state.log);
  }
  return std::atoi(stand_in_state::setting("STAND_IN_FAIL", "0")) == state.calls ? hipErrorUnknown : hipSuccess;
}
#define STAND_IN_CALL(text)                                   \
  do {                                                        \
    const hipError_t stand_in_status = stand_in_call(text);   \
    if (stand_in_status != hipSuccess) return stand_in_status; \
  } while (0)

inline const char* hipGetErrorString(hipError_t status) {
  return status == hipErrorInvalidValue ? "invalid value" : status == hipErrorOutOfMemory ? "out of memory" : "unknown";
}
inline hipError_t hipSetDevice(int number) {
  STAND_IN_CALL("hipSetDevice " + std::to_string(number));
  return number == 0 ? hipSuccess : hipErrorInvalidValue;
}
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* to, int) {
  STAND_IN_CALL("hipGetDeviceProperties");
  std::snprintf(to->name, sizeof to->name, "%s", "Stand-in, \"simulated\"");
  std::snprintf(to->gcnArchName, sizeof to->gcnArchName, "%s:sramecc+:xnack-",
                stand_in_state::setting("STAND_IN_ARCH", "gfx942"));
  return hipSuccess;
}
inline hipError_t hipDeviceGetAttribute(int* to, hipDeviceAttribute_t which, int) {
  STAND_IN_CALL("hipDeviceGetAttribute");
  *to = which == hipDeviceAttributeClockRate ? 2100000 : which == hipDeviceAttributeMemoryClockRate ? 1300000 : 304;
  return hipSuccess;
}
inline hipError_t hipRuntimeGetVersion(int* to) {
  STAND_IN_CALL("hipRuntimeGetVersion");
  *to = 70012345;
  return hipSuccess;
}
inline hipError_t hipModuleLoadData(hipModule_t* to, const void*) {
  STAND_IN_CALL("hipModuleLoadData");
  *to = new stand_in_module{stand_in().modules++};
  return hipSuccess;
}
inline hipError_t hipModuleUnload(hipModule_t module) {
  STAND_IN_CALL("hipModuleUnload");
  delete module;
  return hipSuccess;
}
inline hipError_t hipModuleGetFunction(hipFunction_t* to, hipModule_t module, const char* name) {
  STAND_IN_CALL("hipModuleGetFunction " + std::to_string(module->number) + " " + name);
  static std::vector<stand_in_function*> all;
  all.push_back(new stand_in_function{module});
  *to = all.back();
  return hipSuccess;
}
// A MiB of it at most: nobody looks at the rest of what is as large as a cache.
inline void stand_in_fill(void* to, int value, std::size_t bytes) {
  std::memset(to, value, bytes < (1U << 20) ? bytes : 1U << 20);
}
inline hipError_t hipMalloc(void** to, std::size_t bytes) {
  STAND_IN_CALL("hipMalloc " + std::to_string(bytes));
  char* const made = static_cast<char*>(std::aligned_alloc(256, (bytes + 511) / 256 * 256));
  if (!made) return hipErrorOutOfMemory;
  stand_in_fill(made, 0xDD, bytes);  // memory of a GPU isn't zero either
  stand_in().memory[made] = bytes;
  *to = made;
  return hipSuccess;
}
inline hipError_t hipFree(void* memory) {
  STAND_IN_CALL("hipFree");
  if (!stand_in().memory.erase(static_cast<char*>(memory))) return hipErrorInvalidValue;
  std::free(memory);
  return hipSuccess;
}
inline hipError_t stand_in_copy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  stand_in_state& state = stand_in();
  const bool right_to = state.holds(to, bytes) == (kind != hipMemcpyDeviceToHost);
  const bool right_from = state.holds(from, bytes) == (kind != hipMemcpyHostToDevice);
  if (!right_to || !right_from) return hipErrorInvalidValue;
  std::memcpy(to, from, bytes);
  return hipSuccess;
}
inline hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  STAND_IN_CALL("hipMemcpy " + std::to_string(kind) + " " + std::to_string(bytes));
  return stand_in_copy(to, from, bytes, kind);
}
inline hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind, hipStream_t) {
  STAND_IN_CALL("hipMemcpyAsync " + std::to_string(kind) + " " + std::to_string(bytes));
  stand_in().us += 3;
  return stand_in_copy(to, from, bytes, kind);
}
inline hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes, hipStream_t) {
  STAND_IN_CALL("hipMemsetAsync " + std::to_string(bytes));
  if (!stand_in().holds(to, bytes)) return hipErrorInvalidValue;
  stand_in_fill(to, value, bytes);
  stand_in().us += 100;
  stand_in().flushed = true;
  return hipSuccess;
}
inline hipError_t hipDeviceSynchronize() {
  STAND_IN_CALL("hipDeviceSynchronize");
  return hipSuccess;
}
inline hipError_t hipEventCreate(hipEvent_t* event) {
  STAND_IN_CALL("hipEventCreate");
  *event = new stand_in_event();
  return hipSuccess;
}
inline hipError_t hipEventDestroy(hipEvent_t event) {
  STAND_IN_CALL("hipEventDestroy");
  delete event;
  return hipSuccess;
}
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t) {
  STAND_IN_CALL("hipEventRecord");
  stand_in().us += 2;
  event->us = stand_in().us;
  return hipSuccess;
}
inline hipError_t hipEventSynchronize(hipEvent_t) {
  STAND_IN_CALL("hipEventSynchronize");
  return hipSuccess;
}
inline hipError_t hipEventElapsedTime(float* to, hipEvent_t start, hipEvent_t stop) {
  STAND_IN_CALL("hipEventElapsedTime");
  *to = static_cast<float>((stop->us - start->us) / 1000);
  return hipSuccess;
}

// The buffers that arguments lead to, with the bytes from there on, in the order of the arguments.
inline std::vector<std::pair<char*, std::size_t>> stand_in_buffers(const char* segment, std::size_t size) {
  std::vector<std::pair<char*, std::size_t>> found;
  for (std::size_t at = 0; at + 8 <= size; at += 8) {
    char* address = nullptr;
    std::memcpy(&address, segment + at, 8);
    const auto owner = stand_in().owner(address);
    if (owner != stand_in().memory.end()) found.push_back({address, owner->first + owner->second - address});
  }
  return found;
}

inline void stand_in_run(int module, const char* segment, std::size_t size) {
  stand_in_state& state = stand_in();
  const std::vector<std::pair<char*, std::size_t>> buffers = stand_in_buffers(segment, size);
  if (buffers.empty() || *stand_in_state::setting("STAND_IN_IDLE")) return;
  char* const to = buffers.back().first;
  for (std::size_t at = 0; at < buffers.back().second && at < buffers.front().second; ++at) {
    to[at] = static_cast<char>(to[at] + buffers.front().first[at] + 1);
  }
  if (*stand_in_state::setting("STAND_IN_VARY")) to[0] = static_cast<char>(state.launches);
  if (std::atoi(stand_in_state::setting("STAND_IN_WRONG", "-1")) == module) to[buffers.back().second - 1] ^= 4;
}

inline double stand_in_time(int module) {
  stand_in_state& state = stand_in();
  std::string times = stand_in_state::setting("STAND_IN_US", "50");
  for (int each = 0; each < module && times.find(',') != std::string::npos; ++each) {
    times = times.substr(times.find(',') + 1);
  }
  double us = std::atof(times.c_str());
  if (state.flushed) us += std::atof(stand_in_state::setting("STAND_IN_COLD", "0"));
  state.drawn = state.drawn * 1664525U + 1013904223U;
  us *= 1 + std::atof(stand_in_state::setting("STAND_IN_NOISE", "0")) / 100 * (state.drawn >> 8) / (1 << 24);
  return us;
}

inline hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                        unsigned by, unsigned bz, unsigned lds, hipStream_t, void** parameters,
                                        void** extra) {
  stand_in_state& state = stand_in();
  std::string text = "hipModuleLaunchKernel " + std::to_string(function->module->number);
  for (const unsigned each : {gx, gy, gz, bx, by, bz, lds}) text += " " + std::to_string(each);
  if (parameters || !extra || extra[0] != HIP_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != HIP_LAUNCH_PARAM_BUFFER_SIZE ||
      extra[4] != HIP_LAUNCH_PARAM_END) {
    return hipErrorInvalidValue;
  }
  const char* const segment = static_cast<const char*>(extra[1]);
  const std::size_t size = *static_cast<const std::size_t*>(extra[3]);
  text += " ";
  for (std::size_t at = 0; at < size; ++at) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(segment[at]));
    text += digits;
  }
  std::uint32_t sum = 0;  // of what the buffers hold before the launch
  for (const auto& each : stand_in_buffers(segment, size)) {
    text += " " + std::to_string(each.second);
    for (std::size_t at = 0; at < each.second; ++at) sum = 31 * sum + static_cast<unsigned char>(each.first[at]);
  }
  text += " sum " + std::to_string(sum);
  STAND_IN_CALL(text);
  ++state.launches;
  stand_in_run(function->module->number, segment, size);
  state.us += stand_in_time(function->module->number);
  state.flushed = false;
  return hipSuccess;
}
