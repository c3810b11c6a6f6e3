"""Attention in single instructions on real numbers: takes its declaration, gives what each instruction computes.

Every instruction treats its own share of a block's columns, so that one left out, or executed on another version, shows
in the result.  What is right is told by a softmax over all keys at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from rota.check import bad_field, check_types
from rota.program.loop_spec import LoopOp, LoopSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_ROWS = 2  # of Q per block
_DEPTH = 2  # of the head per K step
_NAME = re.compile(r"(?:read|mma|make)_([a-z]+)(\d+(?:_\d+)*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionInstructions:
    """The ops of `rota.kernels.attention_instructions`, told apart by their names."""

    spec: LoopSpec
    names: Mapping[str, tuple[str, tuple[int, ...]]] = field(init=False, repr=False, compare=False)
    counts: Mapping[tuple[str, int], int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_types(self, {"spec": LoopSpec})
        names: dict[str, tuple[str, tuple[int, ...]]] = {}
        counts: dict[tuple[str, int], int] = {}
        for op in self.spec.ops:
            found = _NAME.fullmatch(op.name)
            if found is not None and found[1] in _FORMULAS:
                names[op.name] = kind, numbers = found[1], tuple(map(int, found[2].split("_")))
                for place, number in enumerate(numbers):
                    counts[kind, place] = max(counts.get((kind, place), 0), number + 1)
            elif not op.name.startswith("load_"):
                raise bad_field(self, "spec", op.name, "an instruction of attention", op.source)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "counts", counts)

    @property
    def tolerance(self) -> float:
        """Relative, in float64."""
        return 1e-9

    def loaded(self, value: str, part: int, iteration: int, slices: int) -> Floats:
        """One key of each slice, or its value, by [slice, key, column]."""
        columns = self._count("k", 1) * _DEPTH if value == "K" else self._count("v", 1) * self._shares
        return _normal((slices, 1, columns), ord(value[0]), part, iteration)

    def initial(self, value: str, iteration: int) -> Floats:
        """No maximum yet, and nothing summed up."""
        import numpy as np

        shape = (_ROWS,) if value.startswith("m") else (_ROWS, self._shares)
        return np.full(shape, -np.inf if value.startswith("m") else 0.0)

    def results(self, op: LoopOp, operands: tuple[Floats, ...]) -> Sequence[Floats]:
        """By the formula of the op's kind."""
        kind, numbers = self.names[op.name]
        return [_FORMULAS[kind](self, numbers, operands)]

    def expected(self, total: int, waves: int) -> Mapping[str, Floats]:
        """Maximum, shares of the sum and output of a softmax over all keys."""
        import numpy as np

        if total == 0:
            return {}
        parts = len(self.spec.writers("K"))
        keys, values = (
            np.concatenate([self.loaded(name, part, k, waves) for k in range(total) for part in range(parts)])[:, 0]
            for name in "KV"
        )
        right: dict[str, Floats] = {}
        for r in range(self._count("alpha", 0)):
            scores = self._queries(r, waves) @ keys.T / math.sqrt(keys.shape[1])
            best = scores.max(axis=2)
            weights = np.exp(scores - best[..., np.newaxis])
            normalised = weights / weights.sum(axis=2, keepdims=True)
            output = (normalised @ values) * weights.sum(axis=2, keepdims=True)
            right[self._last(f"m{r}_")] = best
            right[self._last(f"l{r}_")] = weights.reshape(waves, _ROWS, total * self._blocks, self._shares, -1).sum(
                axis=(2, 4)
            )
            for h in range(self._count("v", 1)):
                right[self._last(f"o{r}_{h}_")] = output[..., h * self._shares : (h + 1) * self._shares]
        return right

    @property
    def _shares(self) -> int:
        """Instructions that treat a block."""
        return self._count("x", 2)

    @property
    def _blocks(self) -> int:
        """Blocks of keys in a tile."""
        return self._count("k", 0)

    def _count(self, kind: str, place: int) -> int:
        """How many values one of the numbers in the names of a kind takes."""
        return self.counts[kind, place]

    def _last(self, prefix: str) -> str:
        """The last value of those whose names begin alike."""
        return [value.name for value in self.spec.values if value.name.startswith(prefix)][-1]

    def _queries(self, r: int, waves: int) -> Floats:
        """A block of Q by [wave, row, depth]."""
        return _normal((waves, _ROWS, self._count("k", 1) * _DEPTH), 0, r)

    def _share(self, block: Floats, number: int) -> slice:
        """The columns that an instruction treats."""
        width = block.shape[-1] // self._shares
        return slice(number * width, (number + 1) * width)

    def read_key(self, numbers: tuple[int, ...], operands: tuple[Floats, ...]) -> Floats:
        """Keys of one block, one step of the head."""
        block, step = numbers
        rows = _rows(operands[0], block, self._blocks)
        return rows[..., step * _DEPTH : (step + 1) * _DEPTH]

    def read_value(self, numbers: tuple[int, ...], operands: tuple[Floats, ...]) -> Floats:
        """Values of the keys of one step, one block of the head."""
        step, block = numbers
        rows = _rows(operands[0], step, self._count("v", 0))
        return rows[..., block * self._shares : (block + 1) * self._shares]

    def score(self, numbers: tuple[int, ...], operands: tuple[Floats, ...]) -> Floats:
        """Q K^T of one step of the head, added to the steps before."""
        r, _, step = numbers
        keys, *before = operands
        query = self._queries(r, keys.shape[1])[..., step * _DEPTH : (step + 1) * _DEPTH]
        product: Floats = query @ keys.swapaxes(2, 3)
        return product + before[0] if before else product

    def scale(self, numbers: tuple[int, ...], operands: tuple[Floats, ...]) -> Floats:
        """One share of the scores, divided by the root of the depth."""
        depth = self._count("k", 1) * _DEPTH
        return self._changed(operands[0], numbers[-1], lambda share: share / math.sqrt(depth))

    def best(self, numbers: tuple[int, ...], operands: tuple[Floats, ...]) -> Floats:
        """The maximum so far and of two shares of the scores."""
        import numpy as np

        block, before = operands
        first, second = (self._share(block, 2 * numbers[-1] + each) for each in (0, 1))
        own = block[..., first.start : second.stop].max(axis=-1)
        return np.asarray(np.maximum(own, before))

    def rescale(self, numbers: tuple[int, ...], operands: tuple[Floats, ...]) -> Floats:
        """What older sums are multiplied by."""
        import numpy as np

        new, old = operands
        return np.asarray(np.exp(old - new))

    def differ(self, numbers: tuple[int, ...], operands: tuple[Floats, ...]) -> Floats:
        """One share of the scores, less the maximum."""
        block, best = operands
        return self._changed(block, numbers[-1], lambda share: share - best[..., None])

    def exponentiate(self, numbers: tuple[int, ...], operands: tuple[Floats, ...]) -> Floats:
        """exp of one share."""
        import numpy as np

        return self._changed(operands[0], numbers[-1], np.exp)

    def pack(self, numbers: tuple[int, ...], operands: tuple[Floats, ...]) -> Floats:
        """Two shares of the weights, beside those packed before."""
        import numpy as np

        block, *before = operands
        packed = np.array(np.broadcast_to(before[0] if before else np.zeros_like(block), block.shape))
        for number in (2 * numbers[-1], 2 * numbers[-1] + 1):
            packed[..., self._share(block, number)] = block[..., self._share(block, number)]
        return packed

    def total(self, numbers: tuple[int, ...], operands: tuple[Floats, ...]) -> Floats:
        """One share of the sum: rescaled first, then with the weights of one block added."""
        _, block, number = numbers
        if block == 0:
            return self.scaled(numbers, operands)
        before, weights = operands
        return self._changed(
            before, number, lambda share: share + weights[..., self._share(weights, number)].sum(axis=-1, keepdims=True)
        )

    def output(self, numbers: tuple[int, ...], operands: tuple[Floats, ...]) -> Floats:
        """A share rescaled, or weights times V added."""
        import numpy as np

        if len(numbers) == 4:  # rescaled: row block, head block, 0, share
            return self.scaled(numbers, operands)
        *blocks, values, before = operands
        weights = np.concatenate(blocks, axis=-1)
        keys = values.shape[-2]
        first = (numbers[-1] - 1) * keys % weights.shape[-1]
        return np.asarray(before + weights[..., first : first + keys] @ values)

    def scaled(self, numbers: tuple[int, ...], operands: tuple[Floats, ...]) -> Floats:
        """One share times alpha; the first instruction reads alpha first, and what the tiles before left."""
        first = numbers[-1] == 0
        alpha, before = operands if first else operands[::-1]
        return self._changed(before, numbers[-1], lambda share: share * alpha[..., None])

    def _changed(self, block: Floats, number: int, change: Callable[[Floats], Floats]) -> Floats:
        import numpy as np

        made = np.array(block)
        share = self._share(block, number)
        made[..., share] = change(block[..., share])
        return made


_FORMULAS: dict[str, Callable[[AttentionInstructions, tuple[int, ...], tuple[Floats, ...]], Floats]] = {
    "k": AttentionInstructions.read_key,
    "v": AttentionInstructions.read_value,
    "s": AttentionInstructions.score,
    "x": AttentionInstructions.scale,
    "m": AttentionInstructions.best,
    "alpha": AttentionInstructions.rescale,
    "d": AttentionInstructions.differ,
    "e": AttentionInstructions.exponentiate,
    "p": AttentionInstructions.pack,
    "l": AttentionInstructions.total,
    "o": AttentionInstructions.output,
}


def _rows(tile: Floats, number: int, of: int) -> Floats:
    """One of `of` equal groups of a tile's rows, by [run, wave, row, column]."""
    rows = tile.reshape(*tile.shape[:2], -1, tile.shape[-1])
    count = rows.shape[2] // of
    return rows[:, :, number * count : (number + 1) * count]


@lru_cache(maxsize=4096)
def _normal(shape: tuple[int, ...], *seed: int) -> Floats:
    import numpy as np

    numbers = np.random.default_rng(seed).normal(size=shape)
    numbers.flags.writeable = False  # shared by all callers
    return numbers
