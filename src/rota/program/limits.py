"""Size limits: takes a count, gives D113 where searches and proofs would take too long.

The largest loops that ship have 401 ops; a body of 2,048 compiles in less than a minute.
"""

from __future__ import annotations

from rota.errors import Concern, DeclarationError, Finding, SourceLine

MOST_OPS = 2_048  # of one iteration
MOST_VALUES = 2 * MOST_OPS  # a value for each op, and as many that the loop only reads
MOST_ITERATIONS_BACK = 1_024  # a copy for each; a lane has 512 registers
MOST_ENTRIES = 4 * MOST_OPS  # that a remainder adds outside the loop
MOST_INSTRUCTIONS = 1 << 13  # that one wave issues in all phases: 64 KiB of code, all that an instruction cache holds


def check_count(owner: str, what: str, count: int, most: int, source: SourceLine | None = None) -> None:
    """At most so many."""
    if count <= most:
        return
    raise DeclarationError(
        Finding(
            code="D113",
            message=f"{owner} has {count:,} {what}; rota accepts at most {most:,}",
            concerns=(Concern(label=owner, source=source),) if source else (),
            evidence=((what, count), ("at most", most)),
        )
    )
