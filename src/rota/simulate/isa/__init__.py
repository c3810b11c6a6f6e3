"""Runs compiled kernels: gfx942 and gfx950 machine code, decoded from its disassembly, on the CPU."""
