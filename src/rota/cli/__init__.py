"""The `rota` command: takes words from the shell, gives text on stdout and an exit code."""
