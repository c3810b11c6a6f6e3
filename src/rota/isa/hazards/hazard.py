"""Wait states while a kernel runs: takes what a wave issues, gives faults where it is too early.

gfx9 interlocks most dependencies, not these.  The numbers are the architecture's (`Hazards`), the rules those of
`spacing_rules`.  A compiler that sees the instructions inserts `s_nop` for them, but it doesn't look into inline
assembly.  `walk` asks the same of all paths, without running any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.isa.hazards.spacing import NO_ROWS
from rota.isa.hazards.spacing_rules import needs
from rota.isa.hazards.walk import Behind, early_evidence, early_message
from rota.isa.wave.wave import POISON, Wave

if TYPE_CHECKING:
    from rota.isa.hazards.spacing import Need, Spacing
    from rota.isa.wave.step import Step


def keep_distance(wave: Wave, step: Step) -> None:
    """Looks whether a step comes too early behind recent ones, and remembers it.

    What an MFMA has not yet written is read as poison.  An MFMA waits until its unit is free.
    """
    spacing = step.spacing
    waited, began = (0, 0) if spacing.pipe is None else _wait_for_unit(wave, spacing)
    now, recent = wave.now + wave.stalled, wave.recent
    if recent:
        for _, since, other in recent:
            first = other.spacing
            known = first.known.get(spacing)
            due = needs(first, spacing, wave.architecture.hazards) if known is None else known
            if due and max(need.states for need in due) > now - since:
                _report(wave, step, waited, began)
                break
        if recent[0][0] <= now:
            wave.recent = recent = [entry for entry in recent if entry[0] > now]
    reach = spacing.reach
    if spacing.ends and any(spacing.ends & other.spacing.writes for _, _, other in recent):
        reach = max(other.spacing.reach for _, _, other in recent)  # it ends what they may be too early for
    if reach:
        since = now + step.states
        wave.recent.append((since + reach, since, step))


def _wait_for_unit(wave: Wave, spacing: Spacing) -> tuple[int, int]:
    """An MFMA begins when the one before, if of its kind, has passed: how long it waits, and when that one began.

    What was issued between the two gets nothing of that time: the walk backwards doesn't know of it there.
    """
    now = wave.now + wave.stalled
    pipe, began, free = wave.unit
    more = free - now if pipe is spacing.pipe and free > now else 0
    if more:
        wave.recent = [
            (until + more, since + more, step) if since > began + 1 else (until, since, step)
            for until, since, step in wave.recent
        ]
        wave.stalled, now = wave.stalled + more, free
    wave.unit = (spacing.pipe, now, now + spacing.passes)
    return more, began


def _report(wave: Wave, step: Step, waited: int, began: int) -> None:
    """What the step comes too early for, of what nothing else has written since.

    It waited for its unit itself, which counts for what was issued no later than the one that `began` there.
    """
    multiplied = ended = NO_ROWS
    now = wave.now + wave.stalled
    for _, since, other in reversed(wave.recent):
        first = other.spacing
        passed = now - since
        behind = Behind(passed, passed - waited if since <= began + 1 else passed, multiplied, ended)
        due = behind.due(first, step.spacing, wave.architecture.hazards)
        for short, need in sorted(due, key=lambda each: (each[1].required, each[0]), reverse=True):
            _early(wave, step, other, short, need)
        if first.passes:
            multiplied |= first.writes
        ended |= first.ends


def _early(wave: Wave, step: Step, other: Step, short: int, need: Need) -> None:
    wave.faults.add(
        "I104",
        step.instruction,
        early_message(step.instruction, need, short),
        ("wave", wave.number),
        *early_evidence(need, short),
        other=other.instruction,
    )
    if need.reads and need.matrix:
        for row in need.rows:
            wave.v[row] = POISON
