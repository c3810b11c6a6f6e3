"""The languages that kernels are written in besides HIP, each in modules of its own: a schedule as source, and back."""
