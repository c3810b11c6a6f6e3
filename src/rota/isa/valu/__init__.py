"""Vector arithmetic over 64 lanes."""
