"""A device: takes an architecture and the device's own facts, gives one object that holds all that is known about it.

The accessors take any `Machine`, as every layer knows it, and refuse one that doesn't state what they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from types import NoneType

from rota.check import check_types
from rota.program.machine import Fact, Machine
from rota.targets.architecture import Architecture, lacks
from rota.targets.problem_facts import ProblemFacts
from rota.targets.rates import Rates
from rota.targets.timing import Timing


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
        """What a compute unit does per clock."""
        return self.timing.rates

    @property
    def architecture(self) -> Architecture:
        """What it shares with the other devices of its architecture, under the architecture's name."""
        shared = {each.name: getattr(self, each.name) for each in fields(Architecture)}
        return Architecture(**{**shared, "name": self.arch})

    def registers_per_lane(self, waves: int) -> int:
        """What a lane has of its SIMD's registers, which so many waves of a workgroup share."""
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
    """A device of an architecture."""
    shared = {each.name: getattr(architecture, each.name) for each in fields(Architecture)}
    own = {"timing": timing, "dies": dies, "memory": memory, "memory_rate": memory_rate, "problems": problems}
    return Device(**{**shared, "name": name, **own})


def device_of(machine: Machine) -> Device:
    """The machine itself, if it is a device."""
    if not isinstance(machine, Device):
        raise lacks(machine, "its rates and times")
    return machine


def rates_of(machine: Machine) -> Rates:
    """The rates that a machine states."""
    return device_of(machine).rates


def timing_of(machine: Machine) -> Timing:
    """The timing that a machine states."""
    return device_of(machine).timing


def registers_per_lane(machine: Machine, waves: int) -> int:
    """What a lane of a machine has of its SIMD's registers."""
    return device_of(machine).registers_per_lane(waves)


def problem_facts_of(machine: Machine) -> ProblemFacts:
    """What a device states about whole kernels."""
    facts = device_of(machine).problems
    if facts is None:
        raise lacks(machine, "how long whole kernels take: their start, operand feed and sustained clocks")
    return facts
