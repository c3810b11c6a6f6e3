"""GEMM loops: takes a compiled schedule and a tile, gives what its ops stand for, and the loop in HIP."""
