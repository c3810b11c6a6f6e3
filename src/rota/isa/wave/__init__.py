"""One wave: its registers, and the scalar instructions and branches that it takes."""
