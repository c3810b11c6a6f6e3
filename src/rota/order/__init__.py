"""In which order, and how good: takes a `LoopBody` and budgets, gives an order with a certificate."""
