"""A launch: arguments, a grid and a block, executed under many orders."""
