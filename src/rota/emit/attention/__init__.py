"""Attention forward in full: its loop, a kernel for any lengths, its launcher."""
