"""What all emitted source has: takes a schedule or an entry, gives names, comments, calls, waits and marks as text."""
