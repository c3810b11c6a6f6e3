"""What must be over before what: takes a loop's steps, gives the obligations that its waits and barriers leave open.

Derived from the steps alone and without the proof, which checks the result afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from rota.program.effects import Place, Space
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.program.machine import Machine
from rota.program.phase import Phase
from rota.sync.unrolled import WrittenOut, written_out

_EXPLICIT_TRIPS = (0, 1, 2, 3)  # a tile's successive accesses lie at most two trips apart


class _Counters(NamedTuple):
    """Counters that count down in order, and those for whose register loads the compiler waits by itself.

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
    """The op at moment `earlier` must be over before the one at `later` issues.

    Over means: covered by a wait of its own wave; if it `crosses` waves, with as many barriers behind that wait as
    bring every other wave past it.  `compiler_covers` is the moment, if any, at which the compiler itself waits for it.
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
        """The two steps."""
        return self.timeline.steps[self.earlier], self.timeline.steps[self.later]

    def barriers_needed(self, moment: int) -> int:
        """Barriers that must follow a wait at `moment`: one, and one more for each that the groups lie apart."""
        spread = self.timeline.spread
        return 1 + max(spread[moment], 0) - min(spread[self.later], 0) if self.crosses else 0

    def barriers_after(self, moment: int) -> int:
        """Barriers between `moment` and the later op."""
        return self.timeline.epoch[self.later] - self.timeline.epoch[moment]

    def younger_tokens(self, moment: int) -> int:
        """Tokens that stand behind the earlier op in its counter at `moment`: the weakest wait that covers it.

        Of a counter that doesn't count down in order only a wait for 0 covers anything.
        """
        if not self.in_order:
            return 0
        tokens = self.timeline.tokens[self.counter]
        return tokens[moment] - tokens[self.earlier + 1]

    def met(self, machine: Machine) -> bool:
        """A wait that stands there already, planned or the compiler's, is strong enough and early enough."""
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
        return in_words(*self.ends)


def in_words(first: Entry, second: Entry) -> str:
    """An obligation between two entries."""
    return (
        f"{first.op} ({first.phase.at(first.time_slot)}) must be over "
        f"before {second.op} ({second.phase.at(second.time_slot)})"
    )


def in_new_words(words: str, phase: Phase, places: Mapping[int, int]) -> str:
    """The words of an obligation whose ends in a phase, by their old places, have come to stand at new ones."""
    where = re.compile(rf"\({phase.value.lower()}\[(\d+)\]\)")
    return where.sub(lambda found: f"({phase.at(places[int(found[1])])})", words)


def open_obligations(program: LoweredProgram) -> tuple[Obligation, ...]:
    """The obligations that the program's own waits and barriers don't meet."""
    every = all_obligations(program)
    return tuple(obligation for obligation in every if not obligation.met(program.machine))


def all_obligations(program: LoweredProgram) -> Iterator[Obligation]:
    """The obligations from which all others follow, over the first few trip counts.

    Between two given entries the same steps lie whenever the distance is the same, so one trip count stands for all.
    """
    seen: set[tuple[object, ...]] = set()
    in_order = frozenset(counter.name for counter in program.machine.counters if counter.in_order)
    # A compiler counts on the order, too.
    compilers = in_order if program.compiler_tracks_registers else frozenset[str]()
    counters = _Counters(in_order, compilers, _initial_registers(program) if program.reentrant else frozenset())
    for runs in product(_EXPLICIT_TRIPS, repeat=2 if program.reentrant else 1):
        timeline = written_out(program, *runs)
        for earlier, later, crosses in _tightest(timeline, counters):
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
                compiler_covers=_compiler_covers(timeline, earlier, later) if counter in counters.compilers else None,
                in_order=counter in in_order,
            )


def _tightest(timeline: WrittenOut, counters: _Counters) -> Iterator[_Conflict]:
    """Conflicts that contain no other one of the same counter.

    What covers an op covers all older ones on its counter, and a barrier between the inner two lies between the outer
    two as well: so the outer conflict is met whenever the inner one is.
    """
    latest: dict[tuple[str | None, bool], int] = {}
    conflicts = sorted(_conflicts(timeline, counters), key=lambda c: (c.later, -c.earlier))
    for conflict in conflicts:
        counter = timeline.steps[conflict.earlier].effect.counter
        if latest.get((counter, conflict.crosses), -1) < conflict.earlier:
            latest[counter, conflict.crosses] = conflict.earlier
            yield conflict


def _conflicts(timeline: WrittenOut, counters: _Counters) -> Iterator[_Conflict]:
    yield from _tile_conflicts(timeline)
    yield from _register_conflicts(timeline, counters)


def _tile_conflicts(timeline: WrittenOut) -> Iterator[_Conflict]:
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


def _register_conflicts(timeline: WrittenOut, counters: _Counters) -> Iterator[_Conflict]:
    """A load into registers and their use, or their next write if that doesn't land behind the load anyway."""
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
            behind = older == effect.counter and older in counters.in_order
            if older is not None and older not in counters.compilers and not behind:
                yield _Conflict(loader, now, crosses=False)
            if place.space not in (Space.LDS, Space.MEMORY) and effect.counter:
                loading[place] = now, effect.counter


def _initial_registers(program: LoweredProgram) -> frozenset[Place]:
    """Registers that are read of an iteration before the first, in any of the trips in which that happens."""
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


def _compiler_covers(timeline: WrittenOut, earlier: int, later: int) -> int | None:
    """The moment at which the compiler waits for the earlier op: that of the first use of registers that it loads.

    Or that a younger op on its counter loads: a wait for the younger one is a wait for all older ones.
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
