"""Repair: takes a scheduled loop, gives its entries with the planned waits and barriers, each with its reason.

The order of data ops never changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rota.declare.effects import Action, Counter
from rota.declare.op import OpDesc
from rota.declare.vocabulary import Phase
from rota.program.entry import ScheduleEntry
from rota.program.loop import LoopSteps, ScheduledLoop, Step, steps_of
from rota.sync.obligation import open_obligations
from rota.sync.options import WaitSite
from rota.sync.plan import Plan, plan_repairs
from rota.sync.timeline import Gap
from rota.targets.machine import Machine

WAITS = {Counter.VM: OpDesc.wait_vm, Counter.LGKM: OpDesc.wait_lgkm}
"""What waits for a counter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One change: what now stands at `slot` of `phase`, what stood there before, and what it is for."""

    phase: Phase
    slot: int
    op: OpDesc
    before: OpDesc | None
    reason: str

    @property
    def change(self) -> str:
        """What was done where, without the reason."""
        what = f"{self.before} became {self.op}" if self.before else f"added {self.op}"
        return f"{self.phase.value.lower()} #{self.slot} {what}"

    def __str__(self) -> str:
        return f"{self.change}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """The repaired phases, where the old entries went, and every change.

    `cut_short` if a search for the least repair ended before it was shown to be the least.
    """

    prologue: tuple[ScheduleEntry, ...]
    kernel: tuple[ScheduleEntry, ...]
    epilogue: tuple[ScheduleEntry, ...]
    warp_stagger_index: int
    kernel_slots: tuple[int, ...]
    repairs: tuple[Repair, ...]
    cut_short: bool


def repair(loop: ScheduledLoop, machine: Machine, *, compiler_waits: bool) -> Repaired:
    """Clamp waits that can't be encoded, then add and strengthen what is missing, as `rota.sync.plan.Plan` says."""
    steps = steps_of(loop)
    clamped = {phase: tuple(_clamped(step, machine) for step in steps.phase(phase)) for phase in Phase}
    mended = replace(
        steps, prologue=clamped[Phase.PROLOGUE], kernel=clamped[Phase.KERNEL], epilogue=clamped[Phase.EPILOGUE]
    )
    plan = plan_repairs(open_obligations(mended, machine, compiler_waits=compiler_waits), machine)
    return _applied(loop, steps, mended, plan)


def _clamped(step: Step, machine: Machine) -> Step:
    """The weakest wait that can be encoded, for a count that can't."""
    effect = step.effect
    if effect.action is not Action.WAIT or effect.counter is None:
        return step
    largest = machine.largest_wait(effect.counter)
    if effect.wait_value <= largest:
        return step
    return step._replace(
        entry=replace(step.entry, op=WAITS[effect.counter](largest)), effect=replace(effect, wait_value=largest)
    )


class _PhaseWriter:
    """Writes one phase anew, keeping account of every change."""

    def __init__(self, phase: Phase, plan: Plan) -> None:
        self.phase = phase
        self.plan = plan
        self.entries: list[tuple[ScheduleEntry, bool]] = []
        self.repairs: list[tuple[int, OpDesc, OpDesc | None, str]] = []

    def fill(self, gap: Gap) -> None:
        """Put new waits, then new barriers into a gap."""
        for site, count in self.plan.waits.items():
            if site.existing is None and site.gap == gap:
                self._add(WAITS[site.counter](count), site)
        for _ in range(self.plan.barriers.get(gap, 0)):
            self._add(OpDesc.barrier(), gap)

    def keep(self, gap: Gap, written: Step, clamped: Step, *, real: bool) -> None:
        """Take over an entry, with a stronger count where the plan asks for one."""
        op, reason = clamped.entry.op, "a larger count would be encoded as no wait"
        for site, count in self.plan.waits.items():
            if site.existing is not None and site.gap == gap:
                op, reason = WAITS[site.counter](count), self._reason(site)
        if op != written.entry.op:
            self.repairs.append((len(self.entries), op, written.entry.op, reason))
        self.entries.append((replace(written.entry, op=op), real))

    def _add(self, op: OpDesc, where: Gap | WaitSite) -> None:
        self.repairs.append((len(self.entries), op, None, self._reason(where)))
        self.entries.append((ScheduleEntry(op=op, time_slot=0, phase=self.phase), True))

    def _reason(self, where: Gap | WaitSite) -> str:
        return str(self.plan.reasons[where])

    def slots(self) -> list[int]:
        """Where each written entry stands once the stagger's own barriers are left out again."""
        slots, count = [], 0
        for _, real in self.entries:
            slots.append(count)
            count += real
        return slots

    def finished(self) -> tuple[ScheduleEntry, ...]:
        """The phase's entries, numbered."""
        real = [entry for entry, is_real in self.entries if is_real]
        return tuple(replace(entry, time_slot=slot) for slot, entry in enumerate(real))


def _applied(loop: ScheduledLoop, steps: LoopSteps, mended: LoopSteps, plan: Plan) -> Repaired:
    """The barriers that staggering itself brings count, but are no entries of the schedule and are left out again."""
    writers: dict[Phase, _PhaseWriter] = {}
    stagger_index = loop.warp_stagger_index
    for phase, own in ((Phase.PROLOGUE, loop.prologue), (Phase.KERNEL, loop.kernel), (Phase.EPILOGUE, loop.epilogue)):
        writer = writers[phase] = _PhaseWriter(phase, plan)
        declared = {id(entry) for entry in own}
        for index, (written, clamped) in enumerate(zip(steps.phase(phase), mended.phase(phase), strict=True)):
            gap = Gap(phase, index)
            writer.fill(gap)
            real = id(written.entry) in declared
            if phase is Phase.PROLOGUE and not real and written.group is not None:
                stagger_index = sum(is_real for _, is_real in writer.entries)
            writer.keep(gap, written, clamped, real=real)
        writer.fill(Gap(phase, len(steps.phase(phase))))
    new_entries = {phase: writer.finished() for phase, writer in writers.items()}
    if loop.warp_stagger_index > len(loop.prologue):  # no stagger: the index stays one past the prologue
        stagger_index = len(new_entries[Phase.PROLOGUE]) + 1
    kernel = writers[Phase.KERNEL]
    added = {position for position, _, before, _ in kernel.repairs if before is None}
    kernel_slots = tuple(slot for slot in range(len(kernel.entries)) if slot not in added)
    return Repaired(
        prologue=new_entries[Phase.PROLOGUE],
        kernel=new_entries[Phase.KERNEL],
        epilogue=new_entries[Phase.EPILOGUE],
        warp_stagger_index=stagger_index,
        kernel_slots=kernel_slots,
        repairs=tuple(
            Repair(phase=phase, slot=writer.slots()[position], op=op, before=before, reason=reason)
            for phase, writer in writers.items()
            for position, op, before, reason in writer.repairs
        ),
        cut_short=not plan.optimal,
    )
