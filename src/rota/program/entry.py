"""One issued op of a lowered program: takes an op and its effect, gives a frozen `Entry`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rota.errors import Concern, SourceLine
from rota.program.effects import WORKGROUP, Effect
from rota.program.element import WIDEST
from rota.program.kinds import OpKind
from rota.program.origin import Origin
from rota.program.phase import Phase


class Work(NamedTuple):
    """`instructions` that one wave issues, each moving `moved` bytes for it; `instruction` names an MFMA.

    Where that takes elements of several formats, `bits` are those of its wider factor.
    """

    instructions: int
    moved: int = 0
    instruction: str = ""
    bits: int = WIDEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """An op by its kind and its own name.

    `name` is its identity: the declared op that it stands for, or how a wait or a barrier is written.  `copy`, where it
    says anything, tells apart the copies of one op in an unrolled loop.  `work` is None where nothing says what a wave
    issues for it.  `declared` is what the author wrote, which only the front end that lowered it can read.
    `origin` says what made it.
    """

    kind: OpKind
    name: str
    copy: int | None = None
    work: Work | None = field(default=None, compare=False)
    source: SourceLine | None = field(default=None, compare=False, repr=False)
    declared: object = field(default=None, compare=False, repr=False)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def is_framework(self) -> bool:
        """Added by rota rather than declared by the author."""
        return self.kind.synchronises

    def __str__(self) -> str:
        return self.name if self.copy is None else f"{self.name} s{self.copy}"

    def concern(self, index: int | None = None, role: str = "") -> Concern:
        """This op as one end of a finding."""
        return Concern(label=str(self), index=index, role=role, source=self.source)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Entry:
    """An op with its ordinal in its phase and what it does; a prefetch may be left out when no tile is left to fetch.

    `roles` number the roles that execute it; None stands for all of them.  An entry that isn't `listed` belongs to the
    roles and not to the schedule, whose lists leave it out: its `time_slot` is that of the next entry.
    """

    op: Op
    effect: Effect
    time_slot: int
    phase: Phase
    is_prefetch: bool = False
    roles: tuple[int, ...] | None = None
    listed: bool = True

    def __repr__(self) -> str:
        return f"<{self.phase.name.lower()} {self}>"

    def __str__(self) -> str:
        return f"{self.phase.at(self.time_slot)} {self.op}" + (" (prefetch)" if self.is_prefetch else "")

    @property
    def origin(self) -> Origin | None:
        """What made the entry, where the front end says so."""
        return self.op.origin

    def executed_by(self, role: int) -> bool:
        """Does the role execute it?"""
        return self.roles is None or role in self.roles

    def concern(self, role: str | None = None) -> Concern:
        """This entry as one end of a finding; by default with its phase."""
        phase = self.phase.value.lower()
        return replace(self.op.concern(self.time_slot, phase if role is None else role), phase=phase)


def wait_name(counter: str) -> str:
    """How a wait for a counter is called: wait_vm for vmcnt."""
    return f"wait_{counter.removesuffix('cnt')}"


def wait_op(counter: str, count: int) -> Op:
    """At most `count` tokens of the counter stay outstanding."""
    return Op(kind=OpKind.WAIT, name=f"{wait_name(counter)}({count})", work=Work(1))


def wait_effect(counter: str, count: int) -> Effect:
    """What such a wait does."""
    return Effect(kind=OpKind.WAIT, counter=counter, wait_value=count)


BARRIER = Op(kind=OpKind.BARRIER, name="barrier", work=Work(1))
"""All waves of the workgroup arrive before any leaves; waits for no memory."""

ARRIVE = Op(kind=OpKind.BARRIER, name="barrier_arrive", work=Work(1))
"""A wave signals its arrival and continues."""

AWAIT = Op(kind=OpKind.BARRIER, name="barrier_wait", work=Work(1))
"""A wave continues when all have arrived."""

MEETS = Effect(kind=OpKind.BARRIER, arrives=WORKGROUP, awaits=WORKGROUP)
"""What a barrier does that is one instruction."""


def barrier_ops(*, split: bool) -> tuple[tuple[Op, Effect], ...]:
    """The instructions by which all waves of a workgroup meet."""
    if not split:
        return ((BARRIER, MEETS),)
    return (
        (ARRIVE, Effect(kind=OpKind.BARRIER, arrives=WORKGROUP)),
        (AWAIT, Effect(kind=OpKind.BARRIER, awaits=WORKGROUP)),
    )
