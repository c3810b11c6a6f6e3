"""What machine code should hold: takes a planned schedule, gives the `ExpectedEvent`s of each phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_instructions import BoundInstruction
from rota.emit.text.sync_text import is_alone
from rota.errors import Finding, IsaError
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable
from rota.program.phase import Phase

_SYNC = (OpKind.WAIT, OpKind.BARRIER, OpKind.PRIORITY)  # of those that synchronise, what is an instruction
_LIKE = {OpKind.TRANSCENDENTAL: OpKind.VALU}  # in machine code both are opcodes that the author names


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedEvent:
    """One event of an entry; for a GEMM whose addresses are known, with what it is bound to.

    What is `alone` isn't executed by every role; `opcode` is set where nothing is bound but the instruction is known.
    """

    kind: OpKind
    entry: Entry
    bound: BoundInstruction | None = None
    alone: bool = False
    opcode: str = ""


Expected = Mapping[Phase, tuple[ExpectedEvent, ...]]


def expected_gemm(planned: Lowerable, binding: GemmBinding) -> Expected:
    """The events of an emitted GEMM, every instruction with its coordinates."""

    def events(entry: Entry) -> Iterator[ExpectedEvent]:
        for bound in binding.instructions(entry):
            yield ExpectedEvent(kind=entry.op.kind, entry=entry, bound=bound)

    return _expected(planned, events)


def expected_counts(planned: Lowerable) -> Expected:
    """The events of a skeleton whose functions issue what is declared: as many instructions as each op has."""

    def events(entry: Entry) -> Iterator[ExpectedEvent]:
        if entry.op.work is None:
            raise IsaError(
                Finding(
                    code="I201",
                    message=f"{entry.op} doesn't say how many instructions it is, so none can be told to be its own",
                    concerns=(entry.concern(),),
                )
            )
        for _ in range(entry.op.work.instructions):
            yield ExpectedEvent(kind=_LIKE.get(entry.op.kind, entry.op.kind), entry=entry)

    return _expected(planned, events)


def expected_opcodes(planned: Lowerable, opcodes: Callable[[Entry], Sequence[str]]) -> Expected:
    """The events of source whose instructions are known one by one."""

    def events(entry: Entry) -> Iterator[ExpectedEvent]:
        for opcode in opcodes(entry):
            yield ExpectedEvent(kind=_LIKE.get(entry.op.kind, entry.op.kind), entry=entry, opcode=opcode)

    return _expected(planned, events)


def _expected(planned: Lowerable, data: Callable[[Entry], Iterator[ExpectedEvent]]) -> Expected:
    program = planned.lowered

    def events(entry: Entry) -> Iterator[ExpectedEvent]:
        if not entry.op.is_framework:
            yield from data(entry)
        elif entry.op.kind in _SYNC:
            yield ExpectedEvent(kind=entry.op.kind, entry=entry, alone=is_alone(program, entry))

    return {phase: tuple(event for entry in program.phase(phase) for event in events(entry)) for phase in Phase}
