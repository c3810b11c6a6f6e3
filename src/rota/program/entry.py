"""Entries of a lowered program: an op, its effect on the machine, and what made it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import NamedTuple

from rota.errors import Concern, SourceLine
from rota.program.kinds import WIDEST, OpKind, Phase

# What an op does to the machine.
#
# An effect is the semantics of an op: the proof and the executor both read it, each with an algorithm of its own
# (see docs/machine_model.md).

WORKGROUP = "workgroup"
"""The barrier at which all waves of a workgroup meet."""


class Space(enum.Enum):
    __hash__ = object.__hash__  # members are single; an enum's own hash is Python code, and places are keys everywhere

    LDS = "LDS"  # shared by the workgroup; each wave writes its own slice of a tile and reads the whole
    REGISTER = "register"  # private to a wave
    ACCUMULATOR = "accumulator"  # private to a wave; only computes touch it
    MEMORY = "memory"  # global; the loop writes it and never reads it

    @property
    def is_private(self) -> bool:
        """True if each wave has its own."""
        return self in (Space.REGISTER, Space.ACCUMULATOR)


class Place(NamedTuple):
    """Something that ops read and write: a named thing, which copy of it, and which part of that copy.

    An LDS tile has as many parts as ops write it. Of an accumulator grid, copy and part are row and column.
    """

    space: Space
    name: str
    copy: int = 0
    part: int = 0

    def __str__(self) -> str:
        if self.space is Space.LDS:
            return f"LDS {self.name}[{self.copy}][{self.part}]"
        if self.space is Space.ACCUMULATOR:
            return f"accumulator {self.name}[{self.copy},{self.part}]"
        return f"{'registers' if self.space is Space.REGISTER else 'memory'} {self.name}[{self.copy}]"


class Version(NamedTuple):
    """A value, or an op, of one iteration; in an effect the iteration counts from the trip's k."""

    name: str
    iteration: int

    def at(self, k: int) -> Version:
        """The same version, counted from iteration 0."""
        return Version(self.name, self.iteration + k)

    def __str__(self) -> str:
        return f"{self.name} of iteration {self.iteration}"


NOTHING_DECLARED = Version("", 0)
"""The instance of an effect that belongs to no op of a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One op as the machine sees it.

    An op appends `tokens` to `counter` when it issues; a wait leaves at most `wait_value` of them pending. `arrives`
    and `awaits` name a barrier: a wave signals its arrival, and continues when all participants have arrived; an
    ordinary barrier does both. A priority has its level in `wait_value`; a compiler hint has its count there, and in
    `tokens` the group of instructions that it counts.

    A program states what it computes in one of two ways, the same for all of its ops (see `LoweredProgram.semantics`).
    Either an op says exactly what it is: the `instance` it represents, the versions it `wants` in the places it reads,
    and those it `makes` in the places it writes. Or it passes on whatever K-tile its operands hold: then `fetches` is
    the tile that a load brings, relative to the trip's k; None means the tile after the last one it fetched.
    """

    kind: OpKind
    counter: str | None = None
    tokens: int = 0
    wait_value: int = 0
    arrives: str | None = None
    awaits: str | None = None
    reads: tuple[Place, ...] = ()
    writes: tuple[Place, ...] = ()
    fetches: int | None = None
    instance: Version = NOTHING_DECLARED
    wants: tuple[tuple[Place, Version], ...] = ()
    makes: tuple[tuple[Place, Version], ...] = ()


_MOST_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Why an entry exists. Deleting everything it names together removes or changes the entry.

    `rule` says in words what put it there. `ops` are numbers of ops of the body, `knobs` are fields of the schedule's
    or the pipeline's config, `hook` is a method of the schedule, `repair` says whether a repair added or changed it,
    and `source` is the author's line.
    """

    rule: str
    ops: tuple[int, ...] = ()
    knobs: tuple[str, ...] = ()
    hook: str = ""
    repair: bool = False
    source: SourceLine | None = None

    def because(self, rule: str) -> Origin:
        """The same cause, under another rule."""
        return replace(self, rule=rule)

    @property
    def cause(self) -> str:
        """The rule and what it names, without the author's line."""
        first = ", ".join(f"#{number}" for number in self.ops[:_MOST_NAMED])
        more = f" and {len(self.ops) - _MOST_NAMED} more" if len(self.ops) > _MOST_NAMED else ""
        named = [f"op{'s' if self.ops[1:] else ''} {first}{more}"] if self.ops else []
        named += [f"{self.hook}()"] if self.hook else []
        named += self.knobs
        names = f" [{'; '.join(named)}]" if named else ""
        return f"{'repair: ' if self.repair else ''}{self.rule}{names}"

    def __str__(self) -> str:
        line = f" ({PurePath(self.source.file).name}:{self.source.line})" if self.source else ""
        return f"{self.cause}{line}"


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
    """An op, identified by its kind and name.

    `name` is the declared op that it represents, or how a wait or barrier is written. `copy` distinguishes the copies
    of one op in an unrolled loop. `work` is None where nothing states what a wave issues. `declared` is what the author
    wrote; only the front end that lowered it can read it. `origin` says what made it.
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
        """True if rota added it rather than the author."""
        return self.kind.synchronises

    def __str__(self) -> str:
        return self.name if self.copy is None else f"{self.name} s{self.copy}"

    def concern(self, index: int | None = None, role: str = "") -> Concern:
        return Concern(label=str(self), index=index, role=role, source=self.source)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Entry:
    """An op with its ordinal in its phase and its effect; a prefetch may be dropped when no tile is left to fetch.

    `roles` are the numbers of the roles that execute it; None means all. An entry that isn't `listed` belongs to the
    roles and not to the schedule's own lists; its `time_slot` is that of the next listed entry.
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
        return self.roles is None or role in self.roles

    def concern(self, role: str | None = None) -> Concern:
        """This entry as one end of a finding; by default with its phase."""
        phase = self.phase.value.lower()
        return replace(self.op.concern(self.time_slot, phase if role is None else role), phase=phase)


def wait_name(counter: str) -> str:
    """What a wait on a counter is called: wait_vm for vmcnt."""
    return f"wait_{counter.removesuffix('cnt')}"


def wait_op(counter: str, count: int) -> Op:
    """A wait that leaves at most `count` tokens of the counter pending."""
    return Op(kind=OpKind.WAIT, name=f"{wait_name(counter)}({count})", work=Work(1))


def wait_effect(counter: str, count: int) -> Effect:
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
    """The instructions by which all waves of a workgroup synchronise."""
    if not split:
        return ((BARRIER, MEETS),)
    return (
        (ARRIVE, Effect(kind=OpKind.BARRIER, arrives=WORKGROUP)),
        (AWAIT, Effect(kind=OpKind.BARRIER, awaits=WORKGROUP)),
    )
