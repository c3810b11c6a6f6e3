"""How a loop by values is written: takes a program, gives its functions, their K-tiles, and its operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rota.emit.gemm.gemm_operands import GemmOperands
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.gemm.k_tiles import KTiles, stated_k_tile, stated_k_tiles
from rota.emit.gemm.loop_operands import LoopOperands
from rota.emit.text.function_call import FunctionCall
from rota.emit.text.names import identifier
from rota.program.entry import Entry
from rota.program.loop_spec import LoopSpec
from rota.program.lowered import LoweredProgram


@dataclass(frozen=True, slots=True)
class LoopForm:
    """An op has the name that it was declared with, and a number for each value: its copy."""

    program: LoweredProgram
    loop: LoopSpec

    @property
    def in_stages(self) -> bool:
        """A loop by values has none."""
        return False

    @property
    def symbol(self) -> str:
        """Each remainder has a name of its own, so that they can be linked together.

        The loop starts iterations up to the last one that the prologue leaves to it; what is outside besides these is
        the remainder.
        """
        ops = (entry for entry in self.program.kernel if not entry.op.is_framework)
        started = 1 + max(map(stated_k_tile, ops), default=-1)
        remainder = self.program.tiles_outside - started
        return f"{self.program.name}_tail{remainder}" if remainder else self.program.name

    def call(self, entry: Entry, k_tile: int) -> FunctionCall:
        """The function that stands for an op, for the copies of the values that it writes and reads.

        What every iteration adds to, an accumulator or memory, has only one.
        """
        op = next(each for each in self.loop.ops if each.name == entry.op.name)
        made = {version.name: place.copy for place, version in entry.effect.makes}
        numbers = {f"to_{value}": made[value] for value in op.writes if value in made}
        iteration = stated_k_tile(entry)
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
        """For each entry of a phase, the K-tile that it works on."""
        return stated_k_tiles(self.program)

    def operands(self, tile: GemmTile) -> GemmOperands:
        """The program's operands, if it is a GEMM on that tile."""
        return LoopOperands(self.program, self.loop, tile)
