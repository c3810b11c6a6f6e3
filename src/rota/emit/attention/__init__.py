"""Attention forward in full: takes rows, keys and head size, gives its loop, a kernel for any lengths, its launcher."""
