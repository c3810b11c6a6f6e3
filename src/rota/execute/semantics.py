"""What ops compute: mixed integers by default, real formulas for the shipped kernels.

The default needs no formulas: every op makes integers that depend on its name, on each of its operands and on their
order. Another version, another part or swapped operands therefore show in the results.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Protocol, runtime_checkable

from rota.check import bad_field, check_ints, check_types
from rota.errors import Concern, DeclarationError, did_you_mean
from rota.execute.lazy_numpy import Floats, np
from rota.program.kinds import LDS_READS, Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec

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

    def load(self, value: str, part: int, iteration: int, slices: int) -> Floats:
        """What a load brings into its part of a tile, by [slice, ...]."""
        ...

    def initial(self, value: str, iteration: int) -> Floats:
        """A carried value before the loop, for an iteration below 0; of a tile, what each slice of it holds."""
        ...

    def results(self, op: LoopOp, operands: tuple[Floats, ...]) -> Sequence[Floats]:
        """What an op makes of its operands, one array per value that it writes; an accumulator is added to."""
        ...

    def compute_expected(self, total: int, waves: int) -> Mapping[str, Floats]:
        """Results of `total` iterations by [wave, ...], where a formula tells them; the others are worked out."""
        ...


@dataclass(frozen=True, slots=True)
class Mixing:
    """The default: integers below a prime.

    A fragment takes a weighted sum over parts and slices; an MMA multiplies linear forms of its operands; a VALU op or
    a store adds linear forms, and a store's result is each wave's own.
    """

    tolerance: ClassVar[float] = 0.0

    def load(self, value: str, part: int, iteration: int, slices: int) -> Floats:
        return _whole_numbers((slices, _ELEMENTS), value, part, iteration)

    def initial(self, value: str, iteration: int) -> Floats:
        return _whole_numbers((_ELEMENTS,), f"initial {value}", -iteration)

    def results(self, op: LoopOp, operands: tuple[Floats, ...]) -> Sequence[Floats]:
        mix = _MIXES.get(op.kind, _sum)
        return [mix(f"{op.name} {number}", operands) for number in range(len(op.writes))]

    def compute_expected(self, total: int, waves: int) -> Mapping[str, Floats]:
        """No formula: the right values come from running one iteration after the other."""
        return {}


def _fold(name: str, operands: tuple[Floats, ...]) -> Floats:
    """A weighted sum over parts and slices; one slice of NaN makes all of it NaN."""
    weighted = (tile * _whole_numbers(tile.shape[2:], name, number) for number, tile in enumerate(operands))
    return np.asarray(sum((tile % _PRIME).sum(axis=(2, 3)) for tile in weighted) % _PRIME)


def _product(name: str, operands: tuple[Floats, ...]) -> Floats:
    made = np.ones((1, 1, _ELEMENTS))
    for form in _forms(name, operands):
        made = made * form % _PRIME
    return made


def _sum(name: str, operands: tuple[Floats, ...]) -> Floats:
    constant = _whole_numbers((1, 1, _ELEMENTS), f"{name} constant")
    return np.asarray(sum(_forms(name, operands), start=constant) % _PRIME)


def _own(name: str, operands: tuple[Floats, ...]) -> Floats:
    """A sum that the wave's number is a part of, so that no two slices are alike."""
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
    key = [zlib.crc32(each.encode()) if isinstance(each, str) else each for each in seed]
    return _freeze(np.random.default_rng(key).integers(1, _PRIME, shape).astype(np.float64))


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
    tolerance: ClassVar[float] = 0.0

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

    def load(self, value: str, part: int, iteration: int, slices: int) -> Floats:
        """Rows of A or B, by [slice, row, k]."""
        shape = (slices, self.rows * len(self._fragments(value)), self.depth)
        return _draw_integers(shape, [each.name for each in self.spec.values].index(value), part, iteration)

    def initial(self, value: str, iteration: int) -> Floats:
        raise bad_field(self, "spec", value, "no value of an earlier iteration")

    def results(self, op: LoopOp, operands: tuple[Floats, ...]) -> Sequence[Floats]:
        """A fragment's share of its tile by [row, k], or the product of two of them."""
        if op.kind in LDS_READS:
            (tile,) = operands
            return [tile[..., self._share(op), :].reshape(*tile.shape[:2], -1, self.depth)]
        left, right = operands
        return [left @ right.swapaxes(2, 3)]

    def compute_expected(self, total: int, waves: int) -> Mapping[str, Floats]:
        """A @ B, every accumulator in one product per MMA that adds to it."""
        sums: dict[str, Floats] = {}
        for op in self.spec.ops:
            if op.kind is OpKind.MMA:
                left, right = (self._matrix(read.value, total, waves) for read in op.reads)
                product = np.broadcast_to(left @ right.T, (waves, len(left), len(right)))
                sums[op.writes[0]] = sums.get(op.writes[0], 0.0) + product
        return sums

    def _matrix(self, fragment: str, total: int, waves: int) -> Floats:
        (op,) = self.spec.writers(fragment)
        tile = op.reads[0].value
        parts = range(len(self.spec.writers(tile)))
        columns = [np.zeros((len(parts) * waves * self.rows, 0))]
        for iteration in range(total):
            blocks = [self.load(tile, part, iteration, waves)[:, self._share(op)] for part in parts]
            columns.append(np.concatenate(blocks).reshape(-1, self.depth))
        return np.concatenate(columns, axis=1)

    def _share(self, fragment: LoopOp) -> slice:
        first = self.rows * self._fragments(fragment.reads[0].value).index(fragment)
        return slice(first, first + self.rows)

    def _fragments(self, tile: str) -> list[LoopOp]:
        return [op for op in self.spec.ops if op.kind in LDS_READS and op.reads[0].value == tile]


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
    tolerance: ClassVar[float] = 1e-9

    def __post_init__(self) -> None:
        check_ints(self, ("rows", "keys", "depth", "width", "parts"), least=1)

    def load(self, value: str, part: int, iteration: int, slices: int) -> Floats:
        """Keys by [slice, key, depth], or their values by [slice, key, width]."""
        width = self.depth if value == "K" else self.width
        return _normal((slices, self.keys, width), ord(value[0]), part, iteration)

    def initial(self, value: str, iteration: int) -> Floats:
        shape = (self.rows, self.width) if value == "o" else (self.rows,)
        return np.full(shape, -np.inf if value == "m" else 0.0)

    def results(self, op: LoopOp, operands: tuple[Floats, ...]) -> Sequence[Floats]:
        formula = _TILE_FORMULAS.get(op.name)
        if formula is None:
            raise DeclarationError.of(
                "D105",
                f"attention has no formula for {op.name}",
                concerns=(Concern(label=op.name, source=op.source),),
                fixes=did_you_mean(op.name, _TILE_FORMULAS),
            )
        return [formula(self, *operands)]

    def queries(self, waves: int) -> Floats:
        """Q by [wave, row, depth], scaled by the root of the depth."""
        return _normal((waves, self.rows, self.depth), 0) / math.sqrt(self.depth)

    def softmax_attention(self, total: int, waves: int) -> Floats:
        """softmax(Q K^T / sqrt(depth)) V by [wave, row, width], over all keys at once."""
        scores, values = self._scores(total, waves)
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        normalised: Floats = (weights / weights.sum(axis=2, keepdims=True)) @ values
        return normalised

    def compute_expected(self, total: int, waves: int) -> Mapping[str, Floats]:
        """The maximum and the sum of all scores, and softmax attention times that sum."""
        if total == 0:
            return {}
        scores, _ = self._scores(total, waves)
        best = scores.max(axis=2)
        summed = np.exp(scores - best[..., np.newaxis]).sum(axis=2)
        output = self.softmax_attention(total, waves) * summed[..., np.newaxis]
        return {"m": best, "l": summed, "o": output}

    def _scores(self, total: int, waves: int) -> tuple[Floats, Floats]:
        """Q K^T by [wave, row, key] and V by [key, width]."""
        pieces = [(part, k) for k in range(total) for part in range(self.parts)]
        keys, values = (
            np.concatenate([self.load(name, *piece, waves) for piece in pieces]).reshape(-1, width)
            for name, width in (("K", self.depth), ("V", self.width))
        )
        return self.queries(waves) @ keys.T, values


_TILE_FORMULAS: dict[str, Callable[..., Floats]] = {
    "read_k": lambda _, tile: tile.reshape(*tile.shape[:2], -1, tile.shape[-1]),
    "read_v": lambda _, tile: tile.reshape(*tile.shape[:2], -1, tile.shape[-1]),
    "mma_s": lambda attention, k: attention.queries(k.shape[1]) @ k.swapaxes(2, 3),
    "make_m": lambda _, s, m: np.maximum(s.max(axis=3), m),
    "make_alpha": lambda _, m, before: np.exp(before - m),
    "make_p": lambda _, s, m: np.exp(s - m[..., np.newaxis]),
    "make_l": lambda _, p, alpha, before: alpha * before + p.sum(axis=3),
    "make_scaled": lambda _, alpha, before: alpha[..., np.newaxis] * before,
    "mma_o": lambda _, p, v, scaled: p @ v + scaled,
}


@lru_cache(maxsize=4096)
def _draw_integers(shape: tuple[int, ...], *seed: int) -> Floats:
    return _freeze(np.random.default_rng(seed).integers(-_LARGEST, _LARGEST, shape, endpoint=True).astype(np.float64))


@lru_cache(maxsize=4096)
def _normal(shape: tuple[int, ...], *seed: int) -> Floats:
    return _freeze(np.random.default_rng(seed).normal(size=shape))


def _freeze(numbers: Floats) -> Floats:
    numbers.flags.writeable = False  # shared by all callers
    return numbers


# Attention in single instructions: each treats its own share of a block's columns, so that one left out, or executed
# on another version, shows in the result. A softmax over all keys at once says what is right.

_ROWS = 2  # of Q per block
_DEPTH = 2  # of the head per K step
_NAME = re.compile(r"(?:read|mma|make)_([a-z]+)(\d+(?:_\d+)*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionInstructions:
    """The ops of `rota.kernels.attention`, recognised by their names."""

    spec: LoopSpec
    names: Mapping[str, tuple[str, tuple[int, ...]]] = field(init=False, repr=False, compare=False)
    counts: Mapping[tuple[str, int], int] = field(init=False, repr=False, compare=False)
    tolerance: ClassVar[float] = 1e-9

    def __post_init__(self) -> None:
        check_types(self, {"spec": LoopSpec})
        names: dict[str, tuple[str, tuple[int, ...]]] = {}
        counts: dict[tuple[str, int], int] = {}
        for op in self.spec.ops:
            found = _NAME.fullmatch(op.name)
            if found is not None and found[1] in _INSTRUCTION_FORMULAS:
                names[op.name] = kind, numbers = found[1], tuple(map(int, found[2].split("_")))
                for place, number in enumerate(numbers):
                    counts[kind, place] = max(counts.get((kind, place), 0), number + 1)
            elif not op.name.startswith("load_"):
                raise bad_field(self, "spec", op.name, "an instruction of attention", op.source)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "counts", counts)

    def load(self, value: str, part: int, iteration: int, slices: int) -> Floats:
        """One key of each slice, or its value, by [slice, key, column]."""
        columns = self.counts["k", 1] * _DEPTH if value == "K" else self.counts["v", 1] * self._shares
        return _normal((slices, 1, columns), ord(value[0]), part, iteration)

    def initial(self, value: str, iteration: int) -> Floats:
        shape = (_ROWS,) if value.startswith("m") else (_ROWS, self._shares)
        return np.full(shape, -np.inf if value.startswith("m") else 0.0)

    def results(self, op: LoopOp, operands: tuple[Floats, ...]) -> Sequence[Floats]:
        kind, numbers = self.names[op.name]
        return [_INSTRUCTION_FORMULAS[kind](self, numbers, *operands)]

    def compute_expected(self, total: int, waves: int) -> Mapping[str, Floats]:
        """Maximum, shares of the sum and output of a softmax over all keys."""
        if total == 0:
            return {}
        parts = len(self.spec.writers("K"))
        keys, values = (
            np.concatenate([self.load(name, part, k, waves) for k in range(total) for part in range(parts)])[:, 0]
            for name in "KV"
        )
        right: dict[str, Floats] = {}
        for r in range(self.counts["alpha", 0]):
            scores = self._queries(r, waves) @ keys.T / math.sqrt(keys.shape[1])
            best = scores.max(axis=2)
            weights = np.exp(scores - best[..., np.newaxis])
            summed = weights.sum(axis=2, keepdims=True)
            output = ((weights / summed) @ values) * summed
            right[self._last(f"m{r}_")] = best
            by_share = weights.reshape(waves, _ROWS, total * self.counts["k", 0], self._shares, -1)
            right[self._last(f"l{r}_")] = by_share.sum(axis=(2, 4))
            for h in range(self.counts["v", 1]):
                right[self._last(f"o{r}_{h}_")] = output[..., h * self._shares : (h + 1) * self._shares]
        return right

    @property
    def root(self) -> float:
        """Of the depth, which scores are divided by."""
        return math.sqrt(self.counts["k", 1] * _DEPTH)

    @property
    def _shares(self) -> int:
        return self.counts["x", 2]

    def _last(self, prefix: str) -> str:
        return [value.name for value in self.spec.values if value.name.startswith(prefix)][-1]

    def _queries(self, r: int, waves: int) -> Floats:
        """A block of Q by [wave, row, depth]."""
        return _normal((waves, _ROWS, self.counts["k", 1] * _DEPTH), 0, r)

    def _share(self, block: Floats, number: int) -> slice:
        """The columns that an instruction treats."""
        width = block.shape[-1] // self._shares
        return slice(number * width, (number + 1) * width)

    def read_key(self, numbers: tuple[int, ...], tile: Floats) -> Floats:
        """Keys of one block, one step of the head."""
        block, step = numbers
        return _rows(tile, block, self.counts["k", 0])[..., step * _DEPTH : (step + 1) * _DEPTH]

    def read_value(self, numbers: tuple[int, ...], tile: Floats) -> Floats:
        """Values of the keys of one step, one block of the head."""
        step, block = numbers
        return _rows(tile, step, self.counts["v", 0])[..., block * self._shares : (block + 1) * self._shares]

    def score(self, numbers: tuple[int, ...], keys: Floats, *before: Floats) -> Floats:
        """Q K^T of one step of the head, added to the steps before."""
        r, _, step = numbers
        query = self._queries(r, keys.shape[1])[..., step * _DEPTH : (step + 1) * _DEPTH]
        product: Floats = query @ keys.swapaxes(2, 3)
        return product + before[0] if before else product

    def best(self, numbers: tuple[int, ...], block: Floats, before: Floats) -> Floats:
        """The maximum so far and of two shares of the scores."""
        first, second = (self._share(block, 2 * numbers[-1] + each) for each in (0, 1))
        return np.asarray(np.maximum(block[..., first.start : second.stop].max(axis=-1), before))

    def pack(self, numbers: tuple[int, ...], block: Floats, *before: Floats) -> Floats:
        """Two shares of the weights, beside those packed before."""
        packed = np.array(np.broadcast_to(before[0] if before else np.zeros_like(block), block.shape))
        for number in (2 * numbers[-1], 2 * numbers[-1] + 1):
            packed[..., self._share(block, number)] = block[..., self._share(block, number)]
        return packed

    def total(self, numbers: tuple[int, ...], before: Floats, weights: Floats) -> Floats:
        """One share of the sum: rescaled first, then with the weights of one block added."""
        _, block, number = numbers
        if block == 0:
            return self.scale_by_alpha(numbers, before, weights)
        added = weights[..., self._share(weights, number)].sum(axis=-1, keepdims=True)
        return self.change_share(before, number, lambda share: share + added)

    def output(self, numbers: tuple[int, ...], *operands: Floats) -> Floats:
        """A share rescaled, or weights times V added."""
        if len(numbers) == 4:  # rescaled: row block, head block, 0, share
            return self.scale_by_alpha(numbers, *operands)
        *blocks, values, before = operands
        weights = np.concatenate(blocks, axis=-1)
        keys = values.shape[-2]
        first = (numbers[-1] - 1) * keys % weights.shape[-1]
        return np.asarray(before + weights[..., first : first + keys] @ values)

    def scale_by_alpha(self, numbers: tuple[int, ...], *operands: Floats) -> Floats:
        """One share times alpha; the first instruction reads alpha first, and what the tiles before left."""
        alpha, before = operands if numbers[-1] == 0 else operands[::-1]
        return self.change_share(before, numbers[-1], lambda share: share * alpha[..., None])

    def change_share(self, block: Floats, number: int, change: Callable[[Floats], Floats]) -> Floats:
        made, share = np.array(block), self._share(block, number)
        made[..., share] = change(block[..., share])
        return made


_INSTRUCTION_FORMULAS: dict[str, Callable[..., Floats]] = {
    "k": AttentionInstructions.read_key,
    "v": AttentionInstructions.read_value,
    "s": AttentionInstructions.score,
    "x": lambda own, numbers, block: own.change_share(block, numbers[-1], lambda share: share / own.root),
    "m": AttentionInstructions.best,
    "alpha": lambda _, __, new, old: np.exp(old - new),  # what older sums are multiplied by
    "d": lambda own, n, block, best: own.change_share(block, n[-1], lambda share: share - best[..., None]),
    "e": lambda own, numbers, block: own.change_share(block, numbers[-1], np.exp),
    "p": AttentionInstructions.pack,
    "l": AttentionInstructions.total,
    "o": AttentionInstructions.output,
}


def _rows(tile: Floats, number: int, of: int) -> Floats:
    """One of `of` equal groups of a tile's rows, by [run, wave, row, column]."""
    rows = tile.reshape(*tile.shape[:2], -1, tile.shape[-1])
    count = rows.shape[2] // of
    return rows[:, :, number * count : (number + 1) * count]
