"""All memory instructions and their oracles: gives a check per opcode, which takes a seed and fails if they differ.

What `benchmarks.instructions` counts: each opcode here runs against plain Python.
"""

from __future__ import annotations

from tests.isa import lds_oracle, scalar_memory_oracle, vector_memory_oracle

CHECKS = {**lds_oracle.CHECKS, **vector_memory_oracle.CHECKS, **scalar_memory_oracle.CHECKS}
"""By opcode, without suffixes of the encoding, a check that takes a seed and fails where the two differ."""
