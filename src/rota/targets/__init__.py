"""Devices and their architectures: one object each, every fact with its source."""
