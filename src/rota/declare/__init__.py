"""What one loop iteration does: takes the author's words, gives op descriptors and pipeline configs (frozen values)."""
