"""Limits of the machine: takes a loop's steps and stated sizes, gives a finding for each limit it breaks."""

from __future__ import annotations

from collections.abc import Iterator

from rota.declare.effects import Action, Counter
from rota.errors import Finding, Severity
from rota.program.loop import LoopSteps, Step
from rota.targets.machine import Machine


def barrier_counts(steps: LoopSteps) -> Iterator[Finding]:
    """Groups must meet at every barrier: equal counts per trip, and equal counts outside the loop together."""
    for where, part in (
        ("one trip of the loop", steps.kernel),
        ("prologue and epilogue together", (*steps.prologue, *steps.epilogue)),
    ):
        counts = [
            sum(step.effect.action is Action.BARRIER and step.group in (None, group) for step in part)
            for group in range(steps.groups)
        ]
        if len(set(counts)) > 1:
            alone = [step for step in part if step.effect.action is Action.BARRIER and step.group is not None]
            yield Finding(
                code="B101",
                message=f"{where}: groups execute {' and '.join(map(str, counts))} barriers; one would wait for ever",
                concerns=tuple(step.concern(f"only group {step.group}") for step in alone),
                evidence=tuple((f"barriers of group {group}", count) for group, count in enumerate(counts)),
            )


def lone_groups(steps: LoopSteps) -> Iterator[Finding]:
    """Only waits and barriers may differ between groups: data that one group alone moves is missing in the other."""
    for step in (*steps.prologue, *steps.kernel, *steps.epilogue):
        if step.group is not None and step.effect.action not in (Action.BARRIER, Action.WAIT, Action.NOTHING):
            yield Finding(
                code="B102",
                message=f"{step.entry.op} is executed by wave group {step.group} alone",
                concerns=(step.concern(),),
                evidence=(("group", step.group), ("groups", steps.groups)),
            )


def wait_encodings(steps: LoopSteps, machine: Machine) -> Iterator[Finding]:
    """A count with all bits set, or one that doesn't fit its field, doesn't wait."""
    for step in (*steps.prologue, *steps.kernel, *steps.epilogue):
        counter, count = step.effect.counter, step.effect.wait_value
        if step.effect.action is Action.WAIT and counter is not None and count >= machine.no_wait(counter):
            largest = machine.largest_wait(counter)
            yield Finding(
                code="L101",
                message=f"{step.entry.op} waits for nothing: the largest {counter.value} wait is {largest}",
                concerns=(step.concern(),),
                evidence=(("count", count), ("largest real wait", largest)),
                fixes=(f"{step.entry.op.name}({largest})",),
            )


def full_counters(fullest: dict[Counter, tuple[int, Step | None]], machine: Machine) -> Iterator[Finding]:
    """Issuing past a full counter stalls: slow, not wrong."""
    for counter, (pending, step) in fullest.items():
        if step is not None and pending > machine.no_wait(counter):
            yield Finding(
                code="L102",
                severity=Severity.NOTE,
                message=f"{pending} tokens are under way at once; {counter.value} holds {machine.no_wait(counter)}",
                concerns=(step.concern("stalls until an older op has completed"),),
                evidence=(("tokens", pending), ("counter holds", machine.no_wait(counter))),
            )


def budgets(machine: Machine, lds_bytes: int | None, registers: int | None, register_limit: int) -> Iterator[Finding]:
    """What the schedule says it needs must fit the machine."""
    if lds_bytes is not None and lds_bytes > machine.lds_bytes.value:
        yield Finding(
            code="L103",
            message=f"the tiles take {lds_bytes} bytes of LDS; {machine.name} has {machine.lds_bytes.value}",
            evidence=(("bytes", lds_bytes), ("limit", machine.lds_bytes.value)),
        )
    if registers is not None and registers > register_limit:
        yield Finding(
            code="L104",
            message=f"the loop needs {registers} registers a lane; its waves on {machine.name} have {register_limit}",
            evidence=(("registers", registers), ("limit", register_limit)),
        )
