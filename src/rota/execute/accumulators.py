"""What the accumulators end up with: takes the tiles that reads saw, gives each wave's sums and what made one wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.execute.clock import Clock
from rota.execute.matrices import Matrices
from rota.execute.wave_trace import GARBAGE
from rota.execute.workgroup import Workgroup
from rota.program.effects import Place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]


class Accumulators(NamedTuple):
    """Everything that the computes of a workgroup read; `seen` is by [run, wave, memory op, slice]."""

    group: Workgroup
    clock: Clock
    seen: Ints
    matrices: Matrices

    def sums(self, place: Place) -> Floats:
        """The values of one accumulator by [run, wave, row, column]: the sum of A_reg @ B_reg over its computes.

        Before that, further operands scale the rows of one or the other.
        """
        import numpy as np

        slices = np.arange(self.group.size)[:, np.newaxis]
        left, right, *further = self._tiles(place)
        factors = [
            operand[blocks[:, np.newaxis], tiles, slices]  # by [run, wave, slice, compute, k]
            for operand, (tiles, blocks) in ((self.matrices.a, left), (self.matrices.b, right))
        ]
        scaling = zip(self.matrices.scaled, self.matrices.scales, further, strict=True)
        for factor, numbers, (tiles, blocks) in scaling:
            factors[factor] = factors[factor] * numbers[blocks[:, np.newaxis], tiles, slices, np.newaxis]
        rows, columns = (factor.reshape(*factor.shape[:3], -1) for factor in factors)
        return rows @ columns.swapaxes(2, 3)

    @property
    def names(self) -> tuple[str, ...]:
        """The accumulators."""
        return tuple(map(str, self.matrices.product))

    def wrong(self) -> NDArray[np.bool_]:
        """Which accumulators differ from A @ B, by [accumulator, run, wave]; NaN differs from everything.

        A wave whose role never computes one has none.
        """
        import numpy as np

        wrong = np.zeros((len(self.matrices.product), *self.clock.steps.shape[:2]), dtype=np.bool_)
        for number, (place, right) in enumerate(self.matrices.product.items()):
            own = self.group.writers(place)
            wrong[number][:, own] = (self.sums(place) != right).any(axis=(2, 3))[:, own]
        return wrong

    def reason(self, number: int, run: int, wave: int) -> str:
        """Why an accumulator is wrong, by the first compute into it that is."""
        place = tuple(self.matrices.product)[number]
        trace = self.group.trace_of(wave)
        left, right, *further = self._tiles(place)
        for nth, compute in enumerate(trace.computes.get(place, ())):
            entry, _ = trace.steps[compute.step]
            scales = {each.name: tiles for each, tiles in zip(entry.effect.reads[2:], further, strict=True)}
            operands = {"A": left, "B": right, **scales}
            held = {name: set(tiles[run, wave, :, nth].tolist()) for name, (tiles, _) in operands.items()}
            if poisoned := [name for name, tiles in held.items() if GARBAGE in tiles]:
                return f"{trace.where(compute.step)} reads poison in {' and '.join(poisoned)}"
            if len(set().union(*held.values())) > 1:
                listed = " with ".join(f"{_listed(tiles)} of {name}" for name, tiles in held.items())
                return f"{trace.where(compute.step)} multiplies K-tiles {listed}"
        found, expected = self.sums(place)[run, wave], self.matrices.product[place]
        row, column = (int(axis[0]) for axis in (found != expected).nonzero())
        return f"it holds {found[row, column]:.0f} at row {row}, column {column}; A @ B has {expected[row, column]:.0f}"

    def _tiles(self, place: Place) -> list[tuple[Ints, Ints]]:
        """Per operand the K-tiles by [run, wave, slice, compute] and the blocks by [wave, compute].

        A register whose load has not landed when the compute issues holds garbage; where a wave has fewer computes than
        another, nothing is added.
        """
        further = len(self.matrices.scaled)
        sides = (*range(2 + further),) if further else (0, -1)  # a single operand holds its block of both
        return [self._operand(place, side) for side in sides]

    def _operand(self, place: Place, side: int) -> tuple[Ints, Ints]:
        import numpy as np

        group, clock = self.group, self.clock
        nowhere, never = clock.issue.shape[2] - 1, clock.steps.shape[2] - 1
        computes = [trace.computes.get(place, ()) for trace in group.traces]
        operands = [[compute.operands[side] for compute in row] for row in computes]
        steps = group.per_wave([[compute.step for compute in row] for row in computes], never)
        loads = group.per_wave([[nowhere if load is None else load for load in row] for row in operands], nowhere)
        blocks = group.per_wave(
            [
                [0 if load is None else trace.memory[load].block for load in row]
                for trace, row in zip(group.traces, operands, strict=True)
            ],
            0,
        )
        wave = np.arange(group.size)[:, np.newaxis]
        landed = clock.land[:, wave, loads] <= clock.steps[:, wave, steps]
        tiles = np.where(landed[..., np.newaxis], self.seen[:, wave, loads], GARBAGE)
        tiles[:, steps == never] = self.matrices.nothing
        return tiles.swapaxes(2, 3), blocks


def _listed(tiles: set[int]) -> str:
    return ", ".join(map(str, sorted(tiles)))
