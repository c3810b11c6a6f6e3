"""Memory: what instructions read and write of LDS, global and private memory, and those memories themselves."""
