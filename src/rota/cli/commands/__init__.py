"""The commands, each a click command of its own name."""
