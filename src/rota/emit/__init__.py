"""Source: takes a compiled schedule, gives HIP kernels, skeleton headers and the JSON that other tools exchange."""
