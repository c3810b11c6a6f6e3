"""The time of a whole problem, what it consists of, and a band."""
