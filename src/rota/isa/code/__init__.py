"""The instructions of a kernel: takes a listing, gives `Instruction` values and where they lead."""
