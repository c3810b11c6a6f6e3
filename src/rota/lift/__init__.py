"""Loops that others wrote, as lowered programs: takes what they published, gives what judges and pictures read."""
