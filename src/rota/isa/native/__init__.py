"""The native core of the interpreter: the machine of `rota.isa` a second time, in C, and some fifty times as fast."""
