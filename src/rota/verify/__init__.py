"""Is it right, for every trip count and interleaving: takes finished entries, gives a report (planned)."""
