"""How a program is written: the names, K-tiles and operands of its ops.

A program says in one of two ways what it computes; this is where emission tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rota.emit.gemm.gemm_loop import GemmLoop, SumParts
from rota.emit.gemm.gemm_tile import ColumnPair, Factor, GemmTile, Piece
from rota.emit.text import FunctionCall, identifier, no_product, unfit
from rota.errors import EmissionError
from rota.program.entry import Entry, Place, Space
from rota.program.kinds import OpKind, OpRole, Phase
from rota.program.loop_spec import SCALE_OPERANDS, LoopSpec
from rota.program.lowered import LoweredProgram, TileSum

# Which K-tile an op works on.
#
# An op of a loop by values says it itself. In a sum over K-tiles it follows from the loads: what an op reads was
# fetched, or read, by another before it.

_TRIPS = (0, 1, 2)  # a trip takes what the one before left, and the first what the prologue did

KTiles = Mapping[Phase, Sequence[int]]


def follow_k_tiles(program: LoweredProgram) -> KTiles:
    """By phase, for each of its entries; 0 for waits, barriers and fences."""
    found: dict[tuple[Phase, int], int] = {}
    for trips in _TRIPS:
        for phase, place, entry, tile in _follow(program, trips):
            if found.setdefault((phase, place), tile) != tile:
                raise EmissionError.of(
                    "T203",
                    f"{entry.op} works on another K-tile, counted from the trip's k, in one trip than "
                    "in another; no function could be told which",
                    concerns=(entry.concern(),),
                    evidence=(("K-tile", f"k {found[phase, place]:+d}"), ("in another trip", f"k {tile:+d}")),
                )
    return {phase: [found[phase, place] for place in range(len(program.phase(phase)))] for phase in Phase}


def _follow(program: LoweredProgram, trips: int) -> Iterator[tuple[Phase, int, Entry, int]]:
    """Each entry of this many trips with its K-tile; what nothing has fetched is taken for the trip's own."""
    held: dict[Place, int] = {}
    fetched: dict[Place, int] = {}
    phases = [(Phase.PROLOGUE, 0), *((Phase.KERNEL, trip) for trip in range(1, trips + 1)), (Phase.EPILOGUE, trips + 1)]
    for phase, trip in phases:
        k = program.k_of(phase, trip)
        for place, entry in enumerate(program.phase(phase)):
            effect = entry.effect
            tile = k
            if effect.kind.role is OpRole.GLOBAL_LOAD:
                target = effect.writes[0]
                fetched[target] = fetched.get(target, -1) + 1
                tile = fetched[target] if effect.fetches is None else k + effect.fetches
            elif effect.reads:
                tile = next((held[each] for each in effect.reads if each in held), k)
            held.update(dict.fromkeys(effect.writes, tile))
            yield phase, place, entry, tile - k


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers:
    """How an operand lies in LDS: `stages` copies of a K-tile, each cut into `slices` that are loaded on their own."""

    stages: int
    slices: int


class LoopOperands:
    """Which part of A and B each op, and each place in registers, of a loop by values is about."""

    def __init__(self, program: LoweredProgram, loop: LoopSpec, tile: GemmTile) -> None:
        self.gemm = GemmLoop(loop, tile)
        self.ops = {op.name: op for op in loop.ops}
        self.counts = count_copies(program)
        self.copies = max(count for (space, _), count in self.counts.items() if space is Space.REGISTER)
        self.buffers: Mapping[Factor, Buffers] = dict(self._buffers())

    def loads(self, entry: Entry) -> tuple[Factor, range]:
        """Which DMAs a load is, of all that bring its operand's tile."""
        return self.gemm.loads(self.ops[entry.op.name])

    @property
    def scale_stages(self) -> Mapping[Factor, int]:
        """Copies in LDS of the scales of each operand; nothing where there are none."""
        return {operand: self.counts[Space.LDS, name] for name, operand in self.gemm.scales.tiles.items()}

    def scale_loads(self, entry: Entry) -> tuple[Factor, range] | None:
        """Which DMAs a load of scales is, of all that bring its operand's; None for other loads."""
        op = self.ops[entry.op.name]
        return self.gemm.scales.loads(op) if op.writes[0] in self.gemm.scales.tiles else None

    def scale_parts(self, place: Place) -> tuple[Factor, Sequence[int]] | None:
        """The parts whose scales a place in registers holds; None where it holds something else."""
        return self.gemm.scales.parts.get(place.name)

    def sums(self, place: Place) -> SumParts | None:
        """The parts of A and B whose products a place in registers sums; None where it holds something else."""
        return self.gemm.sums.get(place.name)

    def k_tile(self, entry: Entry) -> int:
        """The K-tile that a load fetches, counted from the trip's k."""
        return entry.effect.instance.iteration

    def pieces(self, entry: Entry, place: Place) -> Sequence[Piece]:
        return self.gemm.pieces[place.name]

    def pairs(self, place: Place) -> Sequence[ColumnPair]:
        """What a place in registers holds of B in pairs of columns; nothing where it holds something else."""
        return self.gemm.pairs.reads.get(place.name, ())

    def copy(self, place: Place) -> int:
        return place.copy

    def fix(self, entry: Entry, due: int) -> str:
        """How an op is declared as this many instructions."""
        return f"instructions={due}"

    def _buffers(self) -> Iterator[tuple[Factor, Buffers]]:
        """Copies of the tiles, which are the same for all slices of an operand."""
        for operand, names in self.gemm.slices.items():
            counts = {name: self.counts[Space.LDS, name] for name in names}
            if len(set(counts.values())) > 1:
                raise unfit(
                    f"the slices of {operand.name} have different numbers of copies in LDS; the full form rotates all "
                    "slices of an operand together",
                    evidence=tuple(counts.items()),
                )
            yield operand, Buffers(stages=counts[names[0]], slices=len(names))


def count_copies(program: LoweredProgram) -> dict[tuple[Space, str], int]:
    """How many copies each value has, by its space and its name."""
    counts: dict[tuple[Space, str], int] = {}
    for place in (place for entry in program.entries for place in (*entry.effect.reads, *entry.effect.writes)):
        key = place.space, place.name
        counts[key] = max(counts.get(key, 0), place.copy + 1)
    return counts


# The operands of a sum over K-tiles.
#
# LDS tiles and fragments are named A and B. The parts of an LDS tile are slices of its rows; a fragment's copies
# are the slices that it was read from. Scales of blocks are channels of their own, A_scale and B_scale, loaded a
# K-tile at once.

_KNOBS = {OpKind.DMA: "vm_per_load", OpKind.LDS_READ: "lgkm_per_load"}
_SCALED = dict(zip(SCALE_OPERANDS, Factor, strict=True))


class TileOperands:
    """The same of a sum over K-tiles: slices of A by the grid's rows, of B by its columns, in the stages read."""

    copies = 1

    def __init__(self, program: LoweredProgram, semantics: TileSum, tile: GemmTile) -> None:
        self.tile = tile
        self.grid = semantics.grid
        if tile.block_sums:
            raise unfit("a sum over K-tiles has no sums of blocks: such a loop is declared by values")
        if tile.pairs:
            raise unfit(
                "a sum over K-tiles has no vector ops: a loop that turns pairs of columns is declared by values"
            )
        if tile.has_scales:
            _check_scales(semantics)
        read = (place for entry in program.entries for place in entry.effect.reads if place.space is Space.LDS)
        self.stages = 1 + max((place.copy for place in read), default=0)
        self.scale_stages: Mapping[Factor, int] = dict.fromkeys(Factor, self.stages) if tile.has_scales else {}
        self.buffers: Mapping[Factor, Buffers] = {
            operand: Buffers(stages=self.stages, slices=slices)
            for operand, slices in zip(Factor, self.grid, strict=True)
        }

    def loads(self, entry: Entry) -> tuple[Factor, range]:
        place = entry.effect.writes[0]
        operand = self._operand(entry, place)
        each = self.tile.slice_dmas(operand, self.buffers[operand].slices)
        return operand, range(place.part * each, (place.part + 1) * each)

    def k_tile(self, entry: Entry) -> int:
        return entry.effect.fetches or 0

    def pieces(self, entry: Entry, place: Place) -> Sequence[Piece]:
        operand = self._operand(entry, place)
        return self.tile.slice_pieces(operand, place.copy, self.buffers[operand].slices)

    def pairs(self, place: Place) -> Sequence[ColumnPair]:
        return ()

    def copy(self, place: Place) -> int:
        return 0  # every slice has registers of its own

    def scale_loads(self, entry: Entry) -> tuple[Factor, range] | None:
        """Which DMAs a load of scales is: all that bring its operand's; None for other loads."""
        scaled = self._find_scaled(entry.effect.writes[0])
        if scaled is None:
            return None
        operand, slices = scaled
        if len(entry.effect.writes) < slices:
            raise unfit(
                f"{entry.op} brings the scales of {len(entry.effect.writes)} of {slices} slices of {operand.name}; one "
                "load brings those of a K-tile",
                concerns=[entry.concern()],
                fixes=(f'ChannelSpec(name="{operand.name}_scale", whole_tile=True, ...)',),
            )
        return operand, range(self.tile.scale_loads(operand))

    def scale_parts(self, place: Place) -> tuple[Factor, Sequence[int]] | None:
        """The parts whose scales a place in registers holds; None where it holds something else."""
        scaled = self._find_scaled(place)
        if scaled is None:
            return None
        operand, slices = scaled
        own = self.tile.parts(operand) // slices
        return operand, range(place.copy * own, (place.copy + 1) * own)

    def sums(self, place: Place) -> SumParts | None:
        return None

    def fix(self, entry: Entry, due: int) -> str:
        place = (*entry.effect.reads, *entry.effect.writes)[0]
        if self._find_scaled(place) is not None:
            return f"{_KNOBS[entry.op.kind]}={due} in {place.name}'s ChannelSpec, if the op has no cost of its own"
        knob = f"{_KNOBS[entry.op.kind]}_{self._operand(entry, place).value}"
        return f"{knob}={due} in the pipeline config, if the op has no cost of its own"

    def _find_scaled(self, place: Place) -> tuple[Factor, int] | None:
        """The operand whose scales a place holds, and its slices; None where it holds something else."""
        operand = _SCALED.get(place.name) if self.tile.has_scales else None
        return None if operand is None else (operand, self.buffers[operand].slices)

    def _operand(self, entry: Entry, place: Place) -> Factor:
        """The operand, if there is one of that name and it has this many tiles."""
        operand = Factor.__members__.get(place.name)
        rows, columns = self.grid
        stage, piece = (place.copy, place.part) if place.space is Space.LDS else (0, place.copy)
        if operand is None or piece >= self.buffers[operand].slices or stage >= self.stages:
            raise no_product(
                f"{entry.op} works on {place}, which a grid of {rows} x {columns} "
                f"tiles of A and B in {self.stages} stages doesn't have",
                concerns=[entry.concern()],
                evidence=(("rows of tiles (A)", rows), ("columns (B)", columns)),
            )
        return operand


GemmOperands = LoopOperands | TileOperands


def _check_scales(semantics: TileSum) -> None:
    """Every product has the scales of its own rows of A and of its own columns of B, and nothing else."""
    for product in semantics.products:
        a, b, *further = product.operands
        due = {(name, factor.copy) for name, factor in zip(SCALE_OPERANDS, (a, b), strict=True)}
        if {(place.name, place.copy) for place in further} != due or len(further) != len(due):
            raise no_product(
                f"{product.accumulator} multiplies {a} and {b} with {', '.join(map(str, further))}; it takes the "
                "scales of their own blocks",
                evidence=(("due", ", ".join(f"{name}[{copy}]" for name, copy in sorted(due))),),
                fixes=tuple(
                    f'ChannelSpec(name="{name}", match_field={field}, whole_tile=True, ...)'
                    for field, name in enumerate(SCALE_OPERANDS)
                ),
            )


@dataclass(frozen=True, slots=True)
class LoopForm:
    """An op has the name that it was declared with, and a number for each value: its copy."""

    program: LoweredProgram
    loop: LoopSpec

    in_stages: ClassVar = False  # entries of the author's have no stages and K offsets

    @property
    def symbol(self) -> str:
        """Each remainder has a name of its own, so that they can be linked together.

        The loop starts iterations up to the last one that the prologue leaves to it; what is outside besides these is
        the remainder.
        """
        ops = (entry for entry in self.program.kernel if not entry.op.is_framework)
        started = 1 + max((entry.effect.instance.iteration for entry in ops), default=-1)
        remainder = self.program.tiles_outside - started
        return f"{self.program.name}_tail{remainder}" if remainder else self.program.name

    def call(self, entry: Entry, k_tile: int) -> FunctionCall:
        """The function that represents an op, for the copies of the values that it writes and reads.

        What every iteration adds to, an accumulator or memory, has only one.
        """
        op = next(each for each in self.loop.ops if each.name == entry.op.name)
        made = {version.name: place.copy for place, version in entry.effect.makes}
        numbers = {f"to_{value}": made[value] for value in op.writes if value in made}
        iteration = entry.effect.instance.iteration
        wanted = {(version.name, version.iteration): place.copy for place, version in entry.effect.wants}
        for read in op.reads:
            before = f"_before{read.distance}" if read.distance else ""
            numbers[f"from_{read.value}{before}"] = wanted[read.value, iteration - read.distance]
        return FunctionCall(identifier(op.name), tuple(numbers.values()), tuple(numbers), k_tile)

    def as_declared(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """As the loop has them, whatever the schedule."""
        places = {op.name: place for place, op in enumerate(self.loop.ops)}
        return sorted(entries, key=lambda entry: places[entry.op.name])

    def notes(self) -> Iterator[str]:
        """Which values take over the registers of others, and so their copies."""
        for value in self.loop.values:
            if value.into:
                yield f"// {identifier(value.name)} is written into the registers of {identifier(value.into)}."

    def k_tiles(self) -> KTiles:
        """For each entry of a phase, the K-tile that it works on; 0 for waits, barriers and fences."""
        return {phase: [entry.effect.instance.iteration for entry in self.program.phase(phase)] for phase in Phase}

    def operands(self, tile: GemmTile) -> GemmOperands:
        """The program's operands, if it is a GEMM on that tile."""
        return LoopOperands(self.program, self.loop, tile)


_NUMBERED = re.compile(r"(?P<function>.+?)(?: s(\d+) t(\d+)(?: \w+)?|\[(\d+),(\d+)\])")


@dataclass(frozen=True, slots=True)
class TileForm:
    """An op is known by its name, a function and two numbers: `load_a s1 t0 k1`, `mma[1,0]`."""

    program: LoweredProgram
    semantics: TileSum

    in_stages: ClassVar = True

    @property
    def symbol(self) -> str:
        return self.program.name

    def call(self, entry: Entry, k_tile: int) -> FunctionCall:
        """The function that represents an op; one without numbers in its name is not specialised."""
        match = _NUMBERED.fullmatch(entry.op.name)
        if match is None:
            return FunctionCall(identifier(entry.op.name), (), (), k_tile)
        function, *numbers = match.groups()
        called = ("row", "column") if entry.op.kind.computes else ("stage", "subtile")
        return FunctionCall(identifier(function), tuple(int(each) for each in numbers if each), called, k_tile)

    def as_declared(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """In the order of the program, which has no other."""
        return entries

    def notes(self) -> Iterator[str]:
        return iter(())

    def k_tiles(self) -> KTiles:
        return follow_k_tiles(self.program)

    def operands(self, tile: GemmTile) -> GemmOperands:
        return TileOperands(self.program, self.semantics, tile)


ProgramForm = LoopForm | TileForm
"""What emission asks of a program besides its entries."""


def form_of(program: LoweredProgram) -> ProgramForm:
    """By what the program says that it computes."""
    return program.by_semantics(
        "emitted source", lambda declared: TileForm(program, declared), lambda loop: LoopForm(program, loop)
    )
