"""A kernel with its settings: takes what an author wrote, gives a `Kernel` that can be changed and compiled.

An author writes a `PipelineSchedule` class or value, a `LoopSpec`, a value with a `loop()` such as `GemmShape`, a value
with a `compile_for(machine)`, or a function that returns one of these.  The parameters of the class or function are
settings, and so are the fields of every dataclass among them.  A machine that the author names, in a field, a parameter
or a method `machine`, stands until a setting says otherwise.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import DeclarationError, Finding
from rota.kernels.by_its_author import ByItsAuthor
from rota.kernels.by_stages import ByStages
from rota.kernels.by_values import ByShape, ByValues
from rota.kernels.front_end import FrontEnd
from rota.kernels.setting import Setting, called, is_maker, parameters_of, same_kind
from rota.pipeline.geometry import KernelGeometry
from rota.program.machine import Machine
from rota.targets.default import DEFAULT

if TYPE_CHECKING:
    from rota.pipeline.tile_shape import TileShape

FRONT_ENDS: tuple[type[FrontEnd], ...] = (ByStages, ByValues, ByItsAuthor, ByShape)
"""The ways in which a kernel can be written; the first that accepts it takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What can be compiled; `changes` are settings that differ from what the author wrote.

    `machine` is for a loop whose author names none.  `geometry` and `waves` say what the ops of a body declared in
    tiles stand for, for predictions alone.
    """

    name: str
    source: object
    about: str = ""
    machine: Machine = DEFAULT
    waves: int | None = None
    changes: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    def but(self, name: str, value: object) -> Kernel:
        """The same kernel with one setting changed."""
        return replace(self, changes=MappingProxyType({**self.changes, name: value}))

    @property
    def parameters(self) -> dict[str, Setting]:
        """The settings from which the source makes everything, as they stand."""
        found = parameters_of(self.source)
        return {name: setting._replace(value=self.changes.get(name, setting.value)) for name, setting in found.items()}

    def settings(self) -> dict[str, Setting]:
        """Every setting by name, as it stands."""
        found = parameters_of(self.source)
        missing = [name for name, setting in found.items() if setting.value is inspect.Parameter.empty]
        if not any(name not in self.changes for name in missing):
            further = self.written().settings(found)
            found |= {name: each for name, each in further.items() if not same_kind(found.get(name), each)}
        return {name: setting._replace(value=self.changes.get(name, setting.value)) for name, setting in found.items()}

    def compile(self) -> CompiledSchedule:
        """The schedule, proved; wrong ones end in a `RotaError`."""
        return self.written().compiled(str(self.changes.get("sync", "repair")))

    def as_written(self) -> CompiledSchedule:
        """The schedule as its author wrote it, unproved; a loop by values is synchronised by rota in any case."""
        return self.written().compiled("as_written")

    def shape(self) -> TileShape | None:
        """What a prediction needs for a body declared in tiles; loops by values say it themselves."""
        return self.written().shape()

    def geometry(self) -> KernelGeometry:
        """The workgroup's tile and the matrix instruction, for a GEMM to be emitted."""
        return self.written().geometry()

    def written(self) -> FrontEnd:
        """What the source makes of the parameters that were changed or have no default, as its front end sees it."""
        made = called(self.source, self.changes, self.name) if is_maker(self.source) else self.source
        front_end = front_end_of(made)
        if front_end is None:
            ways = ", ".join(each.accepted for each in FRONT_ENDS)
            raise DeclarationError(
                Finding(
                    code="D104",
                    message=f"{self.name} is {type(made).__name__}; expected {ways}, "
                    "or a class or function that gives one",
                    evidence=(("got", repr(made)[:80]),),
                )
            )
        return front_end(self, made)


def front_end_of(made: object) -> type[FrontEnd] | None:
    """The front end for which a value was written."""
    return next((each for each in FRONT_ENDS if each.accepts(made)), None)
