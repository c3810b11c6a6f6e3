"""The lowered program: takes what a front end derived, gives the one value that every judge, view and emitter reads.

It says which roles there are and what each executes, what the program computes, and what it occupies.  Nothing in it
tells how it was made, but for `origin`, which is for messages.

Roles whose lists differ are written as one list per phase, in an order that keeps each role's own: an entry says which
roles execute it.  One list can be read as a sequential program, which defines what a race is, and roles that run the
same entries cost nothing extra.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from rota.errors import Finding, ProgramError
from rota.program.effects import WORKGROUP, Place
from rota.program.entry import Entry
from rota.program.listing import listing
from rota.program.loop_spec import LoopSpec
from rota.program.machine import Machine
from rota.program.phase import Phase


class Role(NamedTuple):
    """Waves that execute the same entries; `waves` is None where the program doesn't say how many.

    `does` names the ops that are the role's; None stands for all.  Roles that do an op share its work.
    """

    name: str
    waves: int | None = None
    does: frozenset[str] | None = None


class Barrier(NamedTuple):
    """A place to meet: the roles, by number, that arrive and those that wait until all of these have."""

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
    """A program computes A x B: every accumulator takes in every K-tile once, both operands of the same tile.

    Several products of one accumulator are its slices of K.  `grid` is how many rows and columns of accumulators there
    are.  Operands of a product after the second scale the rows of A or of B: `scales` says for each of them whose, 0
    for A and 1 for B.
    """

    products: tuple[TileProduct, ...]
    grid: tuple[int, int]
    scales: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstated:
    """What a program computes isn't stated: it was read from machine code, of which effects say what follows from it.

    `registers` are those per lane of its places, by name.
    """

    registers: tuple[tuple[str, int], ...] = ()

    def refusal(self, name: str, wants: str) -> ProgramError:
        """The finding of whoever needs to know what the program computes."""
        return ProgramError(
            Finding(
                code="T305",
                message=f"{name} was lifted from machine code: what it computes isn't stated, and {wants} needs that",
                fixes=("`rota check` of the code object proves it, `rota run` of a launch executes it",),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LoweredProgram:
    """Roles and their entries, phase by phase, and what they add up to.

    A trip takes `tiles_per_trip` tiles (or iterations), `tiles_outside` are taken outside the loop.  `semantics` is
    what must be computed: a sum over K-tiles, or a loop's values, each version of which comes from the iteration that
    its ops say.  With `compiler_tracks_registers` a compiler waits for register loads by itself.  A `reentrant` program
    may be run again immediately after itself.  Sizes are None where nothing states them.
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

    @property
    def lowered(self) -> LoweredProgram:
        """Itself: a program may be passed wherever a compiled schedule is judged."""
        return self

    def listing(self) -> str:
        """The three phases, one entry a line."""
        return "\n\n".join(listing(f"{self.name}: {phase.value.lower()}", self.phase(phase)) for phase in Phase)

    def __str__(self) -> str:
        return self.listing()

    def __repr__(self) -> str:
        counts = ", ".join(f"{phase.value.lower()} {len(self.phase(phase))}" for phase in Phase)
        return f"<LoweredProgram {self.name} on {self.machine.name}: {counts} entries>"

    def phase(self, phase: Phase) -> tuple[Entry, ...]:
        """The entries of one phase, of all roles."""
        return {Phase.PROLOGUE: self.prologue, Phase.KERNEL: self.kernel, Phase.EPILOGUE: self.epilogue}[phase]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, phase by phase."""
        return (*self.prologue, *self.kernel, *self.epilogue)

    def executed_by(self, role: int, phase: Phase) -> tuple[Entry, ...]:
        """What one role executes of a phase."""
        return tuple(entry for entry in self.phase(phase) if entry.executed_by(role))

    def doing(self, op: str) -> tuple[int, ...]:
        """The roles, by number, that do an op."""
        return tuple(n for n, role in enumerate(self.roles) if role.does is None or op in role.does)

    def barrier(self, name: str) -> Barrier | None:
        """The barrier of that name."""
        return next((each for each in self.barriers if each.name == name), None)

    def k_of(self, phase: Phase, trip: int) -> int:
        """The k that loads count from, in tiles: 0 in the prologue, then one trip's tiles further each trip."""
        return 0 if phase is Phase.PROLOGUE else self.tiles_per_trip * trip

    def total_tiles(self, trip_count: int) -> int:
        """K-tiles (or iterations) that the whole program computes."""
        return self.tiles_per_trip * trip_count + self.tiles_outside

    def with_phases(self, phases: Mapping[Phase, Sequence[Entry]]) -> LoweredProgram:
        """The same program with other entries in some phases, renumbered without what isn't listed."""
        changed = {phase.value.lower(): numbered(entries) for phase, entries in phases.items()}
        return replace(self, **changed)  # type: ignore[arg-type]  # the fields are the phases' names


def numbered(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries with their ordinals; what isn't listed has the ordinal of what is behind it."""
    return tuple(_numbered(entries))


def _numbered(entries: Sequence[Entry]) -> Iterator[Entry]:
    slot = 0
    for entry in entries:
        yield entry if entry.time_slot == slot else replace(entry, time_slot=slot)
        slot += entry.listed


class Lowerable(Protocol):
    """Whatever has a lowered program: a compiled schedule, or the program itself."""

    @property
    def lowered(self) -> LoweredProgram:
        """The program."""
        ...
