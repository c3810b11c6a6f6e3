"""Many shapes: a library of proved kernels, tuned on one machine or on many."""
