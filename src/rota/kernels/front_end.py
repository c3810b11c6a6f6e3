"""What an author wrote, as a kernel: takes nothing, gives `FrontEnd`, one subclass for each way to write one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.kernels.setting import Setting
from rota.pipeline.geometry import KernelGeometry

if TYPE_CHECKING:
    from rota.kernels.kernel import Kernel
    from rota.pipeline.tile_shape import TileShape


class FrontEnd(ABC):
    """A kernel and what its source made, in the terms of the way in which it was written."""

    accepted: ClassVar[str]
    """What it accepts, in words."""

    def __init__(self, kernel: Kernel, made: object) -> None:
        self.kernel = kernel

    @classmethod
    @abstractmethod
    def accepts(cls, made: object) -> bool:
        """Was this written for this front end?"""

    @abstractmethod
    def settings(self, parameters: Mapping[str, Setting]) -> dict[str, Setting]:
        """The settings that a kernel of this kind has beside its parameters."""

    @abstractmethod
    def compiled(self, sync: str) -> CompiledSchedule:
        """The schedule: `sync` says what is done about waits and barriers that are missing."""

    def geometry(self) -> KernelGeometry:
        """The workgroup's tile and the matrix instruction, for a GEMM to be emitted: the setting of that name."""
        settings = self.kernel.settings()
        given = settings["geometry"].value if "geometry" in settings else None
        return given if isinstance(given, KernelGeometry) else KernelGeometry()

    def shape(self) -> TileShape | None:
        """What a prediction needs for a body declared in tiles; other programs say it themselves."""
        return None
