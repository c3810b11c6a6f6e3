"""Repair: takes a lowered program, gives its entries with the planned waits and barriers, each with its reason.

The order of data ops never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import NamedTuple

from rota.errors import Finding, ProgramError
from rota.printing import WIDTH
from rota.program.effects import WORKGROUP, Effect
from rota.program.entry import Entry, Op, barrier_ops, wait_effect, wait_op
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram, numbered
from rota.program.machine import Machine
from rota.program.phase import Phase
from rota.sync.obligation import in_new_words, open_obligations
from rota.sync.options import WaitSite
from rota.sync.plan import Plan, plan_repairs
from rota.sync.unrolled import InsertionPoint


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Repair:
    """One change: what now stands at `slot` of `phase`, what stood there before, and what it is for.

    `before` is a wait that was made stronger, with its count in `count_before`.
    """

    phase: Phase
    slot: int
    op: Op
    before: Op | None
    reason: str
    count_before: int = 0

    @property
    def change(self) -> str:
        """What was done where, without the reason."""
        what = f"{self.before} became {self.op}" if self.before else f"added {self.op}"
        return f"{self.phase.at(self.slot)} {what}"

    def taken_back(self, entry: Entry) -> Entry:
        """The entry as it was before."""
        return replace(entry, op=self.before or self.op, effect=replace(entry.effect, wait_value=self.count_before))

    @property
    def sentence(self) -> str:
        """What was done where, and why."""
        return f"{self.change}: {self.reason}"

    def __repr__(self) -> str:
        return f"<{self.change}>"

    def __str__(self) -> str:
        kept = self.sentence.replace(" #", "\0#")  # no line ends before a number
        return "\n".join(wrap(kept, WIDTH - 2, subsequent_indent="    ")).replace("\0", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """The repaired phases, where each entry stood before, None if it is new, and every change.

    `cut_short` if a search for the least repair ended before it was shown to be the least.
    """

    phases: Mapping[Phase, tuple[Entry, ...]]
    origins: Mapping[Phase, tuple[int | None, ...]]
    repairs: tuple[Repair, ...]
    cut_short: bool


def renumbered(each: Repair, phase: Phase, places: Mapping[int, int]) -> Repair:
    """A repair of a program in which the entries of a phase, by their old places, have come to stand at new ones."""
    reason = in_new_words(each.reason, phase, places)
    return replace(each, slot=places[each.slot] if each.phase is phase else each.slot, reason=reason)


def repair(program: LoweredProgram) -> Repaired:
    """Clamp waits that can't be encoded, then add and strengthen what is missing, as `rota.sync.plan.Plan` says."""
    _check_one_meeting(program)
    machine = program.machine
    clamped = {phase: tuple(_clamped(entry, machine) for entry in program.phase(phase)) for phase in Phase}
    mended = replace(
        program, prologue=clamped[Phase.PROLOGUE], kernel=clamped[Phase.KERNEL], epilogue=clamped[Phase.EPILOGUE]
    )
    plan = plan_repairs(open_obligations(mended), machine)
    writers = {phase: _PhaseWriter(program, phase, plan) for phase in Phase}
    for phase, writer in writers.items():
        writer.write(clamped[phase])
    return Repaired(
        phases={phase: writer.finished() for phase, writer in writers.items()},
        origins={phase: tuple(written.origin for written in writer.entries) for phase, writer in writers.items()},
        repairs=tuple(
            replace(each, reason=_in_new_places(each.reason, writers))
            for writer in writers.values()
            for each in writer.repairs()
        ),
        cut_short=not plan.optimal,
    )


def _in_new_places(reason: str, writers: Mapping[Phase, _PhaseWriter]) -> str:
    """A reason whose ends are named by the slots that they have now."""
    for phase, writer in writers.items():
        reason = in_new_words(reason, phase, writer.places())
    return reason


def _check_one_meeting(program: LoweredProgram) -> None:
    """What to add where roles differ in what they do, or meet in several places, is for their author to decide."""
    alone = [
        entry
        for entry in program.entries
        if (entry.roles is not None and not entry.op.is_framework)
        or not {entry.effect.arrives, entry.effect.awaits} <= {None, WORKGROUP}
    ]
    if alone:
        raise ProgramError(
            Finding(
                code="W103",
                message=f"{program.name} can't be repaired: its roles differ in more than waits and barriers, "
                "or meet at barriers of their own",
                concerns=tuple(entry.concern() for entry in alone[:2]),
                evidence=(("roles", ", ".join(role.name for role in program.roles)),),
                fixes=("add the waits and barriers that the proof asks for",),
            )
        )


def _clamped(entry: Entry, machine: Machine) -> Entry:
    """The weakest wait that can be encoded, for a count that can't."""
    effect = entry.effect
    if effect.kind is not OpKind.WAIT or effect.counter is None:
        return entry
    largest = machine.largest_wait(effect.counter)
    return entry if effect.wait_value <= largest else _with_count(entry, effect.counter, largest)


def _with_count(entry: Entry, counter: str, count: int) -> Entry:
    return replace(entry, op=wait_op(counter, count), effect=replace(entry.effect, wait_value=count))


class _Written(NamedTuple):
    """An entry of the repaired phase, where it stood before, and what was changed, with the reason."""

    entry: Entry
    origin: int | None
    before: Entry | None
    reason: str


class _PhaseWriter:
    """Rewrites one phase, recording every change."""

    def __init__(self, program: LoweredProgram, phase: Phase, plan: Plan) -> None:
        self.split = program.machine.split_barrier
        self.phase = phase
        self.plan = plan
        self.before = program.phase(phase)
        self.entries: list[_Written] = []

    def write(self, clamped: tuple[Entry, ...]) -> None:
        """The whole phase."""
        for index, (written, kept) in enumerate(zip(self.before, clamped, strict=True)):
            self._fill(InsertionPoint(self.phase, index))
            self._keep(index, written, kept)
        self._fill(InsertionPoint(self.phase, len(self.before)))

    def repairs(self) -> list[Repair]:
        """Every change, numbered as the schedule lists its entries."""
        return [
            Repair(
                phase=self.phase,
                slot=entry.time_slot,
                op=entry.op,
                before=None if before is None else before.op,
                reason=reason,
                count_before=0 if before is None else before.effect.wait_value,
            )
            for entry, (_, _, before, reason) in zip(self.finished(), self.entries, strict=True)
            if reason
        ]

    def places(self) -> dict[int, int]:
        """The slot that each entry had before, with the one that it has now."""
        kept = [(each.origin, new) for each, new in zip(self.entries, self.finished(), strict=True)]
        return {self.before[old].time_slot: new.time_slot for old, new in kept if old is not None and new.listed}

    def finished(self) -> tuple[Entry, ...]:
        """The phase's entries, numbered."""
        return numbered([written.entry for written in self.entries])

    def _fill(self, gap: InsertionPoint) -> None:
        """Put new waits, then new barriers into a gap."""
        for site, count in self.plan.waits.items():
            if site.existing is None and site.gap == gap:
                self._add(wait_op(site.counter, count), wait_effect(site.counter, count), site)
        for _ in range(self.plan.barriers.get(gap, 0)):
            for op, effect in barrier_ops(split=self.split):
                self._add(op, effect, gap)

    def _keep(self, index: int, written: Entry, clamped: Entry) -> None:
        """Take over an entry, with a stronger count where the plan asks for one."""
        entry, reason = clamped, "a larger count would be encoded as no wait"
        for site, count in self.plan.waits.items():
            if site.existing is not None and site.gap == InsertionPoint(self.phase, index):
                entry, reason = _with_count(written, site.counter, count), self._reason(site)
        changed = entry.op != written.op
        self.entries.append(_Written(entry, index, written if changed else None, reason if changed else ""))

    def _add(self, op: Op, effect: Effect, where: InsertionPoint | WaitSite) -> None:
        entry = Entry(op=op, effect=effect, time_slot=0, phase=self.phase)
        self.entries.append(_Written(entry, None, None, self._reason(where)))

    def _reason(self, where: InsertionPoint | WaitSite) -> str:
        return str(self.plan.reasons[where])
