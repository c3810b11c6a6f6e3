"""Obligations: which op must complete before which other op issues, and the waits that could ensure it.

Derived from the steps alone and without the proof, which checks the result afterwards. A loop is written out for a few
trip counts; conflicts between accesses become obligations; `derive_options` lists the waits and barriers that could
meet each one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from rota.program.entry import Entry, Place, Space
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import LoweredProgram
from rota.program.machine import Machine


class InsertionPoint(NamedTuple):
    """Where something can be inserted: in front of a phase's step `slot`, or at the phase's end."""

    phase: Phase
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenOut:
    """A loop written out for one trip count. Moment i executes `steps[i]`; counts are those just before it.

    `epoch`: barriers that group 0 has passed. `spread`: how many barriers the last group lags. `tokens`: all tokens
    issued so far, per counter. `waits` and `barriers`: the moments at which every group executes one. `entered`: the
    moments at which a further run begins.
    """

    steps: tuple[Entry, ...]
    gaps: tuple[tuple[InsertionPoint, ...], ...]
    epoch: tuple[int, ...]
    spread: tuple[int, ...]
    tokens: dict[str, tuple[int, ...]]
    waits: dict[str, tuple[int, ...]]
    barriers: tuple[int, ...]
    entered: tuple[int, ...] = ()

    def waits_between(self, counter: str, earlier: int, later: int) -> tuple[int, ...]:
        """Moments of the waits on a counter that every group executes."""
        waits = self.waits[counter]
        return waits[bisect_left(waits, earlier) : bisect_left(waits, later)]

    def barriers_between(self, earlier: int, later: int) -> tuple[int, ...]:
        """Moments of the barriers that every group executes."""
        return self.barriers[bisect_left(self.barriers, earlier) : bisect_left(self.barriers, later)]


def write_out(program: LoweredProgram, *runs: int) -> WrittenOut:
    """Prologue, kernel as often as there are trips, epilogue, for each run of this many trips."""
    sequence: list[Entry] = []
    gaps: list[tuple[InsertionPoint, ...]] = []
    ended: tuple[InsertionPoint, ...] = ()
    entered: list[int] = []
    phases = ((phase, trips if phase is Phase.KERNEL else 1) for trips in runs for phase in Phase)
    for phase, times in phases:
        if phase is Phase.PROLOGUE and sequence:
            entered.append(len(sequence))
        part = program.phase(phase)
        for _ in range(times):
            for index, step in enumerate(part):
                sequence.append(step)
                gaps.append((*ended, InsertionPoint(phase, index)))
                ended = ()
            ended = (*ended, InsertionPoint(phase, len(part)))
    epoch, spread = [0], [0]
    tokens: dict[str, list[int]] = {counter.name: [0] for counter in program.machine.counters}
    waits: dict[str, list[int]] = {counter.name: [] for counter in program.machine.counters}
    for moment, step in enumerate(sequence):
        effect = step.effect
        passes = effect.awaits is not None
        epoch.append(epoch[-1] + (passes and step.executed_by(0)))
        spread.append(spread[-1] + (passes and step.roles == (1,)) - (passes and step.roles == (0,)))
        if effect.kind is OpKind.WAIT and effect.counter is not None and step.roles is None:
            waits[effect.counter].append(moment)
        for counter, issued in tokens.items():
            issued.append(issued[-1] + (effect.tokens if effect.counter == counter else 0))
    return WrittenOut(
        steps=tuple(sequence),
        gaps=tuple(gaps),
        epoch=tuple(epoch),
        spread=tuple(spread),
        tokens={counter: tuple(counts) for counter, counts in tokens.items()},
        waits={counter: tuple(moments) for counter, moments in waits.items()},
        barriers=tuple(
            moment for moment, step in enumerate(sequence) if step.effect.awaits is not None and step.roles is None
        ),
        entered=tuple(entered),
    )


_EXPLICIT_TRIPS = (0, 1, 2, 3)  # a tile's successive accesses lie at most two trips apart


class _Counters(NamedTuple):
    """Counters that count down in order, and those whose register loads the compiler waits for itself.

    `initial` are the registers whose content before the loop is read.
    """

    in_order: frozenset[str]
    compilers: frozenset[str]
    initial: frozenset[Place] = frozenset()


class _Conflict(NamedTuple):
    """Two moments of one timeline; `crosses` if the later op may belong to another wave."""

    earlier: int
    later: int
    crosses: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligation:
    """The op at moment `earlier` must complete before the one at `later` issues.

    Complete means: a wait of its own wave covers it and, if the obligation `crosses` waves, enough barriers follow that
    wait to bring every other wave past it. `compiler_covers` is the moment, if any, at which the compiler itself waits
    for it.
    """

    timeline: WrittenOut
    earlier: int
    later: int
    crosses: bool
    counter: str
    compiler_covers: int | None
    in_order: bool = True

    @property
    def ends(self) -> tuple[Entry, Entry]:
        return self.timeline.steps[self.earlier], self.timeline.steps[self.later]

    def barriers_needed(self, moment: int) -> int:
        """Barriers that must follow a wait at `moment`: one, and one more for each barrier the groups are apart."""
        spread = self.timeline.spread
        return 1 + max(spread[moment], 0) - min(spread[self.later], 0) if self.crosses else 0

    def barriers_after(self, moment: int) -> int:
        return self.timeline.epoch[self.later] - self.timeline.epoch[moment]

    def younger_tokens(self, moment: int) -> int:
        """Tokens that are younger than the earlier op at `moment`: the weakest wait that covers it.

        On a counter that doesn't count down in order only a wait for 0 covers anything.
        """
        if not self.in_order:
            return 0
        tokens = self.timeline.tokens[self.counter]
        return tokens[moment] - tokens[self.earlier + 1]

    def met(self, machine: Machine) -> bool:
        """True if an existing wait, planned or the compiler's, is strong enough and early enough."""
        at = self.compiler_covers
        if at is not None and self.barriers_after(at) >= self.barriers_needed(at):
            return True
        for moment in self.timeline.waits_between(self.counter, self.earlier, self.later):
            count = self.timeline.steps[moment].effect.wait_value
            if (
                count < machine.no_wait(self.counter)
                and count <= self.younger_tokens(moment)
                and self.barriers_after(moment) >= self.barriers_needed(moment)
            ):
                return True
        return False

    def __str__(self) -> str:
        return describe_obligation(*self.ends)


def describe_obligation(first: Entry, second: Entry) -> str:
    """An obligation between two entries, in words."""
    return (
        f"{first.op} ({first.phase.at(first.time_slot)}) must be over "
        f"before {second.op} ({second.phase.at(second.time_slot)})"
    )


def describe_moved_obligation(words: str, phase: Phase, places: Mapping[int, int]) -> str:
    """The words of an obligation, after its ends moved to new places in their phase."""
    where = re.compile(rf"\({phase.value.lower()}\[(\d+)\]\)")
    return where.sub(lambda found: f"({phase.at(places[int(found[1])])})", words)


def find_open_obligations(program: LoweredProgram) -> tuple[Obligation, ...]:
    """The obligations that the program's own waits and barriers don't meet."""
    every = derive_obligations(program)
    return tuple(obligation for obligation in every if not obligation.met(program.machine))


def derive_obligations(program: LoweredProgram) -> Iterator[Obligation]:
    """The obligations that imply all others, over the first few trip counts.

    Between two given entries the same steps lie whenever the distance is the same, so one trip count represents all.
    """
    seen: set[tuple[object, ...]] = set()
    in_order = frozenset(counter.name for counter in program.machine.counters if counter.in_order)
    # A compiler counts on the order, too.
    compilers = in_order if program.compiler_tracks_registers else frozenset[str]()
    counters = _Counters(in_order, compilers, _find_initial_registers(program) if program.reentrant else frozenset())
    for runs in product(_EXPLICIT_TRIPS, repeat=2 if program.reentrant else 1):
        timeline = write_out(program, *runs)
        for earlier, later, crosses in _select_tightest(timeline, counters):
            counter = timeline.steps[earlier].effect.counter
            key = (timeline.gaps[earlier][-1], timeline.gaps[later][-1], later - earlier, crosses)
            if counter is None or key in seen:
                continue
            seen.add(key)
            yield Obligation(
                timeline=timeline,
                earlier=earlier,
                later=later,
                crosses=crosses,
                counter=counter,
                compiler_covers=_find_compiler_cover(timeline, earlier, later)
                if counter in counters.compilers
                else None,
                in_order=counter in in_order,
            )


def _select_tightest(timeline: WrittenOut, counters: _Counters) -> Iterator[_Conflict]:
    """Conflicts that contain no other conflict of the same counter.

    A wait that covers an op covers all older ones on its counter, and a barrier between the inner two also separates
    the outer two. So whatever meets the inner conflict meets the outer one.
    """
    latest: dict[tuple[str | None, bool], int] = {}
    conflicts = [*_find_tile_conflicts(timeline), *_find_register_conflicts(timeline, counters)]
    for conflict in sorted(conflicts, key=lambda c: (c.later, -c.earlier)):
        counter = timeline.steps[conflict.earlier].effect.counter
        if latest.get((counter, conflict.crosses), -1) < conflict.earlier:
            latest[counter, conflict.crosses] = conflict.earlier
            yield conflict


def _find_tile_conflicts(timeline: WrittenOut) -> Iterator[_Conflict]:
    """Pairs of accesses to one tile of which one is a write."""
    writer: dict[Place, int] = {}
    readers: dict[Place, list[int]] = {}
    for now, step in enumerate(timeline.steps):
        effect = step.effect
        for place in effect.reads:
            if place.space is Space.LDS:
                if place in writer:
                    yield _Conflict(writer[place], now, crosses=True)
                readers.setdefault(place, []).append(now)
        for place in effect.writes:
            if place.space is Space.LDS:
                yield from (_Conflict(reader, now, crosses=True) for reader in readers.get(place, ()))
                # Each wave writes its own slice, and LDS writes of the ds class keep their order.
                in_order = effect.kind is OpKind.LDS_WRITE is _kind(timeline, writer.get(place))
                if place in writer and not in_order:
                    yield _Conflict(writer[place], now, crosses=False)
                writer[place], readers[place] = now, []


def _find_register_conflicts(timeline: WrittenOut, counters: _Counters) -> Iterator[_Conflict]:
    """A load into registers and their use, or their next write unless that lands after the load anyway."""
    loading: dict[Place, tuple[int, str]] = {}
    for now, step in enumerate(timeline.steps):
        effect = step.effect
        refilled = counters.initial if now in timeline.entered else ()
        # By whoever runs the loop again, who needn't have a compiler that waits.
        yield from (_Conflict(loading[place][0], now, crosses=False) for place in refilled if place in loading)
        for place in effect.reads:
            if place in loading and loading[place][1] not in counters.compilers:
                yield _Conflict(loading[place][0], now, crosses=False)
        for place in effect.writes:
            loader, older = loading.pop(place, (now, None))
            in_turn = older == effect.counter and older in counters.in_order
            if older is not None and older not in counters.compilers and not in_turn:
                yield _Conflict(loader, now, crosses=False)
            if place.space not in (Space.LDS, Space.MEMORY) and effect.counter:
                loading[place] = now, effect.counter


def _find_initial_registers(program: LoweredProgram) -> frozenset[Place]:
    """Registers that are read from an iteration before the first, in any trip where that happens."""
    reach = max((-wanted.iteration for s in program.entries for _, wanted in s.effect.wants), default=0)
    starts = {Phase.PROLOGUE: [0]}
    later = [program.tiles_per_trip * trip for trip in range(1, reach + 2)]
    return frozenset(
        place
        for phase in Phase
        for k in starts.get(phase, later)
        for step in program.phase(phase)
        for place, wanted in step.effect.wants
        if place.space is Space.REGISTER and wanted.iteration + k < 0
    )


def _kind(timeline: WrittenOut, moment: int | None) -> OpKind | None:
    return None if moment is None else timeline.steps[moment].effect.kind


def _find_compiler_cover(timeline: WrittenOut, earlier: int, later: int) -> int | None:
    """The moment at which the compiler waits for the earlier op: the first use of registers that it loads.

    Or of registers that a younger op on its counter loads: a wait for a younger op covers all older ones.
    """
    counter = timeline.steps[earlier].effect.counter
    loading: set[Place] = set()
    for moment in range(earlier, later):
        effect = timeline.steps[moment].effect
        overwritten = effect.writes if effect.counter != counter else ()
        if not loading.isdisjoint((*effect.reads, *overwritten)):
            return moment
        filled = {place for place in effect.writes if place.space is Space.REGISTER}
        loading = loading | filled if effect.counter == counter else loading - filled
    return None


# What could meet an obligation.
#
# Of all places for a wait only some matter. A new wait can slide back, op by op, and its count grows by the tokens
# that it passes, until it reaches an op that must wait, a barrier, or the end of its phase; a new barrier can slide
# back to an op that must wait for it, or to the end of its phase. Neither loses anything on the way, so these
# places are all that a best repair needs, and each of them is offered to every obligation in which it lies.


class WaitSite(NamedTuple):
    """Where a wait is or could be; `existing` is the wait there now."""

    gap: InsertionPoint
    counter: str
    existing: Entry | None

    def count_now(self, machine: Machine) -> int:
        """The count of the existing wait, or one that waits for nothing."""
        largest = machine.largest_wait(self.counter)
        return largest if self.existing is None else min(self.existing.effect.wait_value, largest)


class Option(NamedTuple):
    """A wait that could meet an obligation: how weak it may be, and which barriers must be added after it.

    Without a site it is an existing wait that is strong enough, the author's or the compiler's.
    """

    site: WaitSite | None
    weakest: int
    missing: int
    gaps: tuple[InsertionPoint, ...]

    def holds(self, barriers: Mapping[InsertionPoint, int], waits: Mapping[WaitSite, int]) -> bool:
        """True if these added barriers and waits make it sufficient."""
        if self.site is not None and waits.get(self.site, self.weakest + 1) > self.weakest:
            return False
        return not self.missing or sum(barriers.get(gap, 0) for gap in self.gaps) >= self.missing


class Places(NamedTuple):
    """Gaps worth a new barrier, and gaps worth a new wait on each counter."""

    barriers: frozenset[InsertionPoint]
    waits: Mapping[str, frozenset[InsertionPoint]]


def derive_options(obligations: Sequence[Obligation], machine: Machine) -> list[tuple[Option, ...]]:
    """Every way to meet each obligation that a best repair may need."""
    places = _places(obligations)
    return [tuple(_drop_dominated(_list_options(obligation, places, machine))) for obligation in obligations]


def _places(obligations: Sequence[Obligation]) -> Places:
    barriers: set[InsertionPoint] = set()
    waits: dict[str, set[InsertionPoint]] = {}
    ends: set[InsertionPoint] = set()
    for obligation in obligations:
        timeline = obligation.timeline
        here = timeline.gaps[obligation.later][-1]
        waits.setdefault(obligation.counter, set()).add(here)
        if obligation.crosses:
            barriers.add(here)
        for moment in range(obligation.earlier + 1, obligation.later + 1):
            # The ends of phases are in front of the gap that each moment opens with.
            ends.update(timeline.gaps[moment][:-1])
            if obligation.crosses and timeline.steps[moment].effect.awaits is not None:
                waits[obligation.counter].add(timeline.gaps[moment][-1])
    if barriers:
        barriers |= ends
    return Places(frozenset(barriers), {counter: frozenset(gaps | barriers | ends) for counter, gaps in waits.items()})


def _list_options(obligation: Obligation, places: Places, machine: Machine) -> Iterator[Option]:
    """A wait at every moment that has one or is worth one, the last first."""
    timeline, counter = obligation.timeline, obligation.counter
    largest = machine.largest_wait(counter)

    def offer(site: WaitSite | None, moment: int) -> Option:
        missing = max(obligation.barriers_needed(moment) - obligation.barriers_after(moment), 0)
        weakest = min(obligation.younger_tokens(moment), largest)
        return Option(site, weakest, missing, tuple(points) if missing else ())

    points: list[InsertionPoint] = []
    for moment in range(obligation.later, obligation.earlier, -1):
        step = timeline.steps[moment]
        if moment == obligation.compiler_covers:
            yield offer(None, moment)
        stands = step.effect.kind is OpKind.WAIT and step.effect.counter == counter and step.roles is None
        if stands:
            site = WaitSite(timeline.gaps[moment][-1], counter, step)
            enough = site.count_now(machine) <= min(obligation.younger_tokens(moment), largest)
            yield offer(None if enough else site, moment)
        for gap in reversed(timeline.gaps[moment]):
            if gap in places.barriers:
                points.append(gap)
            if gap in places.waits[counter]:
                yield offer(WaitSite(gap, counter, None), moment)


def _drop_dominated(offers: Iterator[Option]) -> Iterator[Option]:
    """Drop options that another option of the same wait, in another trip, makes unnecessary.

    A later moment here is an earlier place in the program: it waits for no less, and leaves more room for barriers
    after it.
    """
    kept: dict[WaitSite | None, list[Option]] = {}
    for option in offers:
        rivals = kept.setdefault(option.site, [])
        if option.site is None:
            rivals[:] = [option]
        elif not any(rival.missing == 0 for rival in rivals):
            rivals[:] = [*(rival for rival in rivals if rival.weakest > option.weakest), option]
    return (option for rivals in kept.values() for option in rivals)
