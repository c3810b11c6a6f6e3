"""What a picture shows, as frozen values that every way of drawing reads.

Times are clocks of the compute unit. A scene holds one steady trip; a band of it is one wave.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.cycles.timeline import At, Cause, Crossing, Lane, Slice, Timeline
from rota.program.entry import WORKGROUP, Effect, Entry, Op, Place, Space
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import Lowerable, LoweredProgram

if TYPE_CHECKING:
    from rota.cycles.predict import Prediction


class Key(NamedTuple):
    """An entry of a program: its phase and `time_slot`."""

    phase: Phase
    slot: int

    def __str__(self) -> str:
        return self.phase.at(self.slot)


class Subject(NamedTuple):
    """A program; facts for its headline, why entries were added, and where an op was planned, where that is known."""

    program: LoweredProgram
    facts: tuple[str, ...]
    added: Mapping[Key, str]
    planned: Callable[[Op], str]


def subject_of(schedule: Lowerable) -> Subject:
    """The program alone says what happens; a compiled schedule also says how that came about."""
    if isinstance(schedule, CompiledSchedule):
        added = {Key(repair.phase, repair.slot): repair.reason for repair in schedule.repairs}
        return Subject(schedule.lowered, schedule.headline, added, schedule.planned)
    # What an op was in somebody else's words, where these are kept.
    return Subject(schedule.lowered, (), {}, lambda op: op.declared if isinstance(op.declared, str) else "")


def tile_word(schedule: Lowerable) -> str:
    """What the loop's clocks are for: of machine code it isn't known how much of K an iteration takes in."""
    return "iteration" if schedule.lowered.is_lifted else "K-tile"


def a_tile(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


# Why an entry is where it is: found by walking the loop, three trips deep, with the last writer and the last readers of
# every place, as a reader of the listing would by hand.

_TRIPS = 3
_MOST_NAMED = 4
_ALL = -1  # represents a role where places are shared


class Reason(NamedTuple):
    """An entry with what made its operands (latest first), its K-tile's place in the trip, and its story in words."""

    entry: Entry
    needs: tuple[Key, ...]
    stage: int
    source: str
    lines: tuple[str, ...]


class _Ran(NamedTuple):
    order: int
    key: Key
    trip: int
    entry: Entry


def reasons_of(schedule: Lowerable) -> Mapping[Key, Reason]:
    """One reason per entry; where the stagger's extra barrier shares an entry's slot, the entry's."""
    subject = subject_of(schedule)
    walk, program = _Walk(subject), subject.program
    walk.run(program.prologue, 0)
    for trip in range(_TRIPS):
        walk.run(program.kernel, trip)
    walk.run(program.epilogue, _TRIPS)
    return walk.reasons


class _Walk:
    """Who wrote each place last, and who read it since; each role has registers and counters of its own."""

    def __init__(self, subject: Subject) -> None:
        self.reasons: dict[Key, Reason] = {}
        self._subject = subject
        self._roles = tuple(range(len(subject.program.roles)))
        self._writers: dict[tuple[int, Place], _Ran] = {}
        self._readers: dict[tuple[int, Place], list[_Ran]] = {}
        self._pending: dict[tuple[int, str], list[_Ran]] = {}
        self._count = 0

    def run(self, entries: tuple[Entry, ...], trip: int) -> None:
        """One phase, or one trip of the kernel; a later trip's reasons replace an earlier one's."""
        for entry in entries:
            self._count += 1
            ran = _Ran(self._count, Key(entry.phase, entry.time_slot), trip, entry)
            self.reasons[ran.key] = self._reason(ran)
            self._record(ran)

    def _record(self, ran: _Ran) -> None:
        effect = ran.entry.effect
        roles = self._roles if ran.entry.roles is None else ran.entry.roles
        for place in effect.reads:
            for where in _where(place, roles):
                self._readers.setdefault(where, []).append(ran)
        for place in effect.writes:
            for where in _where(place, roles):
                self._writers[where] = ran
                self._readers[where] = []
        if effect.counter is not None:
            for role in roles:
                pending = self._pending.setdefault((role, effect.counter), [])
                pending += [ran] * effect.tokens
                if effect.kind is OpKind.WAIT:
                    del pending[: max(len(pending) - effect.wait_value, 0)]

    def _reason(self, ran: _Ran) -> Reason:
        entry, effect = ran.entry, ran.entry.effect
        role = 0 if entry.roles is None else entry.roles[0]
        reads = [where for p in effect.reads if p.space is not Space.ACCUMULATOR for where in _where(p, (role,))]
        makers = _latest_first(self._writers[where] for where in reads if where in self._writers)
        users = _latest_first(
            user for place in effect.writes if place.space is Space.LDS for user in self._readers.get((_ALL, place), ())
        )
        lines = [f"added: {self._subject.added[ran.key]}"] if ran.key in self._subject.added else []
        if makers:
            lines.append("uses what " + _name_places(makers, ran) + (" brings" if len(makers) == 1 else " bring"))
        if users:
            lines.append("overwrites a buffer last read by " + _name_places(users[:1], ran))
        if effect.kind is OpKind.WAIT and effect.counter is not None:
            lines.append(self._explain_wait(self._pending.get((role, effect.counter), []), effect, ran))
        lines += self._explain_barrier(effect)
        lines += filter(None, [self._subject.planned(entry.op)])
        if entry.origin is not None and not entry.origin.repair:
            lines.append(f"made by: {entry.origin.cause}")
        source = entry.op.source
        return Reason(
            entry=entry,
            needs=tuple(maker.key for maker in makers),
            stage=_tile_of(
                effect, self.reasons[makers[0].key].stage if makers else 0, self._subject.program.tiles_per_trip
            ),
            source=f"{'/'.join(PurePath(source.file).parts[-2:])}:{source.line}" if source else "",
            lines=tuple(lines),
        )

    @staticmethod
    def _explain_wait(pending: list[_Ran], effect: Effect, ran: _Ran) -> str:
        over = pending[: max(len(pending) - effect.wait_value, 0)]
        count = f"{len(pending)} of {effect.counter} are pending"
        if not over:
            return f"{count} here, so it holds nobody up"
        return f"waits for {_name_places(_latest_first(over), ran)}: {count}, {effect.wait_value} may stay"

    def _explain_barrier(self, effect: Effect) -> list[str]:
        """Whom an entry meets, unless that is everybody at the one barrier, with one instruction."""
        program = self._subject.program
        if effect.kind is not OpKind.BARRIER or effect.arrives == effect.awaits == WORKGROUP:
            return []
        lines = [f"arrives at {effect.arrives}"] if effect.arrives is not None else []
        barrier = program.barrier(effect.awaits) if effect.awaits is not None else None
        if barrier is not None:
            who = " and ".join(program.roles[role].name for role in barrier.arriving)
            lines.append(f"waits at {barrier.name} until {who} arrived")
        return lines


def _where(place: Place, roles: Iterable[int]) -> tuple[tuple[int, Place], ...]:
    return tuple((role, place) for role in roles) if place.space.is_private else ((_ALL, place),)


def _tile_of(effect: Effect, operands: int, tiles_per_trip: int) -> int:
    """Which K-tile of the trip an entry works for: by its iteration, or by the buffer of its tile or operands."""
    if effect.instance.name:
        return effect.instance.iteration % tiles_per_trip
    return next((p.copy for p in (*effect.reads, *effect.writes) if p.space is Space.LDS), operands)


def _latest_first(runs: Iterable[_Ran]) -> list[_Ran]:
    unique = {ran.order: ran for ran in runs}
    return [unique[order] for order in sorted(unique, reverse=True)]


def _name_places(runs: list[_Ran], reader: _Ran) -> str:
    texts = []
    for ran in runs[:_MOST_NAMED]:
        where = f" ({ran.key.phase.value.lower()})"
        if ran.key.phase is reader.key.phase and reader.trip - ran.trip <= 1:
            where = " of the trip before" if ran.trip < reader.trip else ""
        texts.append(f"{ran.key} {ran.entry.op}{where}")
    more = len(runs) - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")


PREDICTED = "predicted, not measured"


class Bar(NamedTuple):
    """An entry at work on a unit, in one go or in `pieces`."""

    start: float
    end: float
    label: str
    stage: int  # picks the shade
    details: tuple[str, ...]
    key: str = ""
    needs: tuple[str, ...] = ()  # the keys of what it reads from
    pieces: tuple[tuple[float, float], ...] = ()

    @property
    def worked(self) -> tuple[tuple[float, float], ...]:
        return self.pieces or ((self.start, self.end),)


class StallMark(NamedTuple):
    """A stretch in which a wave could issue nothing, and what it waited for."""

    start: float
    end: float
    cause: str
    details: tuple[str, ...]


class Mark(NamedTuple):
    """A moment: a wait that was passed, a barrier that let its waves go, or a wave that said it is there."""

    at: float
    label: str
    details: tuple[str, ...]


class Curve(NamedTuple):
    """A level that changes in steps, from each point's time on; `limit` is what the machine can hold."""

    name: str
    unit: str
    points: tuple[tuple[float, int], ...]
    limit: int | None = None


class Span(NamedTuple):
    start: float
    end: float


class Buffer(NamedTuple):
    name: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stripe:
    """One wave: what its entries do on each unit, where it stalls, and what its counters hold."""

    name: str
    lanes: tuple[tuple[Lane, tuple[Bar, ...]], ...]
    stalls: tuple[StallMark, ...] = ()
    waits: tuple[Mark, ...] = ()
    barriers: tuple[Mark, ...] = ()
    arrivals: tuple[Mark, ...] = ()  # at which it doesn't wait at once, as at a barrier in two parts
    curves: tuple[Curve, ...] = ()

    def bars(self, lane: Lane) -> tuple[Bar, ...]:
        return next((bars for own, bars in self.lanes if own is lane), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    title: str
    facts: tuple[str, ...]  # of the headline: interval, busy share, bound
    start: float
    end: float
    bands: tuple[Stripe, ...]
    windows: tuple[float, ...] = ()  # where iterations begin
    buffers: tuple[Buffer, ...] = ()
    notes: tuple[str, ...] = ()
    tile: str = "K-tile"

    @property
    def headline(self) -> str:
        """Title and facts on one line, ending in what kind of numbers these are."""
        return f"{self.title} · {self.described}"

    @property
    def described(self) -> str:
        """The facts, and what kind of numbers these are."""
        return " · ".join((*self.facts, PREDICTED))


def clip(start: float, end: float, scene: Scene) -> tuple[float, float] | None:
    """The part of a stretch that lies in the scene, if there is any."""
    first, last = max(start, scene.start), min(end, scene.end)
    return (first, last) if first < last else None


def ticks(span: float, most: int) -> tuple[int, ...]:
    """Round times from 0 on, evenly apart, at most `most` of them."""
    step = next(step for step in _STEPS if span // step < most)
    return tuple(range(0, int(span) + 1, step))


# Powers of two while single instructions count, round decimal numbers above.
_STEPS = (4, 8, 16, 32, 64, *(digit * 10**power for power in range(2, 15) for digit in (1, 2, 5)))


# The bands are the waves of one SIMD, which share its MMA unit, and a wave of every role that isn't among them.

_MOST_CAUSES = 3
_VERB = re.compile(r"^(load_|read_|make_|mma_?)(?=.)")
_AT_WORK = frozenset({Cause.MMA_BUSY, Cause.VALU_BUSY, Cause.ISSUE})
"""Causes that mean that the SIMD is busy: not what a reader looks for among stalls."""


def arrange(
    schedule: Lowerable,
    timeline: Timeline,
    prediction: Prediction | None = None,
    *,
    measured: Mapping[Key, str] | None = None,
) -> Scene:
    """One steady trip, from its first issue to the next trip's; what was `measured` of an entry is with it."""
    start, end = timeline.window
    reasons = dict(reasons_of(schedule))
    for key, words in (measured or {}).items():
        if key in reasons:
            reasons[key] = reasons[key]._replace(lines=(words, *reasons[key].lines))
    waves = _find_sharers(timeline)
    shown = {timeline.roles[wave] for wave in waves}
    others = [timeline.roles.index(role) for role in dict.fromkeys(timeline.roles) if role not in shown]
    bands = [_band(timeline, wave, reasons) for wave in (*waves, *others)]
    if len(waves) > 1:
        bands.insert(0, _find_shared_unit(timeline, waves))
    trip = (end - start) / timeline.tiles_per_trip
    program, tile = schedule.lowered, tile_word(schedule)
    lifted = (program.origin,) if program.is_lifted and program.origin else ()
    return Scene(
        title=timeline.name,
        facts=_facts(subject_of(schedule).facts, timeline, prediction, tile),
        start=start,
        end=end,
        bands=tuple(bands),
        windows=tuple(start + trip * number for number in range(timeline.tiles_per_trip + 1)),
        buffers=_buffers(timeline),
        notes=(*_books(prediction, tile), *_notes(timeline), *lifted),
        tile=tile,
    )


def key_of(at: At) -> Key:
    return Key(at.phase, at.slot)


def short_name(entry: Entry) -> str:
    """A few letters for inside a bar: what an op that has a word of its own is about, else the place that it writes."""
    op = entry.op
    if op.is_framework:
        return str(op)
    if op.name.isidentifier() or not entry.effect.writes:
        return _VERB.sub("", op.name)
    place = entry.effect.writes[0]
    if place.space is Space.ACCUMULATOR:
        return f"[{place.copy},{place.part}]"
    tile = place.name.rpartition(" ")[2]
    if place.space is Space.LDS:
        return f"{tile}{place.part}"
    return f"{tile.lower() if Space.LDS in {read.space for read in entry.effect.reads} else tile}{place.copy}"


def busy_share(timeline: Timeline) -> float:
    """How much of the steady trip the MMA unit of the SIMD that is drawn is at work."""
    start, end = timeline.window
    busy, covered = 0, start
    for piece in _of_waves(timeline.slices, _find_sharers(timeline), Lane.MMA):
        first, last = max(piece.start, covered), min(piece.end, end)
        if first < last:
            busy += last - first
            covered = last
    return busy / max(end - start, 1)


def _find_multiplier(timeline: Timeline) -> int:
    """The first wave that uses an MMA unit; what another one waits for matters less."""
    return min((piece.wave for piece in timeline.slices if piece.lane is Lane.MMA), default=0)


def _find_sharers(timeline: Timeline) -> range:
    """The waves of the SIMD of the first wave that uses an MMA unit."""
    return range(_find_multiplier(timeline) % timeline.simds, timeline.waves, timeline.simds)


def _facts(said: tuple[str, ...], timeline: Timeline, prediction: Prediction | None, tile: str) -> tuple[str, ...]:
    start, end = timeline.window
    per = a_tile(tile)
    facts = [timeline.machine, *said]
    drawn = f"{(end - start) / timeline.tiles_per_trip:,.0f}"
    if prediction is None:
        return (*facts, f"{drawn} clk {per}", f"MMA {100 * busy_share(timeline):.0f} % busy")
    mean = f"{prediction.cycles:,.0f}"
    return (
        *facts,
        f"{mean} clk {per}" + (f" ({drawn} in the trip drawn)" if drawn != mean else ""),
        f"MMA {100 * prediction.mma_share:.0f} % busy",
        f"bound by {prediction.bound_by}",
        prediction.ceiling,
    )


def _books(prediction: Prediction | None, tile: str) -> tuple[str, ...]:
    """Where the clocks of a K-tile go, by the model's books: the matrix unit at work, and why it was idle."""
    if prediction is None or not prediction.mma_share:
        return ()
    lost = [(cause, clocks) for cause, clocks in prediction.idle_causes if round(clocks)]
    parts = [f"{cause} {clocks:,.0f}" for cause, clocks in lost[:_MOST_CAUSES]]
    if rest := sum(clocks for _, clocks in lost[_MOST_CAUSES:]):
        parts.append(f"other {rest:,.0f}")
    idle = f" · idle: {', '.join(parts)}" if parts else ""
    work = f"MMA at work {prediction.mma_share * prediction.cycles:,.0f}"
    return (f"of {prediction.cycles:,.0f} clk {a_tile(tile)}: {work}{idle}",)


def _notes(timeline: Timeline) -> tuple[str, ...]:
    """What the first wave that multiplies waits for, the longest first."""
    start, end = timeline.window
    wave = _find_multiplier(timeline)
    lost: defaultdict[str, int] = defaultdict(int)
    for stall in timeline.stalls:
        if stall.wave == wave and stall.cause not in _AT_WORK:
            lost[str(stall.cause)] += max(min(stall.end, end) - max(stall.start, start), 0)
    worst = sorted(((round(100 * clocks / (end - start)), cause) for cause, clocks in lost.items()), reverse=True)
    shares = ", ".join(f"{cause} {share} %" for share, cause in worst[:_MOST_CAUSES] if share)
    return (f"wave {wave} stands still for: {shares} of the time",) if shares else ()


def _band(timeline: Timeline, wave: int, reasons: Mapping[Key, Reason]) -> Stripe:
    role = f" · {timeline.roles[wave]}" if len(set(timeline.roles)) > 1 else ""
    entries: defaultdict[tuple[Lane, At], list[Slice]] = defaultdict(list)
    for piece in timeline.slices:
        if piece.wave == wave:
            entries[piece.lane, piece.at].append(piece)
    lanes = [
        (own, tuple(_bar(pieces, reasons, timeline) for (lane, _), pieces in entries.items() if lane is own))
        for own in Lane
    ]
    elsewhere = any(piece.lane is Lane.MMA and piece.wave != wave for piece in timeline.slices)
    stalls = tuple(_stalls(timeline, wave, reasons))
    crossings = [crossing for crossing in timeline.crossings if crossing.wave == wave]
    return Stripe(
        name=f"wave {wave}{role}",
        lanes=tuple((lane, bars) for lane, bars in lanes if bars or (lane is Lane.MMA and not elsewhere)),
        stalls=tuple(stall for stall, _ in stalls),
        waits=tuple(Mark(stall.end, stall.cause, stall.details) for stall, is_wait in stalls if is_wait),
        barriers=tuple(_barrier(each, each.released, reasons) for each in crossings if each.awaits),
        arrivals=tuple(_barrier(each, each.arrived, reasons) for each in crossings if not each.awaits),
        curves=tuple(_curves(timeline, wave)),
    )


def _barrier(crossing: Crossing, at: float, reasons: Mapping[Key, Reason]) -> Mark:
    name = _barrier_name(crossing.barrier)
    does = "" if crossing.arrives and crossing.awaits else "wait at " if crossing.awaits else "arrive at "
    return Mark(at, name, _story(does + name, crossing.at, crossing.wave, reasons))


def _barrier_name(barrier: str) -> str:
    return "barrier" if barrier == WORKGROUP else f"barrier {barrier}"


def _find_shared_unit(timeline: Timeline, waves: Sequence[int]) -> Stripe:
    """The MMA unit itself: a shade per wave, neighbours of one wave joined, as its own band has the single ones."""
    joined: list[Bar] = []
    for piece in _of_waves(timeline.slices, waves, Lane.MMA):
        name = f"wave {piece.wave}"
        if joined and joined[-1].label == name and joined[-1].end == piece.start:
            joined[-1] = joined[-1]._replace(end=piece.end)
        else:
            joined.append(Bar(piece.start, piece.end, name, waves.index(piece.wave), (f"MMA unit works for {name}",)))
    return Stripe(name=f"SIMD {waves[0]} · {len(waves)} waves", lanes=((Lane.MMA, tuple(joined)),))


def _bar(pieces: Sequence[Slice], reasons: Mapping[Key, Reason], timeline: Timeline) -> Bar:
    """All that one entry did on one unit, from its first instruction to its last."""
    piece = pieces[0]
    key = key_of(piece.at)
    reason = reasons.get(key)
    origin = timeline.window[0]
    start, end = piece.start, max(each.end for each in pieces)
    count = sum(each.instructions for each in pieces)
    many = f", {count} instructions" if count > 1 else ""
    when = f"clk {start - origin:,} to {end - origin:,}, result at {max(each.done for each in pieces) - origin:,}{many}"
    head, *why = _story(str(reason.entry.op) if reason else piece.label, piece.at, piece.wave, reasons)
    return Bar(
        start=start,
        end=end,
        label=short_name(reason.entry) if reason else piece.label,
        stage=reason.stage if reason else 0,
        details=(head, when, *why),
        key=_id(key),
        needs=tuple(map(_id, reason.needs)) if reason else (),
        pieces=tuple((each.start, each.end) for each in pieces) if len(pieces) > 1 else (),
    )


def _stalls(timeline: Timeline, wave: int, reasons: Mapping[Key, Reason]) -> Iterator[tuple[StallMark, bool]]:
    """Stretches at one entry without a gap as one, whatever their causes were; and whether it is a wait."""
    own = [stall for stall in timeline.stalls if stall.wave == wave and stall.cause not in _AT_WORK]
    for (at, label), run in groupby(own, key=lambda stall: (stall.at, stall.label)):
        parts = list(run)
        start, end = parts[0].start, parts[-1].end
        causes = ", ".join(f"{part.cause} {part.end - part.start:,} clk" for part in parts)
        reason = reasons.get(key_of(at))
        # An extra barrier may share an entry's slot.
        effect = reason.entry.effect if reason and str(reason.entry.op) == label else None
        name, is_wait = str(parts[0].cause), False
        if effect is not None and effect.kind is OpKind.WAIT:
            name, is_wait = f"{effect.counter}({effect.wait_value})", True
        elif effect is not None and effect.awaits is not None:
            name = _barrier_name(effect.awaits)
        details = (f"stalled {end - start:,} clk: {causes}", *_story(label, at, wave, reasons))
        yield StallMark(start, end, name, details), is_wait


def _story(name: str, at: At, wave: int, reasons: Mapping[Key, Reason]) -> tuple[str, ...]:
    head = f"{name} · {key_of(at)} · trip {at.trip} · wave {wave}"
    reason = reasons.get(key_of(at))
    if reason is None:
        return (head,)
    return (head, *([reason.source] if reason.source else []), *reason.lines)


def _curves(timeline: Timeline, wave: int) -> Iterator[Curve]:
    for counter, limit in timeline.counter_limits:
        own = [level for level in timeline.levels if (level.wave, level.counter) == (wave, counter)]
        points = tuple((float(level.clock), level.tokens) for level in sorted(own, key=lambda level: level.clock))
        if points:
            yield Curve(counter, "tokens", points, limit)
    live = tuple((float(now.clock), now.live) for now in timeline.registers if now.wave == wave)
    if any(count for _, count in live):
        yield Curve("live registers", "per lane", live, timeline.register_limit)


def _buffers(timeline: Timeline) -> tuple[Buffer, ...]:
    uses: defaultdict[str, list[Span]] = defaultdict(list)
    for use in timeline.buffers:
        uses[use.buffer].append(Span(use.start, use.end))
    return tuple(Buffer(name, tuple(spans)) for name, spans in sorted(uses.items()))


def _of_waves(slices: Iterable[Slice], waves: Sequence[int], lane: str) -> list[Slice]:
    own = (piece for piece in slices if piece.wave in waves and piece.lane == lane)
    return sorted(own, key=lambda piece: piece.start)


def _id(key: Key) -> str:
    return f"{key.phase.value[0]}{key.slot}"
