"""Proofs about compiled kernels: races, early uses of registers and LDS bounds, for all arguments and wave orders."""
