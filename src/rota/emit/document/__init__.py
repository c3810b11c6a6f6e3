"""Schedules as JSON, and back: derived and proved again."""
