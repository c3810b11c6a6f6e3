"""Is a compiler's machine code still the schedule? Instructions against entries."""
