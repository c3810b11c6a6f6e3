"""Machine code: takes a code object, gives its instructions, decoded, and runs them on the CPU."""
