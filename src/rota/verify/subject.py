"""What a proof is about: takes a schedule, gives its `Subject`, which holds everything that the proof reads.

The proof is handed the subject and nothing else, so that what it reads and what its certificate is about can't differ.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import TYPE_CHECKING

from rota.declare.config import PipelineConfig
from rota.declare.op import OpDesc
from rota.declare.values import LoopSpec
from rota.errors import Finding, Severity
from rota.program.entry import ScheduleEntry
from rota.program.loop import KnobsForTokens
from rota.targets.machine import Machine

if TYPE_CHECKING:
    from rota.verify.prove import Provable


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The part of a schedule that a proof reads, by value; schedules whose subjects are equal have one proof."""

    config: PipelineConfig
    schedule_config: KnobsForTokens
    body: tuple[OpDesc, ...]
    loop: LoopSpec | None
    prologue: tuple[ScheduleEntry, ...]
    kernel: tuple[ScheduleEntry, ...]
    epilogue: tuple[ScheduleEntry, ...]
    trip_tiles: tuple[int, int] | None
    warp_stagger_index: int
    compiler_tracks_registers: bool
    reentrant: bool
    vmcnt_in_order: bool
    machine: Machine
    lds_bytes: int | None
    registers: int | None
    register_limit: int

    @classmethod
    def of(cls, schedule: Provable) -> Subject:
        """What a proof of this schedule would read."""
        return cls(**{each.name: getattr(schedule, each.name) for each in fields(cls)})


def not_about(proved: Subject | None, given: Subject) -> Finding | None:
    """The finding of a certificate that was given to something else than what it is about."""
    if proved == given:
        return None
    return Finding(
        code="V108",
        severity=Severity.WARNING,
        message="the certificate is about another schedule and was taken off; this one is not proved",
        evidence=_differences(proved, given) if proved else (("certificate", "doesn't say what it is about"),),
        fixes=("verify() says whether this schedule is right",),
    )


def _differences(proved: Subject, given: Subject) -> tuple[tuple[str, str], ...]:
    found = []
    for each in fields(Subject):
        before, now = getattr(proved, each.name), getattr(given, each.name)
        if before != now:
            one, other = (before, now) if isinstance(now, int | None) else _told_apart(before, now)
            found.append((each.name, f"{one} in the proof, {other} here"))
    return tuple(found)


def _told_apart(before: object, now: object) -> tuple[str, str]:
    """Two values that differ, in few words; of two lists the first elements that differ."""
    if not isinstance(before, tuple) or not isinstance(now, tuple):
        return f"one {type(before).__name__}", "another"
    slot = next(number for number, (one, other) in enumerate(zip_longest(before, now)) if one != other)
    one, other = (
        f"{whole[slot]} among {len(whole)}" if slot < len(whole) else f"{len(whole)}" for whole in (before, now)
    )
    return one, other
