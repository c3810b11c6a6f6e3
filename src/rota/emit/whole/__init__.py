"""Whole GEMMs: takes a loop and what is asked of it, gives a kernel for any M, N and K, its launcher, and a project."""
