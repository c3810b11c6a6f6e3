"""What a loop should compute: what its ops compute, and the loop as its author wrote it, iteration after iteration.

By default ops mix integers; the shipped kernels have real formulas. The default needs no formulas: every op makes
integers that depend on its name, on each of its operands and on their order. Another version, another part or swapped
operands therefore show in the results.

Iterations run in the order of declaration, without stages, buffers or time: a schedule is right if it computes this.
Nothing here has seen a schedule.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from rota.check import bad_field, check_ints, check_types
from rota.errors import Concern, DeclarationError, did_you_mean
from rota.execute.lazy_numpy import Floats, np
from rota.execute.wave_trace import Workgroup, writer_of_slices
from rota.program.entry import Entry, Version
from rota.program.kinds import GLOBAL_LOADS, LDS_READS, Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read
from rota.program.lowered import LoweredProgram

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


ADDRESSED = (*GLOBAL_LOADS, *LDS_READS)
"""Ops whose register operands are addresses: wrong ones bring wrong data."""

Doing = Callable[[str], Sequence[int]]
"""The waves that do an op, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """All values by [1, wave, ...], tiles by [1, wave, part, slice, ...]: `made` by version, `sums` by accumulator."""

    made: dict[Version, Floats] = field(default_factory=dict)
    sums: dict[str, Floats] = field(default_factory=dict)
    stored: dict[str, Floats] = field(default_factory=dict)  # in global memory, by [1, wave, op, iteration, ...]

    def like(self, value: str) -> tuple[int, ...]:
        return self.made[Version(value, 0)].shape[2:]


def data_operands(spec: LoopSpec, op: LoopOp, operands: tuple[Floats, ...]) -> tuple[Floats, ...]:
    """The operands that are data; a load or a read of LDS has addresses in registers as well."""
    if op.kind not in ADDRESSED:
        return operands
    homes = [spec.value(read.value).home for read in op.reads]
    return tuple(found for found, home in zip(operands, homes, strict=True) if home is Home.LDS)


def results_of(semantics: Semantics, op: LoopOp, operands: tuple[Floats, ...]) -> list[Floats]:
    """What the op makes, an array per value that it writes; poison may be among the operands, and warns of nothing."""
    with np.errstate(all="ignore"):
        results = [np.asarray(result) for result in semantics.results(op, operands)]
    if len(results) != len(op.writes) or any(result.ndim < 2 for result in results):
        raise DeclarationError.of(
            "D104",
            f"{type(semantics).__name__} gives {len(results)} results of {op.name}; "
            f"expected {len(op.writes)}, each with the axes [run, wave]",
            concerns=(Concern(label=op.name, source=op.source),),
            evidence=(("shapes", ", ".join(str(result.shape) for result in results)),),
        )
    return results


def of_parts(tile: Floats, parts: tuple[int, ...]) -> Floats:
    """These parts of a tile by [run, wave, part, ...]; all of them, or all of another value, if none are named."""
    return tile[:, :, list(parts)] if parts else tile


def run_plainly(spec: LoopSpec, semantics: Semantics, total: int, waves: int, doing: Doing | None = None) -> Plain:
    """Iterations 0 .. total - 1, the first always, to know the shapes; `doing` has an op's waves, by default all."""
    run = _PlainRun(spec, semantics, total, waves, doing or (lambda _: range(waves)))
    for iteration in range(max(total, 1)):
        for op in spec.ops:
            run.execute(op, iteration)
    if total == 0:
        for value, added in run.plain.sums.items():
            run.plain.sums[value] = added * 0.0
    return run.plain


def initial_value(spec: LoopSpec, semantics: Semantics, version: Version, waves: int) -> Floats:
    """A carried value of an iteration before the first, as an operand by [1, wave, ...]."""
    value = np.asarray(semantics.initial(version.name, version.iteration), dtype=np.float64)
    parts = (len(spec.writers(version.name)), waves) if spec.value(version.name).home is Home.LDS else ()
    return np.broadcast_to(value, (1, waves, *parts, *value.shape))


class _PlainRun:
    def __init__(self, spec: LoopSpec, semantics: Semantics, total: int, waves: int, doing: Doing) -> None:
        self.spec, self.semantics, self.doing = spec, semantics, doing
        self.total, self.waves = total, waves
        self.plain = Plain()

    def execute(self, op: LoopOp, iteration: int) -> None:
        if op.kind in GLOBAL_LOADS:
            for value in op.writes:
                part = self.spec.writers(value).index(op)
                brought = self.semantics.load(value, part, iteration, self.waves)
                if self.spec.value(value).home is Home.LDS:
                    self._fill(op, Version(value, iteration), brought)
                else:
                    self.plain.made[Version(value, iteration)] = brought[np.newaxis]
            return
        wanted = [(Version(read.value, iteration - read.distance), read.parts) for read in op.reads]
        operands = tuple(of_parts(self._operand(version), parts) for version, parts in wanted)
        data = data_operands(self.spec, op, operands)
        for value, result in zip(op.writes, results_of(self.semantics, op, data), strict=True):
            home, own = self.spec.value(value).home, np.broadcast_to(result, (1, self.waves, *result.shape[2:]))
            if home is Home.ACCUMULATOR:
                self.plain.sums[value] = self.plain.sums.get(value, 0.0) + self._of_doers(op, own)
            elif home is Home.MEMORY:
                self._leave(op, Version(value, iteration), own)
            elif home is Home.LDS:
                slices = writer_of_slices(self.doing(op.name), self.waves)
                self._fill(op, Version(value, iteration), own[0][slices])
            else:
                self.plain.made[Version(value, iteration)] = own

    def _of_doers(self, op: LoopOp, own: Floats) -> Floats:
        added = np.zeros(own.shape)
        doers = list(self.doing(op.name))
        added[:, doers] = own[:, doers]
        return added

    def _leave(self, op: LoopOp, version: Version, own: Floats) -> None:
        writers = self.spec.writers(version.name)
        empty = np.zeros((1, self.waves, len(writers), self.total, *own.shape[2:]))
        left = self.plain.stored.setdefault(version.name, empty)
        if version.iteration < self.total:
            left[:, :, writers.index(op), version.iteration] = self._of_doers(op, own)

    def _operand(self, version: Version) -> Floats:
        if version.iteration < 0:
            return initial_value(self.spec, self.semantics, version, self.waves)
        return self.plain.made[version]

    def _fill(self, op: LoopOp, version: Version, slices: Floats) -> None:
        """One part of a tile, as every wave will read it."""
        writers = self.spec.writers(version.name)
        before = self.plain.made.get(version, np.full((1, self.waves, len(writers), *slices.shape), np.nan))
        before[:, :, writers.index(op)] = slices
        self.plain.made[version] = before


_LAST = (Home.ACCUMULATOR, Home.MEMORY)
"""Homes whose places come last among those that an entry writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A loop by values as it was declared and scheduled; every entry is an op of `spec`."""

    spec: LoopSpec
    semantics: Semantics
    program: LoweredProgram

    def __post_init__(self) -> None:
        for place, op in enumerate(self.spec.ops):
            for read in op.reads:
                if read.distance == 0 and not set(self.spec.writers_of(read)) <= set(self.spec.ops[:place]):
                    expected = f"a value that is made in front of {op.name}"
                    raise bad_field(self.spec, "ops", read.value, expected, op.source)
        ops = {op.name: op for op in self.spec.ops}
        for entry in self.program.entries:
            effect, instance = entry.effect, entry.effect.instance
            if effect.kind.synchronises or effect.kind is OpKind.NOTHING:
                continue
            if instance.name not in ops:
                raise _refuse(entry, "D105", f"no op of {self.spec.name}", did_you_mean(entry.op.name, ops))
            op = ops[instance.name]
            parts = sum(len(self.parts(read)) for read in op.reads)
            if len(effect.reads) != parts or len(effect.writes) != len(op.writes):
                raise _refuse(entry, "D104", f"{parts} places to read and {len(op.writes)} to write")

    def parts(self, read: Read) -> tuple[int, ...]:
        """The places that hold what is read: a tile has as many as ops write it, and all are read if none are named."""
        whole = len(self.spec.writers(read.value)) if self.spec.value(read.value).home is Home.LDS else 1
        return read.parts or tuple(range(whole))

    def outputs(self, op: LoopOp) -> list[str]:
        """The values that an op writes, in the order of its effect's places: what only takes in comes last."""
        return sorted(op.writes, key=lambda value: self.spec.value(value).home in _LAST)

    def list_carried(self) -> tuple[str, ...]:
        """Register values that a later iteration reads."""
        names = dict.fromkeys(read.value for op in self.spec.ops for read in op.reads if read.distance)
        return tuple(name for name in names if self.spec.value(name).home is Home.REGISTERS)


def _refuse(entry: Entry, code: str, expected: str, fixes: tuple[str, ...] = ()) -> DeclarationError:
    return DeclarationError.of(
        code,
        f"{entry} of the {entry.phase.value.lower()} doesn't belong to the loop that was declared",
        concerns=(entry.op.concern(entry.time_slot),),
        evidence=(("the declaration has", expected),),
        fixes=fixes,
    )


class Moment(NamedTuple):
    """An op of one iteration as the roles execute it: each at its own ordinal, None where a role doesn't."""

    entry: Entry
    op: LoopOp
    iteration: int
    ordinals: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.entry} of iteration {self.iteration}"


def moments_of(loop: Declared, group: Workgroup) -> Iterator[Moment]:
    """Everything that the roles execute, in the order of the program's one list."""
    ops = {op.name: op for op in loop.spec.ops}
    ordinals: dict[tuple[int, int], list[int | None]] = {}
    executed: dict[tuple[int, int], tuple[Entry, LoopOp, int]] = {}
    for role, trace in enumerate(group.traces):
        for ordinal, ((entry, trip), position) in enumerate(zip(trace.steps, trace.positions, strict=True)):
            instance = entry.effect.instance
            if instance.name:
                key = (trip, position)
                iteration = loop.program.k_of(entry.phase, trip) + instance.iteration
                executed[key] = (entry, ops[instance.name], iteration)
                ordinals.setdefault(key, [None] * len(group.traces))[role] = ordinal
    for key in sorted(executed):
        yield Moment(*executed[key], tuple(ordinals[key]))
