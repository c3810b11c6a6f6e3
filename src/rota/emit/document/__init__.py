"""Schedules as JSON: takes a schedule, gives a document; takes that, gives the schedule, derived and proved again."""
