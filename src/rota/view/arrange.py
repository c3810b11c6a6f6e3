"""Arrangement: takes a compiled schedule and its predicted timeline, gives the `Scene` of one steady trip.

The bands are the waves of SIMD 0, which share one MMA unit; with stagger they are of different groups.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Protocol

from rota.compiler.compiled import CompiledSchedule
from rota.declare.effects import Counter
from rota.declare.op import OpDesc
from rota.declare.vocabulary import OpRole
from rota.program.timeline import At, Cause, Lane, Slice, Timeline
from rota.targets.rates import CLOCKS_PER_SLOT, SIMDS
from rota.view.reasons import Key, Reason, reasons_of
from rota.view.scene import Band, Bar, Buffer, Curve, Mark, Scene, Span, Stall

_MOST_CAUSES = 3
_FULL = 0.9  # of the time, from which on a unit is called what binds
_VERB = re.compile(r"^(load_|read_|make_|mma_?)(?=.)")
_COUNTERS = re.compile(r"^wait_(vm|lgkm)(\(\d+\))$")
_AT_WORK = frozenset({Cause.MMA_BUSY, Cause.ISSUE})
"""Causes that mean that the SIMD works for somebody: not what a reader looks for among stalls."""


class Prediction(Protocol):
    """What a headline tells of a prediction; `rota.simulate.predict` has the values."""

    @property
    def cycles(self) -> float:
        """Clocks a K-tile, in the mean of the trips after which everything repeats."""
        ...

    @property
    def mma_share(self) -> float:
        """How much of that the MMA units are at work."""
        ...

    @property
    def least_cycles(self) -> float:
        """How long the busiest unit works for a K-tile."""
        ...

    @property
    def bound_by(self) -> str:
        """The busiest unit."""
        ...

    @property
    def tflops(self) -> float:
        """Of the whole device."""
        ...

    @property
    def tflops_band(self) -> tuple[float, float]:
        """The same over the ranges of all estimates."""
        ...


def arrange(compiled: CompiledSchedule, timeline: Timeline, prediction: Prediction | None = None) -> Scene:
    """One steady trip, from its first issue to the next trip's."""
    start, end = timeline.window
    reasons = reasons_of(compiled)
    waves = range(0, timeline.waves, SIMDS)
    bands = [_band(timeline, wave, reasons) for wave in waves]
    if len(bands) > 1:
        bands.insert(0, _shared_unit(timeline, waves))
    trip = (end - start) / timeline.tiles_per_trip
    return Scene(
        title=timeline.name,
        facts=_facts(compiled, timeline, prediction),
        start=start,
        end=end,
        bands=tuple(bands),
        windows=tuple(start + trip * number for number in range(timeline.tiles_per_trip + 1)),
        buffers=_buffers(timeline),
        notes=_notes(timeline),
    )


def key_of(at: At) -> Key:
    """The entry that was executed."""
    return Key(at.phase, at.slot)


def short_name(op: OpDesc) -> str:
    """A few letters for inside a bar: the tile or value that an op is about, or its place in the accumulators."""
    if op.is_framework:
        return str(op)
    if op.label:
        return _VERB.sub("", op.label)
    if op.role in (OpRole.COMPUTE, OpRole.VALU_COMPUTE):
        return f"[{op.stage},{op.subtile}]"
    letter = op.name[-1:]
    return f"{letter.upper() if op.role is OpRole.GLOBAL_LOAD else letter}{op.subtile}"


def busy_share(timeline: Timeline) -> float:
    """How much of the steady trip the MMA unit of SIMD 0 is at work."""
    start, end = timeline.window
    busy, covered = 0, start
    for piece in _of_waves(timeline.slices, range(0, timeline.waves, SIMDS), Lane.MMA):
        first, last = max(piece.start, covered), min(piece.end, end)
        if first < last:
            busy += last - first
            covered = last
    return busy / max(end - start, 1)


def _facts(compiled: CompiledSchedule, timeline: Timeline, prediction: Prediction | None) -> tuple[str, ...]:
    start, end = timeline.window
    facts = [timeline.machine]
    if compiled.modulo is not None:
        proof = compiled.modulo.certificate
        proved = ("proven least" if proof.optimal else "not proven least") + proof.scope
        facts.append(f"II {compiled.modulo.ii * CLOCKS_PER_SLOT:,} clk ({proved})")
    drawn = f"{(end - start) / timeline.tiles_per_trip:,.0f}"
    if prediction is None:
        return (*facts, f"{drawn} clk a K-tile", f"MMA {100 * busy_share(timeline):.0f} % busy")
    mean = f"{prediction.cycles:,.0f}"
    low, high = prediction.tflops_band
    return (
        *facts,
        f"{mean} clk a K-tile" + (f" ({drawn} in the trip drawn)" if drawn != mean else ""),
        f"MMA {100 * prediction.mma_share:.0f} % busy",
        f"{_role(prediction)}: {prediction.bound_by}",
        f"{prediction.tflops:,.0f} TFLOP/s ({low:,.0f} to {high:,.0f})",
    )


def _role(prediction: Prediction) -> str:
    """A unit binds only if it is busy nearly all the time; else the loop waits for something that no unit does."""
    return "bound" if prediction.least_cycles >= _FULL * prediction.cycles else "busiest"


def _notes(timeline: Timeline) -> tuple[str, ...]:
    """What wave 0 stands still for, the longest first."""
    start, end = timeline.window
    lost: defaultdict[str, int] = defaultdict(int)
    for stall in timeline.stalls:
        if stall.wave == 0 and stall.cause not in _AT_WORK:
            lost[str(stall.cause)] += max(min(stall.end, end) - max(stall.start, start), 0)
    worst = sorted(((round(100 * clocks / (end - start)), cause) for cause, clocks in lost.items()), reverse=True)
    shares = ", ".join(f"{cause} {share} %" for share, cause in worst[:_MOST_CAUSES] if share)
    if not shares:
        return ()
    return (f"wave 0 stands still for: {shares} of the time",)


def _band(timeline: Timeline, wave: int, reasons: Mapping[Key, Reason]) -> Band:
    group = f" · group {timeline.groups[wave]}" if len(set(timeline.groups)) > 1 else ""
    entries: defaultdict[tuple[Lane, At], list[Slice]] = defaultdict(list)
    for piece in timeline.slices:
        if piece.wave == wave:
            entries[piece.lane, piece.at].append(piece)
    lanes = [
        (own, tuple(_bar(pieces, reasons, timeline) for (lane, _), pieces in entries.items() if lane is own))
        for own in Lane
    ]
    stalls = tuple(_stalls(timeline, wave, reasons))
    return Band(
        name=f"wave {wave}{group}",
        lanes=tuple((lane, bars) for lane, bars in lanes if bars or lane is Lane.MMA),
        stalls=stalls,
        waits=tuple(Mark(stall.end, stall.cause, stall.details) for stall in stalls if "cnt(" in stall.cause),
        barriers=tuple(
            Mark(crossing.released, "barrier", _story("barrier", crossing.at, wave, reasons))
            for crossing in timeline.crossings
            if crossing.wave == wave
        ),
        curves=tuple(_curves(timeline, wave)),
    )


def _shared_unit(timeline: Timeline, waves: Sequence[int]) -> Band:
    """The MMA unit itself: a shade per wave, neighbours of one wave joined, as its own band has the single ones."""
    joined: list[Bar] = []
    for piece in _of_waves(timeline.slices, waves, Lane.MMA):
        name = f"wave {piece.wave}"
        if joined and joined[-1].label == name and joined[-1].end == piece.start:
            joined[-1] = joined[-1]._replace(end=piece.end)
        else:
            joined.append(Bar(piece.start, piece.end, name, waves.index(piece.wave), (f"MMA unit works for {name}",)))
    return Band(name=f"SIMD 0 · {len(waves)} waves", lanes=((Lane.MMA, tuple(joined)),))


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
    head, *why = _story(str(reason.op) if reason else piece.label, piece.at, piece.wave, reasons)
    return Bar(
        start=start,
        end=end,
        label=short_name(reason.op) if reason else piece.label,
        stage=reason.stage if reason else 0,
        details=(head, when, *why),
        key=_id(key),
        needs=tuple(map(_id, reason.needs)) if reason else (),
        pieces=tuple((each.start, each.end) for each in pieces) if len(pieces) > 1 else (),
    )


def _stalls(timeline: Timeline, wave: int, reasons: Mapping[Key, Reason]) -> Iterator[Stall]:
    """Stretches at one entry without a gap as one, whatever their causes were."""
    own = [stall for stall in timeline.stalls if stall.wave == wave and stall.cause not in _AT_WORK]
    for (at, label), run in groupby(own, key=lambda stall: (stall.at, stall.label)):
        parts = list(run)
        start, end = parts[0].start, parts[-1].end
        causes = ", ".join(f"{part.cause} {part.end - part.start:,} clk" for part in parts)
        name = _COUNTERS.sub(r"\1cnt\2", label) if label.startswith("wait_") else str(parts[0].cause)
        yield Stall(start, end, name, (f"stalled {end - start:,} clk: {causes}", *_story(label, at, wave, reasons)))


def _story(name: str, at: At, wave: int, reasons: Mapping[Key, Reason]) -> tuple[str, ...]:
    """The entry, where it was declared, and why it stands there."""
    head = f"{name} · {key_of(at)} · trip {at.trip} · wave {wave}"
    reason = reasons.get(key_of(at))
    if reason is None:
        return (head,)
    return (head, *([reason.source] if reason.source else []), *reason.lines)


def _curves(timeline: Timeline, wave: int) -> Iterator[Curve]:
    limits = dict(timeline.counter_limits)
    for counter in Counter:
        own = [level for level in timeline.levels if (level.wave, level.counter) == (wave, counter)]
        points = tuple((float(level.clock), level.tokens) for level in sorted(own, key=lambda level: level.clock))
        if points:
            yield Curve(counter.value, "tokens", points, limits.get(counter))
    live = tuple((float(now.clock), now.live) for now in timeline.registers if now.wave == wave)
    if live:
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
