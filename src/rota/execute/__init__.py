"""What it computes: takes a compiled loop and a trip count, gives whether every wave computes what is due."""
