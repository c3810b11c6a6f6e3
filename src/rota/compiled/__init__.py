"""The compiled schedule, with its proof."""
