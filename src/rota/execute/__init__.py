"""Execution of a schedule on numbers, under many interleavings, against what it should compute."""
