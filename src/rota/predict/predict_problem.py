"""The predicted time of a whole GEMM, a band, and the parts it consists of.

The loop, as `rota.cycles.predict` sees it, is one of the parts. The parameters are facts of the device, fitted to runs
that others measured; where nothing was measured, the prediction says so and its band is wider.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from rota.check import bad_field, check_ints, check_types, is_int
from rota.cycles.instructions import WorkSource, program_of
from rota.cycles.predict import predict
from rota.errors import DeclarationError, MeasureError
from rota.markup import card, shares
from rota.program.kinds import OpKind, takes_formats
from rota.program.lowered import Lowerable, LoweredProgram
from rota.targets.device import Device, TypeFacts, device_of, problem_facts_of

MOST = 2**24
_SIDES = re.compile(r"(\d+)x(\d+)x(\d+)")
_RESULT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmProblem:
    """C (m x n) = A (m x k) times B (k x n); `result` is the type of C, and K may be split among workgroups."""

    m: int
    n: int
    k: int
    result: str = "bf16"
    split_k: int = 1

    def __post_init__(self) -> None:
        check_ints(self, ("m", "n", "k", "split_k"), least=1, most=MOST)
        check_types(self, {"result": str})
        if self.result not in _RESULT_BYTES:
            raise bad_field(self, "result", self.result, " or ".join(_RESULT_BYTES))
        if self.split_k > self.k:
            raise bad_field(self, "split_k", self.split_k, f"at most K, {self.k}")

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k

    @property
    def result_bytes(self) -> int:
        return _RESULT_BYTES[self.result]

    def but(self, *, m: int | None = None, n: int | None = None) -> GemmProblem:
        return replace(self, m=self.m if m is None else m, n=self.n if n is None else n)

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}" + (f" split {self.split_k}" if self.split_k > 1 else "")


def problem_named(text: str, *, split_k: int = 1) -> GemmProblem:
    found = _SIDES.fullmatch(text.strip().lower().replace("*", "x").replace(",", "x"))
    if found is None:
        raise DeclarationError.of(
            "D102",
            f"the problem is {text!r:.60}; expected MxNxK, as 8192x8192x8192",
            evidence=(("got", f"{text:.60}"), ("expected", "three whole numbers with x between them")),
        )
    m, n, k = map(int, found.groups())
    return GemmProblem(m=m, n=n, k=k, split_k=split_k)


_NAMED = (("_bf16", "bf16"), ("_f16", "fp16"), ("_i8", "int8"), ("_fp8_fp8", "fp8"), ("_bf8_bf8", "bf8"))
_NARROW = {8: "fp8", 6: "fp6", 4: "fp4"}
_BITS = {"bf16": 16, "fp16": 16, "int8": 8, "fp8": 8, "bf8": 8, "fp6": 6, "fp4": 4}
_SCALED_BLOCK = 32
"""Elements that share a scale of one byte, of the narrow formats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledGemm:
    """A workgroup's tile, its elements, and the clocks of a K-tile: of the loop as predicted, of its matrix units."""

    name: str
    device: Device
    tile: tuple[int, int, int]
    element: str
    loop_clocks: float
    matrix_clocks: float

    def __post_init__(self) -> None:
        check_types(self, {"name": str, "device": Device, "tile": tuple, "element": str})
        if self.element not in _BITS:
            raise bad_field(self, "element", self.element, ", ".join(_BITS))
        sides: tuple[object, ...] = self.tile
        if len(sides) != 3 or not all(isinstance(side, int) and is_int(side) and side > 0 for side in sides):
            raise bad_field(self, "tile", self.tile, "three whole numbers above 0, as 256x256x64")

    @property
    def element_bytes(self) -> float:
        """Of A and B, with the scales that the narrowest formats can't do without."""
        bits = _BITS[self.element]
        return bits / 8 + (1 / _SCALED_BLOCK if bits < 8 else 0)


def tiled_gemm(schedule: Lowerable, tile: tuple[int, int, int], shape: WorkSource | None = None) -> TiledGemm:
    """The kernel of a compiled loop; its products have to be those of the tile."""
    program = program_of(schedule, shape)
    loop = predict(program, band=False)
    m, n, k = tile
    if loop.flops != 2 * m * n * k:
        raise MeasureError.of(
            "M101",
            f"{program.name} is not a GEMM of {m}x{n}x{k}: whole problems are predicted for GEMMs alone",
            evidence=(
                ("operations per iteration", f"{loop.flops:,.0f}"),
                ("of a GEMM with that tile", f"{2 * m * n * k:,}"),
                ("measured runs of other kernels, attention among them", "none"),
            ),
            fixes=(
                "`rota show` has the loop's clocks, which need no measurements",
                "state the tile of a GEMM: --set geometry.BM=..., BN, BK",
            ),
        )
    return TiledGemm(
        name=program.name,
        device=device_of(program.machine),
        tile=tile,
        element=element_of(program),
        loop_clocks=loop.cycles,
        matrix_clocks=loop.mma_clocks,
    )


def element_of(program: LoweredProgram) -> str:
    """The type of the elements that a program multiplies, from the names of its matrix instructions."""
    works = {entry.op.work for entry in program.kernel if entry.op.kind is OpKind.MMA and entry.op.work is not None}
    found = set()
    for name, bits in {(work.instruction, work.bits) for work in works if work.instruction}:
        named = next((element for ending, element in _NAMED if name.endswith(ending)), name)
        found.add(_NARROW[bits] if takes_formats(name) else named)
    if len(found) == 1:
        return found.pop()
    raise MeasureError.of(
        "M102",
        f"{program.name} multiplies elements of {len(found)} types; whole problems have one",
        evidence=(("types", ", ".join(sorted(found)) or "none that rota knows"),),
    )


class ModelParameters(NamedTuple):
    """What the fit finds: microseconds, GHz, TB per second, bytes per clock and unit."""

    start: float
    share: float  # how fast a loop really goes, as part of what its clocks say
    feed: float
    trip: float  # clocks from a K-tile's request to its operands' arrival
    f_busy: float
    f_max: float
    hbm: float
    store: float
    split_start: float
    split_traffic: float  # how often partial sums cross the memory


class KernelWork(NamedTuple):
    """What a kernel does for a problem; `mma` and `loop` are clocks per K-tile."""

    rounds: float  # workgroups of the fullest unit
    turns: float  # of these, how many run after each other: as many as LDS holds run beside each other
    fill: float  # the mean over all units, as part of that
    k_tiles: float  # of a workgroup
    mma: float  # of the matrix units alone
    loop: float
    feed_bytes: float
    operand_bytes: float
    result_bytes: float
    partial_bytes: float


class TimeParts(NamedTuple):
    """Microseconds; only the product of the effective `clock`, in GHz, and the share shows in a measured time."""

    start: float
    loop: float  # its clocks alone
    fed: float  # with operands fed
    memory: float
    arrival: float  # waits for operands that nothing hides
    streamed: float
    store: float
    split: float
    clock: float
    clocks_per_tile: float
    busy: float

    @property
    def total(self) -> float:
        return self.start + self.streamed + self.store + self.split


def root_of_squares(a: float, b: float, c: float = 0.0) -> float:
    """Things that overlap, but not perfectly."""
    together: float = (a * a + b * b + c * c) ** 0.5
    return together


def times_of(work: KernelWork, at: ModelParameters) -> TimeParts:
    """T = start + sqrt(T_loop^2 + T_mem^2 + T_trip^2) + T_store + T_split; each a number, or an array for many runs.

    T_loop = rounds k_tiles c / f, c = sqrt((loop / share)^2 + (operand bytes of a K-tile / feed)^2),
    T_mem = operand bytes / hbm, and T_trip = turns k_tiles trip / f_max: operands of a short loop arrive late, and only
    other workgroups on the unit hide that.  A root of squares represents things that overlap, but not perfectly.  The
    clock f = min(f_max, f_busy u^(-1/3)) falls with the matrix-busy share u: power, which is capped, grows with u f^3.
    """
    own = work.loop / at.share
    clocks = root_of_squares(own, work.feed_bytes / at.feed)
    busy = work.fill * work.mma / clocks
    f_capped = at.f_busy * busy ** (-1 / 3)
    clock = (at.f_max + f_capped - abs(at.f_max - f_capped)) / 2  # the smaller one, for numbers and arrays alike
    tiles = work.rounds * work.k_tiles / clock / 1e3
    memory = work.operand_bytes / at.hbm / 1e6
    arrival = work.turns * work.k_tiles * at.trip / at.f_max / 1e3
    splits = (work.partial_bytes > 0) * 1.0
    return TimeParts(
        start=at.start + 0 * tiles,
        loop=tiles * own,
        fed=tiles * clocks,
        memory=memory,
        arrival=arrival,
        streamed=root_of_squares(tiles * clocks, memory, arrival),
        store=work.result_bytes / at.store / 1e6,
        split=splits * at.split_start + at.split_traffic * work.partial_bytes / at.hbm / 1e6,
        clock=clock,
        clocks_per_tile=clocks,
        busy=busy,
    )


STAGES, BESIDE = 2, 4
"""K-tiles in LDS, and workgroups on a unit at most, as the model has them; with 2 or 8 of these it fits no better."""


def work_of_problem(
    *,
    sides: tuple[float, float, float],
    tile: tuple[float, float, float],
    split_k: float,
    units: float,
    lds_bytes: float,
    element_bytes: float,
    result_bytes: float,
    mma: float,
    loop: float,
) -> KernelWork:
    """What a kernel with such a tile does for M, N and K; a unit takes whole workgroups."""
    (m, n, k), (tile_m, tile_n, tile_k) = sides, tile
    groups = -(-m // tile_m) * -(-n // tile_n) * split_k
    rounds = -(-groups // units)
    own_k = -(-k // split_k)
    feed_bytes = (tile_m + tile_n) * tile_k * element_bytes
    beside = lds_bytes // (STAGES * feed_bytes)
    beside = beside + (beside < 1) * (1 - beside) - (beside > BESIDE) * (beside - BESIDE)  # for numbers and arrays
    return KernelWork(
        rounds=rounds,
        turns=-(-groups // (units * beside)),
        fill=groups / rounds / units,
        k_tiles=-(-own_k // tile_k),
        mma=mma,
        loop=loop,
        feed_bytes=feed_bytes,
        operand_bytes=(m + n) * k * element_bytes,
        result_bytes=m * n * result_bytes,
        partial_bytes=(split_k > 1) * split_k * m * n * 4.0,
    )


ABOVE_BEST = 1.1
"""A prediction that is faster than this multiple of the best measured rate is held there."""


class Part(NamedTuple):
    name: str
    us: float
    what: str


class Range(NamedTuple):
    """Between these lie four of five measured values."""

    low: float
    high: float


class Correction(NamedTuple):
    """What measured runs say about a kernel's time, as multiples of the model's; `name` is the profile's."""

    name: str
    runs: int
    start: float
    loop: float
    memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPrediction:
    """A GEMM's time in microseconds, its rate, and both with the range that four of five measured runs kept to.

    `rounds` is how many workgroups the fullest compute unit gets, of `workgroups` in all; `full` how much of the tiles
    that are computed belongs to the problem.  `basis` says what the figures rest on; unless `calibrated`, nothing of
    that type was measured on the device.
    """

    kernel: str
    device: str
    element: str
    problem: GemmProblem
    us: float
    us_range: Range
    tflops: float
    tflops_range: Range
    parts: tuple[Part, ...]
    workgroups: int
    rounds: int
    full: float
    calibrated: bool
    basis: str
    best_measured: float | None
    held: bool
    profile: str | None

    def __str__(self) -> str:
        low, high = self.us_range
        least, most = self.tflops_range
        return (
            f"{self.kernel} · {self.device} · {self.problem} {self.element} · "
            f"{self.us:,.1f} us ({low:,.1f} to {high:,.1f}) · "
            f"{self.tflops:,.0f} TFLOP/s ({least:,.0f} to {most:,.0f}) · predicted, not measured"
        )

    def _repr_html_(self) -> str:
        return card(str(self), shares(((part.name, part.us) for part in self.parts), "us"))


def predict_problem(kernel: TiledGemm, problem: GemmProblem, correction: Correction | None = None) -> ProblemPrediction:
    """The time of a whole problem."""
    device = kernel.device
    facts = problem_facts_of(device)
    own = type_facts_of(kernel)
    work = work_of(kernel, problem)
    parameters = parameters_of(device, own, correction)
    times = times_of(work, parameters)
    best = None if own.best is None else own.best.value
    fastest = 0.0 if best is None else problem.flops / (ABOVE_BEST * best) / 1e6
    us = max(times.total, fastest)
    calibrated = not own.uncalibrated or correction is not None
    regime = facts.regime(problem.m)
    spread = regime.band if calibrated else regime.band.widest(facts.wide_band)
    units = device.timing.compute_units.value
    m, n, k = kernel.tile
    # The problem's products as part of all those for which the fullest unit's time would do.
    full = problem.m * problem.n * problem.k / (work.rounds * units * m * n * work.k_tiles * k)
    parts = _parts(kernel, work, times, full)
    if problem.split_k > 1:
        parts.append(
            Part("split-K", times.split, f"{problem.split_k} partial sums, {work.partial_bytes / 1e6:,.1f} MB")
        )
    if us > times.total:
        parts.append(Part("held", us - times.total, f"no faster than {ABOVE_BEST:g} times the best ever measured"))
    high = problem.flops / (us * spread.low) / 1e6  # not above what the prediction itself may be
    basis = f"80 % band of M {regime.name}, where half of the runs that the fit did not see are off by less than "
    basis += f"{100 * regime.error:.0f} %: {facts.measured}"
    if correction is not None:
        basis = f"calibrated by profile {correction.name!r}, {correction.runs} runs"
    elif own.uncalibrated:
        basis = f"not calibrated: {own.element} on {device.name}: {own.uncalibrated}; the band is wider"
    return ProblemPrediction(
        kernel=kernel.name,
        device=device.name,
        element=kernel.element,
        problem=problem,
        us=us,
        us_range=Range(us * spread.low, us * spread.high),
        tflops=problem.flops / us / 1e6,
        tflops_range=Range(
            problem.flops / (us * spread.high) / 1e6, high if best is None else min(high, ABOVE_BEST * best)
        ),
        parts=tuple(parts),
        workgroups=round(work.fill * work.rounds * units),
        rounds=round(work.rounds),
        full=full,
        calibrated=calibrated,
        basis=basis if best is None else f"{basis}; best measured {best:,.0f} TFLOP/s",
        best_measured=best,
        held=us > times.total,
        profile=None if correction is None else correction.name,
    )


def work_of(kernel: TiledGemm, problem: GemmProblem) -> KernelWork:
    return work_of_problem(
        sides=(problem.m, problem.n, problem.k),
        tile=kernel.tile,
        split_k=problem.split_k,
        units=kernel.device.timing.compute_units.value,
        lds_bytes=kernel.device.lds_bytes.value,
        element_bytes=kernel.element_bytes,
        result_bytes=problem.result_bytes,
        mma=kernel.matrix_clocks,
        loop=kernel.loop_clocks,
    )


def parameters_of(device: Device, own: TypeFacts, correction: Correction | None = None) -> ModelParameters:
    """The facts as the model takes them, corrected by what was measured."""
    facts = problem_facts_of(device)
    fix = correction or Correction("", 0, 1.0, 1.0, 1.0)
    return ModelParameters(
        start=facts.start.value * fix.start,
        share=facts.share.value,
        feed=facts.feed.value,
        trip=facts.trip.value,
        f_busy=own.f_busy.value / fix.loop,
        f_max=device.timing.clock.value / 1000 / fix.loop,
        hbm=facts.hbm.value / fix.memory,
        store=facts.store.value / fix.memory,
        split_start=facts.split_start.value,
        split_traffic=facts.split_traffic.value,
    )


def type_facts_of(kernel: TiledGemm) -> TypeFacts:
    """The facts of a kernel's type on its device, or M102."""
    facts = problem_facts_of(kernel.device)
    if kernel.element not in facts.elements:
        raise MeasureError.of(
            "M102",
            f"nothing is known about whole problems of {kernel.element} on {kernel.device.name}",
            evidence=(("kernel", kernel.name), ("types with facts", ", ".join(facts.elements))),
            fixes=("take a kernel of one of these types, or a device that has facts about it",),
        )
    return facts.type_facts(kernel.element, kernel.device.name)


def _parts(kernel: TiledGemm, work: KernelWork, times: TimeParts, full: float) -> list[Part]:
    """What adds up to the whole; of two things that overlap, the second has only what it adds."""
    m, n, _ = kernel.tile
    units = kernel.device.timing.compute_units.value
    groups = round(work.fill * work.rounds * units)
    in_memory = root_of_squares(times.fed, times.memory)
    most = f"{groups:,} workgroups of {m}x{n}, {work.rounds:,.0f} on the fullest of {units} units"
    return [
        Part("start", times.start, "launch, first loads, last stores"),
        Part("loop", times.loop * full, f"{work.k_tiles:,.0f} K-tiles a workgroup, {kernel.loop_clocks:,.0f} clk each"),
        Part("tile quantisation", times.loop * (1 - full), f"{most}: {100 * full:.0f} % of that is the problem's work"),
        Part("operand feed", times.fed - times.loop, f"{work.feed_bytes / 1024:,.0f} KiB a K-tile into each unit"),
        Part("memory", in_memory - times.fed, f"{work.operand_bytes / 1e6:,.1f} MB of A and B"),
        Part("arrival", times.streamed - in_memory, f"{work.turns * work.k_tiles:,.0f} K-tiles that wait one by one"),
        Part("result store", times.store, f"{work.result_bytes / 1e6:,.1f} MB of C"),
    ]
