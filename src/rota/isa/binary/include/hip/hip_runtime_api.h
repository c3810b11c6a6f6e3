// rota's small stand-in for HIP's headers, where no ROCm is installed: the host's functions, declared alone.
//
// Only device code is compiled, so that no value here reaches a kernel. Enumerators have no numbers for that reason.
#ifndef ROTA_HIP_RUNTIME_API_H
#define ROTA_HIP_RUNTIME_API_H

#include <stddef.h>
#include <stdint.h>

#include "hip_version.h"
#include "hip_vector_types.h"

#if !defined(__HIP_PLATFORM_AMD__)
#define __HIP_PLATFORM_AMD__ 1
#endif

enum hipError_t {
  hipSuccess = 0,
  hipErrorInvalidValue,
  hipErrorOutOfMemory,
  hipErrorMemoryAllocation = hipErrorOutOfMemory,
  hipErrorNotInitialized,
  hipErrorInitializationError = hipErrorNotInitialized,
  hipErrorDeinitialized,
  hipErrorInvalidConfiguration,
  hipErrorInvalidSymbol,
  hipErrorInvalidDevicePointer,
  hipErrorInvalidMemcpyDirection,
  hipErrorInvalidDeviceFunction,
  hipErrorNoDevice,
  hipErrorInvalidDevice,
  hipErrorInvalidImage,
  hipErrorInvalidContext,
  hipErrorNoBinaryForGpu,
  hipErrorInvalidSource,
  hipErrorFileNotFound,
  hipErrorInvalidHandle,
  hipErrorInvalidResourceHandle = hipErrorInvalidHandle,
  hipErrorNotFound,
  hipErrorNotReady,
  hipErrorIllegalAddress,
  hipErrorLaunchOutOfResources,
  hipErrorLaunchTimeOut,
  hipErrorPeerAccessAlreadyEnabled,
  hipErrorPeerAccessNotEnabled,
  hipErrorPeerAccessUnsupported,
  hipErrorHostMemoryAlreadyRegistered,
  hipErrorHostMemoryNotRegistered,
  hipErrorLaunchFailure,
  hipErrorCooperativeLaunchTooLarge,
  hipErrorNotSupported,
  hipErrorUnknown,
};

enum hipMemcpyKind {
  hipMemcpyHostToHost,
  hipMemcpyHostToDevice,
  hipMemcpyDeviceToHost,
  hipMemcpyDeviceToDevice,
  hipMemcpyDefault,
};

typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipCtx_t *hipCtx_t;
typedef struct ihipMemPoolHandle_t *hipMemPool_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef void (*hipStreamCallback_t)(hipStream_t, hipError_t, void *);
typedef size_t (*rota_block_to_lds)(int);

#define hipStreamDefault 0
#define hipStreamNonBlocking 1
#define hipStreamPerThread ((hipStream_t)2)
#define hipStreamLegacy ((hipStream_t)1)
#define hipEventDefault 0
#define hipEventBlockingSync 1
#define hipEventDisableTiming 2
#define hipEventInterprocess 4
#define hipHostMallocDefault 0
#define hipHostMallocPortable 1
#define hipHostMallocMapped 2
#define hipHostMallocWriteCombined 4
#define hipHostMallocNumaUser 0x20000000
#define hipHostMallocCoherent 0x40000000
#define hipHostMallocNonCoherent 0x80000000
#define hipHostRegisterDefault 0
#define hipHostRegisterPortable 1
#define hipHostRegisterMapped 2
#define hipMemAttachGlobal 1
#define hipMemAttachHost 2
#define hipDeviceScheduleAuto 0
#define hipDeviceScheduleSpin 1
#define hipDeviceScheduleYield 2
#define hipDeviceScheduleBlockingSync 4
#define hipDeviceMapHost 8
#define hipCpuDeviceId ((int)-1)
#define hipInvalidDeviceId ((int)-2)
#define HIP_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)
#define HIP_LAUNCH_PARAM_END ((void *)3)

struct hipDeviceArch_t {
  unsigned hasGlobalInt32Atomics : 1, hasGlobalFloatAtomicExch : 1, hasSharedInt32Atomics : 1;
  unsigned hasSharedFloatAtomicExch : 1, hasFloatAtomicAdd : 1, hasGlobalInt64Atomics : 1, hasSharedInt64Atomics : 1;
  unsigned hasDoubles : 1, hasWarpVote : 1, hasWarpBallot : 1, hasWarpShuffle : 1, hasFunnelShift : 1;
  unsigned hasThreadFenceSystem : 1, hasSyncThreadsExt : 1, hasSurfaceFuncs : 1, has3dGrid : 1;
  unsigned hasDynamicParallelism : 1;
};

struct hipUUID {
  char bytes[16];
};

struct hipDeviceProp_t {
  char name[256];
  hipUUID uuid;
  char gcnArchName[256];
  hipDeviceArch_t arch;
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor, totalConstMem;
  size_t maxSharedMemoryPerMultiProcessor, memPitch, textureAlignment, texturePitchAlignment;
  int regsPerBlock, regsPerMultiprocessor, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor;
  int maxBlocksPerMultiProcessor, maxThreadsDim[3], maxGridSize[3];
  int clockRate, memoryClockRate, memoryBusWidth, clockInstructionRate, l2CacheSize;
  int major, minor, multiProcessorCount, computeMode, concurrentKernels, asyncEngineCount, streamPrioritiesSupported;
  int pciDomainID, pciBusID, pciDeviceID, isMultiGpuBoard, canMapHostMemory, gcnArch, integrated, tccDriver;
  int cooperativeLaunch, cooperativeMultiDeviceLaunch, kernelExecTimeoutEnabled, ECCEnabled, isLargeBar, asicRevision;
  int managedMemory, directManagedMemAccessFromHost, concurrentManagedAccess, pageableMemoryAccess;
  int pageableMemoryAccessUsesHostPageTables, unifiedAddressing, hostNativeAtomicSupported;
  int maxTexture1D, maxTexture2D[2], maxTexture3D[3], deviceOverlap;
};

enum hipComputeMode { hipComputeModeDefault, hipComputeModeExclusive, hipComputeModeProhibited };
enum hipFuncCache_t { hipFuncCachePreferNone, hipFuncCachePreferShared, hipFuncCachePreferL1, hipFuncCachePreferEqual };
enum hipSharedMemConfig {
  hipSharedMemBankSizeDefault,
  hipSharedMemBankSizeFourByte,
  hipSharedMemBankSizeEightByte
};
enum hipFuncAttribute {
  hipFuncAttributeMaxDynamicSharedMemorySize,
  hipFuncAttributePreferredSharedMemoryCarveout,
};
struct hipFuncAttributes {
  int binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes, maxThreadsPerBlock, numRegs, preferredShmemCarveout;
  int ptxVersion;
  size_t constSizeBytes, localSizeBytes, sharedSizeBytes;
};
enum hipMemoryType { hipMemoryTypeHost, hipMemoryTypeDevice, hipMemoryTypeManaged, hipMemoryTypeUnregistered };
struct hipPointerAttribute_t {
  hipMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
  int isManaged;
  unsigned allocationFlags;
};
enum hipMemoryAdvise {
  hipMemAdviseSetReadMostly,
  hipMemAdviseUnsetReadMostly,
  hipMemAdviseSetPreferredLocation,
  hipMemAdviseUnsetPreferredLocation,
  hipMemAdviseSetAccessedBy,
  hipMemAdviseUnsetAccessedBy,
  hipMemAdviseSetCoarseGrain,
};
enum hipStreamCaptureMode {
  hipStreamCaptureModeGlobal,
  hipStreamCaptureModeThreadLocal,
  hipStreamCaptureModeRelaxed
};
enum hipDeviceAttribute_t {
  hipDeviceAttributeMaxThreadsPerBlock,
  hipDeviceAttributeMaxBlockDimX,
  hipDeviceAttributeMaxBlockDimY,
  hipDeviceAttributeMaxBlockDimZ,
  hipDeviceAttributeMaxGridDimX,
  hipDeviceAttributeMaxGridDimY,
  hipDeviceAttributeMaxGridDimZ,
  hipDeviceAttributeMaxSharedMemoryPerBlock,
  hipDeviceAttributeTotalConstantMemory,
  hipDeviceAttributeWarpSize,
  hipDeviceAttributeMaxRegistersPerBlock,
  hipDeviceAttributeClockRate,
  hipDeviceAttributeMemoryClockRate,
  hipDeviceAttributeMemoryBusWidth,
  hipDeviceAttributeMultiprocessorCount,
  hipDeviceAttributeComputeMode,
  hipDeviceAttributeL2CacheSize,
  hipDeviceAttributeMaxThreadsPerMultiProcessor,
  hipDeviceAttributeComputeCapabilityMajor,
  hipDeviceAttributeComputeCapabilityMinor,
  hipDeviceAttributeConcurrentKernels,
  hipDeviceAttributePciBusId,
  hipDeviceAttributePciDeviceId,
  hipDeviceAttributeMaxSharedMemoryPerMultiprocessor,
  hipDeviceAttributeIsMultiGpuBoard,
  hipDeviceAttributeIntegrated,
  hipDeviceAttributeCooperativeLaunch,
  hipDeviceAttributeCooperativeMultiDeviceLaunch,
  hipDeviceAttributeManagedMemory,
  hipDeviceAttributeConcurrentManagedAccess,
  hipDeviceAttributeImageSupport,
  hipDeviceAttributeWallClockRate,
  hipDeviceAttributeMemoryPoolsSupported,
  hipDeviceAttributeUnifiedAddressing,
};

#define HIP_SYMBOL(symbol) symbol

extern "C" {
const char *hipGetErrorString(hipError_t);
const char *hipGetErrorName(hipError_t);
hipError_t hipGetLastError();
hipError_t hipPeekAtLastError();
hipError_t hipInit(unsigned);
hipError_t hipDriverGetVersion(int *);
hipError_t hipRuntimeGetVersion(int *);

hipError_t hipGetDeviceCount(int *);
hipError_t hipSetDevice(int);
hipError_t hipGetDevice(int *);
hipError_t hipDeviceGet(hipDevice_t *, int);
hipError_t hipDeviceGetName(char *, int, hipDevice_t);
hipError_t hipDeviceGetUuid(hipUUID *, hipDevice_t);
hipError_t hipDeviceTotalMem(size_t *, hipDevice_t);
hipError_t hipGetDeviceProperties(hipDeviceProp_t *, int);
hipError_t hipDeviceGetAttribute(int *, hipDeviceAttribute_t, int);
hipError_t hipDeviceGetPCIBusId(char *, int, int);
hipError_t hipDeviceSynchronize();
hipError_t hipDeviceReset();
hipError_t hipSetDeviceFlags(unsigned);
hipError_t hipDeviceSetCacheConfig(hipFuncCache_t);
hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig);
hipError_t hipDeviceCanAccessPeer(int *, int, int);
hipError_t hipDeviceEnablePeerAccess(int, unsigned);
hipError_t hipDeviceDisablePeerAccess(int);
hipError_t hipDeviceGetStreamPriorityRange(int *, int *);

hipError_t hipStreamCreate(hipStream_t *);
hipError_t hipStreamCreateWithFlags(hipStream_t *, unsigned);
hipError_t hipStreamCreateWithPriority(hipStream_t *, unsigned, int);
hipError_t hipStreamDestroy(hipStream_t);
hipError_t hipStreamSynchronize(hipStream_t);
hipError_t hipStreamQuery(hipStream_t);
hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned = 0);
hipError_t hipStreamAddCallback(hipStream_t, hipStreamCallback_t, void *, unsigned);
hipError_t hipStreamBeginCapture(hipStream_t, hipStreamCaptureMode);
hipError_t hipStreamEndCapture(hipStream_t, hipGraph_t *);
hipError_t hipGraphCreate(hipGraph_t *, unsigned);
hipError_t hipGraphDestroy(hipGraph_t);
hipError_t hipGraphInstantiate(hipGraphExec_t *, hipGraph_t, hipGraphNode_t *, char *, size_t);
hipError_t hipGraphLaunch(hipGraphExec_t, hipStream_t);
hipError_t hipGraphExecDestroy(hipGraphExec_t);

hipError_t hipEventCreate(hipEvent_t *);
hipError_t hipEventCreateWithFlags(hipEvent_t *, unsigned);
hipError_t hipEventRecord(hipEvent_t, hipStream_t = nullptr);
hipError_t hipEventSynchronize(hipEvent_t);
hipError_t hipEventQuery(hipEvent_t);
hipError_t hipEventElapsedTime(float *, hipEvent_t, hipEvent_t);
hipError_t hipEventDestroy(hipEvent_t);

hipError_t hipFree(void *);
hipError_t hipFreeAsync(void *, hipStream_t);
hipError_t hipHostFree(void *);
hipError_t hipFreeHost(void *);
hipError_t hipHostRegister(void *, size_t, unsigned);
hipError_t hipHostUnregister(void *);
hipError_t hipMemGetInfo(size_t *, size_t *);
hipError_t hipMemcpy(void *, const void *, size_t, hipMemcpyKind);
hipError_t hipMemcpyAsync(void *, const void *, size_t, hipMemcpyKind, hipStream_t = nullptr);
hipError_t hipMemcpyWithStream(void *, const void *, size_t, hipMemcpyKind, hipStream_t);
hipError_t hipMemcpyHtoD(hipDeviceptr_t, void *, size_t);
hipError_t hipMemcpyDtoH(void *, hipDeviceptr_t, size_t);
hipError_t hipMemcpyDtoD(hipDeviceptr_t, hipDeviceptr_t, size_t);
hipError_t hipMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, hipMemcpyKind);
hipError_t hipMemcpy2DAsync(void *, size_t, const void *, size_t, size_t, size_t, hipMemcpyKind, hipStream_t = nullptr);
hipError_t hipMemcpyPeer(void *, int, const void *, int, size_t);
hipError_t hipMemcpyPeerAsync(void *, int, const void *, int, size_t, hipStream_t = nullptr);
hipError_t hipMemset(void *, int, size_t);
hipError_t hipMemsetAsync(void *, int, size_t, hipStream_t = nullptr);
hipError_t hipMemset2D(void *, size_t, int, size_t, size_t);
hipError_t hipMemsetD8(hipDeviceptr_t, unsigned char, size_t);
hipError_t hipMemsetD32(hipDeviceptr_t, int, size_t);
hipError_t hipMemPrefetchAsync(const void *, size_t, int, hipStream_t = nullptr);
hipError_t hipMemAdvise(const void *, size_t, hipMemoryAdvise, int);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *, const void *);

hipError_t hipModuleLoad(hipModule_t *, const char *);
hipError_t hipModuleLoadData(hipModule_t *, const void *);
hipError_t hipModuleUnload(hipModule_t);
hipError_t hipModuleGetFunction(hipFunction_t *, hipModule_t, const char *);
hipError_t hipModuleGetGlobal(hipDeviceptr_t *, size_t *, hipModule_t, const char *);
hipError_t hipModuleLaunchKernel(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 hipStream_t, void **, void **);
hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, size_t, hipStream_t);
hipError_t hipLaunchCooperativeKernel(const void *, dim3, dim3, void **, unsigned, hipStream_t);
hipError_t hipFuncSetAttribute(const void *, hipFuncAttribute, int);
hipError_t hipFuncSetCacheConfig(const void *, hipFuncCache_t);
hipError_t hipFuncGetAttributes(hipFuncAttributes *, const void *);
hipError_t hipConfigureCall(dim3, dim3, size_t = 0, hipStream_t = nullptr);
hipError_t hipSetupArgument(const void *, size_t, size_t);
hipError_t hipLaunchByPtr(const void *);
hipError_t __hipPushCallConfiguration(dim3, dim3, size_t = 0, hipStream_t = nullptr);
hipError_t __hipPopCallConfiguration(dim3 *, dim3 *, size_t *, hipStream_t *);
hipError_t hipProfilerStart();
hipError_t hipProfilerStop();
}

// Templates have bodies, which are never compiled: clang demands them for types without linkage.

template <typename T>
hipError_t hipMalloc(T **, size_t) { return hipSuccess; }
template <typename T>
hipError_t hipMallocAsync(T **, size_t, hipStream_t) { return hipSuccess; }
template <typename T>
hipError_t hipMallocManaged(T **, size_t, unsigned = hipMemAttachGlobal) { return hipSuccess; }
template <typename T>
hipError_t hipMallocPitch(T **, size_t *, size_t, size_t) { return hipSuccess; }
template <typename T>
hipError_t hipHostMalloc(T **, size_t, unsigned = hipHostMallocDefault) { return hipSuccess; }
template <typename T>
hipError_t hipHostAlloc(T **, size_t, unsigned) { return hipSuccess; }
template <typename T>
hipError_t hipMallocHost(T **, size_t) { return hipSuccess; }
template <typename T>
hipError_t hipExtMallocWithFlags(T **, size_t, unsigned) { return hipSuccess; }
template <typename T>
hipError_t hipHostGetDevicePointer(T **, void *, unsigned) { return hipSuccess; }
template <typename T>
hipError_t hipGetSymbolAddress(void **, const T &) { return hipSuccess; }
template <typename T>
hipError_t hipGetSymbolSize(size_t *, const T &) { return hipSuccess; }
template <typename T>
hipError_t hipMemcpyToSymbol(const T &, const void *, size_t, size_t = 0, hipMemcpyKind = hipMemcpyHostToDevice) {
  return hipSuccess;
}
template <typename T>
hipError_t hipMemcpyToSymbolAsync(const T &, const void *, size_t, size_t, hipMemcpyKind, hipStream_t = nullptr) {
  return hipSuccess;
}
template <typename T>
hipError_t hipMemcpyFromSymbol(void *, const T &, size_t, size_t = 0, hipMemcpyKind = hipMemcpyDeviceToHost) {
  return hipSuccess;
}
template <typename T>
hipError_t hipMemcpyFromSymbolAsync(void *, const T &, size_t, size_t, hipMemcpyKind, hipStream_t = nullptr) {
  return hipSuccess;
}
template <typename Kernel>
hipError_t hipLaunchCooperativeKernel(Kernel, dim3, dim3, void **, unsigned, hipStream_t) { return hipSuccess; }
template <typename Kernel>
hipError_t hipLaunchKernel(Kernel, dim3, dim3, void **, size_t, hipStream_t) { return hipSuccess; }
template <typename Kernel>
hipError_t hipFuncSetAttribute(Kernel, hipFuncAttribute, int) { return hipSuccess; }
template <typename Kernel>
hipError_t hipFuncSetCacheConfig(Kernel, hipFuncCache_t) { return hipSuccess; }
template <typename Kernel>
hipError_t hipFuncGetAttributes(hipFuncAttributes *, Kernel) { return hipSuccess; }
template <typename Kernel>
hipError_t hipOccupancyMaxPotentialBlockSize(int *, int *, Kernel, size_t = 0, int = 0) { return hipSuccess; }
template <typename Kernel>
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *, Kernel, int, size_t) { return hipSuccess; }

#endif
