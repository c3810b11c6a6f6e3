"""Which accesses are kept apart: takes accesses as waves make them, gives faults for any interleaving."""
