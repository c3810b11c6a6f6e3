"""The way in by values: takes a `Loop` of values and ops, gives a `CompiledSchedule` of least initiation interval."""
