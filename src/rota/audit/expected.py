"""What machine code should hold: takes a planned schedule, gives the `ExpectedEvent`s of each phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rota.audit.machine_loop import Kind
from rota.compiler.compiled import CompiledSchedule
from rota.declare.effects import Action
from rota.declare.values import Work
from rota.declare.vocabulary import FrameworkTag, Phase
from rota.emit.gemm_binding import GemmBinding
from rota.emit.gemm_instructions import Dma, Instruction, LdsRead, Mfma
from rota.errors import Finding, IsaError
from rota.program.loop import Step, steps_of

_KINDS: dict[type, Kind] = {Dma: Kind.DMA, LdsRead: Kind.READ, Mfma: Kind.MFMA}
_SYNC = {
    FrameworkTag.WAIT_VM: Kind.WAIT,
    FrameworkTag.WAIT_LGKM: Kind.WAIT,
    FrameworkTag.BARRIER: Kind.BARRIER,
    FrameworkTag.SET_PRIO: Kind.PRIORITY,
}
_COUNTED = {Action.DMA: Kind.DMA, Action.LDS_READ: Kind.READ, Action.LDS_WRITE: Kind.WRITE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedEvent:
    """One event of an entry; for a GEMM whose addresses are known, with what it is bound to."""

    kind: Kind
    step: Step
    bound: Instruction | None = None


Expected = Mapping[Phase, tuple[ExpectedEvent, ...]]


def expected_gemm(planned: CompiledSchedule, binding: GemmBinding) -> Expected:
    """The events of an emitted GEMM, every instruction with its coordinates."""

    def events(step: Step) -> Iterator[ExpectedEvent]:
        for bound in binding.instructions(step):
            yield ExpectedEvent(kind=_KINDS[type(bound)], step=step, bound=bound)

    return _expected(planned, events)


def expected_counts(planned: CompiledSchedule) -> Expected:
    """The events of a skeleton whose functions issue what the loop declares: as many instructions as each op has."""
    loop = planned.loop
    if loop is None:
        raise IsaError(
            Finding(code="I201", message="only a loop by values says how many instructions each of its ops is")
        )

    def events(step: Step) -> Iterator[ExpectedEvent]:
        if not step.entry.op.is_framework:
            op = loop.ops[step.entry.op.subtile]
            kind = _COUNTED.get(step.effect.action) or (Kind.MFMA if op.work is Work.MMA else Kind.VALU)
            for _ in range(op.instructions):
                yield ExpectedEvent(kind=kind, step=step)

    return _expected(planned, events)


def _expected(planned: CompiledSchedule, data: Callable[[Step], Iterator[ExpectedEvent]]) -> Expected:
    steps = steps_of(planned)
    return {phase: tuple(event for step in steps.phase(phase) for event in _of(step, data)) for phase in Phase}


def _of(step: Step, data: Callable[[Step], Iterator[ExpectedEvent]]) -> Iterator[ExpectedEvent]:
    if not step.entry.op.is_framework:
        yield from data(step)
    elif (kind := _SYNC.get(FrameworkTag(step.entry.op.tag))) is not None:
        yield ExpectedEvent(kind=kind, step=step)
