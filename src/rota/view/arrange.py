"""Arrangement: takes a schedule or program and its predicted timeline, gives the `Scene` of one steady trip.

The bands are the waves of one SIMD, which share its MMA unit, and a wave of every role that isn't among them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Protocol

from rota.cycles.timeline import At, Cause, Crossing, Lane, Slice, Timeline
from rota.program.effects import WORKGROUP, Space
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable, Unstated
from rota.view.pictured import Key, a_tile, subject_of, tile_word
from rota.view.reasons import Reason, reasons_of
from rota.view.scene import Bar, Buffer, Curve, Mark, Scene, Span, StallMark, Stripe

_MOST_CAUSES = 3
_VERB = re.compile(r"^(load_|read_|make_|mma_?)(?=.)")
_AT_WORK = frozenset({Cause.MMA_BUSY, Cause.VALU_BUSY, Cause.ISSUE})
"""Causes that mean that the SIMD is busy: not what a reader looks for among stalls."""


class PredictedSpeed(Protocol):
    """What a headline tells of a prediction; `rota.cycles.predict` has the values."""

    @property
    def cycles(self) -> float:
        """Clocks a K-tile, in the mean of the trips after which everything repeats."""
        ...

    @property
    def mma_share(self) -> float:
        """How much of that the MMA units are at work."""
        ...

    @property
    def bound_by(self) -> str:
        """What limits it: a unit, or what the idle one stood for."""
        ...

    @property
    def ceiling(self) -> str:
        """The most that the loop alone could reach, in words, with the clock for which that holds."""
        ...

    @property
    def idle_causes(self) -> tuple[tuple[str, float], ...]:
        """Why MMA units were idle, in clocks a K-tile, longest first."""
        ...


def arrange(
    schedule: Lowerable,
    timeline: Timeline,
    prediction: PredictedSpeed | None = None,
    *,
    measured: Mapping[Key, str] | None = None,
) -> Scene:
    """One steady trip, from its first issue to the next trip's; what was `measured` of an entry stands with it."""
    start, end = timeline.window
    reasons = dict(reasons_of(schedule))
    for key, words in (measured or {}).items():
        if key in reasons:
            reasons[key] = reasons[key]._replace(lines=(words, *reasons[key].lines))
    waves = _sharing(timeline)
    shown = {timeline.roles[wave] for wave in waves}
    others = [timeline.roles.index(role) for role in dict.fromkeys(timeline.roles) if role not in shown]
    bands = [_band(timeline, wave, reasons) for wave in (*waves, *others)]
    if len(waves) > 1:
        bands.insert(0, _shared_unit(timeline, waves))
    trip = (end - start) / timeline.tiles_per_trip
    return Scene(
        title=timeline.name,
        facts=_facts(subject_of(schedule).facts, timeline, prediction, tile_word(schedule)),
        start=start,
        end=end,
        bands=tuple(bands),
        windows=tuple(start + trip * number for number in range(timeline.tiles_per_trip + 1)),
        buffers=_buffers(timeline),
        notes=(*_books(prediction, tile_word(schedule)), *_notes(timeline), *_readings(schedule)),
        tile=tile_word(schedule),
    )


def key_of(at: At) -> Key:
    """The entry that was executed."""
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
    for piece in _of_waves(timeline.slices, _sharing(timeline), Lane.MMA):
        first, last = max(piece.start, covered), min(piece.end, end)
        if first < last:
            busy += last - first
            covered = last
    return busy / max(end - start, 1)


def _multiplying(timeline: Timeline) -> int:
    """The first wave that uses an MMA unit; what another one waits for matters less."""
    return min((piece.wave for piece in timeline.slices if piece.lane is Lane.MMA), default=0)


def _sharing(timeline: Timeline) -> range:
    """The waves of the SIMD of the first wave that uses an MMA unit."""
    return range(_multiplying(timeline) % timeline.simds, timeline.waves, timeline.simds)


def _readings(schedule: Lowerable) -> tuple[str, ...]:
    """What a program that was lifted from machine code rests on."""
    program = schedule.lowered
    return (program.origin,) if isinstance(program.semantics, Unstated) and program.origin else ()


def _facts(said: tuple[str, ...], timeline: Timeline, prediction: PredictedSpeed | None, tile: str) -> tuple[str, ...]:
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


def _books(prediction: PredictedSpeed | None, tile: str) -> tuple[str, ...]:
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
    """What the first wave that multiplies stands still for, the longest first."""
    start, end = timeline.window
    wave = _multiplying(timeline)
    lost: defaultdict[str, int] = defaultdict(int)
    for stall in timeline.stalls:
        if stall.wave == wave and stall.cause not in _AT_WORK:
            lost[str(stall.cause)] += max(min(stall.end, end) - max(stall.start, start), 0)
    worst = sorted(((round(100 * clocks / (end - start)), cause) for cause, clocks in lost.items()), reverse=True)
    shares = ", ".join(f"{cause} {share} %" for share, cause in worst[:_MOST_CAUSES] if share)
    if not shares:
        return ()
    return (f"wave {wave} stands still for: {shares} of the time",)


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


def _shared_unit(timeline: Timeline, waves: Sequence[int]) -> Stripe:
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
    """The entry, where it was declared, and why it stands there."""
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
    return sorted(
        (piece for piece in slices if piece.wave in waves and piece.lane == lane), key=lambda piece: piece.start
    )


def _id(key: Key) -> str:
    return f"{key.phase.value[0]}{key.slot}"
