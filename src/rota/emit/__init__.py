"""Schedules as source (HIP kernels, skeleton headers) and as JSON."""
