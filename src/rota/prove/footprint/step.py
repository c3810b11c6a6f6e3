"""One operation in a state: how it reads operands and writes results."""

from __future__ import annotations

from collections.abc import Callable

from rota.isa.registers import SCALAR
from rota.isa.wave.operand import File, Operand, constant_bits
from rota.prove.footprint.flow import EXEC_ROW, VCC_ROW, LaunchWords, State, as_word, see
from rota.prove.footprint.polynomial import Bounds, Polynomial, number
from rota.prove.footprint.words import (
    ANY_WORD,
    FALSE,
    TRUE,
    HeldWord,
    Predicate,
    PredicateHalf,
    Words,
    both,
    constant,
    differs_by_lane,
    negated,
)
from rota.prove.operation import SCC_ROW, Operation, rows_of

_EVERY_LANE = frozenset({"row_newbcast", "quad_perm", "row_share", "row_ror", "row_half_mirror", "row_mirror"})


class WordStep:
    """One operation in a state; reads operands and writes results."""

    def __init__(self, words: Words, launch: LaunchWords, state: State, operation: Operation, *, lanes: int) -> None:
        self.words, self.launch, self.state, self.operation = words, launch, state, operation
        self.mask_rows = lanes // 32
        self.at = operation.number

    # Operands.

    def row(self, row: int) -> HeldWord:
        if EXEC_ROW <= row < EXEC_ROW + self.mask_rows:
            return as_word(PredicateHalf(self.state.exec, row - EXEC_ROW), self.words, row)
        found = as_word(self.state.held.get(row), self.words, row)
        return see(found, self.state.exec) if row < SCALAR else found

    def word(self, place: int) -> HeldWord:
        """The operand as 32 bits."""
        operand = self.operation.operands[place]
        if operand.file is File.LITERAL:
            return constant(constant_bits(operand, "u"))
        if operand.file is File.NONE:
            return constant(0)
        if operand.file is File.STATUS or operand.signed or operand.half is not None or not operand.rows:
            return self.words.unknown(f"{operand.text}@{self.at}", self.at, place)
        if self.operation.instruction.is_dpp and place == 1:
            return self._word_of_lanes(operand.rows[0])
        found = self.row(operand.rows[0])
        if place < len(self.operation.parts) and self.operation.parts[place] != (0, 32):
            first, width = self.operation.parts[place]
            found = HeldWord(self.words.remainder(self.words.quotient(self.words.value(found), 1 << first), 1 << width))
        return found

    def _word_of_lanes(self, row: int) -> HeldWord:
        """A register of another lane."""
        found = as_word(self.state.held.get(row), self.words, row)
        lane = self.operation.instruction.modifiers[0]
        return HeldWord(self.words.atoms.at_lane(found.whole, (f"lane {lane}", lane)), found.part, found.at)

    @property
    def is_plain(self) -> bool:
        """True if modifiers change nothing that isn't followed: of lanes, while all are active and all are written."""
        operation, fields = self.operation, self.operation.instruction.fields
        if not operation.instruction.is_dpp:
            return not operation.unmodelled and (not fields or bool(operation.parts))
        whole = fields.get("row_mask") == fields.get("bank_mask") == "0xf"
        return self.state.exec == TRUE and whole and next(iter(fields)) in _EVERY_LANE

    def wide(self, place: int) -> Polynomial:
        """The operand as a number of 64 bits."""
        operand = self.operation.operands[place]
        if operand.file is File.LITERAL:
            bits = constant_bits(operand, "I")
            return number(bits - (1 << 64) if bits >> 63 else bits)
        if len(operand.rows) != 2:
            return self.words.value(self.word(place))
        low, high = (self.row(row) for row in operand.rows)
        return self.words.join(low, high)

    def mask(self, operand: Operand) -> Predicate:
        unknown = Predicate("unknown", (self.at, operand.text))
        if operand.file is File.LITERAL:
            bits = constant_bits(operand, "U") & (1 << 32 * self.mask_rows) - 1
            known = {0: FALSE, (1 << 32 * self.mask_rows) - 1: TRUE}
            return known.get(bits, Predicate("lanes", (bits,)))
        if not operand.rows or operand.rows[0] == EXEC_ROW:
            return self.state.exec if operand.rows else unknown
        held = [self.state.held.get(row) for row in operand.rows[: self.mask_rows]]
        conditions = {each.condition if isinstance(each, PredicateHalf) else None for each in held}
        if len(conditions) == 1 and (condition := conditions.pop()) is not None:
            return condition
        numbers = [each.whole.constant if isinstance(each, HeldWord) and not each.part else None for each in held]
        return FALSE if numbers == [0] * len(held) else unknown

    def holds_mask(self, operand: Operand) -> bool:
        if operand.file is File.LITERAL:
            return constant_bits(operand, "U") in (0, (1 << 64) - 1, (1 << 32 * self.mask_rows) - 1)
        rows = operand.rows[: self.mask_rows]
        return bool(rows) and (rows[0] == EXEC_ROW or isinstance(self.state.held.get(rows[0]), PredicateHalf))

    # Results.

    def put(self, row: int, word: HeldWord) -> None:
        word = HeldWord(self.words.atoms.limit(word.whole), word.part, self.at)
        if EXEC_ROW <= row < EXEC_ROW + self.mask_rows:
            self.state.exec = Predicate("unknown", (self.at, "exec"))
            return
        if row >= SCALAR:
            self.state.held[row] = word
            return
        active = self.state.exec
        if active == FALSE:
            return
        if active != TRUE:
            old = as_word(self.state.held.get(row), self.words, row)
            old = see(old, negated(active))
            word = self.words.choose(active, (word, old), self.at)
        self.state.held[row] = word
        for key in [key for key in self.state.lanes if key[0] == row]:
            del self.state.lanes[key]

    def write(self, word: HeldWord, place: int = 0) -> None:
        if rows := self.operation.operands[place].rows:
            self.put(rows[0], word)

    def write_wide(self, whole: Polynomial) -> None:
        rows = self.operation.operands[0].rows
        for part, row in enumerate(rows[:2]):
            self.put(row, HeldWord(whole, part))

    def write_mask(self, condition: Predicate, place: int = 0) -> None:
        rows = self.operation.operands[place].rows
        if rows and rows[0] == EXEC_ROW:
            self.state.exec = condition
            return
        for which, row in enumerate(rows[: self.mask_rows]):
            self.state.held[row] = PredicateHalf(condition, which)

    def write_lanes(self, condition: Predicate, place: int) -> None:
        """What a vector instruction says of each active lane; of the others it says no."""
        self.write_mask(both(self.state.exec, condition), place)

    def carry_in(self, place: int) -> Predicate | None:
        """The carry that a mask is in the lanes that are active."""
        operands = self.operation.operands
        parts = self.mask(operands[place]).parts if place < len(operands) else frozenset()
        carries = [each for each in parts if each.op == "carry"]
        rest = parts - self.state.exec.parts
        return carries[0] if rest == set(carries) and len(carries) == 1 else None

    def write_scc(self, condition: Predicate) -> None:
        self.state.held[SCC_ROW] = condition

    def scc(self) -> Predicate:
        held = self.state.held.get(SCC_ROW)
        return held if isinstance(held, Predicate) else Predicate("unknown", (self.at, "scc"))

    def branch_test(self) -> Predicate | None:
        """What a branch asks of all lanes alike; of VCC, what does not differ by lane, while all are active."""
        condition = self.operation.spec.condition
        if condition is None or condition.register == "exec":
            return None
        if condition.register == "scc":
            return self.scc()
        held = self.state.held.get(VCC_ROW)
        if self.state.exec != TRUE or not isinstance(held, PredicateHalf):  # without active lanes VCC is zero, too
            return None
        parts = held.condition.parts
        only = next(iter(parts)) if len(parts) == 1 else None
        return None if only is None or differs_by_lane(only) else only

    # Numbers.

    def value(self, place: int) -> Polynomial:
        return self.words.value(self.word(place))

    def signed(self, place: int) -> Polynomial:
        return self.words.signed_value(self.word(place))

    def bits(self, place: int, count: int, *, signed: bool = False) -> Polynomial:
        """The low bits of an operand, as a number."""
        word = self.word(place)
        whole = self.words.value(word) if word.part else word.whole
        return self.words.narrow(whole, count, at=self.at, signed=signed)

    def opaque(self, bounds: Bounds = ANY_WORD, name: str = "", *, inside: str = "") -> HeldWord:
        """An unknown result, or an unknown number `inside` of what is computed."""
        key = (self.at, inside) if inside else (self.at,)
        return self.words.unknown(name or f"{self.operation.name}@{self.at}", *key, bounds=bounds)


Action = Callable[[WordStep], None]


def forget(step: WordStep) -> None:
    """Leave unknown words in all that it writes."""
    operation = step.operation
    text = f"{operation.name}@{step.at}"
    for row in rows_of(operation.writes):
        if row == SCC_ROW:
            step.write_scc(Predicate("unknown", (step.at, "scc")))
        elif EXEC_ROW <= row < EXEC_ROW + step.mask_rows:
            step.state.exec = Predicate("unknown", (step.at, "exec"))
        else:
            step.put(row, step.words.unknown(text, step.at, row, by_lane=row < SCALAR))
