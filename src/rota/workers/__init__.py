"""Work on many processes: pools on this machine and on a cluster, and what keeps their rows."""
