"""What ops compute: takes the arrays that an op reads, gives those that it makes; mixed numbers by default.

The default needs no formulas: every op of every loop makes integers that depend on its name, on each of
its operands and on their order, so that another version, another part or swapped operands are seen in the results.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rota.program.kinds import OpKind
from rota.program.loop_spec import LoopOp

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LDS_READS = (OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED)
"""What brings a tile into registers; which lane gets what is left to the op's formula."""

GLOBAL_LOADS = (OpKind.DMA, OpKind.GLOBAL_LOAD)
"""What brings data from outside the loop."""

_PRIME = 2**20 - 3  # sums of thousands of products of two such numbers stay exact in float64
_ELEMENTS = 3  # of a value: enough that a wrong one is equal to the right one once in 10**18 times


@runtime_checkable
class Semantics(Protocol):
    """What the values of a loop are; arrays that ops pass on have the leading axes [run, wave].

    A read of a tile gives [run, wave, part, slice, ...]: the parts that it reads, which are all unless the read names
    some, each with as many slices as there are waves.  The waves that write a tile share its slices out: each has one,
    if all do.
    """

    @property
    def tolerance(self) -> float:
        """How far a result may be off, relative to the largest number in it; 0 where all sums are exact."""
        ...

    def loaded(self, value: str, part: int, iteration: int, slices: int) -> Floats:
        """What a load brings into its part of a tile, by [slice, ...]."""
        ...

    def initial(self, value: str, iteration: int) -> Floats:
        """A carried value before the loop, for an iteration below 0; of a tile, what each slice of it holds."""
        ...

    def results(self, op: LoopOp, operands: tuple[Floats, ...]) -> Sequence[Floats]:
        """What an op makes of its operands, one array per value that it writes; an accumulator is added to."""
        ...

    def expected(self, total: int, waves: int) -> Mapping[str, Floats]:
        """Results of `total` iterations by [wave, ...], where a formula tells them; the others are worked out."""
        ...


@dataclass(frozen=True, slots=True)
class Mixing:
    """The default: integers below a prime.

    A fragment takes a weighted sum over parts and slices; an MMA multiplies linear forms of its operands; a VALU op or
    a store adds linear forms, and a store's result is each wave's own.
    """

    @property
    def tolerance(self) -> float:
        """Every sum is exact."""
        return 0.0

    def loaded(self, value: str, part: int, iteration: int, slices: int) -> Floats:
        """Random integers, always the same ones for the same part of the same iteration."""
        return _whole_numbers((slices, _ELEMENTS), value, part, iteration)

    def initial(self, value: str, iteration: int) -> Floats:
        """Random integers, others for each iteration before the first."""
        return _whole_numbers((_ELEMENTS,), f"initial {value}", -iteration)

    def results(self, op: LoopOp, operands: tuple[Floats, ...]) -> Sequence[Floats]:
        """Mixed as the kind of op says, differently for every value that it writes."""
        mix = _MIXES.get(op.kind, _sum)
        return [mix(f"{op.name} {number}", operands) for number in range(len(op.writes))]

    def expected(self, total: int, waves: int) -> Mapping[str, Floats]:
        """No formula: what is right is worked out one iteration after the other."""
        return {}


def _fold(name: str, operands: tuple[Floats, ...]) -> Floats:
    """A weighted sum over parts and slices; one slice of NaN makes all of it NaN."""
    import numpy as np

    folded = [
        (tile * _whole_numbers(tile.shape[2:], name, number) % _PRIME).sum(axis=(2, 3))
        for number, tile in enumerate(operands)
    ]
    return np.asarray(sum(folded) % _PRIME)


def _product(name: str, operands: tuple[Floats, ...]) -> Floats:
    import numpy as np

    made = np.ones((1, 1, _ELEMENTS))
    for form in _forms(name, operands):
        made = made * form % _PRIME
    return made


def _sum(name: str, operands: tuple[Floats, ...]) -> Floats:
    import numpy as np

    constant = _whole_numbers((1, 1, _ELEMENTS), f"{name} constant")
    return np.asarray(sum(_forms(name, operands), start=constant) % _PRIME)


def _own(name: str, operands: tuple[Floats, ...]) -> Floats:
    """A sum that the wave's number is a part of, so that no two slices are alike."""
    import numpy as np

    made = _sum(name, operands)
    return (made + np.arange(made.shape[1])[:, np.newaxis]) % _PRIME


_MIXES: dict[OpKind, Callable[[str, tuple[Floats, ...]], Floats]] = {
    **dict.fromkeys(LDS_READS, _fold),
    OpKind.MMA: _product,
    OpKind.LDS_WRITE: _own,
}


def _forms(name: str, operands: tuple[Floats, ...]) -> list[Floats]:
    square = (_ELEMENTS, _ELEMENTS)
    return [operand @ _whole_numbers(square, name, number) % _PRIME for number, operand in enumerate(operands)]


@lru_cache(maxsize=4096)
def _whole_numbers(shape: tuple[int, ...], *seed: str | int) -> Floats:
    """Numbers from 1 to the prime, the same ones for the same seed."""
    import numpy as np

    key = [zlib.crc32(each.encode()) if isinstance(each, str) else each for each in seed]
    numbers = np.random.default_rng(key).integers(1, _PRIME, shape).astype(np.float64)
    numbers.flags.writeable = False  # shared by all callers
    return numbers
