"""Kernels on real numbers: takes the declaration of a GEMM or of attention, gives what its ops compute."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from rota.check import bad_field, check_ints, check_types
from rota.errors import Concern, DeclarationError, Finding, did_you_mean
from rota.execute.semantics import LDS_READS
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LARGEST = 99  # products of whole K-loops stay far below 2**53, up to which float64 counts exactly
_GEMM_OPS = "loads, fragments of one tile each, and MMAs of two fragments into an accumulator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """Every MMA adds A @ B.T of its two fragments; each accumulator ends as one product over the whole K.

    A slice of a tile has `rows` rows of `depth` elements of K for each fragment that is read of it; the n-th fragment
    of a tile takes the n-th of these shares.  Entries are integers, so every sum is exact.
    """

    spec: LoopSpec
    rows: int = 2
    depth: int = 2

    def __post_init__(self) -> None:
        check_types(self, {"spec": LoopSpec})
        check_ints(self, ("rows", "depth"), least=1)
        for op in self.spec.ops:
            homes = [self.spec.value(name).home for name in op.writes]
            ends = (op.kind, [read.distance for read in op.reads], homes)
            if op.kind is not OpKind.DMA and ends not in (
                *((kind, [0], [Home.REGISTERS]) for kind in LDS_READS),
                (OpKind.MMA, [0, 0], [Home.ACCUMULATOR]),
            ):
                raise bad_field(self, "spec", op.name, _GEMM_OPS, op.source)

    @property
    def tolerance(self) -> float:
        """Every sum is exact."""
        return 0.0

    def loaded(self, value: str, part: int, iteration: int, slices: int) -> Floats:
        """Rows of A or B, by [slice, row, k]."""
        shape = (slices, self.rows * len(self._fragments(value)), self.depth)
        return _whole_numbers(shape, self._seed(value), part, iteration)

    def initial(self, value: str, iteration: int) -> Floats:
        """A GEMM carries nothing but its accumulators."""
        raise bad_field(self, "spec", value, "no value of an earlier iteration")

    def results(self, op: LoopOp, operands: tuple[Floats, ...]) -> Sequence[Floats]:
        """A fragment's share of its tile by [row, k], or the product of two of them."""
        if op.kind in LDS_READS:
            (tile,) = operands
            share = tile[..., self._share(op), :]
            return [share.reshape(*tile.shape[:2], -1, self.depth)]
        left, right = operands
        return [left @ right.swapaxes(2, 3)]

    def expected(self, total: int, waves: int) -> Mapping[str, Floats]:
        """A @ B, every accumulator in one product per MMA that adds to it."""
        import numpy as np

        sums: dict[str, Floats] = {}
        for op in self.spec.ops:
            if op.kind is OpKind.MMA:
                left, right = (self._matrix(read.value, total, waves) for read in op.reads)
                product = np.broadcast_to(left @ right.T, (waves, len(left), len(right)))
                sums[op.writes[0]] = sums.get(op.writes[0], 0.0) + product
        return sums

    def _matrix(self, fragment: str, total: int, waves: int) -> Floats:
        """All rows that a fragment reads, over the whole K."""
        import numpy as np

        (op,) = self.spec.writers(fragment)
        tile = op.reads[0].value
        parts = range(len(self.spec.writers(tile)))
        columns = [np.zeros((len(parts) * waves * self.rows, 0))]
        for iteration in range(total):
            blocks = [self.loaded(tile, part, iteration, waves)[:, self._share(op)] for part in parts]
            columns.append(np.concatenate(blocks).reshape(-1, self.depth))
        return np.concatenate(columns, axis=1)

    def _share(self, fragment: LoopOp) -> slice:
        first = self.rows * self._fragments(fragment.reads[0].value).index(fragment)
        return slice(first, first + self.rows)

    def _fragments(self, tile: str) -> list[LoopOp]:
        return [op for op in self.spec.ops if op.kind in LDS_READS and op.reads[0].value == tile]

    def _seed(self, value: str) -> int:
        return [each.name for each in self.spec.values].index(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Attention forward with an online softmax; every wave has `rows` rows of Q, which stay in its registers.

    The ops, by name: `read_k` and `read_v` read the tiles K and V; `mma_s` of k makes the scores; `make_m` of s and the
    carried m their running maximum; `make_alpha` of m and the carried m what older sums are rescaled by; `make_p` of s
    and m the weights; `make_l` of p, alpha and the carried l their running sum; `make_scaled` of alpha and the carried
    o, and `mma_o` of p, v and scaled the output, which is divided by l after the loop.  A wave loads `keys` keys and
    their values into each of a tile's `parts`.
    """

    rows: int = 2
    keys: int = 2
    depth: int = 3
    width: int = 2
    parts: int = 1

    def __post_init__(self) -> None:
        check_ints(self, ("rows", "keys", "depth", "width", "parts"), least=1)

    @property
    def tolerance(self) -> float:
        """Relative, in float64."""
        return 1e-9

    def loaded(self, value: str, part: int, iteration: int, slices: int) -> Floats:
        """Keys by [slice, key, depth], or their values by [slice, key, width]."""
        width = self.depth if value == "K" else self.width
        return _normal((slices, self.keys, width), ord(value[0]), part, iteration)

    def initial(self, value: str, iteration: int) -> Floats:
        """No maximum yet, and nothing summed up."""
        import numpy as np

        shape = (self.rows, self.width) if value == "o" else (self.rows,)
        return np.full(shape, -np.inf if value == "m" else 0.0)

    def results(self, op: LoopOp, operands: tuple[Floats, ...]) -> Sequence[Floats]:
        """By the formula of the op's name."""
        formula = _FORMULAS.get(op.name)
        if formula is None:
            raise DeclarationError(
                Finding(
                    code="D105",
                    message=f"attention has no formula for {op.name}",
                    concerns=(Concern(label=op.name, source=op.source),),
                    fixes=did_you_mean(op.name, _FORMULAS),
                )
            )
        return [formula(self, *operands)]

    def queries(self, waves: int) -> Floats:
        """Q by [wave, row, depth], scaled by the root of the depth."""
        return _normal((waves, self.rows, self.depth), 0) / math.sqrt(self.depth)

    def softmax_attention(self, total: int, waves: int) -> Floats:
        """softmax(Q K^T / sqrt(depth)) V by [wave, row, width], over all keys at once."""
        import numpy as np

        scores, values = self._scores(total, waves)
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        normalised: Floats = (weights / weights.sum(axis=2, keepdims=True)) @ values
        return normalised

    def expected(self, total: int, waves: int) -> Mapping[str, Floats]:
        """The maximum and the sum of all scores, and softmax attention times that sum."""
        import numpy as np

        if total == 0:
            return {}
        scores, _ = self._scores(total, waves)
        best = scores.max(axis=2)
        summed = np.exp(scores - best[..., np.newaxis]).sum(axis=2)
        output = self.softmax_attention(total, waves) * summed[..., np.newaxis]
        return {"m": best, "l": summed, "o": output}

    def _scores(self, total: int, waves: int) -> tuple[Floats, Floats]:
        """Q K^T by [wave, row, key] and V by [key, width]."""
        import numpy as np

        pieces = [(part, k) for k in range(total) for part in range(self.parts)]
        keys, values = (
            np.concatenate([self.loaded(name, *piece, waves) for piece in pieces]).reshape(-1, width)
            for name, width in (("K", self.depth), ("V", self.width))
        )
        return self.queries(waves) @ keys.T, values


def _read(_: Attention, tile: Floats) -> Floats:
    return tile.reshape(*tile.shape[:2], -1, tile.shape[-1])


def _score(attention: Attention, k: Floats) -> Floats:
    return attention.queries(k.shape[1]) @ k.swapaxes(2, 3)


def _best(_: Attention, s: Floats, m: Floats) -> Floats:
    import numpy as np

    return np.asarray(np.maximum(s.max(axis=3), m))


def _rescale(_: Attention, m: Floats, before: Floats) -> Floats:
    import numpy as np

    return np.exp(before - m)


def _weights(_: Attention, s: Floats, m: Floats) -> Floats:
    import numpy as np

    return np.exp(s - m[..., np.newaxis])


def _summed(_: Attention, p: Floats, alpha: Floats, before: Floats) -> Floats:
    import numpy as np

    return np.asarray(alpha * before + p.sum(axis=3))


def _scaled(_: Attention, alpha: Floats, before: Floats) -> Floats:
    import numpy as np

    return np.asarray(alpha[..., np.newaxis] * before)


def _output(_: Attention, p: Floats, v: Floats, scaled: Floats) -> Floats:
    import numpy as np

    return np.asarray(p @ v + scaled)


_FORMULAS: dict[str, Callable[..., Floats]] = {
    "read_k": _read,
    "read_v": _read,
    "mma_s": _score,
    "make_m": _best,
    "make_alpha": _rescale,
    "make_p": _weights,
    "make_l": _summed,
    "make_scaled": _scaled,
    "mma_o": _output,
}


@lru_cache(maxsize=4096)
def _whole_numbers(shape: tuple[int, ...], *seed: int) -> Floats:
    import numpy as np

    numbers = np.random.default_rng(seed).integers(-_LARGEST, _LARGEST, shape, endpoint=True).astype(np.float64)
    numbers.flags.writeable = False  # shared by all callers
    return numbers


@lru_cache(maxsize=4096)
def _normal(shape: tuple[int, ...], *seed: int) -> Floats:
    import numpy as np

    numbers = np.random.default_rng(seed).normal(size=shape)
    numbers.flags.writeable = False  # shared by all callers
    return numbers
