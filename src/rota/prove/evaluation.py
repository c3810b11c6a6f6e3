"""Reads, writes and computes symbolic values of registers and masks."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from rota.isa.registers import EXEC, SCALAR, VCC, is_scalar
from rota.isa.wave.operand import File, Operand, constant_bits
from rota.prove.decisions import Decisions
from rota.prove.state import Half, Mask, Masks, WaveSet
from rota.prove.symbol import (
    ARITHMETIC,
    COMPARISONS,
    GROUP,
    LANE,
    M32,
    SIMPLIFIERS,
    WAVE,
    Linear,
    Parts,
    Symbol,
    Symbols,
    Value,
    bits_of,
    divide,
    key_of,
    linear,
    narrow,
    parts_of,
    plus,
    result_bits,
    simplify,
    spread_of,
    times,
    upper_bound,
)

_EXEC_ROW, _VCC_ROW = SCALAR + EXEC, SCALAR + VCC
_MOST_ATOMS = 5
_COMPARISONS = {  # each by a basic one: which, with operands swapped, with the result negated
    "eq": ("eq", False, False), "ne": ("eq", False, True), "lg": ("eq", False, True), "lt": ("lt", False, False),
    "gt": ("lt", True, False), "ge": ("lt", False, True), "le": ("lt", True, True),
}  # fmt: skip


class Evaluator:
    """Evaluates for waves of so many lanes."""

    def __init__(self, lanes: int) -> None:
        self.symbols = Symbols()
        self.masks = Masks(lanes)
        self.exec_rows = range(_EXEC_ROW, _EXEC_ROW + self.masks.words)
        self.unread = 0  # rows whose lanes nobody reads that do not execute the operation

    # Reading and writing registers.

    def read(self, wave_set: WaveSet, operand: Operand, known: Decisions, *, everywhere: bool = False) -> Value:
        """Read an operand of 32 bits as the active lanes see it, or as all lanes do."""
        if operand.file is File.LITERAL:
            return constant_bits(operand, "u")
        if operand.file is File.STATUS:
            return self.symbols.fresh(operand.text, WAVE, 1)
        if operand.file is File.NONE:
            return 0
        value = self.read_row(wave_set, operand.rows[0], known, everywhere=everywhere)
        if operand.signed:
            return self.symbols.opaque("signs", (value,), operand.text)
        return value

    def read_halves(self, wave_set: WaveSet, operand: Operand, known: Decisions) -> list[Value]:
        if operand.file is File.LITERAL:
            number = constant_bits(operand, "U")
            return [number & M32, number >> 32]
        return [self.read_row(wave_set, row, known) for row in operand.rows]

    def read_row(self, wave_set: WaveSet, row: int, known: Decisions, *, everywhere: bool = False) -> Value:
        if row in self.exec_rows:
            return self.read_half(Half(wave_set.exec, row - _EXEC_ROW))
        value = wave_set.registers.get(row)
        if value is None:
            return self.make_initial(row)
        if isinstance(value, Half):
            return self.read_half(value)
        return self.settle(value, known, None if everywhere else wave_set.exec) if isinstance(value, Linear) else value

    def make_initial(self, row: int) -> Linear:
        return Linear(self.symbols.make("start", (row,), spread=WAVE if is_scalar(row) else LANE), 1, 0)

    def settle(self, value: Value, known: Decisions, exec_: Mask | None = None) -> Value:
        """Apply decisions that were made since the value was, and drop what the active lanes can't see."""
        while isinstance(value, Linear):
            base = value.base
            if base.op == "select":
                condition, one, other = parts_of(base)
                decided = known.lookup(condition)
                if decided is None:
                    return value
                chosen = one if decided else other
            elif base.op == "pick" and exec_ is not None:
                mask, new, old = parts_of(base)
                same = len(self.masks.possible(mask)) == len(self.masks.possible(exec_))
                if base.row_waves not in {(), self.symbols.row_waves} or not same:
                    return value
                if not any(self.masks.possible(self.masks.combine("andn2", exec_, mask))):
                    chosen = new
                elif not any(self.masks.possible(self.masks.combine("and", exec_, mask))):
                    chosen = old
                else:
                    return value
            else:
                return value
            value = plus(self.symbols, times(chosen, value.scale), value.offset)
        return value

    def read_half(self, half: Half) -> Value:
        mask, which = half
        if mask.leaf is not None:
            numbers = [number >> 32 * which & M32 for number in mask.leaf]
            return simplify(np.array(numbers, np.int64)[:, None])
        return Linear(self.symbols.make("half", (mask, which), spread=WAVE, depth=99), 1, 0)

    def read_pair(self, wave_set: WaveSet, operand: Operand, known: Decisions, words: int = 0) -> Mask:
        """Read a mask from as many registers as it takes, or an address of two `words`."""
        waves = len(wave_set.waves)
        if operand.file is File.LITERAL:
            return self.masks.leaf((constant_bits(operand, "U") & self.masks.all,) * waves)
        row = operand.rows[0]
        if row == _EXEC_ROW:
            return self.masks.settle(wave_set.exec, known.lookup)
        rows = range(row, row + (words or self.masks.words))
        low, high = wave_set.registers.get(row), wave_set.registers.get(rows[-1])
        if (
            isinstance(low, Half)
            and isinstance(high, Half)
            and low.mask is high.mask
            and (low.which, high.which) == (0, len(rows) - 1)
        ):
            return self.masks.settle(low.mask, known.lookup)
        parts = [self.read_row(wave_set, each, known) for each in rows]
        if len(parts) == 1 and isinstance(parts[0], Linear) and parts[0].base.op == "select":
            chosen = self._select_mask(parts[0], waves)
            if chosen is not None:
                return self.masks.settle(chosen, known.lookup)
        if any(isinstance(each, Linear) for each in parts):
            atom = self.symbols.opaque("pair", tuple(parts), spread=LANE).base
            return self.masks.unknown(atom, waves)
        numbers = [0] * waves
        for word, part in enumerate(parts):
            column = np.broadcast_to(np.asarray(part), (waves, 1))[:, 0].tolist()
            numbers = [number | each << 32 * word for number, each in zip(numbers, column, strict=True)]
        return self.masks.leaf(tuple(numbers))

    def _select_mask(self, word: Value, waves: int) -> Mask | None:
        """The mask that a condition of the workgroup selects, in a word that is a whole mask."""
        if isinstance(word, int):
            return self.masks.leaf((word,) * waves)
        if not isinstance(word, Linear) or word.base.op != "select" or word.scale != 1 or key_of(word.offset) != 0:
            return None
        condition, *ways = parts_of(word.base)
        one, other = (self._select_mask(each, waves) for each in ways)
        if one is None or other is None:
            return None
        chooser = self.masks.unknown(condition, waves)
        both = self.masks.combine("and", one, chooser), self.masks.combine("andn2", other, chooser)
        return self.limit_atoms(self.masks.combine("or", *both))

    def write_pair(self, wave_set: WaveSet, row: int, mask: Mask, words: int = 0) -> None:
        mask = self.limit_atoms(mask)
        if row == _EXEC_ROW:
            wave_set.exec = mask
            return
        for word in range(words or self.masks.words):
            half = Half(mask, word)
            wave_set.registers[row + word] = self.read_half(half) if mask.leaf is not None else half

    def limit_atoms(self, mask: Mask, most: int = _MOST_ATOMS) -> Mask:
        """Replace a mask of too many atoms by an unknown one between its bounds."""
        if len(mask.atoms) <= most:
            return mask
        possible, certain = self.masks.leaf(self.masks.possible(mask)), self.masks.leaf(self.masks.certain(mask))
        atom = self.masks.unknown(self.symbols.fresh("tamed", LANE).base, len(self.masks.possible(mask)))
        return self.masks.combine("or", certain, self.masks.combine("and", possible, atom))

    def write(self, wave_set: WaveSet, row: int, value: Value) -> None:
        """Write a register; of a vector register only the active lanes, unless nobody reads the others."""
        if is_scalar(row):
            if row in self.exec_rows:
                self._write_exec_half(wave_set, row - _EXEC_ROW, value)
            else:
                wave_set.registers[row] = value
            return
        if wave_set.exec.is_full or self.unread >> row & 1:
            wave_set.registers[row] = value
            return
        old = wave_set.registers.get(row)
        if old is None or isinstance(old, Half):
            old = self.make_initial(row)
        wave_set.registers[row] = self.merge(wave_set.exec, value, old)

    def _write_exec_half(self, wave_set: WaveSet, which: int, value: Value) -> None:
        waves = len(wave_set.waves)
        if isinstance(value, Linear):
            source = self.masks.unknown(self.symbols.fresh("exec", LANE).base, waves)
        else:
            numbers = np.broadcast_to(np.asarray(value), (waves, 1))[:, 0].tolist()
            source = self.masks.leaf(tuple(number << 32 * which for number in numbers))
        own = self.masks.leaf((M32 << 32 * which,) * waves)
        kept, written = self.masks.combine("andn2", wave_set.exec, own), self.masks.combine("and", source, own)
        wave_set.exec = self.limit_atoms(self.masks.combine("or", kept, written))

    def merge(self, mask: Mask, new: Value, old: Value) -> Value:
        """The new value in the lanes of the mask, the old one in the others."""
        if key_of(new) == key_of(old):
            return new
        if mask.leaf is not None:
            if not any(mask.leaf):
                return old
            lanes = self.masks.lanes_of(mask.leaf)
            if not isinstance(new, Linear) and not isinstance(old, Linear):
                return np.where(lanes, new, old)
            if isinstance(new, Linear) and isinstance(old, Linear) and new.base is old.base and new.scale == old.scale:
                return Linear(new.base, new.scale, np.where(lanes, new.offset, old.offset))
        picked = isinstance(old, Linear) and old.base.op == "pick" and old.scale == 1
        if isinstance(old, Linear) and picked and isinstance(old.offset, int) and not old.offset:
            before, _, older = parts_of(old.base)
            if before is mask:  # the same lanes again: what they held before is gone
                return self.merge(mask, new, older)
        return self._make_choice("pick", mask, new, old)

    def select(self, condition: Symbol, one: Value, other: Value) -> Value:
        return one if key_of(one) == key_of(other) else self._make_choice("select", condition, one, other)

    def _make_choice(self, op: str, chooser: Mask | Symbol, one: Value, other: Value) -> Value:
        spread = max(spread_of(one), spread_of(other), chooser.spread if isinstance(chooser, Symbol) else LANE)
        bits = bits_of(one) | bits_of(other)
        depths = [each.base.depth for each in (one, other) if isinstance(each, Linear)]
        depth = self.symbols.looping + max(depths, default=0) if isinstance(chooser, Symbol) and chooser.stable else 99
        args = (chooser, key_of(one), key_of(other), Parts((chooser, one, other)))
        return Linear(self.symbols.make(op, args, spread=spread, bits=bits, depth=depth), 1, 0)

    # Conditions.

    def compare(self, kind: str, sign: str, one: Value, other: Value) -> Any:  # noqa: ANN401
        """Compare two values: a flag, an array of flags, or a `Linear` of one bit."""
        basic, swap, negate = _COMPARISONS[kind]
        if swap:
            one, other = other, one
        result = self.compare_basic("eq" if basic == "eq" else f"lt_{sign}", one, other)
        if not negate:
            return result
        if isinstance(result, Linear):
            return linear(result.base, -result.scale, 1 - result.offset)
        return not result if isinstance(result, bool) else ~result

    def compare_basic(self, basic: str, one: Value, other: Value) -> Any:  # noqa: ANN401, PLR0911
        """Compare by eq, lt_u or lt_i, of which all other comparisons are made."""
        if not isinstance(one, Linear) and not isinstance(other, Linear):
            result = COMPARISONS[basic](one, other)
            return bool(result) if isinstance(one, int) and isinstance(other, int) else result
        if key_of(one) == key_of(other):
            return basic == "eq"
        if basic == "eq":  # compare the difference with 0
            one, other = plus(self.symbols, one, times(other, M32)), 0
            if not isinstance(one, Linear):
                result = COMPARISONS["eq"](one, 0)
                return bool(result) if isinstance(one, int) else result
            is_zero = _test_zero(one)
            if is_zero is not None:
                return is_zero
        else:
            high, least = upper_bound(one), upper_bound(other)
            if isinstance(other, int) and high is not None and high < other and (basic == "lt_u" or (other < 1 << 31)):
                return True
            if basic == "lt_u" and isinstance(other, int) and other == 0:
                return False
            if basic == "lt_u" and isinstance(one, int) and least is not None and one >= least:
                return False
            if basic == "lt_i" and isinstance(one, int) and least is not None and least <= one < 1 << 31:
                return False
        spread = max(spread_of(one), spread_of(other))
        return self.symbols.opaque(basic, (one, other), bits=1, spread=spread)

    def mask_of(self, result: Any, waves: int) -> Mask:  # noqa: ANN401
        if isinstance(result, Linear):
            mask = self.masks.unknown(result.base, waves)
            return mask if result.scale == 1 else self.masks.invert(mask)
        return self.masks.from_lanes(np.asarray(result, np.bool_), waves)

    def flag_of(self, result: Any) -> Value:  # noqa: ANN401
        if isinstance(result, Linear):
            return result
        if isinstance(result, (bool, np.bool_)):
            return int(result)
        return simplify(np.asarray(result, np.int64))

    def any_of(self, mask: Mask) -> Value:
        if mask.leaf is not None:
            return simplify(np.array([int(number != 0) for number in mask.leaf], np.int64)[:, None])
        if mask.atom is not None and mask.atom.spread == GROUP and mask.high is not None and mask.low is not None:
            high, low = self.any_of(mask.high), self.any_of(mask.low)
            if isinstance(high, int) and isinstance(low, int):
                return high if high == low else linear(mask.atom, 1 if high else -1, 0 if high else 1)
            return self.select(mask.atom, high, low)
        possible, certain = self.masks.possible(mask), self.masks.certain(mask)
        if not any(possible):
            return 0
        return 1 if all(certain) else Linear(self.symbols.make("any", (mask,), spread=WAVE, bits=1, depth=99), 1, 0)

    # Arithmetic.

    def compute(self, op: str, *values: Value) -> Value:
        if not any(isinstance(each, Linear) for each in values):
            return narrow(ARITHMETIC[op](*values))
        simpler = SIMPLIFIERS.get(op)
        result = None if simpler is None else simpler(self, *values)
        if result is not None:
            return result
        return self.symbols.opaque(op, values, bits=result_bits(op, values))


def _test_zero(value: Linear) -> bool | Value | None:
    """Whether a value is 0: False, or the condition it comes from; None if nothing is known."""
    offset, base = value.offset, value.base
    if not isinstance(offset, int):
        return None
    low = value.scale & -value.scale
    if offset & (low - 1):  # the unknown part is a multiple of `low`, so these bits stay
        return False
    if base.op == "or" and value.scale == 1:  # bits that are surely one
        ones = next((each for each in base.args[:2] if isinstance(each, int)), 0)
        if -offset & ones & M32 != ones:
            return False
    if base.op in {"eq", "lt_u", "lt_i", "any", "flag"} and value.scale in {1, M32}:
        wanted = -offset & M32 if value.scale == 1 else offset
        return False if wanted > 1 else Linear(base, 1, 0) if wanted else linear(base, -1, 1)
    return None


_MODELLED = frozenset({
    "+", "add", "sub", "mul", "shl", "shr", "sar", "and", "or", "xor", "andn2", "not",
    "min_u", "max_u", "min_i", "max_i",
})  # fmt: skip


class WaveView:
    """Symbols as one wave sees them: arrays with a row per wave of the workgroup become numbers."""

    def __init__(self, evaluator: Evaluator, waves: int) -> None:
        self._evaluator, self._waves = evaluator, waves
        self._known: dict[tuple[Symbol, int], Value] = {}

    def symbol(self, symbol: Symbol, wave: int) -> Value:
        if symbol.spread == GROUP:
            return Linear(symbol, 1, 0)
        found = self._known.get((symbol, wave))
        if found is None:
            derived = self._derive(symbol, wave)
            found = self._known[symbol, wave] = Linear(symbol, 1, 0) if derived is None else derived
        return found

    def _derive(self, symbol: Symbol, wave: int) -> Value | None:  # noqa: PLR0911
        op, args, evaluator = symbol.op, symbol.args, self._evaluator
        if op == "any" and isinstance(args[0], Mask):
            possible = evaluator.masks.possible(args[0])
            if len(possible) != self._waves:
                return None
            return 0 if not possible[wave] else 1 if evaluator.masks.certain(args[0])[wave] else None
        if op == "/" and isinstance(args[0], Symbol) and isinstance(args[1], int):
            return divide(self.symbol(args[0], wave), args[1])
        if (op not in _MODELLED and op not in COMPARISONS) or args[-1] is not None:
            return None
        values = [value for each in args[:-1] if (value := self._value(each, wave)) is not None]
        if len(values) < len(args) - 1:
            return None
        if op == "+":
            return plus(evaluator.symbols, values[0], values[1])
        if op in COMPARISONS:
            return evaluator.flag_of(evaluator.compare_basic(op, values[0], values[1]))
        result = evaluator.compute(op, *values)
        if op == "and":  # such a symbol counts in units of its mask's lowest bit
            mask = next((each for each in args[:2] if isinstance(each, int)), 1)
            return divide(result, mask & -mask)
        return result

    def _value(self, key: Hashable, wave: int) -> Value | None:
        """The value with that key, in a wave; None if it differs by lane or is unknown."""
        if isinstance(key, int):
            return key
        if not isinstance(key, tuple):
            return None
        if len(key) == 3 and isinstance(key[0], Symbol):
            offset = self._value(key[2], wave)
            if offset is None or isinstance(offset, Linear):
                return None
            return plus(self._evaluator.symbols, times(self.symbol(key[0], wave), key[1]), offset)
        shape, octets = key
        if shape != (self._waves, 1):
            return None
        return int(np.frombuffer(octets, np.int64)[wave])
