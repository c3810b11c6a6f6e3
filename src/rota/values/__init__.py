"""The front end by values: takes a `Loop` of values and ops, gives a `CompiledLoop` of least initiation interval."""
