"""What a whole kernel's time rests on: takes numbers fitted to measured runs, gives them with bands and sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from rota.check import check_elements, check_types, known


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
    """The parameters of `rota.predict.time_model`, those of all types and of each.

    `start` is launch, first loads and last store; `share` how fast tuned loops go, as part of what their clocks say;
    `feed` what a compute unit gets of its operands; `hbm` what large streams reach; `store` what results are written
    with; a split of K costs `split_start`, and its partial sums cross the memory `split_traffic` times.

    `band` is for types that were measured, `wide_band` for those that were not; two kernels whose predicted times
    differ by less than `apart` can't be told apart; `measured` says on what all that rests.
    """

    start: Fitted
    share: Fitted
    feed: Fitted
    hbm: Fitted
    store: Fitted
    split_start: Fitted
    split_traffic: Fitted
    types: tuple[TypeFacts, ...]
    band: Spread
    wide_band: Spread
    apart: float
    measured: str

    def __post_init__(self) -> None:
        check_types(self, {"measured": str, "band": Spread, "wide_band": Spread, "apart": float})
        check_elements("types", self.types, TypeFacts)

    @property
    def elements(self) -> tuple[str, ...]:
        """The types that have facts."""
        return tuple(each.element for each in self.types)

    def type_facts(self, element: str, device: str) -> TypeFacts:
        """The facts of a type."""
        each = {one.element: one for one in self.types}
        return known(element, each, f"{device} has no facts about products of {element!r}")


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
    return replace(facts, hbm=scaled, types=types, band=facts.wide_band, measured=f"nothing; as {sibling}")
