"""A kernel by values: takes a `LoopSpec`, or a shape that gives one, gives its settings and its compiled loop."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rota.check import expect
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.kernels.front_end import FrontEnd
from rota.kernels.own_machine import check_instructions, has_machine_field, own_machine
from rota.kernels.setting import OBLIGATIONS, Setting, called, parameters_of
from rota.pipeline.geometry import KernelGeometry
from rota.program.loop_spec import LoopSpec
from rota.program.machine import Machine

if TYPE_CHECKING:
    from rota.kernels.kernel import Kernel


@runtime_checkable
class LoopShape(Protocol):
    """A value that gives a loop, as `GemmShape` does."""

    @property
    def loop(self) -> Callable[..., LoopSpec]:
        """Makes the loop; its keyword parameters are settings."""
        ...


class ByValues(FrontEnd):
    """Compiles a loop as it is declared."""

    accepted = "a LoopSpec"

    def __init__(self, kernel: Kernel, made: object) -> None:
        super().__init__(kernel, made)
        self.made: Any = kernel.changes.get("loop", made)

    @classmethod
    def accepts(cls, made: object) -> bool:
        """Is it a loop?"""
        return isinstance(made, LoopSpec)

    def loop(self) -> LoopSpec:
        """The loop."""
        return expect(f"the loop of {self.kernel.name}", self.made, LoopSpec)

    def settings(self, parameters: Mapping[str, Setting]) -> dict[str, Setting]:
        """The loop, and how it is compiled."""
        from rota.order.modulo.scheduler import ModuloScheduler

        found = self._declared()
        if not has_machine_field(self.made):
            found["machine"] = Setting(own_machine(self.made) or self.kernel.machine, Machine)
        return found | {
            "stagger": Setting(value=False, kind=bool),
            "remainder": Setting(0, int),
            "scheduler": Setting(ModuloScheduler(), ModuloScheduler),
            **OBLIGATIONS,
        }

    def _declared(self) -> dict[str, Setting]:
        return {"loop": Setting(self.made, LoopSpec)}

    def compiled(self, sync: str) -> CompiledSchedule:
        """The loop, synchronised by rota in any case."""
        from rota.values.compile_loop import compile_loop

        kernel, settings = self.kernel, self.kernel.settings()
        asked = {name: kernel.changes[name] for name in OBLIGATIONS if name in kernel.changes}
        options: dict[str, Any] = {name: settings[name].value for name in ("remainder", "stagger", "scheduler")} | asked
        loop = self.loop()
        said = settings["machine"].value if "machine" in settings else own_machine(self.made)
        machine = expect(f"the machine of {kernel.name}", said or kernel.machine, Machine)
        check_instructions(loop, machine)
        return compile_loop(loop, machine, **options)


class ByShape(ByValues):
    """Compiles the loop that a shape gives."""

    accepted = "a value with a loop()"

    def __init__(self, kernel: Kernel, made: object) -> None:
        super().__init__(kernel, made)
        self.made = kernel.changes.get("shape", made)

    @classmethod
    def accepts(cls, made: object) -> bool:
        """Has it a method that gives a loop?"""
        return callable(getattr(made, "loop", None))

    def loop(self) -> LoopSpec:
        """What the shape gives for the parameters that are set."""
        name = self.kernel.name
        return expect(f"what {name} gives", called(self.made.loop, self.kernel.changes, f"loop() of {name}"), LoopSpec)

    def _declared(self) -> dict[str, Setting]:
        found = parameters_of(self.made.loop)
        if inspect.isclass(self.kernel.source):  # its parameters are the shape's fields
            return found
        return {"shape": Setting(self.made, type(self.made)), **found}

    def geometry(self) -> KernelGeometry:
        """The shape's own, if it says one; else the setting of that name."""
        own = getattr(self.made, "geometry", None)
        return own if isinstance(own, KernelGeometry) else super().geometry()
