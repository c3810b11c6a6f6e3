"""How a program is written: takes it, gives the names and K-tiles of its ops, and what they are as a GEMM.

A program says in one of two ways what it computes; this is where emission tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from rota.emit.gemm.gemm_operands import GemmOperands
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.gemm.k_tiles import KTiles
from rota.emit.gemm.loop_form import LoopForm
from rota.emit.gemm.tile_form import TileForm
from rota.emit.text.function_call import FunctionCall
from rota.program.entry import Entry
from rota.program.lowered import LoweredProgram, TileSum, Unstated


class ProgramForm(Protocol):
    """What emission asks of a program besides its entries."""

    @property
    def symbol(self) -> str:
        """What its kernel is called."""
        ...

    @property
    def in_stages(self) -> bool:
        """Do its author's entries have stages and K offsets, as the reference's do?"""
        ...

    def call(self, entry: Entry, k_tile: int) -> FunctionCall:
        """The function that stands for an op in a skeleton."""
        ...

    def as_declared(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Entries in the order of their ops' declarations."""
        ...

    def notes(self) -> Iterator[str]:
        """What else the author of the functions must know."""
        ...

    def k_tiles(self) -> KTiles:
        """For each entry of a phase, the K-tile that it works on."""
        ...

    def operands(self, tile: GemmTile) -> GemmOperands:
        """The program's operands, if it is a GEMM on that tile."""
        ...


def form_of(program: LoweredProgram) -> ProgramForm:
    """By what the program says that it computes."""
    if isinstance(program.semantics, TileSum):
        return TileForm(program, program.semantics)
    if isinstance(program.semantics, Unstated):
        raise program.semantics.refusal(program.name, "emitted source")
    return LoopForm(program, program.semantics)
