"""Buffers in the words of whoever reads: takes a finding that counts them, gives it with their names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from rota.errors import Finding

_BUFFER = re.compile(r"\bbuffer (\d+)")


def with_buffers(finding: Finding, name: Callable[[int], str]) -> Finding:
    """The finding with `name` of a number wherever its evidence says "buffer" and that number."""
    evidence = (
        (key, _BUFFER.sub(lambda found: name(int(found[1])), value) if isinstance(value, str) else value)
        for key, value in finding.evidence
    )
    return replace(finding, evidence=tuple(evidence))
