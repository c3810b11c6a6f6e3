"""The global memory that a kernel accesses: addresses as sums of products, and where they lose bits."""
