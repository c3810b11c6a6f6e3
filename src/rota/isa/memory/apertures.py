"""Where LDS and private memory lie among flat addresses: takes nothing, gives the bases that kernels read.

The machine has registers for them (src_shared_base, src_private_base); the values are the driver's, these are ROCm's.
"""

APERTURE = 1 << 32
"""Bytes of each aperture."""
SHARED_BASE = 0x0001_0000_0000_0000
PRIVATE_BASE = 0x0002_0000_0000_0000
