"""A compiled kernel in one line: takes a `CompiledSchedule`, gives a `Summary` of what is known about it."""

from __future__ import annotations

from dataclasses import dataclass

from rota.compiler.compiled import CompiledSchedule
from rota.declare.values import LoopSpec, Work
from rota.errors import Severity, several
from rota.order.problem import Proof
from rota.program.listing import count_sync
from rota.program.moves import count_moved
from rota.targets.rates import CLOCKS_PER_SLOT

_LONGEST_VALU = 4  # slots of one vector instruction: exponentials and the like have a quarter of the rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What `rota check` says; None where the schedule doesn't state it.

    Barriers and waits are those of one trip; `added` counts what a repair put in, in all phases.
    """

    kernel: str
    machine: str
    ops: int
    grain: str | None
    quality: str
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
    loop = compiled.loop
    sync = count_sync(compiled.kernel)
    return Summary(
        kernel=kernel,
        machine=compiled.machine.name,
        ops=len(compiled.body) if loop is None else len(loop.ops),
        grain=None if loop is None else grain_of(loop),
        quality=_quality(compiled),
        lds_bytes=compiled.lds_bytes,
        lds_limit=compiled.machine.lds_bytes.value,
        registers=compiled.registers,
        register_limit=compiled.register_limit,
        barriers=sync.barriers,
        waits=sync.waits,
        added=len(compiled.repairs) if loop is None else 0,
        warnings=sum(finding.severity is Severity.WARNING for finding in compiled.findings),
        notes=sum(finding.severity is Severity.NOTE for finding in compiled.findings),
        proved=compiled.certificate is not None,
    )


def grain_of(loop: LoopSpec) -> str:
    """How fine the ops of a loop by values are; a vector op takes a slot per instruction, an exponential four."""
    single = (op.instructions == 1 or (op.work is Work.VALU and op.instructions <= _LONGEST_VALU) for op in loop.ops)
    return "by instruction" if all(single) else "in tiles"


def _quality(compiled: CompiledSchedule) -> str:
    """The interval and its proof, or else how good the order of one iteration is."""
    if compiled.modulo is not None:
        proof = compiled.modulo.certificate
        clocks, lower = (slots * CLOCKS_PER_SLOT for slots in (compiled.modulo.ii, proof.lower))
        known = "proven least" if proof.optimal else f"at least {lower:,}"
        return f"II {clocks:,} clk ({known}{proof.scope})"
    if compiled.ordering is None:
        return _order_kept("the body's order", compiled)
    makespan, certificate = compiled.ordering.makespan, compiled.ordering.certificate
    if certificate.proof is Proof.NONE:
        known = "the body's order" if certificate.by == "identity" else f"by {certificate.by}"
    else:
        known = "proven least" if certificate.proof is Proof.OPTIMAL else f"at least {certificate.bound:,}"
    return f"makespan {makespan:,} ({_order_kept(known, compiled)})"


def _order_kept(known: str, compiled: CompiledSchedule) -> str:
    """What is known about an order holds for it as it was before blocks and hooks moved ops."""
    moved = count_moved(compiled.findings)
    return f"{known}, before {moved} of {len(compiled.body)} ops moved" if moved else known


def _kib(size: int) -> str:
    return f"{size / 1024:g}"
