"""What an op of attention is in source: takes an entry, gives its statement, its opcodes, and what it may follow.

Registers are named by the place that holds them and its copy.  Vector and matrix instructions are opaque to the
compiler, which therefore doesn't know how far apart they must be: the wait states between them are counted here.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rota.emit.attention.attention_shape import DEPTH, INSTRUCTION, SIDE, ForwardShape
from rota.emit.gemm.k_tiles import stated_k_tile
from rota.program.effects import Place, Space
from rota.program.entry import Entry
from rota.program.phase import Phase

DMA = "buffer_load_dwordx4"
READ = "ds_read_b128"
READ_TRANSPOSED = "ds_read_b64_tr_b16"
VECTOR_WORDS = (
    "v_max3_f32",
    "v_mov_b32",
    "v_permlane32_swap_b32",
    "v_permlane16_swap_b32",
    "v_max_f32",
    "v_mul_f32",
    "v_fma_f32",
    "v_exp_f32",
    "v_pk_fma_f32",
    "v_pk_mul_f32",
    "v_pk_add_f32",
    "v_cvt_pk_bf16_f32",
)
"""The vector instructions of the loop."""
_NAME = re.compile(r"(?:load|read|mma|make)_([A-Za-z]+)(\d+(?:_\d+)*)")


class Maker(enum.Enum):
    """What made a value, as far as wait states depend on it."""

    MATRIX = "a matrix instruction"
    TRANSCENDENTAL = "a transcendental"
    PACKED = "a packed instruction"
    VECTOR = "another vector instruction"
    MEMORY = "a load"


class AttentionStatement(NamedTuple):
    """A statement, the opcodes it is made of in order, what made its result, and the places read and written."""

    text: str
    opcodes: tuple[str, ...]
    maker: Maker
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]


class _Operands(NamedTuple):
    """The values of an op: what it reads by name, with `before` for the one of the iteration before; what it makes."""

    read: Mapping[str, str]
    before: Mapping[str, str]
    made: str


class AttentionOps:
    """Gives the statement of each entry."""

    def __init__(self, shape: ForwardShape, copies: Mapping[str, int]) -> None:
        self.shape = shape
        self.copies = copies
        self._makers: Mapping[str, Callable[[tuple[int, ...], _Operands], tuple[str, tuple[str, ...], Maker]]] = {
            "s": self._score,
            "b": self._best,
            "m": self._row_best,
            "n": self._shift,
            "g": self._grown,
            "alpha": self._alpha,
            "d": self._less,
            "e": self._weights,
            "l": self._total,
            "p": self._packed,
            "o": self._output,
        }

    @property
    def lds_bytes(self) -> int:
        """Of all copies of K and V."""
        return sum(self.copies[tile] for tile in "KV") * self.shape.tile_bytes

    def start(self, tile: str) -> int:
        """Where the copies of a tile begin in LDS."""
        return 0 if tile == "K" else self.copies["K"] * self.shape.tile_bytes

    def issued(self, entry: Entry, phase: Phase) -> AttentionStatement:
        """What an op of the loop is."""
        kind, numbers = _parsed(entry)
        effect = entry.effect
        if kind in ("K", "V"):
            return AttentionStatement(self._dma(kind, numbers[0], entry, phase), (DMA,), Maker.MEMORY, (), ())
        if kind in ("k", "v"):
            text, opcodes = self._fragment(kind, entry)
            return AttentionStatement(text, opcodes, Maker.MEMORY, (), effect.writes)
        own = stated_k_tile(entry)
        wants = {version.name: (named(place), version.iteration == own) for place, version in effect.wants}
        operands = _Operands(
            {name: place for name, (place, now) in wants.items() if now},
            {name: place for name, (place, now) in wants.items() if not now},
            named(effect.makes[0][0]),
        )
        text, opcodes, maker = self._makers[kind](numbers, operands)
        return AttentionStatement(text, opcodes, maker, effect.reads, effect.writes)

    def lds(self, entry: Entry) -> int:
        """Where in LDS a DMA's bytes begin, those of the first wave."""
        tile, number = _parsed(entry)
        copy = entry.effect.writes[0].copy
        return self.start(tile) + copy * self.shape.tile_bytes + number[0] * self.shape.dma_rows * self.shape.row_bytes

    def fragment_bytes(self, entry: Entry) -> tuple[int, tuple[int, ...]]:
        """Through which lane address a fragment is read, and how far behind it each of its reads begins."""
        kind, (first, second) = _parsed(entry)
        row, start = self.shape.row_bytes, entry.effect.reads[0].copy * self.shape.tile_bytes
        if kind == "k":
            return second, (start + first * SIDE * row,)
        start += first * DEPTH * row
        return second, (start, start + SIDE * row)

    def _dma(self, tile: str, number: int, entry: Entry, phase: Phase) -> str:
        name, ahead = tile.lower(), stated_k_tile(entry)
        terms = [f"{name}_at"] if phase is not Phase.PROLOGUE else []
        terms += [f"{ahead} * {name}_tile"] if ahead else []
        terms += [f"{number} * {name}_dma"] if number else []
        return f"ROTA_DMA({name}_global, {self.lds(entry)}, {name}_fetch, {' + '.join(terms) or '0'})"

    def _fragment(self, kind: str, entry: Entry) -> tuple[str, tuple[str, ...]]:
        target = named(entry.effect.writes[0])
        lane, starts = self.fragment_bytes(entry)
        at = ", ".join(map(str, starts))
        if kind == "k":
            return f"ROTA_READ({target}, k_lane[{lane}], {at})", (READ,)
        return f"ROTA_READ_TRANSPOSED({target}, v_lane[{lane}], {at})", (READ_TRANSPOSED, READ_TRANSPOSED)

    @staticmethod
    def _score(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        r, c, j = numbers
        word = "ROTA_SCORE_ADD" if j else "ROTA_SCORE"
        return f"{word}({operands.made}, {operands.read[f'k{c}_{j}']}, q[{r}][{j}])", (INSTRUCTION,), Maker.MATRIX

    @staticmethod
    def _best(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        r, c = numbers
        scores = next(place for name, place in operands.read.items() if name.startswith("s"))
        before = operands.read[f"b{r}_{c - 1}"] if c else operands.before[f"m{r}"]
        word = "ROTA_BEST" if before == operands.made else "ROTA_BEST_FROM"
        source = "" if before == operands.made else f"{before}, "
        return f"{word}({operands.made}, {source}{scores})", ("v_max3_f32",) * 2, Maker.VECTOR

    @staticmethod
    def _row_best(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        del numbers
        swaps = ("v_permlane32_swap_b32", "v_permlane16_swap_b32")
        opcodes = tuple(each for swap in swaps for each in ("v_mov_b32", swap, "v_max_f32"))
        return f"ROTA_ROW_BEST({operands.made})", opcodes, Maker.VECTOR

    @staticmethod
    def _shift(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        return f"ROTA_SHIFT({operands.made}, {operands.read[f'm{numbers[0]}']})", ("v_mul_f32",), Maker.VECTOR

    @staticmethod
    def _grown(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        before, shift = operands.before[f"m{numbers[0]}"], operands.read[f"n{numbers[0]}"]
        return f"ROTA_GROWN({operands.made}, {before}, {shift})", ("v_fma_f32",), Maker.VECTOR

    @staticmethod
    def _alpha(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        del numbers
        return f"ROTA_ALPHA({operands.made})", ("v_exp_f32",), Maker.TRANSCENDENTAL

    @staticmethod
    def _less(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        shift = operands.read[f"n{numbers[0]}"]
        return f"ROTA_LESS({operands.made}, {shift})", ("v_pk_fma_f32",) * 2, Maker.PACKED

    @staticmethod
    def _weights(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        del numbers
        return f"ROTA_WEIGHTS({operands.made})", ("v_exp_f32",) * 4, Maker.TRANSCENDENTAL

    @staticmethod
    def _scaled(before: str, alpha: str, made: str) -> tuple[str, tuple[str, ...], Maker]:
        text = f"ROTA_SCALED({made}, {alpha})" if before == made else f"ROTA_SCALED_FROM({made}, {before}, {alpha})"
        return text, ("v_pk_mul_f32",) * 2, Maker.PACKED

    def _total(self, numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        r, c = numbers
        if c == 0:
            (before,) = operands.before.values()
            return self._scaled(before, operands.read[f"alpha{r}"], operands.made)
        return f"ROTA_ADDED({operands.made}, {operands.read[f'e{r}_{c - 1}']})", ("v_pk_add_f32",) * 2, Maker.PACKED

    @staticmethod
    def _packed(numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        r, t = numbers
        first, second = (operands.read[f"e{r}_{2 * t + each}"] for each in (0, 1))
        return f"ROTA_PACKED({operands.made}, {first}, {second})", ("v_cvt_pk_bf16_f32",) * 4, Maker.VECTOR

    def _output(self, numbers: tuple[int, ...], operands: _Operands) -> tuple[str, tuple[str, ...], Maker]:
        r, h, t = numbers
        if t == 0:
            (before,) = operands.before.values()
            return self._scaled(before, operands.read[f"alpha{r}"], operands.made)
        factors = f"{operands.read[f'v{t - 1}_{h}']}, {operands.read[f'p{r}_{t - 1}']}"
        return f"ROTA_OUTPUT({operands.made}, {factors})", (INSTRUCTION,), Maker.MATRIX


def _parsed(entry: Entry) -> tuple[str, tuple[int, ...]]:
    """An op's kind and numbers, by its name: the loop is a shape's, op by op."""
    kind, numbers = _NAME.findall(entry.op.name)[0]
    return kind, tuple(map(int, numbers.split("_")))


def named(place: Place) -> str:
    """The variable that a copy of a register value is."""
    return f"{place.name}_at{place.copy}"


def copies_of(entries: tuple[Entry, ...]) -> dict[str, int]:
    """How many copies each place has, LDS tiles and registers alike."""
    found: dict[str, int] = {}
    for entry in entries:
        for place in (*entry.effect.reads, *entry.effect.writes):
            if place.space in (Space.LDS, Space.REGISTER):
                found[place.name] = max(found.get(place.name, 0), place.copy + 1)
    return found
