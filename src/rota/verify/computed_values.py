"""What a schedule computes, checked against its declaration.

A program states it in one of two ways. For a sum over K-tiles, `TileContents` follows tiles and blocks from loads to
accumulators. For a loop by values, `VersionContents` follows versions: if every op runs once per iteration and finds
the version it wants in every place, the loop computes what its iterations would compute one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from rota.errors import Concern, Finding, several
from rota.program.entry import ARRIVE, AWAIT, BARRIER, Effect, Entry, Place, Space, Version, wait_name, wait_op
from rota.program.kinds import Home, OpKind, Phase
from rota.program.loop_spec import LoopOp, LoopSpec
from rota.program.lowered import LoweredProgram, TileProduct, TileSum
from rota.program.machine import Machine
from rota.verify.abstract_machine import AbstractMachine, Taken
from rota.verify.hazards import name_place
from rota.verify.machine_limits import find_impossible

# What was declared.
#
# A proof that looks at the program alone doesn't notice what is missing everywhere.

_UNVERSIONED = {Home.ACCUMULATOR: Space.ACCUMULATOR, Home.MEMORY: Space.MEMORY}
"""Homes that take in what every iteration brings, and of which none is read again in the loop."""

_SIDES = {BARRIER.name: (True, True), ARRIVE.name: (True, False), AWAIT.name: (False, True)}
"""Whether a barrier of that name arrives, and whether it waits; any other name says nothing."""


def results(loop: LoopSpec) -> tuple[str, ...]:
    """The last version of every carried value, which the code after the loop finds in registers.

    Where another value takes over the registers in each iteration, that one is left in them.
    """
    registers = {value.name for value in loop.values if value.home is Home.REGISTERS}
    taken_over = {value.into for value in loop.values}
    carried = dict.fromkeys(read.value for op in loop.ops for read in op.reads if read.distance)
    return tuple(name for name in carried if name in registers and name not in taken_over)


def find_contradictions(program: LoweredProgram) -> Iterator[Finding]:
    """Find entries whose op and effect disagree: listings print the op, emitters write the effect."""
    counters = [counter.name for counter in program.machine.counters]
    for step in program.entries:
        if step.op.kind is not step.effect.kind:
            yield report_difference(step, "does", step.op.kind.does, step.effect.kind.does)
        elif step.op.kind is OpKind.WAIT:
            others = tuple(f"{wait_name(name)}(" for name in counters if name != step.effect.counter)
            if not step.op.name.endswith(f"({step.effect.wait_value})") or step.op.name.startswith(others):
                due = wait_op(step.effect.counter or "", step.effect.wait_value).name
                yield report_difference(step, "waits for", step.op.name, due)
        elif step.op.kind is OpKind.BARRIER and step.op.name in _SIDES:
            sides = step.effect.arrives is not None, step.effect.awaits is not None
            if sides != _SIDES[step.op.name]:
                yield report_difference(step, "arrives, and waits", _SIDES[step.op.name], sides)


def find_undeclared(program: LoweredProgram, loop: LoopSpec) -> Iterator[Finding]:
    """Find entries that don't do what their op declares, or that represent no declared op."""
    places = _Places(loop)
    ops = {op.name: _Declared(places, op, program.machine) for op in loop.ops}
    for step in program.entries:
        effect = step.effect
        instance = effect.instance
        if effect.kind.synchronises and not instance.name:
            continue
        if instance.name not in ops:
            yield report_difference(step, "stands for", "an op of the loop", instance.name or "none")
            continue
        declared = ops[instance.name]
        yield from (report_difference(step, *each) for each in declared.differences(effect, instance.iteration))
        if step.op.name != declared.name or step.op.kind is not declared.kind:
            yield report_difference(step, "is written as", declared.name, f"{step.op.kind.word} {step.op.name}")


_HeldVersion = tuple[Place, Version]


class _Operand(NamedTuple):
    """A place that an op must read or write: whose version, how many iterations back, and where it lives."""

    value: str
    distance: int
    space: Space
    name: str
    part: int

    def is_at(self, place: Place, version: Version, iteration: int) -> bool:
        return (
            version.name == self.value
            and version.iteration == iteration - self.distance
            and place.space is self.space
            and place.name == self.name
            and place.part == self.part
        )

    def __str__(self) -> str:
        back = f", {self.distance} iterations back" if self.distance else ""
        return f"part {self.part} of {self.value}{back}"


class _Places:
    """Where the values of a loop live: their homes, numbers and parts."""

    def __init__(self, loop: LoopSpec) -> None:
        self.homes = {value.name: value.home for value in loop.values}
        self.writers: dict[str, list[str]] = {value.name: [] for value in loop.values}
        for op in loop.ops:
            for name in op.writes:
                self.writers[name].append(op.name)
        self.first = dict[str, str]()  # whose registers a value takes over, in the end
        for value in loop.values:
            self.first[value.name] = self.first.get(value.into, value.name)

    def operands(self, name: str, distance: int, parts: tuple[int, ...] = ()) -> Iterator[_Operand]:
        """These parts of a value, or all parts if none are named."""
        in_lds = self.homes[name] is Home.LDS
        space = Space.LDS if in_lds else Space.REGISTER
        every = range(len(self.writers[name]) if in_lds else 1)
        return (_Operand(name, distance, space, self.first[name], part) for part in parts or every)


class _Declared:
    """What every entry of one op must do, derived from its declaration alone."""

    def __init__(self, places: _Places, op: LoopOp, machine: Machine) -> None:
        self.name, self.kind = op.name, op.kind
        homes = places.homes
        self.counter = machine.counter_of(op.kind)
        self.tokens = op.instructions if self.counter else 0
        self.wants = tuple(each for read in op.reads for each in places.operands(read.value, read.distance, read.parts))
        made = [name for name in op.writes if homes[name] not in _UNVERSIONED]
        self.makes = tuple(
            each
            for name in made
            for each in places.operands(name, 0)
            if homes[name] is not Home.LDS or places.writers[name][each.part] == op.name
        )
        self.sums = tuple(Place(_UNVERSIONED[homes[name]], name) for name in op.writes if homes[name] in _UNVERSIONED)

    def differences(self, effect: Effect, iteration: int) -> Iterator[tuple[str, object, object]]:
        """Triples of field, found and declared, where an entry differs."""
        if effect.kind is not self.kind:
            yield "is", self.kind.does, effect.kind.does
        if effect.counter != self.counter or effect.tokens != self.tokens:
            yield "counts", _tokens(self.tokens, self.counter), _tokens(effect.tokens, effect.counter)
        if not _same(self.wants, effect.wants, effect.reads, iteration):
            yield "reads", _list_places(self.wants), _describe_held(effect.wants)
        if not _same(self.makes, effect.makes, effect.writes[: len(effect.makes)], iteration):
            yield "writes", _list_places(self.makes), _describe_held(effect.makes)
        if effect.writes[len(effect.makes) :] != self.sums:
            yield "adds to", _list_places(self.sums), _list_places(effect.writes[len(effect.makes) :])


def _same(due: Sequence[_Operand], found: Sequence[_HeldVersion], places: Sequence[Place], iteration: int) -> bool:
    if not len(due) == len(found) == len(places):
        return False
    for operand, (place, version), touched in zip(due, found, places, strict=True):
        if place != touched or not operand.is_at(place, version, iteration):
            return False
    return True


def _describe_held(found: Iterable[_HeldVersion]) -> str:
    return _list_places(f"{version} in {place}" for place, version in found)


def _tokens(number: int, counter: str | None) -> str:
    return f"{number} on {counter}" if counter else "nothing"


def _list_places(things: Iterable[object]) -> str:
    return ", ".join(map(str, things)) or "nothing"


def report_difference(step: Entry, what: str, due: object, found: object) -> Finding:
    return Finding(
        "V110",
        f"{step.op} is not the op that the loop declares",
        concerns=(step.concern(),),
        evidence=((f"it {what}", str(found)), ("declared", str(due))),
    )


# What is computed.
#
# For programs that compute a sum over K-tiles: an op passes on whatever tile, and whatever block of A or B, its
# operands hold.

_Held = TypeVar("_Held")

AccumulatorKey = tuple[Place, tuple[Place, ...]]
"""An accumulator and the registers that are multiplied into it: a slice of K, where each compute covers one."""


class TileContents:
    """Follows K-tiles and blocks from loads to accumulators."""

    proves = "values: every accumulator takes in every K-tile once, both operands of the same tile and their own block"
    first_iterations = 0

    def __init__(self, program: LoweredProgram, semantics: TileSum) -> None:
        self.program, self.semantics = program, semantics
        self.initial: tuple[Place, ...] = ()

    def find_undeclared(self) -> Iterator[Finding]:
        """Find memory ops on a counter other than the machine's; everything else about an entry follows from its op."""
        for step in self.program.entries:
            effect = step.effect
            due = self.program.machine.counter_of(effect.kind)
            if effect.kind.asynchronous and effect.counter != due:
                yield report_difference(step, "counts on", due, effect.counter)

    def find_impossible(self) -> Iterator[Finding]:
        return find_outside_grid(self.program, self.semantics)

    def apply(self, machine: AbstractMachine, step: Entry, k: int) -> Iterable[Finding]:
        effect = step.effect
        if effect.kind.computes:
            return self._multiplied(machine, step)
        if effect.kind is OpKind.DMA:
            for place in effect.writes:
                machine.holds[place] = k + (effect.fetches or 0)
                machine.blocks[place] = (place.name, place.part)  # a part of a tile is a block of an operand
        elif effect.kind is OpKind.GLOBAL_LOAD:
            for place in effect.writes:
                machine.fetched[place] = machine.holds[place] = machine.fetched.get(place, -1) + 1
                machine.blocks.pop(place, None)  # all of a tile, of which each read takes its own slice
        elif effect.reads and effect.writes:
            known = all(place in machine.holds for place in effect.reads)
            missing = () if known else tuple(find_undefined_reads(machine, step, effect.reads))
            source, target = effect.reads[0], effect.writes[0]
            _pass_on(machine.holds, source, target)
            _pass_on(machine.blocks, source, target)
            return missing
        return ()

    def _multiplied(self, machine: AbstractMachine, step: Entry) -> Iterable[Finding]:
        return (
            *find_undefined_reads(machine, step, step.effect.reads),
            *find_wrong_blocks(machine, step),
            *accumulate(machine, step),
        )

    def find_lost(self, machine: AbstractMachine, base: int) -> Iterator[Finding]:
        return find_lost_tiles(machine, base, self.program.tiles_per_trip)

    def check_end(self, machine: AbstractMachine, total: int) -> Iterator[Finding]:
        return check_complete(machine, self.semantics.products, total)


def find_wrong_blocks(machine: AbstractMachine, step: Entry) -> Iterator[Finding]:
    """Find operands that hold another block than the one their registers are declared to hold."""
    for place in step.effect.reads:
        name, number = machine.blocks.get(place, (place.name, place.copy))
        if (name, number) != (place.name, place.copy):
            yield Finding(
                "V110",
                f"{step.op} multiplies {place}, which hold the wrong block",
                concerns=(step.concern(),),
                evidence=(
                    ("it reads", f"block {number} of {name}"),
                    ("declared", f"block {place.copy} of {place.name}"),
                ),
            )


def find_outside_grid(program: LoweredProgram, declared: TileSum) -> Iterator[Finding]:
    """Find computes that belong to no cell of the declared grid."""
    known = {(each.accumulator, each.operands) for each in declared.products}
    rows, columns = declared.grid
    for step in program.entries:
        if step.effect.kind is OpKind.MMA and accumulator_key(step) not in known:
            yield Finding(
                "V109",
                f"{step.op} computes {step.effect.writes[0]}; the grid has {rows} x {columns} cells",
                concerns=(step.concern(),),
                evidence=(("rows", rows), ("columns", columns)),
            )


def find_undefined_reads(machine: AbstractMachine, step: Entry, places: Iterable[Place]) -> Iterator[Finding]:
    for place in places:
        if place not in machine.holds:
            yield Finding("V104", f"{step.op} reads {place}, which nothing has written", concerns=(step.concern(),))


def accumulate(machine: AbstractMachine, step: Entry) -> Iterator[Finding]:
    """Check that both operands come from the same K-tile, and that no tile is added twice."""
    operands = step.effect.reads
    tiles = {place: machine.holds[place] for place in operands if place in machine.holds}
    if len(tiles) < len(operands):
        return  # reported as undefined
    if len(set(tiles.values())) > 1:
        text = ", ".join(f"{place} of K-tile {tile}" for place, tile in tiles.items())
        yield Finding(
            "V101",
            f"{step.op} multiplies operands of different K-tiles",
            concerns=(step.concern(),),
            evidence=(("operands", text),),
        )
        return
    tile = tiles[operands[0]]
    key = accumulator_key(step)
    taken = machine.taken.get(key)
    if taken is None:
        taken = machine.taken[key] = Taken()
    if not taken.add(tile):
        yield Finding(
            "V102",
            f"{step.op} accumulates K-tile {tile} a second time",
            concerns=(step.concern(),),
            evidence=(("K-tile", tile),),
        )


def find_lost_tiles(machine: AbstractMachine, base: int, tiles_per_trip: int) -> Iterator[Finding]:
    """Find K-tiles that were skipped so long ago that no place can still hold them."""
    oldest = min((*machine.holds.values(), base)) if machine.holds else base
    horizon = min(oldest, base - 2 * tiles_per_trip)
    for key, taken in machine.taken.items():
        while taken.upto < horizon:
            yield _missing(key, taken.skip())


def check_complete(machine: AbstractMachine, declared: Iterable[TileProduct], total: int) -> Iterator[Finding]:
    """Check that every declared accumulator has taken the tiles 0 .. total - 1 and no other."""
    for key in dict.fromkeys((*((each.accumulator, each.operands) for each in declared), *machine.taken)):
        taken = machine.taken.get(key, Taken()).fork()
        while taken.upto < total:
            yield _missing(key, taken.skip())
        beyond = sorted({*taken.beyond, *range(total, taken.upto)})
        if beyond:
            yield Finding(
                "V105",
                f"{key[0]} takes in K-tile {beyond[0]}, but the loop has {total}",
                concerns=(Concern(label=str(key[0])),),
                evidence=(("K-tile", beyond[0]), ("tiles", total)),
            )


def accumulator_key(step: Entry) -> AccumulatorKey:
    return step.effect.writes[0], step.effect.reads


def _pass_on(contents: dict[Place, _Held], source: Place, target: Place) -> None:
    if source in contents:
        contents[target] = contents[source]
    else:
        contents.pop(target, None)


def _missing(key: AccumulatorKey, tile: int) -> Finding:
    return Finding(
        "V103",
        f"{key[0]} never takes in K-tile {tile}",
        concerns=(Concern(label=str(key[0])),),
        evidence=(("K-tile", tile),),
    )


class VersionContents:
    """Follows versions of values from the ops that make them to the ops that want them."""

    proves = (
        "values: every op runs once per iteration and finds the version of each value that it wants; "
        "after the loop the last version of every carried value is there"
    )

    def __init__(self, program: LoweredProgram, semantics: LoopSpec) -> None:
        self.program, self.semantics = program, semantics
        self.first_iterations = first_iterations(program)
        self.ops = tuple(op.name for op in semantics.ops)
        self.results = results(semantics)

    @cached_property
    def initial(self) -> tuple[Place, ...]:
        """Places whose content before the loop is read; only reentrant loops ask."""
        return initial_places(self.program)

    def find_undeclared(self) -> Iterator[Finding]:
        return find_undeclared(self.program, self.semantics)

    def find_impossible(self) -> Iterator[Finding]:
        return find_impossible(self.semantics, self.program.machine)

    def apply(self, machine: AbstractMachine, step: Entry, k: int) -> Iterator[Finding]:
        yield from find_wrong_versions(machine, step, k)
        yield from check_runs_once(machine, step, k)

    def find_lost(self, machine: AbstractMachine, base: int) -> Iterator[Finding]:
        """Nothing: a wrong version is reported at once."""
        return iter(())

    def check_end(self, machine: AbstractMachine, total: int) -> Iterator[Finding]:
        yield from check_all_ran(machine, self.ops, total)
        yield from find_lost_results(machine, self.results, total)


def find_wrong_versions(machine: AbstractMachine, step: Entry, k: int) -> Iterator[Finding]:
    """Check that every place the op reads holds the version it wants.

    A place that nothing has written holds what was put there before the loop: the initial version that is wanted first,
    and no other.
    """
    for place, wanted in step.effect.wants:
        due = wanted.at(k)
        found = machine.versions.get(place)
        if found is None and due.iteration < 0:
            machine.versions[place] = due
        elif found != due:
            lost = due.iteration < 0
            yield Finding(
                "V106",
                f"{step.op} wants {'the initial ' if lost else ''}{due.name}, "
                f"but {name_place(place, step)} hold{'s' if place.space is Space.LDS else ''} another version",
                concerns=(step.concern(),),
                evidence=(("due", str(due)), ("found", str(found or "nothing"))),
            )


def initial_places(program: LoweredProgram) -> tuple[Place, ...]:
    """Places whose content before the loop some op wants, at some trip count."""
    reach = first_iterations(program, Phase)
    found: dict[Place, None] = {}
    for phase in Phase:
        trips = range(1) if phase is Phase.PROLOGUE else range(1, reach + 2)
        for trip in trips:
            k = program.k_of(phase, trip)
            wants = (want for step in program.phase(phase) for want in step.effect.wants)
            found |= {place: None for place, wanted in wants if wanted.at(k).iteration < 0}
    return tuple(found)


def first_iterations(program: LoweredProgram, phases: Iterable[Phase] = (Phase.KERNEL, Phase.EPILOGUE)) -> int:
    """From this k on, every op of these phases wants versions of iterations that really ran."""
    wants = (want for phase in phases for step in program.phase(phase) for _, want in step.effect.wants)
    return max((-want.iteration for want in wants), default=0)


def check_runs_once(machine: AbstractMachine, step: Entry, k: int) -> Iterator[Finding]:
    instance = step.effect.instance
    number = instance.at(k).iteration
    if not machine.executed.setdefault(instance.name, Taken()).add(number):
        yield Finding(
            "V107",
            f"{step.op} is executed a second time for iteration {number}",
            concerns=(step.concern(),),
            evidence=(("iteration", number),),
        )
    for place, made in step.effect.makes:
        machine.versions[place] = made.at(k)


def find_lost_results(machine: AbstractMachine, results: Iterable[str], total: int) -> Iterator[Finding]:
    """Check that the last version of every carried value survives for the code after the loop."""
    held = set(machine.versions.values())
    for name in results if total else ():
        last = Version(name, total - 1)
        if last not in held:
            yield Finding(
                "V112",
                f"after the loop nothing holds the last {name}",
                concerns=(Concern(label=name),),
                evidence=(("due", str(last)), ("iterations", total)),
            )


def check_all_ran(machine: AbstractMachine, declared: Iterable[str], total: int) -> Iterator[Finding]:
    """Check that every declared op ran for the iterations 0 .. total - 1 and no other."""
    for name in dict.fromkeys((*declared, *machine.executed)):
        taken = machine.executed.get(name, Taken())
        if taken.upto != total or taken.beyond:
            yield Finding(
                "V107",
                f"{name} is not executed once for each of {several(total, 'iteration')}",
                concerns=(Concern(label=name),),
                evidence=(("iterations from 0 without a gap", taken.upto), ("due", total)),
            )
