"""GEMM loops: the machine instructions of their ops, and the loop in HIP."""
