"""What must precede what: takes a body, gives dependency edges and a checked `LoopBody`."""
