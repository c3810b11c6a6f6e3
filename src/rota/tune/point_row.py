"""What became of a point: takes a status, a code and numbers, gives a `PointRow` as the store and the workers have it.

A failure is a row, too: it says which finding ended the point, and costs nothing else.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rota.errors import Finding
from rota.tune.point import LoopPoint, point_of


class PointStatus(enum.Enum):
    """How a point ended."""

    PROVED = "proved"  # scheduled, with a certificate; of an audit: the machine code is the schedule
    REFUSED = "refused"  # rota ended in a finding
    FAILED = "failed"  # the process ended without an answer: a crash, memory, time


class JobKind(enum.Enum):
    """What is done with a point."""

    SOLVE = "solve"
    AUDIT = "audit"


class PointLimits(NamedTuple):
    """What one point may take: seconds by the clock, and MiB of address space."""

    seconds: float = 600.0
    megabytes: int = 4096


class Job(NamedTuple):
    """A point to be computed; an audit is told what the search has found."""

    key: str
    kind: JobKind
    point: LoopPoint
    answer: str = ""

    def line(self) -> str:
        """As a worker reads it."""
        said = {"key": self.key, "kind": self.kind.value, "point": self.point.data(), "answer": self.answer}
        return json.dumps(said) + "\n"


def job_of(line: str) -> Job:
    """A job from its line."""
    said = json.loads(line)
    return Job(said["key"], JobKind(said["kind"]), point_of(said["point"]), said["answer"])


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """One row.

    `facts` are numbers of what was proved: clocks, interval, LDS, registers; of a failure the limits that it met.
    `answer` is what the search found, from which the schedule is made again without a search, and proved again.
    """

    key: str
    kind: JobKind
    point: LoopPoint
    status: PointStatus
    code: str = ""
    message: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    answer: str = ""
    seconds: float = 0.0
    attempts: int = 1

    @property
    def finding(self) -> Finding | None:
        """Why it isn't proved; None if it is."""
        return Finding(code=self.code, message=f"{self.point.name}: {self.message}") if self.code else None

    def line(self) -> str:
        """As a worker writes it."""
        said = {
            "key": self.key,
            "kind": self.kind.value,
            "point": self.point.data(),
            "status": self.status.value,
            "code": self.code,
            "message": self.message,
            "facts": dict(self.facts),
            "answer": self.answer,
            "seconds": self.seconds,
            "attempts": self.attempts,
        }
        return json.dumps(said) + "\n"


def row_of(line: str) -> PointRow:
    """A row from its line."""
    said = json.loads(line)
    return PointRow(
        **{
            **said,
            "kind": JobKind(said["kind"]),
            "point": point_of(said["point"]),
            "status": PointStatus(said["status"]),
        }
    )
