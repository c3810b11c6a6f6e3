"""A whole GEMM predicted: takes a kernel and a problem, gives its time, a band, and the parts it consists of.

What `rota.cycles.predict` says of the loop is one of the parts.  The parameters are facts of the device, fitted to runs
that others measured; where nothing was measured, the prediction says so and its band is wider.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rota.errors import Finding, MeasureError
from rota.markup import card, shares
from rota.predict.gemm_problem import GemmProblem
from rota.predict.tiled_gemm import TiledGemm
from rota.predict.time_model import KernelWork, ModelParameters, TimeParts, times_of, work_of_problem
from rota.targets.device import Device, problem_facts_of
from rota.targets.problem_facts import ProblemFacts, Spread, TypeFacts

ABOVE_BEST = 1.1
"""A prediction that is faster than this multiple of the best measured rate is held there."""


class Part(NamedTuple):
    """One part of the time, and what it consists of."""

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
        """The line, and what the time consists of."""
        return card(str(self), shares(((part.name, part.us) for part in self.parts), "us"))


def predict_problem(kernel: TiledGemm, problem: GemmProblem, correction: Correction | None = None) -> ProblemPrediction:
    """The time of a whole problem."""
    device = kernel.device
    facts = problem_facts_of(device)
    own = _type_facts(facts, kernel)
    work = work_of(kernel, problem)
    parameters = parameters_of(device, own, correction)
    times = times_of(work, parameters)
    best = None if own.best is None else own.best.value
    fastest = 0.0 if best is None else problem.flops / (ABOVE_BEST * best) / 1e6
    us = max(times.total, fastest)
    calibrated = not own.uncalibrated or correction is not None
    spread = facts.band if calibrated else facts.wide_band
    groups = round(work.fill * work.rounds * device.timing.compute_units.value)
    full = _full(kernel, problem, work, device)
    return ProblemPrediction(
        kernel=kernel.name,
        device=device.name,
        element=kernel.element,
        problem=problem,
        us=us,
        us_range=Range(us * spread.low, us * spread.high),
        tflops=problem.flops / us / 1e6,
        tflops_range=_rates(problem, us, spread, best),
        parts=(*_parts(kernel, work, times, full), *_more_parts(problem, work, times, us)),
        workgroups=groups,
        rounds=round(work.rounds),
        full=full,
        calibrated=calibrated,
        basis=_basis(device, facts, own, correction),
        best_measured=best,
        held=us > times.total,
        profile=None if correction is None else correction.name,
    )


def work_of(kernel: TiledGemm, problem: GemmProblem) -> KernelWork:
    """What a kernel does for a problem."""
    return work_of_problem(
        sides=(problem.m, problem.n, problem.k),
        tile=kernel.tile,
        split_k=problem.split_k,
        units=kernel.device.timing.compute_units.value,
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
        f_busy=own.f_busy.value / fix.loop,
        f_max=device.timing.clock.value / 1000 / fix.loop,
        hbm=facts.hbm.value / fix.memory,
        store=facts.store.value / fix.memory,
        split_start=facts.split_start.value,
        split_traffic=facts.split_traffic.value,
    )


def type_facts_of(kernel: TiledGemm) -> TypeFacts:
    """The facts of a kernel's type on its device, or M102."""
    return _type_facts(problem_facts_of(kernel.device), kernel)


def _type_facts(facts: ProblemFacts, kernel: TiledGemm) -> TypeFacts:
    if kernel.element not in facts.elements:
        raise MeasureError(
            Finding(
                code="M102",
                message=f"nothing is known about whole problems of {kernel.element} on {kernel.device.name}",
                evidence=(("kernel", kernel.name), ("types with facts", ", ".join(facts.elements))),
                fixes=("take a kernel of one of these types, or a device that has facts about it",),
            )
        )
    return facts.type_facts(kernel.element, kernel.device.name)


def _full(kernel: TiledGemm, problem: GemmProblem, work: KernelWork, device: Device) -> float:
    """The problem's products as part of all those for which the fullest unit's time would do."""
    m, n, k = kernel.tile
    room = work.rounds * device.timing.compute_units.value * m * n * work.k_tiles * k
    return problem.m * problem.n * problem.k / room


def _rates(problem: GemmProblem, us: float, spread: Spread, best: float | None) -> Range:
    """The faster end isn't above what the prediction itself may be."""
    high = problem.flops / (us * spread.low) / 1e6
    return Range(problem.flops / (us * spread.high) / 1e6, high if best is None else min(high, ABOVE_BEST * best))


def _parts(kernel: TiledGemm, work: KernelWork, times: TimeParts, full: float) -> tuple[Part, ...]:
    """What adds up to the whole; of two things that overlap, the second has only what it adds."""
    m, n, _ = kernel.tile
    units = kernel.device.timing.compute_units.value
    groups = round(work.fill * work.rounds * units)
    most = f"{groups:,} workgroups of {m}x{n}, {work.rounds:,.0f} on the fullest of {units} units"
    return (
        Part("start", times.start, "launch, first loads, last stores"),
        Part("loop", times.loop * full, f"{work.k_tiles:,.0f} K-tiles a workgroup, {kernel.loop_clocks:,.0f} clk each"),
        Part("tile quantisation", times.loop * (1 - full), f"{most}: {100 * full:.0f} % of that is the problem's work"),
        Part("operand feed", times.fed - times.loop, f"{work.feed_bytes / 1024:,.0f} KiB a K-tile into each unit"),
        Part("memory", times.streamed - times.fed, f"{work.operand_bytes / 1e6:,.1f} MB of A and B"),
        Part("result store", times.store, f"{work.result_bytes / 1e6:,.1f} MB of C"),
    )


def _more_parts(problem: GemmProblem, work: KernelWork, times: TimeParts, us: float) -> tuple[Part, ...]:
    """What only some problems have."""
    more = []
    if problem.split_k > 1:
        more.append(Part("split-K", times.split, f"{problem.split_k} partial sums, {work.partial_bytes / 1e6:,.1f} MB"))
    if us > times.total:
        more.append(Part("held", us - times.total, f"no faster than {ABOVE_BEST:g} times the best ever measured"))
    return tuple(more)


def _basis(device: Device, facts: ProblemFacts, own: TypeFacts, correction: Correction | None) -> str:
    best = f"; best measured {own.best.value:,.0f} TFLOP/s" if own.best is not None else ""
    if correction is not None:
        return f"calibrated by profile {correction.name!r}, {correction.runs} runs{best}"
    if own.uncalibrated:
        return f"not calibrated: {own.element} on {device.name}: {own.uncalibrated}; the band is wider{best}"
    return f"80 % band from runs that the fit did not see: {facts.measured}{best}"
