"""Machine code, proved without its arguments: takes a code object, gives a `Verdict` about every path and order."""
