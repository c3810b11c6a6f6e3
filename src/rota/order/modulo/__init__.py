"""Modulo scheduling: when the ops of a pipelined loop start."""
