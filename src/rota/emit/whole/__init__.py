"""Whole GEMMs: a kernel for any M, N and K, its launcher, and a project."""
