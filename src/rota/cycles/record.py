"""A predicted run as a timeline: slices, stalls, barriers, counters, registers and buffers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rota.cycles.instructions import Code, Parameters, WorkSource, encode, nominal, program_of
from rota.cycles.model import run
from rota.cycles.timeline import At, BufferUse, Flow, Lane, Level, Occupied, Registers, Slice, Timeline
from rota.program.entry import Place, Space
from rota.program.kinds import Unit
from rota.program.lowered import Lowerable, LoweredProgram
from rota.targets.device import device_of, registers_per_lane


def record(
    schedule: Lowerable, shape: WorkSource | None = None, *, trips: int = 6, parameters: Parameters | None = None
) -> Timeline:
    """Run the whole loop, prologue to epilogue, with `trips` trips; the window is the trip before the last.

    A body declared in tiles needs a `shape`, as `rota.pipeline.geometry.TileShape`.
    """
    program = program_of(schedule, shape)
    chosen = parameters or nominal(device_of(program.machine))
    code = encode(program, chosen)
    result = run(code, chosen, trips=trips, record=True)
    slices = []
    for parts in _merge(result.occupied):
        part, (end, done) = parts[0], (max(each.end for each in parts), max(each.done for each in parts))
        at, label = At(*code.keys[part.key][:2], part.trip), code.keys[part.key].label
        slices.append(Slice(part.wave, part.lane, part.start, end, done, at, label, len(parts)))
    slices.sort(key=lambda each: (each.start, each.wave, each.lane))
    doings = _doings(code, result.occupied)
    edges, sizes = result.edges[0], program.semantics.sizes
    return Timeline(
        name=code.name,
        machine=program.machine.name,
        waves=code.waves,
        simds=chosen.simds,
        roles=tuple(program.roles[role].name for role in code.roles),
        end=result.end,
        window=(edges[-3], edges[-2]) if len(edges) > 2 else (edges[-2], edges[-1]),
        edges=edges,
        tiles_per_trip=code.tiles_per_trip,
        slices=tuple(slices),
        stalls=result.stalls,
        crossings=result.crossings,
        levels=tuple(_levels(code, result.occupied)),
        counter_limits=tuple((counter.name, counter.holds.value) for counter in code.counters),
        registers=tuple(_registers(program, sizes or {}, doings, code.roles)),
        register_limit=registers_per_lane(program.machine, code.waves),
        buffers=tuple(_buffers(doings, by_part=sizes is None)),  # parts of a declared tile come and go on their own
        flows=tuple(_flows(slices, doings)),
    )


@dataclass(slots=True)
class _Doing:
    wave: int
    at: At
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    issued: int = 0
    end: int = 0
    done: int = 0


def _merge(occupied: Iterable[Occupied]) -> Iterator[list[Occupied]]:
    """Instructions of one entry that follow without a gap; loads in flight at once count as such."""
    open_pieces: dict[tuple[int, Lane, int, int], list[Occupied]] = {}
    for each in sorted(occupied, key=lambda held: held.start):
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
    found: dict[tuple[int, int, int], _Doing] = {}
    for each in occupied:
        where = each.wave, each.key, each.trip
        entry = code.entries[each.key]
        if where not in found and entry is not None:
            at = At(*code.keys[each.key][:2], each.trip)
            found[where] = _Doing(each.wave, at, entry.effect.reads, entry.effect.writes, issued=each.issued)
        doing = found[where]
        doing.issued = min(doing.issued, each.issued)
        doing.end = max(doing.end, each.end)
        doing.done = max(doing.done, each.done)
    return sorted(found.values(), key=lambda doing: (doing.issued, doing.wave))


_LANES = {Unit.DMA: Lane.GLOBAL, Unit.LDS: Lane.LDS}


def _levels(code: Code, occupied: Iterable[Occupied]) -> Iterator[Level]:
    """Tokens pending, wave by wave and counter by counter; in order, none comes back before an older one."""
    in_order = {counter.name: counter.in_order for counter in code.counters}
    tokens: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for each in occupied:
        entry = code.entries[each.key]
        # What a DMA does at the LDS port is part of the op that the path shows whole.
        if entry is not None and entry.effect.counter is not None and each.lane is _LANES.get(entry.effect.kind.unit):
            tokens[each.wave, entry.effect.counter].append((each.issued, each.done))
    for (wave, counter), pairs in sorted(tokens.items()):
        pairs.sort()
        ends: Iterable[int] = (end for _, end in pairs)
        if in_order[counter]:
            ends = accumulate(ends, max)
        changes: dict[int, int] = defaultdict(int)
        for (issued, _), done in zip(pairs, ends, strict=True):
            changes[issued] += 1
            changes[done] -= 1
        yield from (Level(wave, counter, clock, pending) for clock, pending in _add_up(changes))


def _add_up(changes: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    clocks = sorted(changes)
    return zip(clocks, accumulate(changes[clock] for clock in clocks), strict=True)


def _registers(
    program: LoweredProgram, sizes: Mapping[str, int], doings: Sequence[_Doing], roles: Sequence[int]
) -> Iterator[Registers]:
    """Registers from their write's issue to their last use; the accumulators of a wave's role always."""
    if not sizes:
        return
    for wave, role in enumerate(roles):
        own = (entry for entry in program.entries if entry.executed_by(role))
        sums = {place.name for entry in own for place in entry.effect.writes if place.space is Space.ACCUMULATOR}
        changes: dict[int, int] = defaultdict(int)
        changes[0] = sum(sizes[name] for name in sums)
        for place, start, end in _lives(doing for doing in doings if doing.wave == wave):
            changes[start] += sizes[place.name]
            changes[end] -= sizes[place.name]
        yield from (Registers(wave, clock, live) for clock, live in _add_up(changes))


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


def _buffers(doings: Iterable[_Doing], *, by_part: bool) -> Iterator[BufferUse]:
    """A write after a read brings the next tile; ops come by issue time, all waves together."""
    held: dict[str, tuple[int, int, bool]] = {}

    def name_buffers(places: Iterable[Place]) -> set[str]:
        own = (place for place in places if place.space is Space.LDS)
        return {str(place) if by_part else f"{place.name}[{place.copy}]" for place in own}

    for doing in doings:
        for name in name_buffers(doing.reads):
            if name in held:
                start, end, _ = held[name]
                held[name] = start, max(end, doing.done), True
        for name in name_buffers(doing.writes):
            start, end, read = held.get(name, (doing.issued, 0, False))
            if read:
                yield BufferUse(name, start, end)
                start = doing.issued
            held[name] = start, max(end, doing.done), False
    for name, (start, end, _) in held.items():
        yield BufferUse(name, start, end)


def _flows(slices: Sequence[Slice], doings: Iterable[_Doing]) -> Iterator[Flow]:
    """From the last slice of what wrote a place to the first that reads it, in a wave, or an LDS tile of any wave."""
    numbers: dict[tuple[int, At], list[int]] = defaultdict(list)
    for number, each in enumerate(slices):
        numbers[each.wave, each.at].append(number)
    writers: dict[tuple[int, Place], _Doing] = {}
    shared: dict[Place, _Doing] = {}
    for doing in doings:
        for place in doing.reads:
            writer = writers.get((doing.wave, place)) or (shared.get(place) if place.space is Space.LDS else None)
            if writer is not None:
                made = numbers[writer.wave, writer.at]
                source = next((number for number in made if slices[number].lane is Lane.GLOBAL), made[-1])
                yield Flow(source, numbers[doing.wave, doing.at][0])
        for place in doing.writes:
            if place.space is not Space.ACCUMULATOR:
                writers[doing.wave, place] = shared[place] = doing
