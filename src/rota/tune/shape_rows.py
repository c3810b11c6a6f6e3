"""A row for each shape of a tuned library: what was chosen, with its risk, its band, what bounds it and its rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rota.predict.predict_problem import (
    GemmProblem,
    TiledGemm,
    parameters_of,
    predict_problem,
    times_of,
    type_facts_of,
    work_of,
)
from rota.targets.device import problem_facts_of
from rota.targets.registry import device_named
from rota.tune.shortlist import SURE
from rota.tune.space import ProblemShape
from rota.tune.tune_library import DeviceTable
from rota.tune.winners import MEASURED, STATED, Candidate, Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeRow:
    """A choice with its risk.

    `low` and `high` are microseconds, between which four of five measured times lie; `chance` is how likely the choice
    is to be the fastest, `loss` how much longer than the fastest it is expected to take, as part of that one's time.
    `shortlist` has short names, and holds the fastest with the probability `shortlist_chance`.

    `bound` is the longest of the parts of the prediction.  `gb_per_s` counts A, B and the result once. `best_tflops` is
    the best that anybody measured of the type, else what the matrix units could do.
    """

    device: str
    shape: ProblemShape
    type: str
    kernel: str
    split_k: int
    us: float
    low: float
    high: float
    basis: str
    bound: str
    gb_per_s: float
    memory_gb_per_s: float
    tflops: float
    best_tflops: float
    chance: float
    loss: float
    shortlist: tuple[str, ...]
    shortlist_chance: float

    @property
    def efficiency(self) -> float:
        """Of the memory's rate or of the best TFLOP/s, whichever is nearer."""
        return max(self.gb_per_s / self.memory_gb_per_s, self.tflops / self.best_tflops)

    @property
    def streams(self) -> bool:
        """True if the memory's rate is nearer than that of the matrix units."""
        return self.gb_per_s / self.memory_gb_per_s >= self.tflops / self.best_tflops

    @property
    def decided(self) -> bool:
        return len(self.shortlist) == 1

    @property
    def rate(self) -> str:
        if self.streams:
            return f"{self.gb_per_s:,.0f} of {self.memory_gb_per_s:,.0f} GB/s"
        return f"{self.tflops:,.0f} of {self.best_tflops:,.0f} TFLOP/s"

    @property
    def band(self) -> str:
        return "measured" if self.basis == MEASURED else f"{self.low:,.1f} to {self.high:,.1f}"

    def data(self) -> dict[str, Any]:
        sides = {"M": self.shape.m, "N": self.shape.n, "K": self.shape.k, "out": self.shape.result}
        return {**asdict(self), "shape": sides}

    def lines(self) -> tuple[str, str]:
        """What the command prints."""
        first, *others = self.shortlist
        count = len(self.shortlist)
        chosen = f"{self.shape}: {first}, {self.us:,.1f} us ({self.band}), {self.rate}, bound by {self.bound}"
        risk = f"{say_chance(self.chance)} likely the fastest, expected loss {self.loss:.1%}"
        if others:
            among = f"; {say_chance(self.shortlist_chance)} likely that the fastest is among {count}"
            risk += f"{among}: this one, {', '.join(others)}"
        return chosen, risk


def say_chance(chance: float) -> str:
    return f"over {SURE:.0%}" if chance > SURE else f"{chance:.0%}"


def list_rows(table: DeviceTable) -> Iterator[ShapeRow]:
    """In the order of the shapes."""
    ranking = table.ranking
    known = {(each.kernel, each.split_k): number for number, each in reversed([*enumerate(ranking.configurations)])}
    names = short_names(ranking.configurations)
    for shape, choice in table.choices.items():
        candidate = ranking.candidates[known[choice["kernel"], choice["split_k"]]]
        listed = tuple(names[kernel, split] for kernel, split in choice["shortlist"])
        yield _row(table, shape, choice, candidate, listed)


def _row(
    table: DeviceTable, shape: ProblemShape, choice: dict[str, Any], candidate: Candidate, listed: tuple[str, ...]
) -> ShapeRow:
    gemm, us = candidate.gemm, choice["us"]
    problem = GemmProblem(m=shape.m, n=shape.n, k=shape.k, result=shape.result, split_k=choice["split_k"])
    predicted = predict_problem(gemm, problem, candidate.correction)
    low, high = (us, us) if choice["basis"] == MEASURED else predicted.us_range
    work = work_of(gemm, problem)
    return ShapeRow(
        device=table.device,
        shape=shape,
        type=table.ranking.element,
        kernel=choice["kernel"],
        split_k=choice["split_k"],
        us=us,
        low=low,
        high=high,
        basis=choice["basis"],
        bound=find_bound(candidate, problem),
        gb_per_s=(work.operand_bytes + work.result_bytes) / us / 1e3,
        memory_gb_per_s=device_named(table.device).memory_rate.value,
        tflops=problem.flops / us / 1e6,
        best_tflops=best_rate(gemm),
        chance=choice["chance"],
        loss=choice["loss"],
        shortlist=listed,
        shortlist_chance=choice["shortlist_chance"],
    )


def find_bound(candidate: Candidate, problem: GemmProblem) -> str:
    """The longest part: each by itself, as if the others took no time."""
    gemm = candidate.gemm
    own = parameters_of(gemm.device, type_facts_of(gemm), candidate.correction)
    times = times_of(work_of(gemm, problem), own)
    parts = {
        "memory": times.memory,
        "the loop": times.loop,
        "operand feed": (times.fed**2 - times.loop**2) ** 0.5,
        "waits for operands": times.arrival,
        "launch": times.start,
        "the result's store": times.store,
        "sums of splits": times.split,
    }
    return max(parts, key=lambda name: parts[name])


def best_rate(gemm: TiledGemm) -> float:
    """The best TFLOP/s that anybody measured of the type, else what matrix units could do."""
    own = type_facts_of(gemm).best
    if own is not None:
        return own.value
    m, n, k = gemm.tile
    timing = gemm.device.timing
    return 2 * m * n * k / gemm.matrix_clocks * timing.compute_units.value * timing.clock.value / 1e6


def short_names(configurations: tuple[Configuration, ...]) -> dict[tuple[str, int], str]:
    """Tile, waves and split, and of a kernel's name what not all of them share."""
    words = {each.kernel: each.kernel.split("_") for each in configurations}
    shared = set.intersection(*map(set, words.values())) if words else set()
    short = {
        kernel: "_".join(word for place, word in enumerate(own) if place in (1, 2) or word not in shared)
        for kernel, own in words.items()
    }
    return {
        (each.kernel, each.split_k): short[each.kernel] + (f" split {each.split_k}" if each.split_k > 1 else "")
        for each in configurations
    }


def summarize(table: DeviceTable, rows: list[ShapeRow]) -> str:
    """One line about a device and a type."""
    asked = len(table.choices) + len(table.untuned)
    kernels = len({row.kernel for row in rows})
    decided = sum(row.decided for row in rows)
    lost = sum(row.loss for row in rows) / max(len(rows), 1)
    return (
        f"{table.device} {table.ranking.element}: {len(rows):,} of {asked:,} shapes have a kernel, {kernels} distinct; "
        f"{decided:,} of them are decided ({STATED:.0%} likely the fastest), the others have a shortlist; "
        f"expected loss {lost:.1%} in the mean"
    )


def basis_of(table: DeviceTable) -> str:
    """What the probabilities rest on."""
    facts, element = problem_facts_of(device_named(table.device)), table.ranking.element
    said = f"chances rest on the errors between kernels of {facts.compared}"
    why = next((each.uncalibrated for each in facts.types if each.element == element), "")
    return f"{said}; {element}: {why}" if why else said
