"""Lifts loops that rota did not write to lowered programs: hipBLASLt's tables, and compiled kernels."""
