"""The least waits and barriers that make a program safe: takes entries, gives entries (planned; nothing here yet)."""
