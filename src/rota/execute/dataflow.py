"""The results of a loop by values under given times: which are wrong, and why."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from rota.execute.clock import Clock
from rota.execute.lazy_numpy import Bools, Floats, Ints, np
from rota.execute.semantics import (
    ADDRESSED,
    Declared,
    Moment,
    Plain,
    data_operands,
    initial_value,
    moments_of,
    of_parts,
    results_of,
    run_plainly,
)
from rota.execute.wave_trace import GARBAGE, UNWRITTEN, Line, Workgroup, writer_of_slices
from rota.program.entry import Place, Space, Version
from rota.program.kinds import GLOBAL_LOADS, Home, OpKind
from rota.program.loop_spec import LoopOp

# What a read sees: a slice is poison from the issue of a write to its landing, and then holds what landed last.
_MOST_COMPARISONS = 1 << 18  # per batch of runs: keeps the temporaries in cache, and memory bounded


def tiles_seen(group: Workgroup, clock: Clock) -> Ints:
    """K-tiles by [run, wave, memory op, slice]; GARBAGE where a read met poison, and for everything but reads."""
    runs, waves, columns = clock.issue.shape
    written = _tiles_written(group, clock)
    seen = np.full((runs, waves, columns, waves), GARBAGE, dtype=np.intp)
    for place in _places_read(group):
        reads, found = _find(group, clock, place, written)
        np.put_along_axis(seen, reads[np.newaxis, :, :, np.newaxis], np.maximum(found, GARBAGE), axis=2)
    seen[:, :, -1] = GARBAGE  # where short rows were filled up
    return seen


def writes_seen(group: Workgroup, clock: Clock) -> dict[Place, Ints]:
    """By place the number of the write, among those of its wave, that each read found, by [run, wave, read, slice].

    GARBAGE where it met poison, UNWRITTEN where no write had begun.
    """
    runs, _, columns = clock.issue.shape
    seen: dict[Place, Ints] = {}
    for place in _places_read(group):
        numbers = [dict(zip(trace.writes.get(place, ()), itertools.count(), strict=False)) for trace in group.traces]
        rows = [[number.get(index, GARBAGE) for index in range(columns)] for number in numbers]
        written = group.per_wave(rows, GARBAGE)
        _, seen[place] = _find(group, clock, place, np.broadcast_to(written, (runs, *written.shape)))
    return seen


def _places_read(group: Workgroup) -> set[Place]:
    return {place for trace in group.traces for place in trace.reads if place.space is Space.LDS}


def _find(group: Workgroup, clock: Clock, place: Place, written: Ints) -> tuple[Ints, Ints]:
    """The reads of a place by [wave, read], and what `written` says of the write that each found in each slice."""
    runs, waves, columns = clock.issue.shape
    reads = group.per_wave([trace.reads.get(place, ()) for trace in group.traces], columns - 1)
    # Youngest first: of writes that land at the same time, the youngest is found.
    writes = group.per_wave([trace.writes.get(place, ())[::-1] for trace in group.traces], columns - 1)
    found = np.full((runs, *reads.shape, waves), UNWRITTEN, dtype=np.intp)
    if writes.size == 0:
        return reads, found
    unseen = _younger_own_writes(group, place, reads, writes)
    batch = max(1, _MOST_COMPARISONS // (reads.size * writes.size))
    for start in range(0, runs, batch):
        part = slice(start, start + batch)
        found[part] = _resolve(Clock(*(times[part] for times in clock)), written[part], reads, writes, unseen)
    writers = group.writers(place)
    if len(writers) < waves:
        found = found[..., writer_of_slices(writers, waves)]
    return reads, found


def _tiles_written(group: Workgroup, clock: Clock) -> Ints:
    """K-tiles by [run, wave, memory op] that loads fetch and stores pass on, if their registers had landed by then."""
    runs, _, columns = clock.issue.shape
    fetched = group.per_wave([[op.tile for op in trace.memory] for trace in group.traces], GARBAGE)
    written = np.full((runs, group.size, columns), GARBAGE, dtype=np.intp)
    written[:, :, : fetched.shape[1]] = fetched
    for number, trace in enumerate(group.traces):
        waves = group.waves_of(number)
        for store, op in enumerate(trace.memory):
            if op.source is not None:
                ready = clock.land[:, waves, op.source] <= clock.issue[:, waves, store]
                written[:, waves, store] = np.where(ready, written[:, waves, op.source], GARBAGE)
    return written


def _younger_own_writes(group: Workgroup, place: Place, reads: Ints, writes: Ints) -> Bools | None:
    """[wave, read, slice, write]: LDS writes after a read of the same wave, where the ds order keeps them."""
    if not any(trace.memory[index].line is Line.DS for trace in group.traces for index in trace.writes.get(place, ())):
        return None
    waves = np.arange(group.size)
    own: Bools = waves[:, np.newaxis, np.newaxis, np.newaxis] == waves[:, np.newaxis]
    younger = writes > reads[:, :, np.newaxis, np.newaxis]
    ds = group.per_wave([[*(op.line is Line.DS for op in trace.memory), 0] for trace in group.traces], 0)
    unseen: Bools = own & younger & np.take_along_axis(ds.astype(bool), writes, axis=1)
    return unseen


def _resolve(clock: Clock, written: Ints, reads: Ints, writes: Ints, unseen: Bools | None) -> Ints:
    wave = np.arange(reads.shape[0])
    at = clock.land[:, wave[:, np.newaxis], reads][:, :, :, np.newaxis, np.newaxis]
    issue = clock.issue[:, wave[:, np.newaxis], writes][:, np.newaxis, np.newaxis]
    land = clock.land[:, wave[:, np.newaxis], writes][:, np.newaxis, np.newaxis]
    landed = land <= at
    under_way = (issue <= at) & ~landed
    if unseen is not None:
        landed &= ~unseen
        under_way &= ~unseen
    last = np.where(landed, land, -np.inf).argmax(axis=4)
    defined = np.take_along_axis(landed, last[..., np.newaxis], axis=4)[..., 0] & ~under_way.any(axis=4)
    run = np.arange(at.shape[0])[:, np.newaxis, np.newaxis, np.newaxis]
    tile = written[run, wave, writes[wave, last]]
    begun = (landed | under_way).any(axis=4)
    return np.where(defined, tile, np.where(begun, GARBAGE, UNWRITTEN))


# All waves of all runs execute a loop by values together, in program order. The clock decides when things happened,
# LDS what a read of a tile found; a register is NaN until its load has landed.


class _Register(NamedTuple):
    """What a register holds by [run, wave, ...], since when, and until what landed late took its place."""

    content: Floats
    since: Floats
    until: Floats
    initial: Version | None = None  # put there before the loop, if nothing has been written since


class FoundOperand(NamedTuple):
    """What an op found by [run, wave, ...] where it wanted a version, or these parts of it."""

    due: Version
    found: Floats
    parts: tuple[int, ...] = ()


Watch = Callable[[Moment, Sequence[FoundOperand]], None]


def _number(accesses: Mapping[Place, Sequence[int]]) -> dict[Place, dict[int, int]]:
    """Which of a wave's accesses to a place a memory op is."""
    return {place: {op: number for number, op in enumerate(ops)} for place, ops in accesses.items()}


class Waves:
    """Registers, tiles and sums between two moments; `plain` tells the shapes."""

    def __init__(self, loop: Declared, group: Workgroup, clock: Clock, plain: Plain, total: int) -> None:
        self.loop, self.group, self.clock, self.plain, self.total = loop, group, clock, plain, total
        self.shape: tuple[int, int] = (clock.steps.shape[0], group.size)
        self.registers: dict[Place, _Register] = {}
        self.tiles: dict[Place, Floats] = {}
        self.sums: dict[str, Floats] = {}
        self.stored: dict[str, Floats] = {}
        self.last: dict[str, Place] = {}
        self.initials: dict[Place, Version] = {}
        self.seen = writes_seen(group, clock)
        self.memory = [{op.step: index for index, op in enumerate(trace.memory)} for trace in group.traces]
        self.reads = [_number(trace.reads) for trace in group.traces]
        self.writes = [_number(trace.writes) for trace in group.traces]

    def execute_all(self, watch: Watch | None = None) -> None:
        moments = list(moments_of(self.loop, self.group))
        # What a DMA brings is known beforehand: it may land, and be read, before program order gets to it.
        for moment in moments:
            if self._is_dma(moment.op):
                self._load(moment)
        for moment in moments:
            if not self._is_dma(moment.op):
                self._execute(moment, watch)

    def result(self, name: str, like: Floats) -> Floats:
        """An accumulator's sum, what is left in memory, or what a carried value's last register holds at the end."""
        shape = (*self.shape, *like.shape[1:])
        home = self.loop.spec.value(name).home
        if home is Home.ACCUMULATOR:
            return self.sums.get(name, np.zeros(shape))
        if home is Home.MEMORY:
            return self.stored.get(name, np.full(shape, np.nan))
        if name not in self.last:
            return np.full(shape, np.nan)
        held = self.registers[self.last[name]]
        return _fit(_mask(np.isinf(held.until), held.content), shape)

    def _execute(self, moment: Moment, watch: Watch | None) -> None:
        operands = list(self._operands(moment))
        if watch is not None:
            watch(moment, operands)
        addressed = self._find_addressed(operands) if moment.op.kind in ADDRESSED else None
        if moment.op.kind in GLOBAL_LOADS:
            self._load(moment, addressed)
            return
        data = data_operands(self.loop.spec, moment.op, tuple(operand.found for operand in operands))
        made = results_of(self.loop.semantics, moment.op, data)
        results = dict(zip(moment.op.writes, made, strict=True))
        for name, place in zip(self.loop.outputs(moment.op), moment.entry.effect.writes, strict=True):
            own = np.broadcast_to(results[name], (*self.shape, *results[name].shape[2:]))
            if addressed is not None:
                own = _mask(addressed, own)
            if place.space is Space.ACCUMULATOR:
                self.sums[name] = self.sums.get(name, 0.0) + np.where(_over(self._active(moment), own), own, 0.0)
            elif place.space is Space.MEMORY:
                self._leave(moment, name, own)
            elif place.space is Space.LDS:
                self._store(moment, place, own[:, self._writer_of_slices(place)])
            else:
                self._set_register(moment, name, place, own)

    def _operands(self, moment: Moment) -> Iterator[FoundOperand]:
        """What is read of each value; before the first iteration its initial value, where that is still there."""
        places = iter(moment.entry.effect.reads)
        for read in moment.op.reads:
            parts = self.loop.parts(read)
            own = [next(places) for _ in parts]
            due = Version(read.value, moment.iteration - read.distance)
            if self.loop.spec.value(read.value).home is not Home.LDS:
                yield FoundOperand(due, self._read_register(moment, own[0], due))
            elif due.iteration < 0:
                initial = self._initial(due)
                pairs = zip(parts, own, strict=True)
                found = [self._read_initial_part(moment, place, due, initial[:, :, part]) for part, place in pairs]
                yield FoundOperand(due, np.stack(found, axis=2), read.parts)
            else:
                found = [self._read(moment, place, read.value) for place in own]
                yield FoundOperand(due, np.stack(found, axis=2), read.parts)

    def _initial(self, due: Version) -> Floats:
        initial = initial_value(self.loop.spec, self.loop.semantics, due, self.group.size)
        return np.broadcast_to(initial, (*self.shape, *initial.shape[2:]))

    def _read_initial_part(self, moment: Moment, place: Place, due: Version, initial: Floats) -> Floats:
        """A part of a tile as it was before the loop, NaN in slices that a write has begun to since."""
        if self.initials.setdefault(place, due) != due:
            return np.full(initial.shape, np.nan)
        slices = np.arange(self.group.size)
        found = self.seen[place][:, slices, self._numbers(self.reads, moment, place)]
        return _mask(found == UNWRITTEN, initial)

    def _read_register(self, moment: Moment, place: Place, due: Version) -> Floats:
        """A register when the op issues: NaN while its load is in flight, or if nothing was ever written."""
        held = self.registers.get(place)
        if due.iteration < 0 and held is None:
            forever = np.full(self.shape, np.inf)
            held = self.registers[place] = _Register(self._initial(due), -forever, forever, due)
        if held is not None and held.initial is not None:
            return held.content if held.initial == due else np.full(held.content.shape, np.nan)
        shape = (*self.shape, *self.plain.like(due.name))
        if held is None:
            return np.full(shape, np.nan)
        now = self._times(self.clock.steps, moment.ordinals)
        return _fit(_mask((held.since <= now) & (now < held.until), held.content), shape)

    def _read(self, moment: Moment, place: Place, value: str) -> Floats:
        """A part of a tile by [run, wave, slice, ...], each slice as LDS decides."""
        shape = (*self.shape, *self.plain.like(value)[1:])
        tile = self.tiles.get(place)
        if tile is None:
            return np.full(shape, np.nan)
        slices = np.arange(self.group.size)
        found = np.maximum(self.seen[place][:, slices, self._numbers(self.reads, moment, place)], GARBAGE)
        run = np.arange(self.shape[0])[:, np.newaxis, np.newaxis] if len(tile) > 1 else 0
        return _fit(tile[run, found, slices], shape)

    def _is_dma(self, op: LoopOp) -> bool:
        """True if it is a load into LDS whose address is known beforehand."""
        into_lds = any(self.loop.spec.value(name).home is Home.LDS for name in op.writes)
        return op.kind is OpKind.DMA and not op.reads and into_lds

    def _load(self, moment: Moment, addressed: Bools | None = None) -> None:
        """A wave brings its slice of a tile, or its registers; NaN beyond the iterations and by a wrong address."""
        for value, place in zip(self.loop.outputs(moment.op), moment.entry.effect.writes, strict=True):
            part = self.loop.spec.writers(value).index(moment.op)
            brought = self.loop.semantics.load(value, part, max(moment.iteration, 0), self.group.size)
            if not 0 <= moment.iteration < self.total:
                brought = np.full(brought.shape, np.nan)
            content = brought[np.newaxis]
            in_lds = place.space is Space.LDS
            if addressed is not None:
                right = addressed[:, self._writer_of_slices(place)] if in_lds else addressed
                content = _mask(right, content)
            if in_lds:
                self._store(moment, place, content)
            else:
                self._set_register(moment, value, place, np.broadcast_to(content, (*self.shape, *content.shape[2:])))

    def _find_addressed(self, operands: Sequence[FoundOperand]) -> Bools:
        """In which runs and waves the address registers of a load or a read hold the right values."""
        right = np.ones(self.shape, dtype=np.bool_)
        for due, found, _ in operands:
            if self.loop.spec.value(due.name).home is not Home.LDS:
                wanted = self.plain.made[due] if due.iteration >= 0 else self._initial(due)
                right &= (found == wanted).all(axis=tuple(range(2, found.ndim)))
        return right

    def _store(self, moment: Moment, place: Place, content: Floats) -> None:
        """`content` by [run, slice, ...] as what the write brings; the row after all writes stays NaN.

        A store of another wave that a read found before program order got to it is NaN: a mixture with the wave's own
        older slice, it is wrong whatever it holds.
        """
        tile = self.tiles.get(place)
        if tile is None:
            rows = max(len(numbers.get(place, ())) for numbers in self.writes) + 1
            tile = np.full((len(content), rows, *content.shape[1:]), np.nan)
        elif len(tile) < len(content):  # written by loads, which are the same in all runs, and by stores
            tile = np.repeat(tile, len(content), axis=0)
        writers = self._writer_of_slices(place)
        numbers = self._numbers(self.writes, moment, place)[writers]
        slices = np.flatnonzero(self._active(moment)[0, writers])
        tile[:, numbers[slices], slices] = _fit(content, (len(content), *tile.shape[2:]))[:, slices]
        self.tiles[place] = tile

    def _leave(self, moment: Moment, name: str, content: Floats) -> None:
        """What goes to memory: a store's data as they are, an atomic's added; what has no iteration ruins all of it."""
        writers = self.loop.spec.writers(name)
        left = self.stored.get(name)
        if left is None:
            left = self.stored[name] = np.zeros((*self.shape, len(writers), self.total, *content.shape[2:]))
            for part, op in enumerate(writers):
                if op.kind is not OpKind.ATOMIC:
                    left[:, self.group.doing(op.name), part] = np.nan
        waves, part = np.flatnonzero(self._active(moment)[0]), writers.index(moment.op)
        if not 0 <= moment.iteration < self.total:
            left[:, waves] = np.nan
            return
        own = left[:, :, part, moment.iteration]
        before = own if moment.op.kind is OpKind.ATOMIC else 0.0
        own[:, waves] = (before + content)[:, waves]

    def _writer_of_slices(self, place: Place) -> list[int]:
        return writer_of_slices(self.group.writers(place), self.group.size)

    def _set_register(self, moment: Moment, name: str, place: Place, content: Floats) -> None:
        """A load is there when it has landed, the result of a compute at once; what lands later takes its place."""
        since, until = np.full(self.shape, -np.inf), np.full(self.shape, np.inf)
        lands = self._times(self.clock.steps, moment.ordinals)
        if moment.op.kind in ADDRESSED:
            since = lands = self._times(self.clock.land, self._memory_ops(moment))
        held = self.registers.get(place)
        if held is not None:
            active = self._active(moment)
            for late in (held.since, held.until):
                until = np.where(active & (late > lands), np.minimum(late, until), until)
            content = np.where(_over(active, content), content, _fit(held.content, content.shape))
            since = np.where(active, since, held.since)
            until = np.where(active, until, held.until)
        self.registers[place] = _Register(content, since, until)
        if moment.iteration == self.total - 1:
            self.last[name] = place

    def _active(self, moment: Moment) -> Bools:
        return self._per_wave([ordinal is not None for ordinal in moment.ordinals]).astype(np.bool_)[np.newaxis]

    def _memory_ops(self, moment: Moment) -> list[int | None]:
        pairs = zip(moment.ordinals, self.memory, strict=True)
        return [None if ordinal is None else memory[ordinal] for ordinal, memory in pairs]

    def _numbers(self, accesses: Sequence[dict[Place, dict[int, int]]], moment: Moment, place: Place) -> Ints:
        pairs = zip(accesses, self._memory_ops(moment), strict=True)
        return self._per_wave([-1 if op is None else numbers[place][op] for numbers, op in pairs])

    def _times(self, table: Floats, columns: Sequence[int | None]) -> Floats:
        """A time per run and wave; the last column, which never comes, for a role that doesn't take part."""
        indices = self._per_wave([-1 if column is None else column for column in columns])
        return table[:, np.arange(self.group.size), indices]

    def _per_wave(self, per_role: Sequence[int]) -> Ints:
        return self.group.per_wave([[number] for number in per_role], 0)[:, 0]


def _fit(content: Floats, shape: tuple[int, ...]) -> Floats:
    """The content, or NaN where it has the shape of another value: a wrong place was read or written."""
    return content if content.shape == shape else np.full(shape, np.nan)


def _mask(mask: Bools, content: Floats) -> Floats:
    return np.where(_over(mask, content), content, np.nan)


def _over(mask: Bools, content: Floats) -> Bools:
    """A mask by [run, wave] with as many axes as what it is laid over."""
    return np.expand_dims(mask, tuple(range(mask.ndim, content.ndim)))


class Dataflow:
    def __init__(self, loop: Declared, group: Workgroup, clock: Clock, total: int) -> None:
        self.loop, self.group, self.clock, self.total = loop, group, clock, total

    @cached_property
    def plain(self) -> Plain:
        return run_plainly(self.loop.spec, self.loop.semantics, self.total, self.group.size, self.group.doing)

    @cached_property
    def expected(self) -> dict[str, Floats]:
        """The right results by [wave, ...]: sums, what is left in memory, last versions of carried values."""
        last = self.total - 1
        right = {name: added[0] for name, added in (*self.plain.sums.items(), *self.plain.stored.items())}
        if self.total:
            right |= {name: self.plain.made[Version(name, last)][0] for name in self.loop.list_carried()}
        for name, formula in self.loop.semantics.compute_expected(self.total, self.group.size).items():
            # A formula says what all ops make together: it holds if the same waves do all of them.
            doers = [self.group.doing(op.name) for op in self.loop.spec.writers(name)]
            if name in right and doers.count(self._makers(name)) == len(doers):
                right[name] = formula
        return right

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.expected)

    def _makers(self, name: str) -> list[int]:
        """The waves that make a value, by any of its ops."""
        return sorted({wave for op in self.loop.spec.writers(name) for wave in self.group.doing(op.name)})

    def run(self, watch: Watch | None = None) -> dict[str, Floats]:
        """The results; `watch` gets the operands of each op, in program order."""
        waves = Waves(self.loop, self.group, self.clock, self.plain, self.total)
        waves.execute_all(watch)
        return {name: waves.result(name, like) for name, like in self.expected.items()}

    def wrong(self) -> Bools:
        """Which results are not the expected ones, by [result, run, wave], of the waves that make them."""
        found = self.run()
        wrong = np.zeros((len(found), *self.clock.steps.shape[:2]), dtype=bool)
        for number, (name, result) in enumerate(found.items()):
            right = self.expected[name]
            with np.errstate(invalid="ignore"):
                off = np.abs(result - right) > self.loop.semantics.tolerance * np.abs(right).max(initial=0.0)
            unlike = ((result != right) & off) | np.isnan(result)
            own = self._makers(name)
            wrong[number][:, own] = unlike.any(axis=tuple(range(2, unlike.ndim)))[:, own]
        return wrong

    def reason(self, number: int, run: int, wave: int) -> str:
        """Why a result is wrong: the first op that found another value than it wanted; else the numbers."""
        name = self.names[number]
        alone = Dataflow(self.loop, self.group, Clock(*(times[run : run + 1] for times in self.clock)), self.total)
        seen: list[str] = []

        def watch(moment: Moment, operands: Sequence[FoundOperand]) -> None:
            if not seen and moment.ordinals[wave // self.group.waves] is not None:
                seen.extend(f"{moment} {text}" for text in self._complaints(operands, wave))

        found, right = alone.run(watch)[name][0, wave], self.expected[name][wave]
        if seen:
            return seen[0]
        at = np.argmax(found.ravel() != right.ravel())
        return f"it holds {found.ravel()[at]:.9g} at {at}; {right.ravel()[at]:.9g} is due"

    def _complaints(self, operands: Sequence[FoundOperand], wave: int) -> Iterator[str]:
        made = self.plain.made
        for due, found, parts in operands:
            content = found[0, wave]
            right = made.get(due)
            if due.iteration < 0:
                right = initial_value(self.loop.spec, self.loop.semantics, due, self.group.size)
            if right is not None and np.array_equal(content, of_parts(right, parts)[0, wave]):
                continue
            if np.isnan(content).any():
                yield f"reads poison in {due}"
            else:
                versions = (
                    v for v in made if v.name == due.name and np.array_equal(content, of_parts(made[v], parts)[0, wave])
                )
                yield f"wants {due} and finds {next(map(str, versions), 'another content')}"
