"""Gives the main loop of a compiled kernel a better order, and hands it over only if it is proved and equal."""
