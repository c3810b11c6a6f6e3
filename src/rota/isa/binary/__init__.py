"""From a file or source to a `CodeObject` with the facts of its kernels."""
