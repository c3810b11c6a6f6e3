"""The predicted speed of a loop: cycles, busy shares, a band, and what the waves wait for.

This is the prediction of one model, not a measurement. It covers the steady loop of one workgroup per compute unit;
launch, prologue, epilogue, stores of the result, caches and power are left out. Its TFLOP/s are a ceiling, with all
units at the device's highest clock; `rota.predict` predicts whole problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.cycles.instructions import Code, Parameters, WorkSource, encode, nominal, program_of, variants, work_of
from rota.cycles.model import Steady, run
from rota.cycles.timeline import Cause, Lost as Clocks, MeasuredRun, wait_for
from rota.markup import card, fold, shares
from rota.program.kinds import OpKind, Phase, Unit
from rota.program.lowered import Lowerable, LoweredProgram
from rota.targets.device import device_of

_FEWEST_TRIPS, _MOST_TRIPS = 24, 256
_MOST_ISSUED = 50_000  # instructions, before a run that doesn't settle is given up
_MATTERS = 0.01  # of the cycles
_FULL = 0.9  # of the time, from which on a unit is what binds
_MMA_UNIT = "MMA unit"
_DMA_PATH = "DMA path"
_AT_WORK = frozenset({Cause.MMA_BUSY, Cause.VALU_BUSY})
_MOST_LIMITS = 2
_APART = 0.1
"""Of the cycles.  Whole kernels whose predicted times were closer were often measured in the other order."""


class Band(NamedTuple):
    """The envelope over all estimates, each moved alone."""

    low: float
    high: float


class Lost(NamedTuple):
    """Clocks per K-tile, in the mean, that an entry cost: a wave, or a SIMD's matrix unit."""

    cause: str
    phase: Phase
    slot: int
    label: str
    clocks: float


class Sensitivity(NamedTuple):
    """The cycles per K-tile with one estimate at an end of its range."""

    name: str
    value: int | str
    cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Cycles per K-tile in the steady loop and what they consist of.

    `least_cycles` is what the `busiest` unit needs; `bound_by` is what limits the loop: that unit, if it is busy nearly
    all the time, else what the idle unit or the waves waited for longest.  The ceilings are the whole device's at
    `clock` MHz, of its matrix units and of its memory path; `flops` and `moved` bytes are those of one workgroup's
    K-tile.  `lost` is where waves stalled; `idle` is why MMA units were idle: what held up the wave that used them
    next, or that it issued other instructions.  `hangs_on` lists the estimates that move the cycles by more than 1 %,
    worst first; `steady` says in words how the mean was taken.
    """

    name: str
    machine: str
    cycles: float
    least_cycles: float
    busiest: str
    bound_by: str
    mma_share: float
    lds_share: float
    dma_share: float
    flops: float
    moved: float
    clock: int
    ceiling_tflops: float
    ceiling_gbytes: float
    cycles_band: Band
    mma_share_band: Band
    ceiling_tflops_band: Band
    ceiling_gbytes_band: Band
    lost: tuple[Lost, ...]
    idle: tuple[Lost, ...]
    hangs_on: tuple[Sensitivity, ...]
    steady: str

    @property
    def mma_clocks(self) -> float:
        """Clocks of a K-tile for which a matrix unit is at work, without what the share lost as a quotient."""
        return round(self.mma_share * self.cycles, 6)

    @property
    def bound_by_mma(self) -> bool:
        """True if no unit needs longer for a K-tile than the matrix units."""
        return self.busiest == _MMA_UNIT

    @property
    def causes(self) -> tuple[tuple[str, float], ...]:
        """Why waves stalled, longest first; waiting for a busy MMA unit is what a good loop does."""
        return _by_cause(self.lost)

    @property
    def idle_causes(self) -> tuple[tuple[str, float], ...]:
        """Why MMA units were idle, longest first."""
        return _by_cause(self.idle)

    @property
    def ceiling(self) -> str:
        """The most that the loop alone could reach, in words: GB/s where it is its memory path that is busy."""
        by_memory = not self.flops or self.bound_by == _DMA_PATH
        value, (low, high), unit = self.ceiling_tflops, self.ceiling_tflops_band, "TFLOP/s"
        if by_memory:
            value, (low, high), unit = self.ceiling_gbytes, self.ceiling_gbytes_band, "GB/s"
        return f"loop's ceiling at {self.clock / 1000:g} GHz: {value:,.0f} {unit} ({low:,.0f} to {high:,.0f})"

    def __str__(self) -> str:
        head = (
            f"{self.name} on {self.machine}, predicted, not measured: {self.cycles:.0f} cycles a K-tile "
            f"(least {self.least_cycles:.0f}, {self.busiest}), MMA {self.mma_share:.1%} busy, "
            f"bound by {self.bound_by}; {self.ceiling}"
        )
        lines = [head, f"  {self.steady}"]
        lines += [f"  {clocks:6.0f} clk a tile and wave: {cause}" for cause, clocks in self.causes]
        lines += [f"  {each.clocks:6.0f} clk a tile MMA idle: {each.cause} at {each.label}" for each in self.idle[:4]]
        lines += [f"  sensitive to {each.name}: {each.cycles:.0f} cycles if {each.value}" for each in self.hangs_on]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What a K-tile's clocks are: the matrix unit at work, then why it was idle."""
        head, _, books = str(self).partition("\n")
        parts = (("MMA at work", self.mma_clocks), *self.idle_causes)
        return card(head, shares(parts, "clk"), fold("the model's books", books))


def predict(
    schedule: Lowerable, shape: WorkSource | None = None, *, parameters: Parameters | None = None, band: bool = True
) -> Prediction:
    """Run the model with nominal parameters (or `parameters`), and with every estimate at both ends of its range.

    A body declared in tiles needs a `shape`, as `rota.pipeline.geometry.TileShape`.  Without `band` only the first
    run is made, and the band has no width.
    """
    program = program_of(schedule, shape)
    device = device_of(program.machine)
    timing, base = device.timing, parameters or nominal(device)
    code = encode(program, base)
    load = code.load
    nominal_run = _find_steady_trips(code, base, Steady.ACCOUNTS)
    cycles = nominal_run.clocks_per_trip / code.tiles_per_trip
    transposed = any(entry.op.kind is OpKind.LDS_READ_TRANSPOSED for entry in program.entries)
    moves = variants(device, base, transposed=transposed) if band else ()
    others = [Sensitivity(name, value, _cycles(program, changed)) for name, value, changed in moves]
    every = [cycles, *(each.cycles for each in others)]
    cycles_band = Band(min(every), max(every))
    flops, moved_bytes = load.flops / code.tiles_per_trip, 0
    for entry in program.kernel:
        if entry.op.kind.unit is Unit.DMA:
            executing = sum(entry.executed_by(role) for role in code.roles)
            moved_bytes += work_of(entry).instructions * work_of(entry).moved * executing
    moved = moved_bytes / code.tiles_per_trip
    device_clocks = timing.compute_units.value * timing.clock.value
    mma = load.mma_clocks / code.tiles_per_trip
    busiest, least = max(bounds_of(code).items(), key=lambda pair: pair[1])
    lost = _mean(code, nominal_run, nominal_run.lost, code.waves)
    idle = _mean(code, nominal_run, nominal_run.idle, max(load.mma_simds, 1))
    moving = [each for each in others if abs(each.cycles - cycles) > _MATTERS * cycles]
    return Prediction(
        name=code.name,
        machine=program.machine.name,
        cycles=cycles,
        least_cycles=least,
        busiest=busiest,
        bound_by=busiest if least >= _FULL * cycles else _name_limits(idle, lost, cycles),
        mma_share=mma / cycles,
        lds_share=load.lds_clocks / code.tiles_per_trip / cycles,
        dma_share=load.dma_clocks / code.tiles_per_trip / cycles,
        flops=flops,
        moved=moved,
        clock=timing.clock.value,
        ceiling_tflops=flops * device_clocks / 1e6 / cycles,
        ceiling_gbytes=moved * device_clocks / 1e3 / cycles,
        cycles_band=cycles_band,
        mma_share_band=_over(mma, cycles_band),
        ceiling_tflops_band=_over(flops * device_clocks / 1e6, cycles_band),
        ceiling_gbytes_band=_over(moved * device_clocks / 1e3, cycles_band),
        lost=lost,
        idle=idle,
        hangs_on=tuple(sorted(moving, key=lambda each: -abs(each.cycles - cycles))),
        steady=_steady(nominal_run),
    )


def list_bounds(schedule: Lowerable, parameters: Parameters | None = None) -> dict[str, float]:
    """Clocks that each unit needs for a K-tile, whatever waits for what: no loop is faster than the largest."""
    program = program_of(schedule, None)
    return bounds_of(encode(program, parameters or nominal(device_of(program.machine))))


def clocks_per_tile(schedule: Lowerable, parameters: Parameters | None = None) -> float:
    """The cycles of a prediction alone, with nominal parameters unless others are given."""
    program = program_of(schedule, None)
    return _cycles(program, parameters or nominal(device_of(program.machine)))


def clocks_of(code: Code, parameters: Parameters) -> float:
    return _find_steady_trips(code, parameters, Steady.CLOCKS).clocks_per_trip / code.tiles_per_trip


class Ranked(NamedTuple):
    """A schedule, its prediction, and its place from 1 on, which `shared_by` counts."""

    schedule: Lowerable
    prediction: Prediction
    place: int = 1
    shared_by: int = 1


def rank(schedules: Iterable[Lowerable], shape: WorkSource | None = None) -> tuple[Ranked, ...]:
    """Alternatives by predicted cycles, fewest first; equals by the worst end of their band.

    A band takes many runs of the model: only those in the first place, and equals, have one of any width.
    """
    found = [Ranked(schedule, predict(schedule, shape, band=False)) for schedule in schedules]
    cycles = sorted(each.prediction.cycles for each in found)
    places = share_places(cycles, _APART)
    first = cycles[places.count(1) - 1] if cycles else 0.0  # the most cycles of those that share the first place
    for number, (schedule, quick, _, _) in enumerate(found):
        if quick.cycles <= first or cycles.count(quick.cycles) > 1:
            found[number] = Ranked(schedule, predict(schedule, shape))
    found.sort(key=lambda each: (each.prediction.cycles, each.prediction.cycles_band.high))
    return tuple(
        each._replace(place=place, shared_by=places.count(place)) for each, place in zip(found, places, strict=True)
    )


def share_places(times: Sequence[float], apart: float) -> list[int]:
    """Places from 1 on of ascending times; one that is no further than `apart` from the one before shares its place.

    So two that are that close never have different places, though the ends of a long chain may differ by more.
    """
    places: list[int] = []
    for number, own in enumerate(times):
        near = number and own <= (1 + apart) * times[number - 1]
        places.append(places[-1] if near else number + 1)
    return places


def _over(amount: float, cycles: Band) -> Band:
    return Band(amount / cycles.high, amount / cycles.low)


def _name_limits(idle: Sequence[Lost], lost: Sequence[Lost], cycles: float) -> str:
    """What idle MMA units, or else waves, waited for longest in a loop in which no unit is busy all the time."""
    books = _by_cause(idle) or [each for each in _by_cause(lost) if each[0] not in _AT_WORK]
    if not books:
        return "issue turns"
    worst = [(_in_words(cause), 100 * clocks / cycles) for cause, clocks in books if 2 * clocks >= books[0][1]]
    return ", ".join(f"{cause} {share:.0f} %" for cause, share in worst[:_MOST_LIMITS]) + " of the time"


def _in_words(cause: str) -> str:
    if cause == Cause.ISSUE:
        return "issue turns"
    latency = cause == Cause.DEPENDENCY or cause.startswith(wait_for(""))
    return f"latency ({cause})" if latency else cause


def _by_cause(lost: Iterable[Lost]) -> tuple[tuple[str, float], ...]:
    total: dict[str, float] = {}
    for each in lost:
        total[each.cause] = total.get(each.cause, 0.0) + each.clocks
    return tuple(sorted(total.items(), key=lambda pair: -pair[1]))


def _cycles(program: LoweredProgram, parameters: Parameters) -> float:
    return clocks_of(encode(program, parameters), parameters)


def _find_steady_trips(code: Code, parameters: Parameters, until: Steady) -> MeasuredRun:
    """Short loops get more trips: a latency spans many of them."""
    trips = _MOST_ISSUED // sum(len(code.instructions[role]) for role in code.roles)
    return run(code, parameters, trips=min(max(trips, _FEWEST_TRIPS), _MOST_TRIPS), until=until)


def bounds_of(code: Code) -> dict[str, float]:
    """What each unit needs for a K-tile; MFMA and VALU ops share the turns in which they are issued."""
    tiles, load = code.tiles_per_trip, code.load
    return {
        _MMA_UNIT: load.mma_clocks / tiles,
        "VALU and MFMA issue": load.math_turns / tiles,
        "VALU": load.valu_clocks / tiles,
        "LDS port": load.lds_clocks / tiles,
        _DMA_PATH: load.dma_clocks / tiles,
    }


def _mean(code: Code, result: MeasuredRun, waves: Iterable[Sequence[Clocks]], sharers: int) -> tuple[Lost, ...]:
    """Clocks per K-tile over the trips of the steady part and all waves or SIMDs, longest first."""
    count = result.averaged_over
    total: dict[tuple[int, int], int] = {}
    for trips in waves:
        for trip in trips[-count:]:
            for where, clocks in trip.items():
                total[where] = total.get(where, 0) + clocks
    parts = count * sharers * code.tiles_per_trip
    each = (Lost(result.causes[cause], *code.keys[key], clocks / parts) for (key, cause), clocks in total.items())
    return tuple(sorted(each, key=lambda lost: (-lost.clocks, lost.slot, lost.cause)))


def _steady(result: MeasuredRun) -> str:
    trips = result.trips
    if result.period:
        every = "trip" if result.period == 1 else f"{result.period} trips"
        return f"steady: the unit's state repeats every {every}, seen three times by trip {trips}"
    if result.apart:
        return f"waves drift apart: mean of all {trips} trips, until the last wave is through"
    return f"not exactly periodic: mean of the last {result.averaged_over} of {trips} trips"
