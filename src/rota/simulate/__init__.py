"""What a schedule does: takes a compiled loop, gives what it computes on real numbers, wave by wave."""
