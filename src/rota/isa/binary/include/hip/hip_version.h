// rota's small stand-in for HIP's headers, where no ROCm is installed: the version whose names it follows.
#ifndef ROTA_HIP_VERSION_H
#define ROTA_HIP_VERSION_H
#define HIP_VERSION_MAJOR 6
#define HIP_VERSION_MINOR 4
#define HIP_VERSION_PATCH 0
#define HIP_VERSION (HIP_VERSION_MAJOR * 10000000 + HIP_VERSION_MINOR * 100000 + HIP_VERSION_PATCH)
#endif
