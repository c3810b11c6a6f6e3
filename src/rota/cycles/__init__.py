"""How long it takes: takes a compiled loop, gives predicted clocks, what they consist of, and a timeline."""
