"""Predicted speed: takes a compiled loop, gives cycles, busy shares, TFLOP/s, a band, and what the waves wait for.

A prediction of one model, not a measurement: it covers the steady loop of one workgroup per compute unit, with all
units at the device's clock; launch, prologue, epilogue, stores of the result, caches and power are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.cycles.instructions import Code, encode
from rota.cycles.measured_run import Lost as Clocks
from rota.cycles.measured_run import MeasuredRun
from rota.cycles.model import run
from rota.cycles.parameters import Parameters, nominal, variants
from rota.cycles.work import WorkSource, program_of
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable, LoweredProgram
from rota.program.phase import Phase
from rota.targets.device import device_of

_FEWEST_TRIPS, _MOST_TRIPS = 24, 256
_PATIENCE = 50_000  # instructions to issue before a run that doesn't settle is given up
_MATTERS = 0.01  # of the cycles


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

    `least_cycles` is what the busiest unit needs, `bound_by` its name.  `lost` is where waves stalled; `idle` is why
    MMA units were idle: what held up the wave that used them next, or that it issued other instructions.  `hangs_on`
    lists the estimates that move the cycles by more than 1 %, worst first; `steady` says in words how the mean was
    taken.
    """

    name: str
    machine: str
    cycles: float
    least_cycles: float
    bound_by: str
    mma_share: float
    lds_share: float
    dma_share: float
    tflops: float
    cycles_band: Band
    mma_share_band: Band
    tflops_band: Band
    lost: tuple[Lost, ...]
    idle: tuple[Lost, ...]
    hangs_on: tuple[Sensitivity, ...]
    steady: str

    @property
    def causes(self) -> tuple[tuple[str, float], ...]:
        """Why waves stalled, longest first; waiting for a busy MMA unit is what a good loop does."""
        return _by_cause(self.lost)

    @property
    def idle_causes(self) -> tuple[tuple[str, float], ...]:
        """Why MMA units were idle, longest first."""
        return _by_cause(self.idle)

    def __str__(self) -> str:
        low, high = self.tflops_band
        head = (
            f"{self.name} on {self.machine}, predicted, not measured: {self.cycles:.0f} cycles a K-tile "
            f"(least {self.least_cycles:.0f}, {self.bound_by}), MMA {self.mma_share:.1%} busy, "
            f"{self.tflops:.0f} TFLOP/s ({low:.0f} to {high:.0f})"
        )
        lines = [head, f"  {self.steady}"]
        lines += [f"  {clocks:6.0f} clk a tile and wave: {cause}" for cause, clocks in self.causes]
        lines += [f"  {each.clocks:6.0f} clk a tile MMA idle: {each.cause} at {each.label}" for each in self.idle[:4]]
        lines += [f"  sensitive to {each.name}: {each.cycles:.0f} cycles if {each.value}" for each in self.hangs_on]
        return "\n".join(lines)


def predict(
    schedule: Lowerable, shape: WorkSource | None = None, *, parameters: Parameters | None = None, band: bool = True
) -> Prediction:
    """Run the model with nominal parameters (or `parameters`), and with every estimate at both ends of its range.

    A body declared in tiles needs a `shape`, as `rota.pipeline.tile_shape.TileShape`.  Without `band` only the first
    run is made, and the band has no width.
    """
    program = program_of(schedule, shape)
    device = device_of(program.machine)
    timing, base = device.timing, parameters or nominal(device)
    code = encode(program, base)
    load = code.load
    nominal_run = _settled(code, base)
    cycles = nominal_run.clocks_per_trip / code.tiles_per_trip
    others = [
        Sensitivity(name, value, _cycles(program, moved))
        for name, value, moved in (variants(device, base, transposed=_transposes(program)) if band else ())
    ]
    every = [cycles, *(each.cycles for each in others)]
    cycles_band = Band(min(every), max(every))
    per_tile = load.flops / code.tiles_per_trip * timing.compute_units.value * timing.clock.value / 1e6
    mma = load.mma_clocks / code.tiles_per_trip
    bound_by, least = max(_bounds(code).items(), key=lambda pair: pair[1])
    moving = [each for each in others if abs(each.cycles - cycles) > _MATTERS * cycles]
    return Prediction(
        name=code.name,
        machine=program.machine.name,
        cycles=cycles,
        least_cycles=least,
        bound_by=bound_by,
        mma_share=mma / cycles,
        lds_share=load.lds_clocks / code.tiles_per_trip / cycles,
        dma_share=load.dma_clocks / code.tiles_per_trip / cycles,
        tflops=per_tile / cycles,
        cycles_band=cycles_band,
        mma_share_band=Band(mma / cycles_band.high, mma / cycles_band.low),
        tflops_band=Band(per_tile / cycles_band.high, per_tile / cycles_band.low),
        lost=_mean(code, nominal_run, nominal_run.lost, code.waves),
        idle=_mean(code, nominal_run, nominal_run.idle, max(load.mma_simds, 1)),
        hangs_on=tuple(sorted(moving, key=lambda each: -abs(each.cycles - cycles))),
        steady=_steady(nominal_run),
    )


class Ranked(NamedTuple):
    """A schedule and its prediction."""

    schedule: Lowerable
    prediction: Prediction


def rank(schedules: Iterable[Lowerable], shape: WorkSource | None = None) -> tuple[Ranked, ...]:
    """Alternatives by predicted cycles, fewest first; equals by the worst end of their band."""
    each = [Ranked(schedule, predict(schedule, shape)) for schedule in schedules]
    return tuple(sorted(each, key=lambda one: (one.prediction.cycles, one.prediction.cycles_band.high)))


def _transposes(program: LoweredProgram) -> bool:
    return any(entry.op.kind is OpKind.LDS_READ_TRANSPOSED for entry in program.entries)


def _by_cause(lost: Iterable[Lost]) -> tuple[tuple[str, float], ...]:
    total: dict[str, float] = {}
    for each in lost:
        total[each.cause] = total.get(each.cause, 0.0) + each.clocks
    return tuple(sorted(total.items(), key=lambda pair: -pair[1]))


def _cycles(program: LoweredProgram, parameters: Parameters) -> float:
    code = encode(program, parameters)
    return _settled(code, parameters).clocks_per_trip / code.tiles_per_trip


def _settled(code: Code, parameters: Parameters) -> MeasuredRun:
    """Short loops get more trips: a latency spans many of them."""
    trips = _PATIENCE // sum(len(code.instructions[role]) for role in code.roles)
    return run(code, parameters, trips=min(max(trips, _FEWEST_TRIPS), _MOST_TRIPS), until_steady=True)


def _bounds(code: Code) -> dict[str, float]:
    """What each unit needs for a K-tile; MFMA and VALU ops share the turns in which they are issued."""
    tiles, load = code.tiles_per_trip, code.load
    return {
        "MMA unit": load.mma_clocks / tiles,
        "VALU and MFMA issue": load.math_turns / tiles,
        "VALU": load.valu_clocks / tiles,
        "LDS port": load.lds_clocks / tiles,
        "DMA path": load.dma_clocks / tiles,
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
    return tuple(sorted(each, key=lambda one: (-one.clocks, one.slot, one.cause)))


def _steady(result: MeasuredRun) -> str:
    trips = result.trips
    if result.period:
        every = "trip" if result.period == 1 else f"{result.period} trips"
        return f"steady: the unit's state repeats every {every}, seen three times by trip {trips}"
    if result.apart:
        return f"waves drift apart: mean of all {trips} trips, until the last wave is through"
    return f"not exactly periodic: mean of the last {result.averaged_over} of {trips} trips"
