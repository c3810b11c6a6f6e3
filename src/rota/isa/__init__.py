"""Machine code: read, decode and execute it on the CPU."""
