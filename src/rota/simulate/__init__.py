"""What a schedule does: takes a compiled loop or its machine code, gives what it computes and how long it takes."""
