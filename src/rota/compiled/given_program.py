"""A program supplied lowered: takes a `LoweredProgram`, gives a compiled schedule of it, to be proved like any other.

A front end that lowers its loops itself needs no class of its own for the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.program.entry import Entry
from rota.program.lowered import LoweredProgram
from rota.program.phase import Phase

if TYPE_CHECKING:
    from rota.sync.repair import Repaired


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompiledProgram(CompiledSchedule):
    """A lowered program as its maker `given` it; the phases are its entries, those that aren't listed too."""

    prologue: tuple[Entry, ...]
    kernel: tuple[Entry, ...]
    epilogue: tuple[Entry, ...]
    given: LoweredProgram

    @classmethod
    def of(cls, program: LoweredProgram) -> Self:
        """The program, not proved yet."""
        return cls(
            name=program.name,
            prologue=program.prologue,
            kernel=program.kernel,
            epilogue=program.epilogue,
            machine=program.machine,
            lds_bytes=program.lds_bytes,
            compiler_tracks_registers=program.compiler_tracks_registers,
            reentrant=program.reentrant,
            given=program,
        )

    @property
    def op_count(self) -> int:
        """Ops of one trip."""
        return sum(not entry.op.is_framework for entry in self.kernel)

    @property
    def registers(self) -> int | None:
        """What the program says."""
        return self.given.registers

    @property
    def register_limit(self) -> int:
        """What the program says, or else all that a lane has."""
        return self.given.register_limit or self.machine.vgprs_per_lane.value

    @property
    def quality(self) -> str:
        """Where the program comes from: nothing is known about its order."""
        return self.given.origin or "lowered by its author"

    def _lower(self) -> LoweredProgram:
        return replace(
            self.given,
            name=self.name,
            machine=self.machine,
            prologue=self.prologue,
            kernel=self.kernel,
            epilogue=self.epilogue,
            lds_bytes=self.lds_bytes,
            compiler_tracks_registers=self.compiler_tracks_registers,
            reentrant=self.reentrant,
        )

    def synchronised(self, done: Repaired) -> Self:
        """The program with waits and barriers added."""
        return replace(
            self,
            prologue=done.phases[Phase.PROLOGUE],
            kernel=done.phases[Phase.KERNEL],
            epilogue=done.phases[Phase.EPILOGUE],
            repairs=done.repairs,
        )
