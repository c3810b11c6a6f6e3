"""What each role of a lowered program executes: takes a draft of a program, gives its roles' steps, or what is wrong.

A draft has a lowered program's fields and no constructor that could refuse them, so that a program can be judged that
can't be made.  What an op reads, makes and counts is worked out from the loop's declaration; an entry that says
something else is wrong (`claim`), as is one that names a role, a counter or a barrier that isn't there (`malformed`).
Nothing here, in `role_machine.py` or in `role_search.py` comes from the proof, the executor or what derives programs.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from rota.program.entry import Effect, Entry, Place, Space
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec
from rota.program.lowered import Barrier, LoweredProgram, Role
from rota.program.machine import Machine

DS = (OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED, OpKind.LDS_WRITE)
_MOVES = (*DS, OpKind.DMA, OpKind.GLOBAL_LOAD, OpKind.GLOBAL_STORE, OpKind.ATOMIC)
_SYNC = (OpKind.WAIT, OpKind.BARRIER, OpKind.PRIORITY, OpKind.FENCE, OpKind.HINT, OpKind.NOTHING)
_BARRIER_NAMES = {"barrier": (True, True), "barrier_arrive": (True, False), "barrier_wait": (False, True)}


class WrongError(Exception):
    """What is wrong with a program; `kind` is the obligation that it breaks."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The fields of a lowered program, unchecked."""

    machine: Machine
    semantics: LoopSpec
    prologue: tuple[Entry, ...]
    kernel: tuple[Entry, ...]
    epilogue: tuple[Entry, ...]
    tiles_per_trip: int
    tiles_outside: int
    roles: tuple[Role, ...]
    barriers: tuple[Barrier, ...]
    compiler_tracks_registers: bool = False
    reentrant: bool = False
    lds_bytes: int | None = None
    registers: int | None = None
    register_limit: int | None = None
    waves: int | None = None
    name: str = "drawn"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All of them."""
        return (*self.prologue, *self.kernel, *self.epilogue)

    def executing(self, entry: Entry) -> tuple[int, ...]:
        """The roles, by number, that execute an entry."""
        everyone = range(len(self.roles))
        return tuple(everyone) if entry.roles is None else tuple(role for role in everyone if role in entry.roles)

    def doing(self, op: str) -> tuple[int, ...]:
        """The roles, by number, that an op is for."""
        return tuple(n for n, role in enumerate(self.roles) if role.does is None or op in role.does)

    def build(self) -> LoweredProgram:
        """The program, where one can be made of this."""
        return LoweredProgram(**{each.name: getattr(self, each.name) for each in fields(self)})


def draft_of(program: LoweredProgram) -> Draft:
    """A program that was made, as a draft."""
    return Draft(**{each.name: getattr(program, each.name) for each in fields(Draft)})


class Version(NamedTuple):
    """A value of one iteration of one run of the loop."""

    value: str
    iteration: int
    run: int


Held = tuple[Place, Version]


class Step(NamedTuple):
    """One entry in one trip, as one role executes it; a barrier that arrives and waits is two steps.

    `name` is for people.  Where it `begins` a run, the caller sets registers and waits for nothing.
    """

    name: str
    kind: OpKind
    counter: str = ""
    tokens: int = 0
    left: int = 0
    arrives: str = ""
    awaits: str = ""
    reads: tuple[Held, ...] = ()
    makes: tuple[Held, ...] = ()
    begins: bool = False
    registers_read: tuple[Held, ...] = ()
    registers_made: tuple[Held, ...] = ()
    lds_read: tuple[Held, ...] = ()
    lds_made: tuple[Held, ...] = ()


def _touching(step: Step) -> Step:
    """The same, what it reads and makes by where that is."""
    reads, makes = step.reads, step.makes
    return step._replace(
        registers_read=tuple(held for held in reads if held[0].space is Space.REGISTER),
        registers_made=tuple(held for held in makes if held[0].space is Space.REGISTER),
        lds_read=tuple(held for held in reads if held[0].space is Space.LDS),
        lds_made=() if step.begins else tuple(held for held in makes if held[0].space is Space.LDS),
    )


class _Op:
    """What every entry of one op must say, by the declaration; places without their copies."""

    def __init__(self, loop: LoopSpec, op: LoopOp, machine: Machine) -> None:
        homes = {value.name: value.home for value in loop.values}
        self.op = op
        self.counter = next((each.name for each in machine.counters if op.kind in each.counts), None)
        self.reads = [
            (_bare(loop, read.value, part), read.value, -read.distance)
            for read in op.reads
            for part in (read.parts or range(len(_writers(loop, read.value)) if homes[read.value] is Home.LDS else 1))
        ]
        kept = (Home.LDS, Home.REGISTERS)
        self.makes = [
            (_bare(loop, name, _writers(loop, name).index(op.name) if homes[name] is Home.LDS else 0), name, 0)
            for name in op.writes
            if homes[name] in kept
        ]
        spaces = {Home.ACCUMULATOR: Space.ACCUMULATOR, Home.MEMORY: Space.MEMORY}
        self.sums = tuple(Place(spaces[homes[name]], name) for name in op.writes if homes[name] not in kept)


def _writers(loop: LoopSpec, value: str) -> list[str]:
    return [op.name for op in loop.ops if value in op.writes]


def _bare(loop: LoopSpec, value: str, part: int) -> Place:
    into = {each.name: each.into for each in loop.values}
    if next(each.home for each in loop.values if each.name == value) is Home.LDS:
        return Place(Space.LDS, value, 0, part)
    while into[value]:
        value = into[value]
    return Place(Space.REGISTER, value)


class Streams:
    """The steps of every role for any trip count; raises `WrongError` for what is wrong in every execution."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        loop = draft.semantics
        self.ops = {op.name: _Op(loop, op, draft.machine) for op in loop.ops}
        self.counters = {counter.name: counter for counter in draft.machine.counters}
        self.arriving: dict[str, tuple[int, ...]] = {}
        self.known: dict[tuple[int, int, int, str], list[Step]] = {}
        self._check_frame()
        for entry in draft.entries:
            self._check_roles(entry)
            (self._check_sync if entry.effect.kind in _SYNC else self._check_data)(entry)
        self._check_lds()
        taken = {value.into for value in loop.values}
        carried = {read.value for op in loop.ops for read in op.reads if read.distance} - taken
        self.carried = [v.name for v in loop.values if v.home is Home.REGISTERS and v.name in carried]
        self.owners = {  # the roles that fill a part of a tile
            (value.name, part): draft.doing(writer)
            for value in loop.values
            if value.home is Home.LDS
            for part, writer in enumerate(_writers(loop, value.name))
        }

    def of(self, runs: Sequence[int]) -> list[list[Step]]:
        """Each role's steps, for a trip count, or for several runs of the loop one after the other."""
        roles = range(len(self.draft.roles))
        return [[step for run, trips in enumerate(runs) for step in self._run(role, run, trips)] for role in roles]

    def results(self, role: int, runs: Sequence[int]) -> list[Version]:
        """What a wave of this role has in its registers when the last run is over."""
        total, last = self._total(runs[-1]), len(runs) - 1
        makers = {value: op.name for op in self.draft.semantics.ops for value in op.writes}
        own = [value for value in self.carried if role in self.draft.doing(makers[value])]
        return [Version(value, total - 1, last) for value in own] if total > 0 else []

    def _total(self, trips: int) -> int:
        return self.draft.tiles_per_trip * trips + self.draft.tiles_outside

    def _run(self, role: int, run: int, trips: int) -> list[Step]:
        draft, per = self.draft, self.draft.tiles_per_trip
        steps = [*self._steps(draft.prologue, role, run, 0, "prologue")]
        for trip in range(1, trips + 1):
            steps += self._steps(draft.kernel, role, run, per * trip, f"trip {trip}")
        steps += self._steps(draft.epilogue, role, run, per * (trips + 1), "epilogue")
        first: dict[Place, Version] = {}
        for place, version in (held for step in steps for held in step.reads):
            if version.iteration < 0:
                first.setdefault(place, version)
        begin = Step(f"run {run} begins", OpKind.VALU, makes=tuple(first.items()), begins=True)
        return [_touching(begin), *steps]

    def check_counts(self, trips: int) -> None:
        """Every op once per iteration in every role that it is for, and nowhere else."""
        draft, per, total = self.draft, self.draft.tiles_per_trip, self._total(trips)
        for role in range(len(draft.roles)):
            done = Tally[tuple[str, int]]()
            phases = [(draft.prologue, 0), *((draft.kernel, per * trip) for trip in range(1, trips + 1))]
            for entries, k in (*phases, (draft.epilogue, per * (trips + 1))):
                for entry in entries:
                    if entry.effect.kind not in _SYNC and role in draft.executing(entry):
                        done[entry.effect.instance.name, entry.effect.instance.iteration + k] += 1
            own = [op.name for op in draft.semantics.ops if role in draft.doing(op.name)]
            due = {(name, iteration) for name in own for iteration in range(total)}
            for instance in due | done.keys():
                if done[instance] != (instance in due):
                    raise WrongError("count", f"role {role} runs {instance} {done[instance]} times in {total}")

    def _steps(self, entries: Iterable[Entry], role: int, run: int, k: int, where: str) -> list[Step]:
        known = self.known.get((role, run, k, where))
        if known is None:
            known = self.known[role, run, k, where] = [*self._new_steps(entries, role, run, k, where)]
        return known

    def _new_steps(self, entries: Iterable[Entry], role: int, run: int, k: int, where: str) -> Iterator[Step]:
        for at, entry in enumerate(entries):
            if role not in self.draft.executing(entry):
                continue
            effect, name = entry.effect, f"{where} [{at}] {entry.op.name}"
            if effect.kind is OpKind.WAIT:
                yield Step(name, effect.kind, counter=effect.counter or "", left=effect.wait_value)
            elif effect.kind is OpKind.BARRIER:
                if effect.arrives:
                    yield Step(f"{name} arrives", effect.kind, arrives=effect.arrives)
                if effect.awaits:
                    yield Step(f"{name} waits", effect.kind, awaits=effect.awaits)
            elif effect.kind not in _SYNC:
                yield _touching(
                    Step(
                        f"{name} of {effect.instance.iteration + k}",
                        effect.kind,
                        counter=effect.counter or "",
                        tokens=effect.tokens,
                        reads=tuple((place, Version(v.name, v.iteration + k, run)) for place, v in effect.wants),
                        makes=tuple((place, Version(v.name, v.iteration + k, run)) for place, v in effect.makes),
                    )
                )

    def _check_frame(self) -> None:
        draft = self.draft
        if not draft.roles or not _is_count(draft.tiles_per_trip) or not draft.tiles_per_trip:
            raise WrongError("malformed", "no roles, or no tiles per trip")
        if not _is_count(draft.tiles_outside):
            raise WrongError("malformed", f"{draft.tiles_outside} tiles outside the loop")
        for barrier in draft.barriers:
            if barrier.name in self.arriving:
                raise WrongError("malformed", f"two barriers are called {barrier.name}")
            self.arriving[barrier.name] = barrier.arriving
            for role in (*barrier.arriving, *barrier.waiting):
                if not _is_count(role) or role >= len(draft.roles):
                    raise WrongError("malformed", f"{barrier.name} is for role {role}")
        for op in draft.semantics.ops:
            if not draft.doing(op.name):
                raise WrongError("count", f"no role does {op.name}")
        for value in (each for each in draft.semantics.values if each.home is Home.ACCUMULATOR):
            if len({draft.doing(name) for name in _writers(draft.semantics, value.name)}) > 1:
                raise WrongError("count", f"no wave has all of {value.name}, to which several roles add")

    def _check_lds(self) -> None:
        """The copies of the tiles that are touched fit in what the program says it takes."""
        copies = {
            p[:3] for e in self.draft.entries for p in (*e.effect.reads, *e.effect.writes) if p.space is Space.LDS
        }
        sizes = {value.name: value.size for value in self.draft.semantics.values}
        needed = sum(sizes[name] for _, name, _ in copies)
        if any(not _is_count(copy) for _, _, copy in copies):
            raise WrongError("malformed", "a copy has no number")
        if self.draft.lds_bytes is not None and self.draft.lds_bytes < needed:
            raise WrongError("malformed", f"{self.draft.lds_bytes} bytes of LDS for {needed}")

    def _check_roles(self, entry: Entry) -> None:
        for role in entry.roles or ():
            if not _is_count(role) or role >= len(self.draft.roles):
                raise WrongError("malformed", f"{entry.op.name} is executed by role {role}")
        if entry.op.kind is not entry.effect.kind:
            raise WrongError("claim", f"{entry.op.name}, {entry.op.kind.word}, claims to be {entry.effect.kind.word}")

    def _check_sync(self, entry: Entry) -> None:
        effect = entry.effect
        if effect.reads or effect.writes or effect.wants or effect.makes or effect.instance.name:
            raise WrongError("claim", f"{entry.op.name} touches places")
        if effect.kind is OpKind.WAIT:
            self._check_wait(entry.op.name, effect)
        elif effect.kind is OpKind.BARRIER:
            self._check_barrier(entry)

    def _check_wait(self, name: str, effect: Effect) -> None:
        counter = self.counters.get(effect.counter or "")
        if counter is None or not _is_count(effect.wait_value):
            raise WrongError("malformed", f"{name} waits for {effect.wait_value} of {effect.counter}")
        if name != f"wait_{counter.name.removesuffix('cnt')}({effect.wait_value})":
            raise WrongError("claim", f"{name} waits for {effect.wait_value} of {counter.name}")
        if effect.wait_value >= counter.holds.value:
            raise WrongError("encoding", f"{name} is no wait")

    def _check_barrier(self, entry: Entry) -> None:
        effect, written = entry.effect, _BARRIER_NAMES.get(entry.op.name)
        if written is not None and written != (effect.arrives is not None, effect.awaits is not None):
            raise WrongError("claim", f"{entry.op.name} arrives at {effect.arrives}, waits at {effect.awaits}")
        sides = {each.name: each for each in self.draft.barriers}
        for name, side in ((effect.arrives, "arriving"), (effect.awaits, "waiting")):
            if name is not None and name not in sides:
                raise WrongError("malformed", f"there is no barrier {name}")
            if name is not None and not set(self.draft.executing(entry)) <= set(getattr(sides[name], side)):
                raise WrongError("malformed", f"{entry.op.name} is executed by roles that take no part")

    def _check_data(self, entry: Entry) -> None:
        effect, declared = entry.effect, self.ops.get(entry.op.name)
        if declared is None or effect.instance.name != entry.op.name:
            raise WrongError("claim", f"{entry.op.name} stands for {effect.instance.name or 'nothing'}")
        due = (declared.op.kind, declared.counter, declared.op.instructions if declared.counter else 0)
        if due != (effect.kind, effect.counter, effect.tokens):
            raise WrongError("claim", f"{entry.op.name} counts {effect.tokens} of {effect.counter}")
        if declared.counter is None and effect.kind in _MOVES:
            raise WrongError("claim", f"no instruction does {entry.op.name}")
        at = effect.instance.iteration
        for due_held, held in ((declared.reads, effect.wants), (declared.makes, effect.makes)):
            said = [(place._replace(copy=0), version.name, version.iteration - at) for place, version in held]
            if said != due_held:
                raise WrongError("claim", f"{entry.op.name} doesn't read and make what is declared")
        places = tuple(place for place, _ in effect.makes) + declared.sums
        if effect.reads != tuple(place for place, _ in effect.wants) or effect.writes != places:
            raise WrongError("claim", f"{entry.op.name} touches other places than it says")


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0
