"""The compiled schedule: one frozen value that later steps prove, draw and emit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from textwrap import indent
from typing import TYPE_CHECKING, Any, Self

from rota.errors import Finding, several
from rota.markup import card, fold, lines
from rota.printing import WrappedTuple
from rota.program.entry import Op, Origin
from rota.program.kinds import Phase
from rota.program.lowered import LoweredProgram, count_text, entry_lines, name_phases
from rota.program.machine import Machine
from rota.verify.report import Certificate, check_subject, was_issued

if TYPE_CHECKING:
    from rota.sync.repair import Repair, Repaired


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSchedule(ABC):
    """A pipelined loop: its phases, what it became as a program, and what was found on the way.

    The phases are the front end's own entries; `lowered` is what everything else reads.

    `compiler_tracks_registers` says that the back end's compiler waits for register loads by itself, as LLVM does for
    loads it can see.  A `reentrant` schedule may run again immediately after itself, as a persistent kernel does; any
    other needs full waits and a barrier between two runs.

    `repairs` lists what was added to make the proof hold; without a proof (`sync="as_written"`) there is no
    certificate.  Nor does a schedule keep one that is about another: what `replace` makes of a proved schedule has
    neither certificate nor repairs, but a warning (V108), if it differs in anything that the proof reads.
    """

    name: str
    prologue: tuple[Any, ...]
    kernel: tuple[Any, ...]
    epilogue: tuple[Any, ...]
    machine: Machine
    lds_bytes: int | None = None
    compiler_tracks_registers: bool = True
    reentrant: bool = False
    findings: tuple[Finding, ...] = ()
    repairs: tuple[Repair, ...] = ()
    certificate: Certificate | None = None
    _program: LoweredProgram | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for each in fields(self):
            if type(value := getattr(self, each.name)) is tuple:
                object.__setattr__(self, each.name, WrappedTuple(value))
        if self.certificate is not None:
            self._check_certificate(self.certificate)

    def _check_certificate(self, said: Certificate) -> None:
        """Remove a certificate about another program; prove one again that no proof of this process issued."""
        stale = check_subject(said.subject, self.lowered)
        if stale is None and not was_issued(said):
            from rota.verify.prove import verify  # loaded when a certificate was copied or made by hand

            object.__setattr__(self, "certificate", verify(self.lowered).certificate)
            stale = check_subject(None, self.lowered) if self.certificate is None else None
        if stale is not None:
            object.__setattr__(self, "certificate", None)
            object.__setattr__(self, "repairs", ())
            object.__setattr__(self, "findings", (*self.findings, stale))

    @property
    def lowered(self) -> LoweredProgram:
        """The program that every judge reads."""
        if self._program is None:
            object.__setattr__(self, "_program", self._lower())
        assert self._program is not None  # noqa: S101  # just set
        return self._program

    @abstractmethod
    def _lower(self) -> LoweredProgram:
        pass

    @abstractmethod
    def synchronised(self, done: Repaired) -> Self:
        """The schedule with waits and barriers added."""

    @property
    @abstractmethod
    def op_count(self) -> int:
        """Ops that the author declared."""

    @property
    @abstractmethod
    def registers(self) -> int | None:
        """Registers per lane that are live at once; None where nothing states it."""

    @property
    @abstractmethod
    def register_limit(self) -> int:
        pass

    @property
    @abstractmethod
    def quality(self) -> str:
        """How good the schedule is, and how that is known."""

    @property
    def speed(self) -> str | None:
        """What a model predicts beside that quality, where the two should be compared."""
        return None

    @property
    def grain(self) -> str | None:
        """How fine its ops are, where that is a choice."""
        return None

    @property
    def added(self) -> int:
        """How many waits and barriers a repair added or strengthened."""
        return len(self.repairs)

    @property
    def headline(self) -> tuple[str, ...]:
        """What a picture of the schedule says above it, besides speed."""
        return ()

    def planned(self, op: Op) -> str:
        """Where a plan put an op; empty without a plan."""
        return ""

    def body_index(self) -> Callable[[object], int | None]:
        """A function that gives an op's number in the author's body, if ops have numbers there."""
        return lambda _declared: None

    def uncounted(self, *, noted: bool = False) -> Iterable[Finding]:
        """Waits that count in vain because the author stated no counts; as notes where they do no harm."""
        return ()

    def phase(self, phase: Phase) -> tuple[Any, ...]:
        return {Phase.PROLOGUE: self.prologue, Phase.KERNEL: self.kernel, Phase.EPILOGUE: self.epilogue}[phase]

    def with_phase(self, phase: Phase, entries: Iterable[Any]) -> Self:
        """The same schedule with other entries in one phase, renumbered."""
        numbered = (replace(entry, time_slot=slot) for slot, entry in enumerate(entries))
        return replace(self, **name_phases({phase: numbered}))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.name}: {several(self.op_count, 'op')}, prologue {len(self.prologue)}, "
            f"kernel {len(self.kernel)}, epilogue {len(self.epilogue)} entries, "
            f"{several(len(self.findings), 'finding')}>"
        )

    def __str__(self) -> str:
        return self.listing()

    def origin(self, entry: Any) -> Origin | None:  # noqa: ANN401  # an entry of the front end's
        """What made an entry of this schedule: an op of the body, a hook, a knob, a derivation rule, a repair.

        Of a loop by values it is the op's declaration, or what a wait or barrier was put there for.
        """
        if entry.origin is not None or not self.repairs:
            made: Origin | None = entry.origin
        else:
            reasons = (
                each.reason for each in self.repairs if (each.phase, each.slot) == (entry.phase, entry.time_slot)
            )
            made = next((Origin(rule=reason) for reason in reasons), None)
        return made or (Origin(rule="declared", source=entry.op.source) if entry.op.source else None)

    def listing(self, *, why: bool = False) -> str:
        """The three phases, one entry a line, then the repairs with their reasons; with `why` what made each entry.

        An entry that a repair added has `+ added` at its end, a wait that it made stronger `~ was` and the old wait.
        Where every wait and barrier is rota's own, none is marked.
        """
        listed = (self._list_phase(phase, why=why) for phase in Phase)
        parts = ["\n".join([f"{self.name}: {head}", *entries]) for head, entries in listed]
        if self.repairs and not why:
            parts.append("\n".join([f"{self.name}: repairs", *(indent(str(each), "  ") for each in self.repairs)]))
        return "\n\n".join(parts)

    def _list_phase(self, phase: Phase, *, why: bool = False) -> tuple[str, list[str]]:
        changed = [each for each in self.repairs if each.phase is phase and self.added]
        marks = {each.slot: f"~ was {each.before}" if each.before else "+ added" for each in changed}
        entries = self.phase(phase)
        head, lines = f"{phase.value.lower()}: {count_text(entries)}", entry_lines(entries, marks)
        if not why:
            return head, lines
        wide = max(map(len, lines), default=0)
        causes = [self.origin(entry) for entry in entries]
        return head, [f"{line:{wide}}  {cause or ''}".rstrip() for line, cause in zip(lines, causes, strict=True)]

    def _repr_html_(self) -> str:
        proof, _, terms = str(self.certificate or "not proved").partition("\n")
        return card(
            repr(self).strip("<>"),
            lines("\n".join(filter(None, (self.quality, proof)))),
            fold(
                f"waits and barriers that were added: {len(self.repairs)}",
                "\n".join(each.sentence for each in self.repairs),
            ),
            fold(several(len(self.findings), "finding"), "\n\n".join(map(str, self.findings))),
            *(fold(head, "\n".join(entries)) for head, entries in map(self._list_phase, Phase)),
            fold("terms of the proof", terms),
            tone="ok" if self.certificate else "warning",
        )
