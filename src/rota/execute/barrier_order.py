"""The order of barriers: takes those of all roles, gives an order in which they are passed, or who waits forever.

Waves of a role execute the same steps, so the roles alone decide whether any wave waits forever.  The n-th wait at a
barrier ends when every role that arrives there has done so n times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rota.errors import DeclarationError, Finding
from rota.execute.workgroup import Workgroup
from rota.program.effects import Effect
from rota.program.lowered import Barrier


class BarrierStop(NamedTuple):
    """A barrier in the trace of a role, by its number there."""

    role: int
    number: int


class Passage(NamedTuple):
    """A role leaves a barrier, behind the arrivals that it has waited for."""

    stop: BarrierStop
    arrivals: tuple[BarrierStop, ...]


class Stuck(NamedTuple):
    """A wait that never ends, and why."""

    stop: BarrierStop
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierOrder:
    """All passages, every arrival in front of the waits for it; `stuck` are the waits that nothing ends."""

    passages: tuple[Passage, ...]
    stuck: tuple[Stuck, ...]


def barrier_order(group: Workgroup) -> BarrierOrder | None:
    """Let the roles run from barrier to barrier, each as far as it gets.

    None where all roles meet at one barrier, as often as each other: then they pass it all at once, each time.
    """
    if _meets_everywhere(group) and len({len(trace.barriers) for trace in group.traces}) == 1:
        return None
    run = _Run(group)
    return BarrierOrder(passages=tuple(run.passages()), stuck=tuple(run.stuck()))


def _meets_everywhere(group: Workgroup) -> bool:
    """Is every barrier the same one, a single instruction by which all roles meet?"""
    everyone = set(range(len(group.traces)))
    effects = {id(e): e for t in group.traces for e in (t.steps[ordinal][0].effect for ordinal in t.barriers)}.values()
    names = {name for effect in effects for name in (effect.arrives, effect.awaits)}
    if not names:
        return True
    barrier = group.program.barrier(min(map(str, names)))
    return len(names) == 1 and barrier is not None and set(barrier.arriving) == set(barrier.waiting) == everyone


@dataclass(slots=True)
class _Run:
    """Which barriers each role has reached and passed, and how often it arrived and waited."""

    group: Workgroup
    passed: list[int] = field(init=False)
    arrived: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    waited: dict[tuple[str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.passed = [0] * len(self.group.traces)

    def passages(self) -> Iterator[Passage]:
        """Role by role until none gets any further; an arrival may let others continue."""
        ready = deque(range(len(self.passed)))
        reached = [-1] * len(self.passed)
        while ready:
            role = ready.popleft()
            while self.passed[role] < len(self.group.traces[role].barriers):
                stop = BarrierStop(role, self.passed[role])
                if reached[role] < stop.number:
                    reached[role] = stop.number
                    if self._arrive(stop):
                        ready.extend(other for other in range(len(self.passed)) if other not in (role, *ready))
                arrivals = self._awaited(stop)
                if arrivals is None:
                    break
                self.passed[role] += 1
                yield Passage(stop, arrivals)

    def stuck(self) -> Iterator[Stuck]:
        """Roles that are not at their end."""
        names = [role.name for role in self.group.program.roles]
        for role, (trace, number) in enumerate(zip(self.group.traces, self.passed, strict=True)):
            if number < len(trace.barriers):
                stop = BarrierStop(role, number)
                barrier, wait = self._barrier(stop, "awaits"), self._wait_number(stop)
                missing = [names[other] for other in barrier.arriving if self._arrivals(barrier, other) < wait]
                where = f"{names[role]} waits at {barrier.name} forever, in {trace.where(trace.barriers[number])}"
                yield Stuck(stop, f"{where}: {' and '.join(missing)} never arrives there for the {_nth(wait)} time")

    def _arrive(self, stop: BarrierStop) -> bool:
        if self._effect(stop).arrives is None:
            return False
        self.arrived.setdefault((self._barrier(stop, "arrives").name, stop.role), []).append(stop.number)
        return True

    def _awaited(self, stop: BarrierStop) -> tuple[BarrierStop, ...] | None:
        """The arrivals that a stop waits for, none where it waits for nobody; None while one is missing."""
        if self._effect(stop).awaits is None:
            return ()
        barrier, wait = self._barrier(stop, "awaits"), self._wait_number(stop)
        if any(self._arrivals(barrier, other) < wait for other in barrier.arriving):
            return None
        self.waited[barrier.name, stop.role] = wait
        return tuple(BarrierStop(other, self.arrived[barrier.name, other][wait - 1]) for other in barrier.arriving)

    def _wait_number(self, stop: BarrierStop) -> int:
        return self.waited.get((str(self._effect(stop).awaits), stop.role), 0) + 1

    def _arrivals(self, barrier: Barrier, role: int) -> int:
        return len(self.arrived.get((barrier.name, role), ()))

    def _effect(self, stop: BarrierStop) -> Effect:
        trace = self.group.traces[stop.role]
        return trace.steps[trace.barriers[stop.number]][0].effect

    def _barrier(self, stop: BarrierStop, does: str) -> Barrier:
        """The barrier at which a role arrives or waits; one that isn't for it is refused."""
        program, name = self.group.program, getattr(self._effect(stop), does)
        barrier = program.barrier(name)
        if barrier is not None and stop.role in (barrier.arriving if does == "arrives" else barrier.waiting):
            return barrier
        role = program.roles[stop.role].name
        message = f"{role} {does} at the barrier {name!r}, which doesn't take that role"
        raise DeclarationError(Finding(code="D105", message=message))


def _nth(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")
