"""How waves interleave and memory ops complete: takes a trace, gives each run's gaps, pauses and landing points.

A run is one interleaving with one completion order.  The arrays of all runs are computed on together, so every policy
gives its runs as one batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from rota.check import bad_field, check_elements, check_ints, is_int
from rota.execute.wave_trace import Line, Trace
from rota.execute.workgroup import Workgroup

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

AT_ISSUE, AT_COVER = 0.0, 1.0


class Run(NamedTuple):
    """One run's name, and its seed if it has one."""

    label: str
    seed: int | None = None


class Pace(NamedTuple):
    """The times of a role's waves, before barriers hold any wave up; the first axes are [run, wave].

    `gaps` [.., step] lie before each step; `pause` [.., epoch] before an epoch's first step; an epoch's gaps are
    multiplied by `slowness` [.., epoch].  `lateness` [.., memory op] says where between its issue (0) and its cover (1)
    an op lands.
    """

    gaps: Floats
    pause: Floats
    slowness: Floats
    lateness: Floats


@runtime_checkable
class Policy(Protocol):
    """A way to choose one or more runs."""

    def runs(self) -> tuple[Run, ...]:
        """Their names, in the order of the arrays."""
        ...

    def paces(self, group: Workgroup) -> tuple[Pace, ...]:
        """The times of the waves, role by role."""
        ...


class ShownRace(Protocol):
    """An interleaving that shows a race: at `trip_count`, a wave of role `ahead` runs ahead of one of `behind`.

    `kind` may say RAW, WAR, WAW or REG; only WAW, which takes place inside one wave, changes what is replayed.
    """

    @property
    def trip_count(self) -> int:
        """Trips of the loop."""
        ...

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
        """One run."""
        return (Run("latest"),)

    def paces(self, group: Workgroup) -> tuple[Pace, ...]:
        """Every step takes as long as any other."""
        return tuple(_in_step(trace, group.waves, AT_COVER) for trace in group.traces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Earliest:
    """All waves in step; everything lands when it is issued."""

    def runs(self) -> tuple[Run, ...]:
        """One run."""
        return (Run("earliest"),)

    def paces(self, group: Workgroup) -> tuple[Pace, ...]:
        """Every step takes as long as any other."""
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
        """A run per seed."""
        return tuple(Run(f"seed {seed}", seed) for seed in self._seeds())

    def paces(self, group: Workgroup) -> tuple[Pace, ...]:
        """Gaps and slowness span orders of magnitude, so that a wave may finish its epoch before another starts it."""
        return tuple(self._pace(number, trace, group.waves) for number, trace in enumerate(group.traces))

    def _pace(self, role: int, trace: Trace, waves: int) -> Pace:
        import numpy as np

        steps, epochs, ops = len(trace.steps), len(trace.barriers) + 1, len(trace.memory)
        drawn = np.empty((self.seeds, waves, steps + 2 * epochs + ops))
        for row, seed in enumerate(self._seeds()):
            np.random.Generator(np.random.PCG64((seed, role))).random(out=drawn[row])
        gaps, pause, slowness, lateness = np.split(drawn, np.cumsum([steps, epochs, epochs]), axis=2)
        half = np.maximum(pause - 0.5, 0.0)  # every other wave starts at once
        return Pace(
            gaps=_eighth_power(gaps) + 1e-4,
            pause=half * _epoch_lengths(trace),
            slowness=_eighth_power(slowness) + 1e-3,
            # A quarter at the issue, a quarter at the cover, where races show best; the others anywhere between.
            lateness=np.clip(2.0 * lateness - 0.5, AT_ISSUE, AT_COVER),
        )

    def _seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """The runs that a witness describes.

    In every epoch the first wave of role `ahead` executes its whole segment before any other starts, and its memory
    ops land at once; the last wave of role `behind` goes on when no other can do so without it, and its memory ops
    land as late as allowed.  The others run in the middle and land late.  A write-after-write race takes place inside
    one wave: all waves run in step, and some loads land late while those that follow into the same tile land at once.
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
            if getattr(self.witness, name) >= len(group.traces):
                raise bad_field(
                    self.witness, name, getattr(self.witness, name), f"a role, 0 to {len(group.traces) - 1}"
                )
        if self.witness.ahead == self.witness.behind and group.waves < 2:
            raise bad_field(self, "witness", self.witness, "two waves: the role that it names has a single one")
        # No epoch of another wave takes two units; the last wave outlasts as many as there are in any chain of them.
        patience = 2.0 * max(len(group.traces) * (len(trace.barriers) + 1) for trace in group.traces)
        return tuple(self._pace(role, trace, group.waves, patience) for role, trace in enumerate(group.traces))

    def _pace(self, role: int, trace: Trace, waves: int, patience: float) -> Pace:
        import numpy as np

        pace = _in_step(trace, waves, AT_COVER, runs=len(self.runs()))
        if self._rewrites:
            loads = [index for index, op in enumerate(trace.memory) if op.line is Line.ANY]
            late = np.array(list(_late_loads(trace)))
            pace.lateness[:, :, loads] = np.where(late[:, loads], AT_COVER, AT_ISSUE)[:, np.newaxis]
            return pace
        pace.gaps[:] = 1.0 / (len(trace.steps) + 1)
        pace.pause[:] = 1.0
        if role == self.witness.behind:
            pace.pause[:, -1] = patience
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
        """All runs, policy by policy."""
        return tuple(run for policy in self.policies for run in policy.runs())

    def paces(self, group: Workgroup) -> tuple[Pace, ...]:
        """The paces of all policies, one behind the other."""
        import numpy as np

        apart = zip(*(policy.paces(group) for policy in self.policies), strict=True)
        return tuple(Pace(*(np.concatenate(parts) for parts in zip(*paces, strict=True))) for paces in apart)


def _in_step(trace: Trace, waves: int, lateness: float, runs: int = 1) -> Pace:
    import numpy as np

    epochs = (runs, waves, len(trace.barriers) + 1)
    return Pace(
        gaps=np.ones((runs, waves, len(trace.steps))),
        pause=np.zeros(epochs),
        slowness=np.ones(epochs),
        lateness=np.full((runs, waves, len(trace.memory)), lateness),
    )


def _epoch_lengths(trace: Trace) -> list[int]:
    """Steps of each epoch, its barrier included."""
    ends = (-1, *trace.barriers, len(trace.steps) - 1)
    return [end - start for start, end in pairwise(ends)]


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
