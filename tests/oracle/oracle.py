"""The oracle: takes a lowered program and a trip count, gives what is wrong with it, or None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable, LoweredProgram, TileSum, Unstated
from tests.oracle.by_tiles import ByTiles
from tests.oracle.by_values import ByValues
from tests.oracle.step import Content, Counters, Kind, Meaning, Step, WrongError
from tests.oracle.wave import Place, Wave, run

TRIP_COUNTS = range(5)
_AGAIN = ((0,), (1,), (2,), (0, 1))  # trip counts of further runs, where a loop may be run again
_NOTHING = Step("nothing", Kind.NOTHING)


def agrees(compiled: Lowerable, trip_counts: Iterable[int] = TRIP_COUNTS) -> bool:
    """The oracle finds nothing wrong for these trip counts."""
    return first_wrong(compiled, trip_counts) is None


def first_wrong(compiled: Lowerable, trip_counts: Iterable[int] = TRIP_COUNTS) -> tuple[int, WrongError] | None:
    """The first trip count that goes wrong in some interleaving, and how."""
    program = compiled.lowered
    try:
        meaning = meaning_of(program)
    except WrongError as wrong:
        return 0, wrong
    for trips in trip_counts:
        wrong_now = wrong_with(program, trips, meaning)
        if wrong_now is not None:
            return trips, wrong_now
    return None


def wrong_with(program: LoweredProgram, trips: int, meaning: Meaning) -> WrongError | None:
    """What some interleaving of so many trips breaks, or None if all of them do what was declared."""
    runs = [(trips, *others) for others in _AGAIN] if program.reentrant else [(trips,)]
    for each in runs:
        try:
            _check_order(program, each)
            run(
                programs(program, meaning, *each),
                barriers_of(program),
                tracked=program.compiler_tracks_registers,
                counters=counters_of(program),
            )
        except WrongError as wrong:
            return wrong
    return None


def counters_of(program: LoweredProgram) -> Counters:
    """The counters of the program's machine."""
    counters = program.machine.counters
    return Counters(
        no_wait={counter.name: counter.holds.value for counter in counters},
        unordered=frozenset(counter.name for counter in counters if not counter.in_order),
    )


def barriers_of(program: LoweredProgram) -> dict[str, Place]:
    """Who arrives where."""
    return {barrier.name: Place(barrier.arriving) for barrier in program.barriers}


def meaning_of(program: LoweredProgram) -> Meaning:
    """By tiles or by values; an entry does what it is written as."""
    for entry in program.entries:
        if entry.op.kind is not entry.effect.kind:
            raise WrongError("claim", f"{entry}, {entry.op.kind.does}, claims to be {entry.effect.kind.does}")
    semantics = program.semantics
    if isinstance(semantics, Unstated):
        raise WrongError("claim", "nothing is said about what it computes")
    return ByTiles(program, semantics) if isinstance(semantics, TileSum) else ByValues(program, semantics)


def programs(program: LoweredProgram, meaning: Meaning, *runs: int) -> list[list[Step]]:
    """The steps of each role, for a trip count, or for several runs of the loop one after the other."""
    return [
        [step for trips in runs for step in _program(program, meaning, trips, role)]
        for role in range(len(program.roles))
    ]


def _check_order(program: LoweredProgram, runs: Iterable[int]) -> None:
    """The one list of all roles reads as one sequence: every wait stands after the arrivals that it waits for.

    Where there is one barrier for all, a role may lag behind in the list: its own n-th one is everybody's n-th.
    """
    arriving = {barrier.name: barrier.arriving for barrier in program.barriers}
    if len(arriving) == 1:
        return
    arrived: Counter[tuple[str, int]] = Counter()
    waited: Counter[tuple[str, int]] = Counter()
    for entry in (e for trips in runs for e in (*program.prologue, *program.kernel * trips, *program.epilogue)):
        roles = range(len(program.roles)) if entry.roles is None else entry.roles
        name = entry.effect.awaits or ""
        arrived.update((entry.effect.arrives, role) for role in roles if entry.effect.arrives)
        for role in roles if name else ():
            waited[name, role] += 1
            if any(arrived[name, other] < waited[name, role] for other in arriving[name]):
                raise WrongError("order", f"{entry} waits for what comes behind it")


def _program(program: LoweredProgram, meaning: Meaning, trips: int, role: int) -> Iterator[Step]:
    tiles = program.tiles_per_trip
    yield from _steps(program.prologue, meaning, 0, role)
    for trip in range(1, trips + 1):
        yield from _steps(program.kernel, meaning, tiles * trip, role)
    yield from _steps(program.epilogue, meaning, tiles * (trips + 1), role)
    yield Step("the end", Kind.END, does=partial(_check, meaning, tiles * trips + program.tiles_outside))


def _check(meaning: Meaning, tiles: int, wave: Wave, found: Sequence[Content]) -> Sequence[Content]:
    meaning.check(wave, tiles)
    return ()


def _steps(entries: Sequence[Entry], meaning: Meaning, k: int, role: int) -> Iterator[Step]:
    for entry in entries:
        if entry.roles is None or role in entry.roles:
            yield _framework(entry) if entry.op.kind.synchronises else meaning.step(entry, k)


def _framework(entry: Entry) -> Step:
    effect = entry.effect
    if effect.kind is OpKind.BARRIER:
        return Step(str(entry.op), Kind.BARRIER, arrives=effect.arrives or "", awaits=effect.awaits or "")
    if effect.kind is OpKind.WAIT:
        return Step(str(entry.op), Kind.WAIT, effect.counter or "", left=effect.wait_value)
    return _NOTHING
