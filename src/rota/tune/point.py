"""A loop to be scheduled: takes tile, waves, instruction and settings, gives a `LoopPoint` with a key of its content.

The key is a digest of all that the schedule and its clocks depend on: the loop, the device's facts, the settings, the
seed, rota's own code and the solver's version.  M, N and K are not among them: one proof covers every trip count.  Nor
are the facts about whole problems: they belong to the formula.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any, Protocol, cast

from rota.check import bad_field, check_ints, check_seconds, check_types, is_int
from rota.errors import DeclarationError, Finding
from rota.kernels.gemm import GemmShape
from rota.pipeline.geometry import KernelGeometry, check_waves
from rota.program.loop_spec import LoopSpec
from rota.solver.memory import canonical, code_digest, solver_version
from rota.solver.outcome import LARGEST_SEED
from rota.targets.device import Device
from rota.targets.mfma import element_bytes_named
from rota.targets.registry import ARCHITECTURES, BUILT_IN, device_named
from rota.version import __version__

FORMAT = 1
_ENDINGS = {"bf16": ("_bf16",), "fp16": ("_f16",), "fp8": ("_f8f6f4", "_fp8_fp8")}
_WIDEST_READ = 16  # bytes that a lane gets with one LDS read
_DECIDE = ("compiled", "cycles", "emit", "order", "predict", "program", "solver", "sync", "targets", "values", "verify")
"""The folders whose code decides what becomes of a loop."""


class ShapeOfLoop(Protocol):
    """What a maker of one's own gives: `GemmShape` is one."""

    @property
    def geometry(self) -> KernelGeometry:
        """The workgroup's tile and the matrix instruction."""
        ...

    def loop(self, *, instructions: bool = True) -> LoopSpec:
        """The loop in single instructions, or in quadrants."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPoint:
    """Everything that a loop's schedule depends on, as numbers and words.

    `mma` is the side of the matrix instruction, whose depth the device decides; `depth` the most copies of a tile in
    LDS; `slack` how many slots late a load may be; None leaves both to rota.  `instructions` makes every instruction an
    op, else a quadrant is one.  `effort` bounds the search, in seconds as `rota.solver.effort` counts them.  `make`
    names a function, as package.module:function, that gives the shape of a loop of one's own for a point.
    """

    device: str
    element: str = "bf16"
    tile: tuple[int, int, int] = (256, 256, 64)
    waves: int = 8
    mma: int = 16
    depth: int | None = None
    stagger: bool = False
    fewest_barriers: bool = False
    slack: int | None = None
    instructions: bool = True
    seed: int = 0
    effort: float = 60.0
    make: str = ""

    def __post_init__(self) -> None:
        check_types(self, {"device": str, "element": str, "tile": tuple, "make": str})
        check_types(self, {"stagger": bool, "fewest_barriers": bool, "instructions": bool})
        check_waves(self, self.waves)
        check_ints(self, ("mma",), least=1)
        check_ints(self, ("seed",), most=LARGEST_SEED)
        check_seconds(self, "effort", zero=True)
        sides: tuple[object, ...] = self.tile
        if len(sides) != 3 or not all(isinstance(each, int) and is_int(each) and each > 0 for each in sides):
            raise bad_field(self, "tile", self.tile, "three whole numbers above 0, as 256x256x64")
        if self.element not in _ENDINGS:
            raise bad_field(self, "element", self.element, ", ".join(_ENDINGS))
        for name, least in (("depth", 1), ("slack", 0)):
            if getattr(self, name) is not None:
                check_ints(self, (name,), least=least)

    @property
    def name(self) -> str:
        """What tells it from the other points of a space, as part of a kernel's name."""
        words = [self.element, "x".join(map(str, self.tile)), f"w{self.waves}", f"mma{self.mma}"]
        words += [f"d{self.depth}"] if self.depth is not None else []
        words += [f"s{self.slack}"] if self.slack is not None else []
        words += [
            word
            for word, said in (
                ("stagger", self.stagger),
                ("fewest", self.fewest_barriers),
                ("quadrants", not self.instructions),
            )
            if said
        ]
        words += [f"seed{self.seed}"] if self.seed else []
        words += [self.make.rpartition(":")[2]] if self.make else []
        return "_".join([*words, self.device.lower()])

    @property
    def target(self) -> Device:
        """The device."""
        return device_named(self.device)

    def shape(self) -> ShapeOfLoop:
        """The shape: a GEMM's, or what the maker gives."""
        if self.make:
            return _maker(self.make)(self)
        device = self.target
        instruction, depth = instruction_of(device, self.element, self.mma)
        size = element_bytes_named(instruction)
        rows, columns, k = self.tile
        operand = self.mma * depth * size // device.lanes.value
        return GemmShape(
            name=self.name,
            instruction=instruction,
            mma=(self.mma, depth),
            rows=rows,
            columns=columns,
            depth=k,
            waves=self.waves,
            element_bytes=size,
            dma_bytes=device.dma_width.value,
            read_bytes=min(_WIDEST_READ, operand),
        )

    def loop(self) -> LoopSpec:
        """What is scheduled; D102 where the numbers don't fit together."""
        return self.shape().loop(instructions=self.instructions)

    def key(self) -> str:
        """The digest."""
        said = [FORMAT, _facts(self.device), canonical(self.loop()), asdict(self), *versions()]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def point_of(data: Mapping[str, Any]) -> LoopPoint:
    """A point from JSON."""
    own = {each.name for each in fields(LoopPoint)}
    values = {name: value for name, value in data.items() if name in own}
    return LoopPoint(**{**values, "tile": tuple(values["tile"])})


def instruction_of(device: Device, element: str, side: int) -> tuple[str, int]:
    """The matrix instruction of a device for an element and a side, and its depth; L110 if it has none."""
    known = device.rates.mfma_passes
    for ending in _ENDINGS[element]:
        found = [name for name in known if f"_{side}x{side}x" in name and name.endswith(ending) and "scale" not in name]
        if found:
            return found[0], int(found[0].split(f"_{side}x{side}x")[1].split("_")[0])
    raise DeclarationError(
        Finding(
            code="L110",
            message=f"{device.name} has no matrix instruction of {side}x{side} for {element}",
            evidence=(("known", ", ".join(known)),),
            fixes=("mma = 16 or 32; bf16, fp16 or fp8",),
        )
    )


def versions() -> tuple[str, str, str]:
    """rota's version, the digest of its code as far as it decides about loops, and the solver's version.

    Modules of facts are left out: facts are part of a key by value, those of the key's own device alone.
    """
    facts = {place.partition(":")[0].rpartition(".")[2] for place in (*BUILT_IN.values(), *ARCHITECTURES.values())}
    return __version__, code_digest(_DECIDE, frozenset(facts)), solver_version()


@cache
def _facts(device: str) -> str:
    """A device without what is known about whole problems."""
    return json.dumps(canonical(replace(device_named(device), problems=None)), sort_keys=True)


def _maker(place: str) -> Callable[[LoopPoint], ShapeOfLoop]:
    module, _, name = place.partition(":")
    try:
        return cast("Callable[[LoopPoint], ShapeOfLoop]", getattr(importlib.import_module(module), name))
    except (ImportError, AttributeError, ValueError) as error:
        raise DeclarationError(
            Finding(
                code="D105",
                message=f"no function {place!r:.80} makes loops: {error}",
                fixes=("make = package.module:function, of a module that can be imported wherever workers run",),
            )
        ) from error
