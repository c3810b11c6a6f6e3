"""Predicted clocks of a loop on one compute unit, what they consist of, and a timeline."""
