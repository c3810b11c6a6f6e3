"""A compiled kernel in one line: takes a `CompiledSchedule`, gives a `Summary` of what is known about it."""

from __future__ import annotations

from dataclasses import dataclass

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import Severity, several
from rota.program.listing import count_sync


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What `rota check` says; None where the schedule doesn't state it.

    Barriers and waits are those of one trip; `added` counts what a repair added, in all phases.
    """

    kernel: str
    machine: str
    ops: int
    grain: str | None
    quality: str
    speed: str | None
    lds_bytes: int | None
    lds_limit: int
    registers: int | None
    register_limit: int
    barriers: int
    waits: int
    added: int
    warnings: int
    notes: int
    proved: bool

    def __str__(self) -> str:
        parts = [f"ok  {self.kernel}", " ".join(filter(None, [several(self.ops, "op"), self.grain])), self.quality]
        if self.speed is not None:
            parts.append(self.speed)
        if self.lds_bytes is not None:
            parts.append(f"LDS {_kib(self.lds_bytes)}/{_kib(self.lds_limit)} KiB")
        if self.registers is not None:
            parts.append(f"VGPR {self.registers}/{self.register_limit}")
        parts += [several(self.barriers, "barrier"), several(self.waits, "wait")]
        if self.added:
            parts.append(f"{self.added} added by repair")
        parts += [several(count, word) for count, word in ((self.warnings, "warning"), (self.notes, "note")) if count]
        return "  ".join([*parts, "proved for every trip count" if self.proved else "not proved, as written"])


def summarise(kernel: str, compiled: CompiledSchedule) -> Summary:
    """What is known about a schedule that has no errors."""
    sync = count_sync(compiled.kernel)
    return Summary(
        kernel=kernel,
        machine=compiled.machine.name,
        ops=compiled.op_count,
        grain=compiled.grain,
        quality=compiled.quality,
        speed=compiled.speed,
        lds_bytes=compiled.lds_bytes,
        lds_limit=compiled.machine.lds_bytes.value,
        registers=compiled.registers,
        register_limit=compiled.register_limit,
        barriers=sync.barriers,
        waits=sync.waits,
        added=compiled.added,
        warnings=sum(finding.severity is Severity.WARNING for finding in compiled.findings),
        notes=sum(finding.severity is Severity.NOTE for finding in compiled.findings),
        proved=compiled.certificate is not None,
    )


def _kib(size: int) -> str:
    return f"{size / 1024:g}"
