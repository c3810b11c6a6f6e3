"""A run as a timeline: takes a compiled loop, gives its slices, stalls, barriers, counters, registers and buffers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rota.declare.effects import Action, Counter, Place, Space
from rota.declare.values import Home, LoopSpec
from rota.program.timeline import (
    At,
    BufferUse,
    Crossing,
    Flow,
    Lane,
    Level,
    Registers,
    Slice,
    Stall,
    Timeline,
)
from rota.simulate.cycles import run
from rota.simulate.instructions import Code, Key, encode
from rota.simulate.parameters import Parameters, nominal
from rota.simulate.run import Occupied
from rota.simulate.work import TileShape, TimedLoop
from rota.targets.rates import registers_per_lane
from rota.targets.timing import timing_of


def record(
    schedule: TimedLoop, shape: TileShape | None = None, *, trips: int = 6, parameters: Parameters | None = None
) -> Timeline:
    """Run the whole loop, prologue to epilogue, with `trips` trips; the window is the trip before the last."""
    chosen = parameters or nominal(timing_of(schedule.machine))
    code = encode(schedule, chosen, shape)
    result = run(code, chosen, trips=trips, record=True)
    slices = sorted(
        (_slice(code, parts) for parts in _merged(result.occupied)), key=lambda each: (each.start, each.wave, each.lane)
    )
    doings = _doings(code, result.occupied)
    edges = result.edges[0]
    return Timeline(
        name=code.name,
        machine=schedule.machine.name,
        waves=code.waves,
        groups=code.groups,
        end=result.end,
        window=(edges[-3], edges[-2]) if len(edges) > 2 else (edges[-2], edges[-1]),
        edges=edges,
        tiles_per_trip=code.tiles_per_trip,
        slices=tuple(slices),
        stalls=tuple(
            Stall(wave, start, end, cause, _at(code.keys[key], trip), code.keys[key].label)
            for wave, start, end, cause, key, trip in result.stood
        ),
        crossings=tuple(
            Crossing(wave, arrived, released, _at(code.keys[key], trip))
            for wave, arrived, released, key, trip in result.crossed
        ),
        levels=tuple(_levels(code, result.occupied)),
        counter_limits=tuple((counter, schedule.machine.no_wait(counter)) for counter in Counter),
        registers=tuple(_registers(schedule.loop, doings, code.waves)),
        register_limit=registers_per_lane(schedule.machine, code.waves),
        buffers=tuple(_buffers(schedule.loop, doings)),
        flows=tuple(_flows(slices, doings)),
    )


@dataclass(slots=True)
class _Doing:
    """One wave's execution of one entry, all its instructions together."""

    wave: int
    at: At
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    issued: int = 0
    end: int = 0
    done: int = 0


def _slice(code: Code, parts: Sequence[Occupied]) -> Slice:
    """Neighbouring instructions of one entry on one unit, as one."""
    first, key = parts[0], code.keys[parts[0].key]
    return Slice(
        wave=first.wave,
        lane=first.lane,
        start=first.start,
        end=max(part.end for part in parts),
        done=max(part.done for part in parts),
        at=_at(key, first.trip),
        label=key.label,
        instructions=len(parts),
    )


def _at(key: Key, trip: int) -> At:
    return At(key.phase, key.slot, trip)


def _merged(occupied: Iterable[Occupied]) -> Iterator[list[Occupied]]:
    """Instructions of one entry that follow without a gap; loads under way at once count as such."""
    open_pieces: dict[tuple[int, Lane, int, int], list[Occupied]] = {}
    for each in sorted(occupied, key=lambda one: one.start):
        where = each.wave, each.lane, each.key, each.trip
        piece = open_pieces.get(where)
        if piece is not None and each.start <= piece[-1].end:
            piece.append(each)
            continue
        if piece is not None:
            yield piece
        open_pieces[where] = [each]
    yield from open_pieces.values()


def _doings(code: Code, occupied: Iterable[Occupied]) -> list[_Doing]:
    """By issue time."""
    found: dict[tuple[int, int, int], _Doing] = {}
    for each in occupied:
        where = each.wave, each.key, each.trip
        step = code.steps[each.key]
        if where not in found and step is not None:
            effect = step.effect
            at = _at(code.keys[each.key], each.trip)
            found[where] = _Doing(each.wave, at, effect.reads, effect.writes, issued=each.issued)
        doing = found[where]
        doing.issued = min(doing.issued, each.issued)
        doing.end = max(doing.end, each.end)
        doing.done = max(doing.done, each.done)
    return sorted(found.values(), key=lambda doing: (doing.issued, doing.wave))


def _levels(code: Code, occupied: Iterable[Occupied]) -> Iterator[Level]:
    """Tokens pending, wave by wave and counter by counter; tokens complete in the order of their issue."""
    tokens: dict[tuple[int, Counter], list[tuple[int, int]]] = defaultdict(list)
    for each in occupied:
        step = code.steps[each.key]
        if each.lane is Lane.GLOBAL:
            tokens[each.wave, Counter.VM].append((each.issued, each.done))
        elif each.lane is Lane.LDS and step is not None and step.effect.action is not Action.DMA:
            tokens[each.wave, Counter.LGKM].append((each.issued, each.done))
    for (wave, counter), pairs in sorted(tokens.items(), key=lambda item: (item[0][0], item[0][1].value)):
        pairs.sort()
        changes: dict[int, int] = defaultdict(int)
        for issued, done in zip((start for start, _ in pairs), accumulate((end for _, end in pairs), max), strict=True):
            changes[issued] += 1
            changes[done] -= 1
        pending = 0
        for clock in sorted(changes):
            pending += changes[clock]
            yield Level(wave, counter, clock, pending)


def _registers(spec: LoopSpec | None, doings: Sequence[_Doing], waves: int) -> Iterator[Registers]:
    """Registers from their write's issue to their last use; accumulators always.  Only loops by values say sizes."""
    if spec is None:
        return
    kept = sum(value.size for value in spec.values if value.home is Home.ACCUMULATOR)
    for wave in range(waves):
        changes: dict[int, int] = defaultdict(int)
        changes[0] = kept
        for place, start, end in _lives(doing for doing in doings if doing.wave == wave):
            changes[start] += spec.values[place.channel].size
            changes[end] -= spec.values[place.channel].size
        live = 0
        for clock in sorted(changes):
            live += changes[clock]
            yield Registers(wave, clock, live)


def _lives(doings: Iterable[_Doing]) -> Iterator[tuple[Place, int, int]]:
    """Each stretch during which a register place holds something that is still used."""
    held: dict[Place, tuple[int, int]] = {}
    for doing in doings:
        for place in doing.reads:
            if place in held:
                held[place] = held[place][0], max(held[place][1], doing.end)
        for place in doing.writes:
            if place.space is Space.REGISTER:
                if place in held:
                    yield place, *held[place]
                held[place] = doing.issued, doing.issued
    for place, (start, end) in held.items():
        yield place, start, end


def _buffers(spec: LoopSpec | None, doings: Iterable[_Doing]) -> Iterator[BufferUse]:
    """A write after a read brings the next tile; ops come by issue time, all waves together."""
    held: dict[str, tuple[int, int, bool]] = {}
    for doing in doings:
        for name in {_buffer(spec, place) for place in doing.reads if place.space is Space.LDS}:
            if name in held:
                start, end, _ = held[name]
                held[name] = start, max(end, doing.done), True
        for name in {_buffer(spec, place) for place in doing.writes if place.space is Space.LDS}:
            start, end, read = held.get(name, (doing.issued, 0, False))
            if read:
                yield BufferUse(name, start, end)
                start = doing.issued
            held[name] = start, max(end, doing.done), False
    for name, (start, end, _) in held.items():
        yield BufferUse(name, start, end)


def _buffer(spec: LoopSpec | None, place: Place) -> str:
    """The tile and its copy; parts of one tile are one buffer."""
    return str(place) if spec is None else f"{spec.values[place.channel].name}[{place.stage}]"


def _flows(slices: Sequence[Slice], doings: Iterable[_Doing]) -> Iterator[Flow]:
    """From the last slice of what wrote a place to the first slice of what reads it, within each wave."""
    numbers: dict[tuple[int, At], list[int]] = defaultdict(list)
    for number, each in enumerate(slices):
        numbers[each.wave, each.at].append(number)
    writers: dict[tuple[int, Place], _Doing] = {}
    for doing in doings:
        for place in doing.reads:
            writer = writers.get((doing.wave, place))
            if writer is not None:
                made = numbers[writer.wave, writer.at]
                source = next((number for number in made if slices[number].lane is Lane.GLOBAL), made[-1])
                yield Flow(source, numbers[doing.wave, doing.at][0])
        for place in doing.writes:
            if place.space is not Space.ACCUMULATOR:
                writers[doing.wave, place] = doing
