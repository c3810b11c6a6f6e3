"""Wait states while a kernel runs: takes what a wave issues, gives faults where it is too early.

gfx9 interlocks most dependencies, not these.  The numbers are the architecture's (`Hazards`), the rules those of
`spacing_rules`.  A compiler that sees the instructions inserts `s_nop` for them, but it doesn't look into inline
assembly.  `walk` asks the same of all paths, without running any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.isa.hazards.spacing_rules import needs
from rota.isa.hazards.walk import early_message, too_early
from rota.isa.wave.wave import POISON, Wave

if TYPE_CHECKING:
    from rota.isa.hazards.spacing import Need
    from rota.isa.wave.step import Step


def keep_distance(wave: Wave, step: Step) -> None:
    """Looks whether a step comes too early behind recent ones, and remembers it.

    What an MFMA has not yet written is read as poison.
    """
    now, spacing, recent = wave.now, step.spacing, wave.recent
    if recent:
        for _, since, other in recent:
            first = other.spacing
            known = first.known.get(spacing)
            due = needs(first, spacing, wave.architecture.hazards) if known is None else known
            if due and max(need.states for need in due) > now - since:
                _report(wave, step)
                break
        if recent[0][0] <= now:
            wave.recent = [entry for entry in recent if entry[0] > now]
    if spacing.reach:
        since = now + step.states
        wave.recent.append((since + spacing.reach, since, step))


def _report(wave: Wave, step: Step) -> None:
    """What the step comes too early for, of those that no later MFMA has taken the place of."""
    spaced = [(wave.now - since, other.spacing) for _, since, other in reversed(wave.recent)]
    for first, short, need in too_early(spaced, step.spacing, wave.architecture.hazards):
        other = next(each for _, _, each in reversed(wave.recent) if each.spacing is first)
        _early(wave, step, other, short, need)


def _early(wave: Wave, step: Step, other: Step, short: int, need: Need) -> None:
    wave.faults.add(
        "I104",
        step.instruction,
        early_message(step.instruction, need, short),
        ("wave", wave.number),
        ("fix", f"s_nop {short - 1} before it, or other instructions"),
        other=other.instruction,
    )
    if need.reads and need.matrix:
        for row in need.rows:
            wave.v[row] = POISON
