"""A launch: takes arguments, a grid and a block, runs the kernel under many orders, gives what went wrong."""
