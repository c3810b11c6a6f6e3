"""Matrix instructions: their number formats, their layout in lanes, what they compute."""
