// rota's small stand-in for HIP's headers, where no ROCm is installed: all of it is in hip_runtime.h.
#include "hip_runtime.h"
