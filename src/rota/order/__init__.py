"""The order of ops: of one iteration, or of a pipelined loop, with a certificate of how good it is."""
