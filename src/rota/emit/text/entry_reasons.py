"""Why a wait or barrier stands where it does: takes a schedule, gives a text for each of its sync entries."""

from __future__ import annotations

from collections import defaultdict, deque

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.text.sync_text import is_alone
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.program.phase import Phase

Reasons = dict[tuple[Phase, int], str]


def sync_reasons(compiled: CompiledSchedule) -> Reasons:
    """By phase and slot: a repair's own reason, and for other waits what they complete."""
    reasons = _completed(compiled.lowered)
    reasons.update({(repair.phase, repair.slot): repair.reason for repair in compiled.repairs})
    return reasons


def sync_reason(program: LoweredProgram, entry: Entry, reasons: Reasons) -> str:
    """Why an entry stands there, if it synchronises; slots of `reasons` are not those of staggering's own barriers."""
    if is_alone(program, entry):
        late = entry.phase is Phase.PROLOGUE
        return "group 1 falls one barrier behind group 0" if late else "group 0 lets group 1 catch up"
    if entry.op.kind is OpKind.BARRIER:
        return reasons.get((entry.phase, entry.time_slot), "the schedule's own")
    return reasons.get((entry.phase, entry.time_slot), "")


def _completed(program: LoweredProgram) -> Reasons:
    """Replay one wave; the second trip's waits are the ones that stand, for they see what the first leaves behind."""
    pending: defaultdict[str, deque[Entry]] = defaultdict(deque)
    reasons: Reasons = {}
    for phase in (Phase.PROLOGUE, Phase.KERNEL, Phase.KERNEL, Phase.EPILOGUE):
        for entry in program.phase(phase):
            effect = entry.effect
            if effect.counter is None:
                continue
            queue = pending[effect.counter]
            if effect.kind is not OpKind.WAIT:
                queue.extend([entry] * effect.tokens)
                continue
            last: Entry | None = None
            while len(queue) > effect.wait_value:
                last = queue.popleft()
            reasons[phase, entry.time_slot] = (
                f"{last.op} ({last.phase.at(last.time_slot)}) and older are over"
                if last
                else "all it could wait for is over already"
            )
    return reasons
