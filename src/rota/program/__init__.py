"""The lowered program: takes what a front end derived, gives roles, phases, entries with effects, and the machine."""
