"""A kernel that compiles itself: takes a value with a `compile_for(machine)`, gives what that gives, proved.

This is how other front ends plug in: they lower whatever they declare, and rota proves, repairs, predicts, draws and
emits the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rota.check import expect, known
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.compiled.given_program import CompiledProgram
from rota.compiled.proved import proved, repaired
from rota.errors import DeclarationError, Finding
from rota.kernels.front_end import FrontEnd
from rota.kernels.own_machine import has_machine_field, own_machine
from rota.kernels.setting import OBLIGATIONS, Setting
from rota.program.lowered import LoweredProgram
from rota.program.machine import Machine

if TYPE_CHECKING:
    from rota.kernels.kernel import Kernel

_SYNC: dict[str, Callable[[CompiledSchedule], CompiledSchedule]] = {
    "as_written": lambda written: written,
    "repair": repaired,
    "strict": proved,
}


@runtime_checkable
class CompilesItself(Protocol):
    """Anything that knows how to become a program."""

    def compile_for(self, machine: Machine) -> CompiledSchedule | LoweredProgram:
        """The program for a machine: lowered, or as a compiled schedule of one of rota's own front ends."""
        ...


class ByItsAuthor(FrontEnd):
    """Takes programs as their author lowered them."""

    accepted = "a value with a compile_for(machine)"

    def __init__(self, kernel: Kernel, made: CompilesItself) -> None:
        super().__init__(kernel, made)
        self.made = made

    @classmethod
    def accepts(cls, made: object) -> bool:
        """Has it the method?"""
        return callable(getattr(made, "compile_for", None))

    def settings(self, parameters: Mapping[str, Setting]) -> dict[str, Setting]:
        """The machine, and what is done about waits that are missing."""
        found = {"sync": Setting("repair", str), **OBLIGATIONS}
        if not has_machine_field(self.made):
            found["machine"] = Setting(own_machine(self.made) or self.kernel.machine, Machine)
        return found

    def compiled(self, sync: str) -> CompiledSchedule:
        """What the author's method gives; what isn't proved yet is proved here."""
        treated = known(sync, _SYNC, f"sync={sync!r} is not a way to treat synchronisation")
        name, settings = self.kernel.name, {name: each.value for name, each in self.kernel.settings().items()}
        machine = expect(
            f"the machine of {name}", settings.get("machine") or own_machine(self.made) or self.kernel.machine, Machine
        )
        if not settings["vmcnt_in_order"]:
            machine = machine.doubting_dmas()
        written = _as_schedule(f"compile_for() of {name}", self.made.compile_for(machine))
        if "machine" in self.kernel.changes:
            self._check_machine(written.machine, machine)
        if not settings["vmcnt_in_order"]:  # a method that brings a machine of its own doesn't know of the doubt
            written = replace(written, machine=written.machine.doubting_dmas())
        if settings["reentrant"]:
            written = replace(written, reentrant=True)
        return written if written.certificate is not None else treated(written)

    def _check_machine(self, used: Machine, asked: Machine) -> None:
        """A method may bring a machine of its own, but not against one that the user asked for."""
        if (used.name, used.arch) != (asked.name, asked.arch):
            raise DeclarationError(
                Finding(
                    code="D105",
                    message=f"compile_for() of {self.kernel.name} gives a program for another machine than was set",
                    evidence=(("set", f"{asked.name} ({asked.arch})"), ("given", f"{used.name} ({used.arch})")),
                    fixes=("let compile_for(machine) lower for the machine that it is given",),
                )
            )


def _as_schedule(what: str, given: Any) -> CompiledSchedule:  # noqa: ANN401  # whatever the author's method gives
    if isinstance(given, LoweredProgram):
        return CompiledProgram.of(given)
    if isinstance(given, CompiledSchedule):
        return given
    raise DeclarationError(
        Finding(
            code="D104",
            message=f"{what} is {type(given).__name__}; expected a LoweredProgram or a CompiledSchedule",
            evidence=(("got", repr(given)[:80]),),
        )
    )
