"""Vector arithmetic: takes an instruction, gives a `Step` over 64 lanes."""
