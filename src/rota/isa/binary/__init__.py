"""What a compiler made: takes a file or source, gives a `CodeObject` with the facts of its kernels."""
