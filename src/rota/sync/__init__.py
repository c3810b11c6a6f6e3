"""The least waits and barriers that make a program safe: takes phases of entries, gives them with repairs listed."""
