"""Is it right, for every trip count and interleaving: takes finished entries and the machine, gives a report."""
