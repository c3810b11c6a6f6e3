"""Schedules in Gluon, FlyDSL and Mojo, and the machine code that their compilers make."""
