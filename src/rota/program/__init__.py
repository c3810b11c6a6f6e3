"""The ordered program: takes ops in order and the schedule's knobs, gives blocks, waits and the three phases."""
