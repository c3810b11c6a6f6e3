"""A benchmark that is written here, run on a GPU by someone else, and read back."""
