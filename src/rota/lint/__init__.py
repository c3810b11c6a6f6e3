"""What makes a compiled kernel slow, read from its machine code."""
