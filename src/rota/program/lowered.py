"""The lowered program: the one value that every judge, view and emitter reads.

It says which roles there are and what each executes, what the program computes, and what it occupies. Nothing in it
says how it was made, except `origin`, which is for messages.

Roles whose lists differ are kept as one list per phase, in an order that preserves each role's own; an entry says which
roles execute it. One list can be read as a sequential program, which defines what a race is, and roles that run the
same entries cost nothing extra.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, overload, runtime_checkable

from rota.check import bad_field, check_elements, check_types, is_int
from rota.errors import Concern, DeclarationError, ProgramError, did_you_mean, several
from rota.program.entry import WORKGROUP, Effect, Entry, Place, Space, barrier_ops
from rota.program.kinds import OpKind, OpRole, Phase
from rota.program.loop_spec import LoopOp, LoopSpec, Value
from rota.program.machine import Machine


class ListedOp(Protocol):
    """An op as a listing needs it."""

    @property
    def kind(self) -> OpKind: ...


@runtime_checkable
class ListedEntry(Protocol):
    """An entry of a front end's lists, or of a lowered program."""

    @property
    def op(self) -> ListedOp: ...

    @property
    def time_slot(self) -> int: ...

    @property
    def is_prefetch(self) -> bool:
        """True if it may be dropped when no tile is left to fetch."""
        ...


@runtime_checkable
class Listable(Protocol):
    """Anything that can list itself: a compiled schedule, or a program of blocks."""

    def listing(self) -> str: ...


class SyncCounts(NamedTuple):
    """How much synchronisation a phase holds."""

    waits: int
    barriers: int
    fences: int


def count_sync(entries: Sequence[ListedEntry]) -> SyncCounts:
    """Waits, barriers and compiler fences among the entries.

    >>> count_sync(compile_schedule(Pipeline4Wave(KernelGeometry())).prologue)
    SyncCounts(waits=2, barriers=2, fences=0)
    """
    kinds = [entry.op.kind for entry in entries]
    return SyncCounts(
        waits=kinds.count(OpKind.WAIT),
        barriers=kinds.count(OpKind.BARRIER),
        fences=sum(kind.role is OpRole.FENCE for kind in kinds),
    )


@overload
def listing(title: str, entries: Sequence[ListedEntry]) -> str: ...
@overload
def listing(title: Listable | Sequence[ListedEntry]) -> str: ...


def listing(title: str | Listable | Sequence[ListedEntry], entries: Sequence[ListedEntry] | None = None) -> str:
    """A compiled schedule, a program, or the entries of a phase as text; entries may have a title of their own.

    Synchronisation is indented, so that the data ops are out.

    >>> print(listing("the first entries", compile_schedule(Pipeline4Wave(KernelGeometry())).prologue[7:10]))
    the first entries: 3 entries, 1 wait, 1 barrier, 0 fences
         7  load_a s1 t1 k1
         8      wait_vm(28)
         9      barrier
    """
    if isinstance(title, Listable) and entries is None:
        return title.listing()
    named = isinstance(title, str)
    listed: Sequence[ListedEntry] = check_elements("what is listed", entries if named else title, ListedEntry)  # type: ignore[type-abstract]
    return "\n".join([f"{f'{title}: ' if named else ''}{count_text(listed)}", *entry_lines(listed)])


def count_text(entries: Sequence[ListedEntry]) -> str:
    counts = count_sync(entries)
    waits, fences = several(counts.waits, "wait"), several(counts.fences, "fence")
    return f"{several(len(entries), 'entry')}, {waits}, {several(counts.barriers, 'barrier')}, {fences}"


def entry_lines(entries: Iterable[ListedEntry], marks: Mapping[int, str] = MappingProxyType({})) -> list[str]:
    """One line per entry, with what `marks` says about its slot."""
    lines: list[str] = []
    for entry in entries:
        indent = "    " if entry.op.kind.synchronises else ""
        prefetch = "  prefetch" if entry.is_prefetch else ""
        mark = f"  {marks[entry.time_slot]}" if entry.time_slot in marks else ""
        lines.append(f"  {entry.time_slot:4d}  {indent}{entry.op}{prefetch}{mark}")
    return lines


class Role(NamedTuple):
    """Waves that execute the same entries; `waves` is None where the program doesn't say how many.

    `does` names the ops of this role; None means all. Roles that do the same op share its work.
    """

    name: str
    waves: int | None = None
    does: frozenset[str] | None = None


class Barrier(NamedTuple):
    """The roles, by number, that arrive, and those that wait until all of these have arrived."""

    name: str
    arriving: tuple[int, ...]
    waiting: tuple[int, ...]


class TileProduct(NamedTuple):
    """An accumulator and the registers, with their blocks of A and B, that it multiplies in every K-tile.

    A single operand holds its block of both.
    """

    accumulator: Place
    operands: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TileSum:
    """A program computes A x B: every accumulator takes every K-tile once, both operands of the same tile.

    Several products of one accumulator are its slices of K. `grid` is the number of rows and columns of accumulators.
    Operands of a product after the second scale the rows of A or of B: `scales` says for each whose, 0 for A and 1 for
    B.
    """

    products: tuple[TileProduct, ...]
    grid: tuple[int, int]
    scales: tuple[int, ...] = ()

    ops: ClassVar[tuple[LoopOp, ...]] = ()  # none that have names of their own
    values: ClassVar[tuple[Value, ...]] = ()
    sizes: ClassVar[Mapping[str, int] | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstated:
    """Nothing states what the program computes: it was read from machine code.

    `registers` are those per lane of its places, by name.
    """

    registers: tuple[tuple[str, int], ...] = ()

    ops: ClassVar[tuple[LoopOp, ...]] = ()
    values: ClassVar[tuple[Value, ...]] = ()

    @property
    def sizes(self) -> Mapping[str, int]:
        return dict(self.registers)


_OfSum = TypeVar("_OfSum")
_OfLoop = TypeVar("_OfLoop")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LoweredProgram:
    """Roles and their entries, phase by phase, and what they add up to.

    A trip takes `tiles_per_trip` tiles (or iterations), `tiles_outside` are taken outside the loop.  `semantics` is
    what must be computed: a sum over K-tiles, or a loop's values, each version of which comes from the iteration that
    its ops say.  With `compiler_tracks_registers` a compiler waits for register loads by itself.  A `reentrant` program
    may be run again immediately after itself.  Sizes are None where nothing states them.

    A program whose parts don't fit together can't be made (D102): every role, counter and barrier that an entry names
    exists, and every size covers what the entries use.  An entry is known by its place, so `time_slot` is counted here.
    """

    name: str = field(compare=False)  # no judge reads it
    machine: Machine
    semantics: TileSum | LoopSpec | Unstated
    prologue: tuple[Entry, ...]
    kernel: tuple[Entry, ...]
    epilogue: tuple[Entry, ...]
    tiles_per_trip: int
    tiles_outside: int
    roles: tuple[Role, ...] = (Role("waves"),)
    barriers: tuple[Barrier, ...] = (Barrier(WORKGROUP, (0,), (0,)),)
    compiler_tracks_registers: bool = True
    reentrant: bool = False
    lds_bytes: int | None = None
    registers: int | None = None
    register_limit: int | None = None
    waves: int | None = None
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _Check(self).everything()
        for phase in Phase:
            object.__setattr__(self, phase.value.lower(), number_entries(self.phase(phase)))

    @property
    def lowered(self) -> LoweredProgram:
        """The program itself: it may be passed wherever a compiled schedule is judged."""
        return self

    def listing(self) -> str:
        """The three phases, one entry a line."""
        return "\n\n".join(listing(f"{self.name}: {phase.value.lower()}", self.phase(phase)) for phase in Phase)

    def __str__(self) -> str:
        return self.listing()

    def __repr__(self) -> str:
        counts = ", ".join(f"{phase.value.lower()} {len(self.phase(phase))}" for phase in Phase)
        return f"<LoweredProgram {self.name} on {self.machine.name}: {counts} entries>"

    def by_semantics(
        self, wants: str, of_sum: Callable[[TileSum], _OfSum], of_loop: Callable[[LoopSpec], _OfLoop]
    ) -> _OfSum | _OfLoop:
        """The rules of a judge for the way in which the program says what it computes; T305 if it doesn't."""
        if isinstance(self.semantics, TileSum):
            return of_sum(self.semantics)
        if isinstance(self.semantics, LoopSpec):
            return of_loop(self.semantics)
        raise ProgramError.of(
            "T305",
            f"{self.name} was lifted from machine code: what it computes isn't stated, and {wants} needs that",
            fixes=("`rota check` of the code object proves it, `rota run` of a launch executes it",),
        )

    @property
    def is_lifted(self) -> bool:
        """True if it was read from machine code, and nothing states what it computes."""
        return isinstance(self.semantics, Unstated)

    def phase(self, phase: Phase) -> tuple[Entry, ...]:
        return {Phase.PROLOGUE: self.prologue, Phase.KERNEL: self.kernel, Phase.EPILOGUE: self.epilogue}[phase]

    @property
    def entries(self) -> tuple[Entry, ...]:
        return (*self.prologue, *self.kernel, *self.epilogue)

    def executed_by(self, role: int, phase: Phase) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.phase(phase) if entry.executed_by(role))

    def doing(self, op: str) -> tuple[int, ...]:
        """The roles, by number, that do an op."""
        return tuple(n for n, role in enumerate(self.roles) if role.does is None or op in role.does)

    def barrier(self, name: str) -> Barrier | None:
        return next((each for each in self.barriers if each.name == name), None)

    def k_of(self, phase: Phase, trip: int) -> int:
        """The k that loads count from, in tiles: 0 in the prologue, then one trip's tiles more each trip."""
        return 0 if phase is Phase.PROLOGUE else self.tiles_per_trip * trip

    def total_tiles(self, trip_count: int) -> int:
        """K-tiles (or iterations) that the whole program computes."""
        return self.tiles_per_trip * trip_count + self.tiles_outside

    def with_phases(self, phases: Mapping[Phase, Sequence[Entry]]) -> LoweredProgram:
        return replace(self, **name_phases(phases))


def name_phases(phases: Mapping[Phase, Iterable[Any]]) -> dict[str, Any]:
    """Entries by the names of the fields that hold them."""
    return {phase.value.lower(): tuple(entries) for phase, entries in phases.items()}


def number_entries(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries with their ordinals; an unlisted entry gets the ordinal of the next listed one."""
    numbered, slot = [], 0
    for entry in entries:
        numbered.append(entry if entry.time_slot == slot else replace(entry, time_slot=slot))
        slot += entry.listed
    return tuple(numbered)


_Refuse = Callable[[str, object, str], DeclarationError]
"""Takes a field, what it has and what it may have; gives the error."""


class _Check:
    """Refuses a program whose parts don't fit together; the proof and the executor read only what passed here."""

    def __init__(self, program: LoweredProgram) -> None:
        self.program = program

    def everything(self) -> None:
        """Check fields, then roles, barriers, entries and sizes; each step may rely on the ones before it."""
        self._fields()
        self._roles()
        self._barriers()
        counters = frozenset(counter.name for counter in self.program.machine.counters)
        for phase in Phase:
            entries = self.program.phase(phase)
            if not all(isinstance(entry, Entry) for entry in entries):
                check_elements(phase.value.lower(), entries, Entry)  # raises, with the first that isn't
            for place, entry in enumerate(entries):
                self._entry(entry, phase, place, counters)
        self._ops_are_done()
        self._sizes()

    def _fields(self) -> None:
        program = self.program
        check_types(
            program,
            {
                "name": str,
                "machine": Machine,
                "semantics": (TileSum, LoopSpec, Unstated),
                "prologue": tuple,
                "kernel": tuple,
                "epilogue": tuple,
                "roles": tuple,
                "barriers": tuple,
                "compiler_tracks_registers": bool,
                "reentrant": bool,
                "origin": str,
            },
        )
        for name, least in (("tiles_per_trip", 1), ("tiles_outside", 0)):
            self._count(name, least)
        for name, least in (("lds_bytes", 0), ("registers", 0), ("register_limit", 0), ("waves", 1)):
            if getattr(program, name) is not None:
                self._count(name, least)

    def _count(self, name: str, least: int) -> None:
        value = getattr(self.program, name)
        if not is_int(value) or value < least:
            raise bad_field(self.program, name, value, f"an integer, at least {least}")

    def _roles(self) -> None:
        program, roles = self.program, self.program.roles
        if not roles or not all(isinstance(role, Role) for role in roles):
            raise bad_field(program, "roles", roles, "at least one Role")
        if len({role.name for role in roles}) < len(roles):
            raise bad_field(program, "roles", tuple(role.name for role in roles), "a name of its own for every role")
        for role in roles:
            if role.waves is not None and (not is_int(role.waves) or role.waves < 1):
                raise bad_field(program, "roles", role, "at least one wave in every role, or None")
            if role.does is not None and not isinstance(role.does, frozenset):
                raise bad_field(program, "roles", role, "the names of its ops as a frozenset, or None")
        stated = [role.waves for role in roles if role.waves is not None]
        if program.waves is not None and len(stated) == len(roles) and sum(stated) != program.waves:
            raise bad_field(program, "waves", program.waves, f"{sum(stated)}, the waves of its roles together")

    def _barriers(self) -> None:
        program = self.program
        if not all(isinstance(barrier, Barrier) for barrier in program.barriers):
            raise bad_field(program, "barriers", program.barriers, "a tuple of Barrier")
        if len({barrier.name for barrier in program.barriers}) < len(program.barriers):
            names = tuple(barrier.name for barrier in program.barriers)
            raise bad_field(program, "barriers", names, "a name of its own for every barrier")
        for barrier in program.barriers:
            for side in (barrier.arriving, barrier.waiting):
                if not self._are_roles(side):
                    raise bad_field(program, "barriers", barrier, self._role_numbers)
            if barrier.waiting and not barrier.arriving:
                raise bad_field(program, "barriers", barrier, "a role that arrives, where one waits")

    def _are_roles(self, numbers: object) -> bool:
        """True if it is a tuple of role numbers, each once and in order."""
        if not isinstance(numbers, tuple) or not all(map(is_int, numbers)):
            return False
        return list(numbers) == sorted({number for number in numbers if 0 <= number < len(self.program.roles)})

    @property
    def _role_numbers(self) -> str:
        return f"numbers of roles, from 0 to {len(self.program.roles) - 1}, each once and in order"

    def _entry(self, entry: Entry, phase: Phase, place: int, counters: frozenset[str]) -> None:
        def refuse(name: str, value: object, expected: str) -> DeclarationError:
            return _bad_entry(entry, phase.at(place), name, value, expected)

        if entry.phase is not phase:
            raise refuse("phase", entry.phase, f"{phase}, where it is")
        if entry.roles is not None and not (entry.roles and self._are_roles(entry.roles)):
            raise refuse("roles", entry.roles, f"{self._role_numbers}; at least one, or None for all")
        self._effect(entry.effect, counters, refuse)

    def _effect(self, effect: Effect, counters: frozenset[str], refuse: _Refuse) -> None:
        if not isinstance(getattr(effect, "kind", None), OpKind):
            raise refuse("effect", effect, "an Effect of an OpKind")
        for name in ("tokens", "wait_value"):
            if not is_int(getattr(effect, name)) or getattr(effect, name) < 0:
                raise refuse(name, getattr(effect, name), "an integer, at least 0")
        if effect.counter is not None and effect.counter not in counters:
            self.program.machine.counter(effect.counter)  # raises, with the names that there are
        if effect.kind.synchronises:
            self._synchronises(effect, refuse)
        elif effect.arrives is not None or effect.awaits is not None:
            raise refuse("barrier", effect.arrives or effect.awaits, "a barrier in an op of kind BARRIER only")

    def _synchronises(self, effect: Effect, refuse: _Refuse) -> None:
        if effect.reads or effect.writes or effect.wants or effect.makes:
            raise refuse("effect", effect.reads or effect.writes, "no place that it reads or writes")
        if effect.kind is OpKind.WAIT and effect.counter is None:
            raise refuse("counter", None, "the counter that it waits for")
        if effect.kind is OpKind.BARRIER:
            named = [name for name in (effect.arrives, effect.awaits) if name is not None]
            if not named:
                raise refuse("barrier", None, "a barrier at which it arrives or waits")
            known = [barrier.name for barrier in self.program.barriers]
            for name in named:
                if name not in known:
                    raise _unknown_barrier(self.program, name, known)

    def _ops_are_done(self) -> None:
        """Check that some role does every op that the loop declares, and no role does another."""
        program = self.program
        ops = program.semantics.ops
        declared = {op.name for op in ops}
        for role in program.roles:
            if ops and role.does is not None and not role.does <= declared:
                raise bad_field(program, "roles", sorted(role.does - declared), "ops of the loop that it declares")
        for op in ops:
            if not program.doing(op.name):
                raise bad_field(program, "roles", op.name, "a role that does every op of the loop")

    def _sizes(self) -> None:
        """Check that stated sizes cover what entries use: every tile, and the registers of one op."""
        program = self.program
        sizes = {value.name: value.size for value in program.semantics.values}
        used = {(place.space, place.name, place.copy) for entry in program.entries for place in _places(entry)}
        tiles = sum(sizes.get(name, 0) for space, name, _ in used if space is Space.LDS)
        if program.lds_bytes is not None and program.lds_bytes < tiles:
            raise bad_field(program, "lds_bytes", program.lds_bytes, f"at least the {tiles} bytes of its tiles")
        least = max(self._least_registers(role, sizes) for role in range(len(program.roles)))
        if program.registers is not None and program.registers < least:
            raise bad_field(program, "registers", program.registers, f"at least {least}: accumulators and one op's own")

    def _least_registers(self, role: int, sizes: Mapping[str, int]) -> int:
        """Accumulators live for the whole loop; while an op issues, everything it reads is live too."""
        own = [entry.effect for entry in self.program.entries if entry.executed_by(role)]
        sums = {place.name for effect in own for place in effect.writes if place.space is Space.ACCUMULATOR}
        read = (
            {place.name for place in effect.reads if place.space is Space.REGISTER and place.name not in sums}
            for effect in own
        )
        most = max((sum(sizes.get(name, 0) for name in names) for names in read), default=0)
        return sum(sizes.get(name, 0) for name in sums) + most


def _places(entry: Entry) -> tuple[Place, ...]:
    return (*entry.effect.reads, *entry.effect.writes)


def _unknown_barrier(program: LoweredProgram, name: str, known: Sequence[str]) -> DeclarationError:
    return DeclarationError.of(
        "D105",
        f"{program.name} doesn't declare a barrier {name!r}",
        evidence=(("barrier", name), ("declared", ", ".join(known))),
        fixes=did_you_mean(name, known),
    )


def _bad_entry(entry: Entry, at: str, name: str, value: object, expected: str) -> DeclarationError:
    return DeclarationError.of(
        "D102",
        f"{name} of {at} {entry.op} is {value!r}; expected {expected}",
        concerns=(Concern(label=str(entry.op), role=at, source=entry.op.source),),
        evidence=(("field", name), ("got", f"{value!r} ({type(value).__name__})"), ("expected", expected)),
    )


class Lowerable(Protocol):
    """Anything that has a lowered program: a compiled schedule, or the program itself."""

    @property
    def lowered(self) -> LoweredProgram: ...


# Roles with lists of their own as one list.
#
# Each role's own order is kept, and a wait at a barrier comes after the arrivals that it is for.


def merged(
    roles: Sequence[Role], barriers: Sequence[Barrier], lists: Mapping[Phase, Sequence[Sequence[Entry]]]
) -> dict[Phase, tuple[Entry, ...]]:
    """Merge the lists of all roles into one list per phase.

    `lists` holds for each phase what each role executes, in the order of the roles. A role runs until it waits for an
    arrival that is still missing. One trip of the kernel represents all trips, so what a role waits for must arrive in
    the same trip or before.
    """
    meetings = _Meetings(barriers)
    phases: dict[Phase, tuple[Entry, ...]] = {}
    for phase in Phase:
        rest = [list(each) for each in lists.get(phase, [()] * len(roles))]
        found: list[Entry] = []
        while any(rest):
            before = len(found)
            for role, entries in enumerate(rest):
                while entries and meetings.may_run(entries[0], role):
                    found.append(replace(entries.pop(0), roles=(role,), phase=phase))
            for together in meetings.all_there(rest):
                found.append(replace(rest[together[0]][0], roles=together, phase=phase))
                for role in together:
                    rest[role].pop(0)
            if len(found) == before:
                raise _stuck(roles, phase, rest)
        phases[phase] = number_entries(found)
    return phases


class _Meetings:
    """How often each role has arrived and waited at each barrier."""

    def __init__(self, barriers: Sequence[Barrier]) -> None:
        self.barriers = barriers
        self.arriving = {barrier.name: barrier.arriving for barrier in barriers}
        self.arrived: Tally[tuple[str, int]] = Tally()
        self.waited: Tally[tuple[str, int]] = Tally()

    def may_run(self, entry: Entry, role: int) -> bool:
        """True, and the entry runs, if all arrivals it waits for are there; a joint barrier needs all its roles."""
        arrives, awaits = entry.effect.arrives, entry.effect.awaits
        if arrives is not None and awaits is not None:
            return False
        if awaits is not None:
            number = self.waited[awaits, role] + 1
            if any(self.arrived[awaits, other] < number for other in self.arriving.get(awaits, ())):
                return False
            self.waited[awaits, role] = number
        if arrives is not None:
            self.arrived[arrives, role] += 1
        return True

    def all_there(self, rest: Sequence[Sequence[Entry]]) -> list[tuple[int, ...]]:
        """The roles of each barrier whose participants are all ready to arrive and wait at once."""
        found = []
        for name, arriving, waiting in self.barriers:
            roles = tuple(sorted({*arriving, *waiting}))
            heads = [rest[role][0].effect for role in roles if rest[role]]
            if len(heads) == len(roles) and all(head.arrives == head.awaits == name for head in heads):
                found.append(roles)
                for role in roles:
                    self.arrived[name, role] += 1
                    self.waited[name, role] += 1
        return found


def _stuck(roles: Sequence[Role], phase: Phase, rest: Sequence[Sequence[Entry]]) -> ProgramError:
    waiting = [(role, entries[0]) for role, entries in zip(roles, rest, strict=True) if entries]
    return ProgramError.of(
        "B103",
        f"in the {phase.value.lower()} every role that isn't through waits for an arrival that never comes",
        concerns=tuple(entry.op.concern(role=f"{role.name} waits here") for role, entry in waiting),
        evidence=tuple((role.name, str(entry.op)) for role, entry in waiting),
        fixes=("let the role arrive earlier, or the other wait later",),
    )


_LEADING, _TRAILING = (0,), (1,)


# Two groups of waves, one a barrier behind.
#
# Group 1 executes one more barrier inside the prologue, every wave one after it, and group 0 one more at the very
# end, so that group 1 stays one barrier behind.


def make_groups(waves: int | None, *, staggered: bool) -> tuple[Role, ...]:
    """All waves as one role, or two groups of equal size."""
    count = 2 if staggered else 1
    each = [None if waves is None else waves // count + (number < waves % count) for number in range(count)]
    return tuple(Role(f"group {number}", size) for number, size in enumerate(each))


def find_common_barrier(roles: Sequence[Role]) -> tuple[Barrier, ...]:
    everyone = tuple(range(len(roles)))
    return (Barrier(WORKGROUP, everyone, everyone),)


def fall_back(prologue: Sequence[Entry], index: int, *, split: bool) -> Iterator[Entry]:
    """Let group 1 fall back after `index` entries of the prologue."""
    for slot, entry in enumerate(prologue):
        if slot == index:
            yield from _extra_barrier(Phase.PROLOGUE, slot, _TRAILING, split=split)
        yield entry
    if index == len(prologue):
        yield from _extra_barrier(Phase.PROLOGUE, len(prologue), _TRAILING, split=split)
    yield from _extra_barrier(Phase.PROLOGUE, len(prologue), None, split=split)


def catch_up(epilogue: Sequence[Entry], *, split: bool) -> Iterator[Entry]:
    """Let group 0 wait for group 1 at the very end."""
    yield from epilogue
    yield from _extra_barrier(Phase.EPILOGUE, len(epilogue), _LEADING, split=split)


def falls_back_at(prologue: Sequence[Entry]) -> int:
    """After how many of the schedule's own entries group 1 falls back."""
    first = next((number for number, entry in enumerate(prologue) if not entry.listed), len(prologue))
    return sum(entry.listed for entry in prologue[:first])


def _extra_barrier(phase: Phase, slot: int, roles: tuple[int, ...] | None, *, split: bool) -> Iterator[Entry]:
    for op, effect in barrier_ops(split=split):
        yield Entry(op=op, effect=effect, time_slot=slot, phase=phase, roles=roles, listed=False)
