"""A device: an architecture with rates, times and the facts that predict whole problems.

The accessors take any `Machine`, as every layer knows it, and refuse one that lacks the fact they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import NoneType
from typing import NamedTuple

from rota.check import check_elements, check_types, look_up
from rota.errors import DeclarationError
from rota.program.kinds import OpKind
from rota.program.machine import Confidence, Fact, Machine
from rota.targets.architecture import Architecture, lacks


class Estimate(NamedTuple):
    """The value to plan with, and its range; where the range is a point, the number is known after all."""

    fact: Fact
    low: int
    high: int


def estimate(value: int, low: int, high: int, unit: str, source: str) -> Estimate:
    return Estimate(Fact(value, unit, Confidence.ESTIMATE, source), low, high)


# Rates of a compute unit.
#
# Times are in slots, the turns in which a SIMD issues for one wave; LLVM counts the passes of an MFMA in the same
# unit.

_NARROW_BITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRate:
    """How long one matrix instruction holds its SIMD's MMA unit.

    `narrow` is for instructions that take several formats: the passes where neither factor is wider than 6 bits.
    """

    instruction: str
    passes: Fact
    narrow: Fact | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Passes per matrix instruction, bytes per clock and planning latencies of one compute unit.

    `name` is whose they are, for messages.  `transcendental` is how many slots v_exp_f32 and its like hold the VALU,
    where other instructions hold it for one.  Without `lds_read_transposed` the unit has no such read.
    """

    name: str
    matrix: tuple[MatrixRate, ...]
    lds_read: Fact
    lds_read_transposed: Estimate | None = None
    lds_write: Fact
    dma: Fact
    dma_latency: Fact
    lds_latency: Fact
    transcendental: Fact
    simds: Fact
    clocks_per_slot: Fact

    def __post_init__(self) -> None:
        check_types(self, {"name": str})
        check_elements("matrix", self.matrix, MatrixRate)

    @property
    def mfma_passes(self) -> Mapping[str, Fact]:
        """Passes by instruction, of the widest formats that it takes."""
        return {each.instruction: each.passes for each in self.matrix}

    def passes(self, instruction: str, bits: int = 8) -> int:
        """Slots that one matrix instruction holds its SIMD's MMA unit, where the wider factor has this many bits."""
        rates = {each.instruction: each for each in self.matrix}
        rate = look_up(instruction, rates, f"{self.name} has no matrix instruction {instruction!r} that rota knows")
        return (rate.narrow if rate.narrow is not None and bits <= _NARROW_BITS else rate.passes).value

    def lds_rate(self, kind: OpKind) -> Fact:
        """Bytes per clock that an op of a kind moves through the LDS port."""
        if kind is OpKind.LDS_WRITE:
            return self.lds_write
        if kind is not OpKind.LDS_READ_TRANSPOSED:
            return self.lds_read
        if self.lds_read_transposed is None:
            raise DeclarationError.of(
                "D114",
                f"{self.name} doesn't state how fast it moves {kind.does}; no other device's number is taken for it",
                evidence=(("machine", self.name), ("lacks", f"the rate of an op of kind {kind.word}")),
            )
        return self.lds_read_transposed.fact

    def valu_slots(self, kind: OpKind) -> int:
        """Slots for which one instruction of a vector op holds its VALU."""
        return self.transcendental.value if kind is OpKind.TRANSCENDENTAL else 1

    def slots(self, clocks: int) -> int:
        """Clocks in whole slots, rounded up."""
        return -(-clocks // self.clocks_per_slot.value)

    def waves_per_simd(self, waves: int) -> int:
        """The most waves, of this many, that share a SIMD."""
        return -(-waves // self.simds.value)


# How long operations take on a compute unit.
#
# A turn is a slot: the scheduler visits the SIMDs in rotation, so a wave issues at most once a turn.


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What a cycle model of one compute unit rests on, and how many of them run at which clock.

    `result_turns` lie between an MFMA's last pass and a VALU, memory or A/B use of its result, `operand_turns` between
    a VALU op and an MFMA that uses its result; a sum into the same accumulator waits for nothing.
    """

    rates: Rates
    clock: Fact
    compute_units: Fact
    result_turns: Fact
    operand_turns: Fact
    issue_classes: Estimate
    lds_latency: Estimate
    lds_write: Estimate
    dma_latency: Estimate
    dma_jitter: Estimate
    dma_rate: Estimate
    dma_setup: Estimate
    barrier: Estimate
    loop_edge: Estimate

    @property
    def estimates(self) -> tuple[tuple[str, Estimate], ...]:
        """The numbers that have a range, by name."""
        named = ((field.name, getattr(self, field.name)) for field in fields(self))
        return tuple((name, value) for name, value in named if isinstance(value, Estimate) and value.low != value.high)


class Fitted(NamedTuple):
    """A number that measured runs gave, with its 90 % band; where nothing was measured, a planning number and range."""

    value: float
    low: float
    high: float
    unit: str
    source: str


class Spread(NamedTuple):
    """Four of five measured times lie between these multiples of the predicted one."""

    low: float
    high: float

    def widest(self, other: Spread) -> Spread:
        return Spread(min(self.low, other.low), max(self.high, other.high))


class RegimeFacts(NamedTuple):
    """How far off predictions are where M is `least` to `most`: half of them by less than `error`.

    Of families of kernels that the fit did not see, predicted as rota's own kernels are. `family` and `own` are
    standard deviations of log(measured / predicted) among kernels of one problem, of shapes that the fit did not see:
    the part that kernels of a family share, and the part of each kernel.
    """

    least: int
    most: int | None
    error: float
    band: Spread
    family: float
    own: float

    @property
    def name(self) -> str:
        if self.most is None:
            return f"from {self.least:,}"
        return f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeFacts:
    """What the elements of A and B decide.

    `f_busy` is the effective clock with every matrix unit busy, `best` the most TFLOP/s that anybody has measured.
    Unless it is calibrated, `uncalibrated` says why: too little of that type was measured on the device.
    """

    element: str
    f_busy: Fitted
    best: Fitted | None = None
    uncalibrated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFacts:
    """The parameters of `rota.predict.predict_problem`, those of all types and of each.

    `start` is launch, first loads and last store; `share` how fast tuned loops go, as part of what their clocks say;
    `feed` what a compute unit gets of its operands; `trip` how long those of a K-tile are on their way; `hbm` what
    large streams reach; `store` what results are written with; a split of K costs `split_start`, and its partial sums
    cross the memory `split_traffic` times.

    `regimes` have the bands of types that were measured, `wide_band` is for those that were not; two kernels whose
    predicted times differ by less than `apart` can't be told apart; `measured` says on what all that rests, `compared`
    on what the errors between kernels of one problem do.
    """

    start: Fitted
    share: Fitted
    feed: Fitted
    trip: Fitted
    hbm: Fitted
    store: Fitted
    split_start: Fitted
    split_traffic: Fitted
    types: tuple[TypeFacts, ...]
    regimes: tuple[RegimeFacts, ...]
    wide_band: Spread
    apart: float
    measured: str
    compared: str

    def __post_init__(self) -> None:
        check_types(self, {"measured": str, "wide_band": Spread, "apart": float, "compared": str})
        check_elements("types", self.types, TypeFacts)
        check_elements("regimes", self.regimes, RegimeFacts)

    @property
    def elements(self) -> tuple[str, ...]:
        return tuple(each.element for each in self.types)

    def regime(self, m: int) -> RegimeFacts:
        return next(each for each in self.regimes if each.most is None or m <= each.most)

    def type_facts(self, element: str, device: str) -> TypeFacts:
        each = {one.element: one for one in self.types}
        return look_up(element, each, f"{device} has no facts about products of {element!r}")


def with_types(facts: ProblemFacts, *more: TypeFacts) -> ProblemFacts:
    """The facts with types that were not measured."""
    return replace(facts, types=(*facts.types, *more))


def like(facts: ProblemFacts, element: str, other: str) -> TypeFacts:
    """A type of which nothing was measured, taken to be like another one of the device."""
    own = next(each for each in facts.types if each.element == element)
    return TypeFacts(element=other, f_busy=own.f_busy, uncalibrated=f"no run was available; taken to be as {element}")


def of_sibling(facts: ProblemFacts, sibling: str, hbm: float) -> ProblemFacts:
    """The facts of a device that was not measured, from those of one that was, with the memory scaled by its rate."""
    why = f"no run was available; taken to be as on {sibling}"
    value, low, high, unit, _ = facts.hbm
    scaled = Fitted(hbm * value, hbm * low, hbm * high, unit, f"{sibling}'s, by the rate of the memory")
    types = tuple(replace(each, best=None, uncalibrated=why) for each in facts.types)
    regimes = tuple(each._replace(band=each.band.widest(facts.wide_band)) for each in facts.regimes)
    compared = f"{facts.compared}, on {sibling}"
    return replace(
        facts, hbm=scaled, types=types, regimes=regimes, measured=f"nothing; as {sibling}", compared=compared
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Device(Architecture):
    """A product: an architecture with its times, its dies and its memory.

    Without `problems` nothing is said about whole kernels.
    """

    timing: Timing
    dies: Fact
    memory: Fact
    memory_rate: Fact
    problems: ProblemFacts | None = None

    def __post_init__(self) -> None:
        Architecture.__post_init__(self)
        check_types(self, {"timing": Timing, "dies": Fact, "memory": Fact, "memory_rate": Fact})
        check_types(self, {"problems": (ProblemFacts, NoneType)})

    @property
    def rates(self) -> Rates:
        return self.timing.rates

    @property
    def architecture(self) -> Architecture:
        """What it shares with the other devices of its architecture, under the architecture's name."""
        shared = {each.name: getattr(self, each.name) for each in fields(Architecture)}
        return Architecture(**{**shared, "name": self.arch})

    def registers_per_lane(self, waves: int) -> int:
        """What a lane has of its SIMD's registers, which this many waves of a workgroup share."""
        return self.vgprs_per_lane.value // self.rates.waves_per_simd(waves)


def device(
    architecture: Architecture,
    *,
    name: str,
    timing: Timing,
    dies: Fact,
    memory: Fact,
    memory_rate: Fact,
    problems: ProblemFacts | None = None,
) -> Device:
    shared = {each.name: getattr(architecture, each.name) for each in fields(Architecture)}
    own = {"timing": timing, "dies": dies, "memory": memory, "memory_rate": memory_rate, "problems": problems}
    return Device(**{**shared, "name": name, **own})


def device_of(machine: Machine) -> Device:
    """The machine itself, if it is a device."""
    if not isinstance(machine, Device):
        raise lacks(machine, "its rates and times")
    return machine


def rates_of(machine: Machine) -> Rates:
    return device_of(machine).rates


def timing_of(machine: Machine) -> Timing:
    return device_of(machine).timing


def registers_per_lane(machine: Machine, waves: int) -> int:
    return device_of(machine).registers_per_lane(waves)


def problem_facts_of(machine: Machine) -> ProblemFacts:
    facts = device_of(machine).problems
    if facts is None:
        raise lacks(machine, "how long whole kernels take: their start, operand feed and sustained clocks")
    return facts
