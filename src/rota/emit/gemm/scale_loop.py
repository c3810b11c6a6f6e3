"""The scales of a loop by values: takes a loop and a tile, gives which parts' scales its tiles and registers hold.

Each operand's scales are one LDS tile, a row of bytes for each row of the operand, one byte or float for each block of
K.  A read brings a lane what it takes of one part; the reads of a tile take its parts in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rota.emit.gemm.gemm_factors import Factor
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.refusal import miscounted, no_product, unfit
from rota.errors import Concern
from rota.program.kinds import OpKind
from rota.program.loop_spec import SCALE_OPERANDS, LoopOp, LoopSpec

Parts = tuple[Factor, tuple[int, ...]]
_OPERAND = dict(zip(SCALE_OPERANDS, Factor, strict=True))


class ScaleLoop:
    """The tile of each operand's scales, and the parts whose scales each register value holds; nothing without any."""

    def __init__(self, loop: LoopSpec, tile: GemmTile) -> None:
        """What is scaled must be so in all of its parts, and what isn't has no scales."""
        self.loop = loop
        self.tile = tile
        self.tiles: Mapping[str, Factor] = {
            value.name: _OPERAND[value.operand] for value in loop.values if value.operand in _OPERAND
        }
        if sorted(self.tiles.values(), key=list(Factor).index) != (list(Factor) if tile.has_scales else []):
            due = "one LDS tile with the scales of A and one with those of B" if tile.has_scales else "no scales"
            taker = "a sum of blocks" if tile.block_sums else tile.instruction
            raise unfit(
                f"{taker} takes {due}, and the loop has {', '.join(self.tiles) or 'none'}",
                fixes=('loop.tile(..., operand="A_scale"), or "B_scale"',) if tile.has_scales else (),
            )
        self.parts: Mapping[str, Parts] = dict(self._read())
        for op in loop.ops:
            if op.kind is OpKind.DMA and op.writes[0] in self.tiles:
                self._check_load(op)

    def loads(self, op: LoopOp) -> tuple[Factor, range]:
        """Which DMAs a load is, of all that bring its tile."""
        operand, writers = self.tiles[op.writes[0]], self.loop.writers(op.writes[0])
        each, left = divmod(self.tile.scale_loads(operand), len(writers))
        if left or not each:
            raise unfit(
                f"{len(writers)} loads can't evenly share the {self.tile.scale_loads(operand)} DMAs of each wave that "
                f"bring {op.writes[0]}",
                concerns=(Concern(label=writer.name, source=writer.source) for writer in writers),
            )
        first = writers.index(op) * each
        return operand, range(first, first + each)

    def check_scaled(
        self, op: LoopOp, parts: Mapping[Factor, Sequence[int]], scales: Sequence[str] | None = None
    ) -> None:
        """Does a product, or what adds its sums by `scales`, read those of all its parts, and no others?"""
        due = parts if self.tile.scaled or scales is not None else dict.fromkeys(Factor, ())
        held: dict[Factor, list[int]] = {operand: [] for operand in Factor}
        for name in op.scales if scales is None else scales:
            if name not in self.parts:
                raise no_product(
                    f"{op} is scaled by {name}, which holds no scales",
                    concerns=[Concern(label=op.name, source=op.source)],
                )
            operand, own = self.parts[name]
            held[operand] += own
        for operand, multiplied in parts.items():
            if sorted(held[operand]) != sorted(due[operand]):
                raise no_product(
                    f"{op} multiplies parts {_listed(multiplied)} of {operand.name} with the scales of "
                    f"{_listed(held[operand])}",
                    concerns=[Concern(label=op.name, source=op.source)],
                    fixes=("name what was read of A's scales and of B's, for the rows that are multiplied",),
                )

    def _read(self) -> Iterator[tuple[str, Parts]]:
        for name, operand in self.tiles.items():
            readers = [op for op in self.loop.ops if any(read.value == name for read in op.reads)]
            parts = range(self.tile.parts(operand))
            if not readers or len(parts) % len(readers):
                raise unfit(
                    f"{len(readers)} reads can't evenly share the scales of {len(parts)} parts of {operand.name}",
                    concerns=(Concern(label=op.name, source=op.source) for op in readers),
                )
            share = len(parts) // len(readers)
            for number, reader in enumerate(readers):
                value, taken = self.loop.value(reader.writes[0]), share * self.tile.scale_registers(operand)
                if value.size != taken:
                    raise miscounted(
                        f"{value.name} is declared as {value.size} registers of each lane, but the scales of {share} "
                        f"parts take {taken}",
                        concerns=[Concern(label=reader.name, source=reader.source)],
                        evidence=(("declared", value.size), ("taken", taken)),
                        fixes=(f"registers={taken}",),
                    )
                yield value.name, (operand, tuple(parts[number * share : (number + 1) * share]))

    def _check_load(self, op: LoopOp) -> None:
        operand, numbers = self.loads(op)
        due, size = len(numbers) * self.tile.scale_dma_bytes, self.loop.value(op.writes[0]).size
        whole = self.tile.scale_bytes(operand)
        if (op.moved, size) != (due, whole):
            raise miscounted(
                f"{op} is declared to move {op.moved} bytes into a tile of {size}, but its DMAs, {len(numbers)} of "
                f"each wave, move {due} into {whole}",
                concerns=[Concern(label=op.name, source=op.source)],
                evidence=(("declared", op.moved), ("moved", due), ("size", size), ("taken", whole)),
                fixes=(f"moved={due}, into a tile of size={whole}",),
            )


def _listed(parts: Sequence[int]) -> str:
    return ", ".join(map(str, parts)) or "none"
