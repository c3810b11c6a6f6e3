"""Why a wait or barrier stands where it does: takes a schedule, gives a text for each of its sync entries."""

from __future__ import annotations

from collections import deque

from rota.compiler.compiled import CompiledSchedule
from rota.declare.effects import Action, Counter
from rota.declare.vocabulary import Phase
from rota.program.loop import LoopSteps, Step, steps_of


def sync_reasons(compiled: CompiledSchedule) -> dict[tuple[Phase, int], str]:
    """By phase and slot: a repair's own reason, and for other waits what they complete."""
    reasons = _completed(steps_of(compiled))
    reasons.update({(repair.phase, repair.slot): repair.reason for repair in compiled.repairs})
    return reasons


def sync_reason(step: Step, reasons: dict[tuple[Phase, int], str]) -> str:
    """Why a step stands there, if it synchronises; slots of `reasons` are not those of staggering's own barriers."""
    if step.group is not None:
        late = step.entry.phase is Phase.PROLOGUE
        return "group 1 falls one barrier behind group 0" if late else "group 0 lets group 1 catch up"
    if step.effect.action is Action.BARRIER:
        return reasons.get((step.entry.phase, step.entry.time_slot), "the schedule's own")
    return reasons.get((step.entry.phase, step.entry.time_slot), "")


def _completed(steps: LoopSteps) -> dict[tuple[Phase, int], str]:
    """Replay one wave; the second trip's waits are the ones that stand, for they see what the first leaves behind."""
    pending: dict[Counter, deque[Step]] = {counter: deque() for counter in Counter}
    reasons: dict[tuple[Phase, int], str] = {}
    for phase in (Phase.PROLOGUE, Phase.KERNEL, Phase.KERNEL, Phase.EPILOGUE):
        for step in steps.phase(phase):
            effect, counter = step.effect, step.effect.counter
            if counter is None:
                continue
            queue = pending[counter]
            if effect.action is not Action.WAIT:
                queue.extend([step] * effect.tokens)
                continue
            last: Step | None = None
            while len(queue) > effect.wait_value:
                last = queue.popleft()
            reasons[phase, step.entry.time_slot] = (
                f"{last.entry.op} ({last.entry.phase.value.lower()} #{last.entry.time_slot}) and older are over"
                if last
                else "all it could wait for is over already"
            )
    return reasons
