"""The order of one iteration's ops: takes an `OrderProblem`, gives an `Ordering` with a certificate."""
