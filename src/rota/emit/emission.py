"""What is asked of an emitter: takes a compiled schedule and what it is for, gives one frozen value.

An emitter is a function of an `Emission` that gives text.  It reads the `program`; the workgroup's tile and the shape
of the ops are there too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.pipeline.geometry import KernelGeometry
from rota.program.lowered import LoweredProgram

if TYPE_CHECKING:
    from rota.pipeline.tile_shape import TileShape


class Described(Protocol):
    """What a schedule is for, beyond what it says itself."""

    def geometry(self) -> KernelGeometry:
        """The workgroup's tile and the matrix instruction."""
        ...

    def shape(self) -> TileShape | None:
        """What the ops of a body declared in tiles stand for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """A schedule to be emitted; `variant` are the words that tell its settings from others of the same kernel.

    `options` are what the caller asks of the form, as words.
    """

    compiled: CompiledSchedule
    kernel: Described
    variant: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def program(self) -> LoweredProgram:
        """What is to be written."""
        return self.compiled.lowered

    @property
    def named(self) -> CompiledSchedule:
        """The schedule under a name of its own, so that different settings of a kernel can be one program."""
        return replace(self.compiled, name="_".join([self.compiled.name, *self.variant]))


Emitter: TypeAlias = Callable[[Emission], str]
