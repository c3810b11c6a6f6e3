"""How a sum over K-tiles is written: takes a program, gives its functions, their K-tiles, and its operands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rota.emit.gemm.gemm_operands import GemmOperands
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.gemm.k_tiles import KTiles, followed_k_tiles
from rota.emit.gemm.tile_operands import TileOperands
from rota.emit.text.function_call import FunctionCall
from rota.emit.text.names import identifier
from rota.program.entry import Entry
from rota.program.lowered import LoweredProgram, TileSum

_NUMBERED = re.compile(r"(?P<function>.+?)(?: s(\d+) t(\d+)(?: \w+)?|\[(\d+),(\d+)\])")


@dataclass(frozen=True, slots=True)
class TileForm:
    """An op is known by its name, a function and two numbers: `load_a s1 t0 k1`, `mma[1,0]`."""

    program: LoweredProgram
    semantics: TileSum

    @property
    def in_stages(self) -> bool:
        """A sum over K-tiles is declared in stages."""
        return True

    @property
    def symbol(self) -> str:
        """What its kernel is called."""
        return self.program.name

    def call(self, entry: Entry, k_tile: int) -> FunctionCall:
        """The function that stands for an op; one without numbers in its name is not specialised."""
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
        """Nothing that names don't say."""
        return iter(())

    def k_tiles(self) -> KTiles:
        """For each entry of a phase, the K-tile that it works on."""
        return followed_k_tiles(self.program)

    def operands(self, tile: GemmTile) -> GemmOperands:
        """The program's operands, if it is a GEMM on that tile."""
        return TileOperands(self.program, self.semantics, tile)
