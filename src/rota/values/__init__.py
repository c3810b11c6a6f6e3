"""The front end by values: declare values and ops; rota finds the least initiation interval."""
