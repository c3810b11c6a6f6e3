"""Times of steps and landings, for one policy of interleaving.

Any interleaving that obeys the barriers is some assignment of times, so no wave is stepped: each gets its own times
within an epoch, and a barrier releases a wave when the last wave it waits for has arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from rota.check import bad_field, check_elements, check_ints, is_int
from rota.errors import DeclarationError
from rota.execute.lazy_numpy import Floats, Ints, np
from rota.execute.wave_trace import Line, Trace, Workgroup
from rota.program.entry import Effect
from rota.program.lowered import Barrier

AT_ISSUE, AT_COVER = 0.0, 1.0


# A run is one interleaving of the waves with one order in which memory ops complete. The arrays of all runs are
# computed on together, so every policy gives its runs as one batch.


class Run(NamedTuple):
    label: str
    seed: int | None = None


class Pace(NamedTuple):
    """The times of a role's waves by [run, wave, ...], before barriers hold any wave up."""

    gaps: Floats  # [.., step], before each step
    pause: Floats  # [.., epoch], before an epoch's first step
    slowness: Floats  # [.., epoch], which an epoch's gaps are multiplied by
    lateness: Floats  # [.., memory op]: where it lands between its issue (0) and its cover (1)


@runtime_checkable
class Policy(Protocol):
    """A way to choose one or more runs."""

    def runs(self) -> tuple[Run, ...]: ...

    def paces(self, group: Workgroup) -> tuple[Pace, ...]: ...


class ShownRace(Protocol):
    """An interleaving that shows a race: at `trip_count`, a wave of role `ahead` runs ahead of one of `behind`.

    `kind` may say RAW, WAR, WAW or REG; only WAW, which takes place inside one wave, changes what is replayed.
    """

    @property
    def trip_count(self) -> int: ...

    @property
    def ahead(self) -> int:
        """The role, by number, of the wave that executes each epoch first; its memory ops land when they are issued."""
        ...

    @property
    def behind(self) -> int:
        """The role, by number, of the wave that executes each epoch last; its memory ops land when they have to."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """All waves in step; everything lands when its wait demands it."""

    def runs(self) -> tuple[Run, ...]:
        return (Run("latest"),)

    def paces(self, group: Workgroup) -> tuple[Pace, ...]:
        return tuple(_in_step(trace, group.waves, AT_COVER) for trace in group.traces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Earliest:
    """All waves in step; everything lands when it is issued."""

    def runs(self) -> tuple[Run, ...]:
        return (Run("earliest"),)

    def paces(self, group: Workgroup) -> tuple[Pace, ...]:
        return tuple(_in_step(trace, group.waves, AT_ISSUE) for trace in group.traces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Random:
    """One run per seed; a seed gives the same run whatever the others are."""

    seeds: int = 50
    first_seed: int = 0

    def __post_init__(self) -> None:
        check_ints(self, ("seeds",), least=1)
        check_ints(self, ("first_seed",))

    def runs(self) -> tuple[Run, ...]:
        return tuple(Run(f"seed {seed}", seed) for seed in self._seeds())

    def paces(self, group: Workgroup) -> tuple[Pace, ...]:
        """Gaps and slowness span orders of magnitude, so that a wave may finish its epoch before another starts it."""
        return tuple(self._pace(number, trace, group.waves) for number, trace in enumerate(group.traces))

    def _pace(self, role: int, trace: Trace, waves: int) -> Pace:
        steps, epochs, ops = len(trace.steps), len(trace.barriers) + 1, len(trace.memory)
        drawn = np.empty((self.seeds, waves, steps + 2 * epochs + ops))
        for row, seed in enumerate(self._seeds()):
            np.random.Generator(np.random.PCG64((seed, role))).random(out=drawn[row])
        gaps, pause, slowness, lateness = np.split(drawn, np.cumsum([steps, epochs, epochs]), axis=2)
        half = np.maximum(pause - 0.5, 0.0)  # every other wave starts at once
        return Pace(
            gaps=_eighth_power(gaps) + 1e-4,
            pause=half * np.diff((-1, *trace.barriers, steps - 1)),  # steps of the epoch, its barrier included
            slowness=_eighth_power(slowness) + 1e-3,
            # A quarter at the issue, a quarter at the cover, where races show best; the others anywhere between.
            lateness=np.clip(2.0 * lateness - 0.5, AT_ISSUE, AT_COVER),
        )

    def _seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """The runs that a witness describes.

    In every epoch the first wave of role `ahead` executes its segment before any other, and its memory ops land at
    once; the last wave of role `behind` goes on when no other can, and its memory ops land as late as allowed.  For a
    write-after-write race, inside one wave, some loads land late while those that follow into the same tile don't.
    """

    witness: ShownRace

    def __post_init__(self) -> None:
        for name in ("trip_count", "ahead", "behind"):
            value: Any = getattr(self.witness, name, None)
            if not is_int(value) or value < 0:
                raise bad_field(self.witness, name, value, "an integer, at least 0")

    def runs(self) -> tuple[Run, ...]:
        """One run; three for a write-after-write race, which differ in the loads that land late."""
        if not self._rewrites:
            return (Run("scripted"),)
        return tuple(Run(f"scripted, {name}") for name in ("even loads late", "odd loads late", "overtaken loads late"))

    def paces(self, group: Workgroup) -> tuple[Pace, ...]:
        """Ahead and middle take one unit of time each."""
        for name in ("ahead", "behind"):
            role = getattr(self.witness, name)
            if role >= len(group.traces):
                raise bad_field(self.witness, name, role, f"a role, 0 to {len(group.traces) - 1}")
        if self.witness.ahead == self.witness.behind and group.waves < 2:
            raise bad_field(self, "witness", self.witness, "two waves: the role that it names has a single one")
        # No epoch of another wave takes two units; the last wave outlasts as many as there are in any chain of them.
        deadline = 2.0 * max(len(group.traces) * (len(trace.barriers) + 1) for trace in group.traces)
        return tuple(self._pace(role, trace, group.waves, deadline) for role, trace in enumerate(group.traces))

    def _pace(self, role: int, trace: Trace, waves: int, deadline: float) -> Pace:
        pace = _in_step(trace, waves, AT_COVER, runs=len(self.runs()))
        if self._rewrites:
            loads = [index for index, op in enumerate(trace.memory) if op.line is Line.ANY]
            late = np.array(list(_late_loads(trace)))
            pace.lateness[:, :, loads] = np.where(late[:, loads], AT_COVER, AT_ISSUE)[:, np.newaxis]
            return pace
        pace.gaps[:] = 1.0 / (len(trace.steps) + 1)
        pace.pause[:] = 1.0
        if role == self.witness.behind:
            pace.pause[:, -1] = deadline
        if role == self.witness.ahead:
            pace.pause[:, 0] = 0.0
            pace.lateness[:, 0] = AT_ISSUE
        return pace

    @property
    def _rewrites(self) -> bool:
        return getattr(self.witness, "kind", None) == "WAW"


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The runs of several policies as one batch, which costs less than one batch each."""

    policies: tuple[Policy, ...]

    def __post_init__(self) -> None:
        check_elements("the policies", self.policies, Policy)  # type: ignore[type-abstract]
        if not self.policies:
            raise bad_field(self, "policies", self.policies, "at least one policy")

    def runs(self) -> tuple[Run, ...]:
        return tuple(run for policy in self.policies for run in policy.runs())

    def paces(self, group: Workgroup) -> tuple[Pace, ...]:
        apart = zip(*(policy.paces(group) for policy in self.policies), strict=True)
        return tuple(Pace(*(np.concatenate(parts) for parts in zip(*paces, strict=True))) for paces in apart)


def _in_step(trace: Trace, waves: int, lateness: float, runs: int = 1) -> Pace:
    epochs = (runs, waves, len(trace.barriers) + 1)
    return Pace(
        gaps=np.ones((runs, waves, len(trace.steps))),
        pause=np.zeros(epochs),
        slowness=np.ones(epochs),
        lateness=np.full((runs, waves, len(trace.memory)), lateness),
    )


def _eighth_power(uniform: Floats) -> Floats:
    """Numbers from 0 to 1 whose logarithms are spread out; three products cost less than one power."""
    squared = uniform * uniform
    squared *= squared
    squared *= squared
    return squared


def _late_loads(trace: Trace) -> Iterator[list[bool]]:
    """Which memory ops land late, in three ways: of two overlapping loads one of them has the older late alone."""
    number = [0] * len(trace.memory)
    overtaken = [True] * len(trace.memory)
    for ops in trace.writes.values():
        late_until = -1
        for count, index in enumerate(ops):
            op = trace.memory[index]
            number[index] = count
            overtaken[index] = late_until <= op.step
            if overtaken[index]:
                late_until = op.cover
    yield [count % 2 == 0 for count in number]
    yield [count % 2 == 1 for count in number]
    yield overtaken


# The order of barriers. Waves of a role execute the same steps, so the roles alone decide whether any wave waits
# forever. The n-th wait at a barrier ends when every role that arrives there has done so n times.


class BarrierStop(NamedTuple):
    role: int
    number: int


class Passage(NamedTuple):
    """A role leaves a barrier, after the arrivals that it waited for."""

    stop: BarrierStop
    arrivals: tuple[BarrierStop, ...]


class Stuck(NamedTuple):
    stop: BarrierStop
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierOrder:
    """All passages, every arrival in front of the waits for it; `stuck` are the waits that nothing ends."""

    passages: tuple[Passage, ...]
    stuck: tuple[Stuck, ...]


def barrier_order(group: Workgroup) -> BarrierOrder | None:
    """Let the roles run from barrier to barrier; None if all meet at a single one equally often, all at once."""
    if _meets_everywhere(group) and len({len(trace.barriers) for trace in group.traces}) == 1:
        return None
    run = _Run(group)
    return BarrierOrder(passages=tuple(run.passages()), stuck=tuple(run.stuck()))


def _meets_everywhere(group: Workgroup) -> bool:
    """True if every barrier is the same one, a single instruction by which all roles meet."""
    everyone = set(range(len(group.traces)))
    effects = {id(e): e for t in group.traces for e in (t.steps[ordinal][0].effect for ordinal in t.barriers)}.values()
    names = {name for effect in effects for name in (effect.arrives, effect.awaits)}
    if not names:
        return True
    barrier = group.program.barrier(min(map(str, names)))
    return len(names) == 1 and barrier is not None and set(barrier.arriving) == set(barrier.waiting) == everyone


class _Run:
    """Which barriers each role has reached and passed, and how often it arrived and waited."""

    def __init__(self, group: Workgroup) -> None:
        self.group = group
        self.passed = [0] * len(group.traces)
        self.arrived: dict[tuple[str, int], list[int]] = {}
        self.waited: dict[tuple[str, int], int] = {}

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
                    if self._effect(stop).arrives is not None:
                        self.arrived.setdefault((self._barrier(stop, "arrives").name, role), []).append(stop.number)
                        ready.extend(other for other in range(len(self.passed)) if other not in (role, *ready))
                arrivals = self._find_arrivals_for(stop)
                if arrivals is None:
                    break
                self.passed[role] += 1
                yield Passage(stop, arrivals)

    def stuck(self) -> Iterator[Stuck]:
        names = [role.name for role in self.group.program.roles]
        for role, (trace, number) in enumerate(zip(self.group.traces, self.passed, strict=True)):
            if number < len(trace.barriers):
                stop = BarrierStop(role, number)
                barrier, wait = self._barrier(stop, "awaits"), self._wait_number(stop)
                missing = [names[other] for other in barrier.arriving if self._arrivals(barrier, other) < wait]
                where = f"{names[role]} waits at {barrier.name} forever, in {trace.where(trace.barriers[number])}"
                nth = {1: "first", 2: "second", 3: "third"}.get(wait, f"{wait}th")
                yield Stuck(stop, f"{where}: {' and '.join(missing)} never arrives there for the {nth} time")

    def _find_arrivals_for(self, stop: BarrierStop) -> tuple[BarrierStop, ...] | None:
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
        raise DeclarationError.of("D105", f"{role} {does} at the barrier {name!r}, which doesn't take that role")


class Clock(NamedTuple):
    """Times by [run, wave, step] and [run, wave, memory op]; a last, further column holds a time that never comes."""

    steps: Floats
    issue: Floats
    land: Floats


def run_clock(group: Workgroup, policy: Policy, order: BarrierOrder | None = None) -> Clock:
    """Issue times from the policy's pace and the barriers (`order`), then landing times between issue and cover."""
    order = barrier_order(group) if order is None else order
    paces = policy.paces(group)
    local = [_local_times(trace, pace) for trace, pace in zip(group.traces, paces, strict=True)]
    starts = _all_at_once(group, local) if order is None else _one_by_one(group, local, order)
    for trace, times, begun in zip(group.traces, local, starts, strict=True):
        np.add(times, begun[:, :, _epochs(trace)], out=times)
    # Per run, so that a run doesn't depend on which others it is computed with.
    end = np.max([times.max(axis=(1, 2), initial=0.0) for times in local], axis=0) + 1.0
    steps = max(len(trace.steps) for trace in group.traces)
    ops = max(len(trace.memory) for trace in group.traces)
    clock = Clock(*(np.full((local[0].shape[0], group.size, most + 1), np.inf) for most in (steps, ops, ops)))
    for number, (trace, pace, times) in enumerate(zip(group.traces, paces, local, strict=True)):
        waves = group.waves_of(number)
        clock.steps[:, waves, : len(trace.steps)] = times
        issue, land = _landings(trace, pace, times, end)
        clock.issue[:, waves, : len(trace.memory)] = issue
        clock.land[:, waves, : len(trace.memory)] = land
    return clock


def _all_at_once(group: Workgroup, local: Sequence[Floats]) -> list[Floats]:
    """When epochs start, by [run, 1, epoch], where the n-th barrier of all roles is one and the same."""
    pairs = zip(group.traces, local, strict=True)
    arrival = np.concatenate([times[:, :, trace.barriers] for trace, times in pairs], axis=1)
    release = np.zeros((arrival.shape[0], arrival.shape[2] + 1))
    np.cumsum(arrival.max(axis=1), axis=1, out=release[:, 1:])
    return [release[:, np.newaxis]] * len(local)


def _one_by_one(group: Workgroup, local: Sequence[Floats], order: BarrierOrder) -> list[Floats]:
    """When epochs start, by [run, wave, epoch]: a wave continues when the last that it waits for has arrived."""
    pairs = zip(group.traces, local, strict=True)
    starts = [np.zeros((*times.shape[:2], len(trace.barriers) + 1)) for trace, times in pairs]

    def time_arrivals(role: int, number: int) -> Floats:
        reached: Floats = starts[role][:, :, number] + local[role][:, :, group.traces[role].barriers[number]]
        return reached

    for (role, number), arrivals in order.passages:
        goes_on = time_arrivals(role, number)
        for other, barrier in arrivals:
            goes_on = np.maximum(goes_on, time_arrivals(other, barrier).max(axis=1)[:, np.newaxis])
        starts[role][:, :, number + 1] = goes_on
    return starts


def _epochs(trace: Trace) -> Ints:
    """The epoch of each step; a barrier belongs to the epoch that it ends."""
    return np.searchsorted(np.array(trace.barriers, dtype=np.intp), np.arange(len(trace.steps)))


def _local_times(trace: Trace, pace: Pace) -> Floats:
    """Times of a group's steps since the barrier before them.  Gaps are positive, so times strictly increase."""
    epochs = _epochs(trace)
    times = np.cumsum(pace.gaps, axis=2)
    starts = np.zeros(pace.pause.shape)
    starts[:, :, 1:] = times[:, :, trace.barriers]
    times -= starts[:, :, epochs]
    times *= pace.slowness[:, :, epochs]
    times += pace.pause[:, :, epochs]
    return times


def _landings(trace: Trace, pace: Pace, times: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Issue and landing times of memory ops; those of an orderly line never overtake each other."""
    last = np.broadcast_to(end[:, np.newaxis, np.newaxis], (*times.shape[:2], 1))
    with_end = np.concatenate([times, last], axis=2)
    issue = times[:, :, [op.step for op in trace.memory]]
    covers, lines = _covers(trace)
    cover = with_end[:, :, covers]
    land = np.minimum(issue + pace.lateness * (cover - issue), cover)  # rounding must not carry it past its cover
    for ops in lines:
        land[:, :, ops] = np.maximum.accumulate(land[:, :, ops], axis=2)
    return issue, land


def _covers(trace: Trace) -> tuple[list[int], list[list[int]]]:
    """The step by which each op has landed, and the ops that land in order, line by line."""
    lines: dict[object, list[int]] = {}
    for index, op in enumerate(trace.memory):
        if op.line is not Line.ANY:
            lines.setdefault(op.line if op.line is Line.DS else (op.line, op.counter), []).append(index)
    covers = [op.cover for op in trace.memory]
    # What lands in front of another op has landed when that one is covered, whichever counter either is on; so an op
    # that older ones hold up still lands by its own cover.
    for ops in lines.values():
        least = len(trace.steps)
        for index in reversed(ops):
            covers[index] = least = min(least, covers[index])
    return covers, list(lines.values())
