"""Checks what a compiler made of a schedule: toolchains, code objects, and their instructions against the entries."""
