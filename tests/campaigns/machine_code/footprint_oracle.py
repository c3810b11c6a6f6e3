"""Formulas of registers beside the interpreter's values: `python -m benchmarks.footprint_oracle [--examples 500]`.

A kernel is drawn and launched.  Before each instruction that a wave executes, every word and mask whose formula
`rota.prove.footprint` knows is evaluated under the launch's numbers, and must be what the register holds, in all lanes
that exist.  What is unknown is learnt when it is made: results that have no formula where they are written, words that
a loop carries and choices where ways meet when control enters a block.  The bounds of everything learnt must hold.
The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.isa.decoded import KernelProgram
from rota.isa.registers import SCALAR
from rota.prove.footprint.accesses import follow, read_flow
from rota.prove.footprint.flow import KernelFlow, State
from rota.prove.footprint.polynomial import Atom, Polynomial
from rota.prove.footprint.words import WORD, HeldWord, Predicate, PredicateHalf, Words
from rota.prove.operation import SCC_ROW, rows_of
from tests.campaigns.machine_code.value_oracle import of_seed
from tests.campaigns.machine_code.value_record import Contents, Launch, WaveRecord, recorded, told

LANES = 64
Integers = NDArray[np.object_]


class DifferError(Exception):
    """A formula has another value than its register."""


class UnknownValueError(Exception):
    """Something in a formula was never learnt."""


def spread(contents: Any) -> Integers:
    """A number or one for each lane, as exact integers."""
    numbers = contents.tolist() if isinstance(contents, np.ndarray) else [int(contents)] * LANES
    return np.array(numbers, object)


@dataclass(slots=True, eq=False, kw_only=True)
class Meaning:
    """What atoms and conditions are, for one wave of a launch."""

    arguments: dict[str, int]
    group: tuple[int, int, int]
    wave: int
    learnt: dict[Atom, Integers] = field(default_factory=dict)
    masks: dict[Predicate, NDArray[np.bool_]] = field(default_factory=dict)
    known: dict[Atom, Integers] = field(default_factory=dict)  # of this instruction

    def number(self, whole: Polynomial) -> Integers:
        total = spread(0)
        for factors, factor in whole.terms:
            product = spread(factor)
            for each in factors:
                product = product * self.atom(each)
            total = total + product
        return total

    def word(self, word: HeldWord) -> Integers:
        found: Integers = self.number(word.whole) // WORD**word.part % WORD
        return found

    def atom(self, atom: Atom) -> Integers:
        if atom not in self.known:
            found = self._atom(atom)
            if ((found < atom.bounds.low) | (found > atom.bounds.high)).any() and not atom.op.startswith("wide"):
                raise DifferError(f"{atom} is outside of {atom.bounds}")
            self.known[atom] = found
        return self.known[atom]

    def _atom(self, atom: Atom) -> Any:  # one case for each operation
        args: Any = atom.args
        match atom.op:
            case "argument" if args[0] in self.arguments:
                return spread(self.arguments[args[0]])
            case "workgroup":
                return spread(self.group["xyz".index(args[0])])
            case "item":
                return spread(np.arange(LANES) + LANES * self.wave)
            case "narrow" | "remainder":
                return self.number(args[0]) % (2 ** args[1] if atom.op == "narrow" else args[1])
            case "signed":
                half = 2 ** (args[1] - 1)
                return (self.number(args[0]) + half) % (2 * half) - half
            case "quotient" | "high":
                return self.number(args[0]) // args[1]
            case "divided":
                one, by = self.number(args[0]), self.number(args[1])
                if not np.all(by > 0):
                    raise UnknownValueError(str(atom))
                return one // by
            case "sign":
                return (self.number(args[0]) % WORD >= WORD // 2).astype(object) * (WORD - 1)
            case "field":
                return self.number(args[0]) // WORD % 2 ** args[1]
            case "min" | "max":
                values = [self.number(each) for each in args]
                return (np.minimum if atom.op == "min" else np.maximum)(*values)
            case "lost carry":
                above, rest = self.number(args[0]), self.number(args[1])
                return (above + rest) % WORD - above % WORD
            case "high sum":
                return (self.number(args[0]) // WORD + self.number(args[1]) // WORD) % WORD
            case "large":
                return self.number(args[0])
            case "select" if isinstance(args[0], Predicate):
                chosen = self.mask(args[0])
                return np.where(chosen, self.word(args[1]), self.word(args[2]))
            case "wide select" | "wide carried":
                return self.atom(args[0]) + WORD * self.atom(args[1])
            case "lane":
                return spread(self._at_lane(args))
        if atom not in self.learnt:
            raise UnknownValueError(str(atom))
        return self.learnt[atom]

    def _at_lane(self, args: Any) -> Any:
        inside, _, lane = args
        if isinstance(lane, Predicate):
            active = self.mask(lane)
            return self.atom(inside)[int(active.argmax()) if active.any() else 0]
        if not isinstance(lane, int) or lane >= LANES:
            raise UnknownValueError(str(lane))
        return self.atom(inside)[lane]

    def mask(self, condition: Predicate) -> NDArray[np.bool_]:
        if condition in self.masks:
            return self.masks[condition]
        args: Any = condition.args
        match condition.op:
            case "true" | "false":
                return np.full(LANES, condition.op == "true")
            case "and":
                return self.mask(args[0]) & self.mask(args[1])
            case "or":
                return self.mask(args[0]) | self.mask(args[1])
            case "xor":
                return self.mask(args[0]) ^ self.mask(args[1])
            case "not":
                return ~self.mask(args[0])
            case "lanes":
                return np.array([args[0] >> lane & 1 for lane in range(LANES)], np.bool_)
            case "eq" | "lt" | "le":
                one, other = self.number(args[0]), self.number(args[1])
                found = {"eq": one == other, "lt": one < other, "le": one <= other}[condition.op]
                return np.asarray(found, np.bool_)
            case "carry":
                one, other = (self.word(HeldWord(args[place], args[place + 2])) for place in range(2))
                return np.asarray(one + other >= WORD if args[4] > 0 else one < other, np.bool_)
        raise UnknownValueError(str(condition))


class Comparison:
    """One wave, led along its record."""

    def __init__(
        self, flow: KernelFlow, before: dict[int, State], record: WaveRecord, meaning: Meaning, lanes: int
    ) -> None:
        self._flow, self._before, self._record, self._meaning = flow, before, record, meaning
        self._now: dict[int, Contents] = dict(record.start)
        self._exists = np.arange(LANES) < lanes
        self.counts = Counter[str]()

    def run(self) -> None:
        active = self._exists
        for place, number in enumerate(self._record.pcs):
            state = self._before[number]
            if number in self._flow.of:
                self._enter(state, number, active)
            self._meaning.known.clear()
            try:
                self._compare(state, active)
            except DifferError as error:
                raise DifferError(f"{told(self._flow.operations[number].instruction)}: {error}") from error
            self._now.update(self._record.after[place])
            self._learn(number, active)
            bits = self._record.exec[place]
            active = np.array([bits >> lane & 1 for lane in range(LANES)], np.bool_)

    def _enter(self, state: State, number: int, active: NDArray[np.bool_]) -> None:
        """Learn what a block's beginning carries or chooses."""
        self._meaning.known.clear()
        at = self._flow.of[number]
        for row, held in state.held.items():
            if isinstance(held, HeldWord) and (atom := held.whole.atom) is not None and row in self._now:
                carried = atom.op == "carried" and atom.args[0] == number
                if carried or (atom.op == "select" and atom.args[0] == ("block", at)):
                    self._meaning.learnt[atom] = spread(self._now[row])
        for held_mask, found in self._masks(state, active):
            if held_mask.op in {"carried", "met"} and held_mask.args[0] == at:
                self._meaning.masks[held_mask] = found

    def _masks(self, state: State, active: NDArray[np.bool_]) -> list[tuple[Predicate, NDArray[np.bool_]]]:
        found = [(state.exec, active)]
        for row, held in state.held.items():
            if isinstance(held, PredicateHalf) and not held.which and row in self._now and row + 1 in self._now:
                bits = int(self._now[row]) | int(self._now[row + 1]) << 32
                other = state.held.get(row + 1)
                if isinstance(other, PredicateHalf) and other.condition is held.condition and other.which:
                    found.append((held.condition, np.array([bits >> lane & 1 for lane in range(LANES)], np.bool_)))
            elif isinstance(held, Predicate) and row == SCC_ROW and row in self._now:
                found.append((held, np.full(LANES, bool(self._now[row]))))
        return found

    def _compare(self, state: State, active: NDArray[np.bool_]) -> None:
        for row, held in state.held.items():
            if isinstance(held, HeldWord) and row in self._now and not SCALAR + 106 < row < SCALAR + 128:
                try:
                    value = self._meaning.word(held)
                except UnknownValueError:
                    self.counts["words with something unknown"] += 1
                    continue
                lanes = self._exists if row < SCALAR else np.ones(LANES, np.bool_)
                wrong = lanes & (value != spread(self._now[row]))
                if wrong.any():
                    lane = int(wrong.argmax())
                    real = int(spread(self._now[row])[lane])
                    raise DifferError(f"row {row}, lane {lane}: {held.whole} is {value[lane]:#x}, not {real:#x}")
                self.counts["words"] += 1
        for condition, real_mask in self._masks(state, active):
            try:
                mask = self._meaning.mask(condition)
            except UnknownValueError:
                self.counts["masks with something unknown"] += 1
                continue
            lanes = self._exists
            if (lanes & (mask != real_mask)).any():
                raise DifferError(f"a mask differs: {condition.op} {condition.args}")
            self.counts["masks"] += 1

    def _learn(self, number: int, active: NDArray[np.bool_]) -> None:
        operation = self._flow.operations[number]
        rows, obeys = list(rows_of(operation.writes | operation.data)), operation.spec.obeys_exec
        for atom in self._made.get(number, ()):
            args = atom.args
            if len(args) > 2 and isinstance(args[2], str):
                continue  # a part of what was computed, which no register shows
            place = args[2] if len(args) > 2 and isinstance(args[2], int) else None
            row = rows[0] if place is None else place if place in rows else rows[min(place, len(rows) - 1)]
            if row in self._now:
                new = spread(self._now[row])
                old = self._meaning.learnt.get(atom, spread(atom.bounds.low))
                self._meaning.learnt[atom] = np.where(active, new, old) if row < SCALAR and obeys else new

    _made: dict[int, list[Atom]] = {}  # noqa: RUF012  # set for each kernel

    @classmethod
    def of(cls, made: dict[int, list[Atom]]) -> None:
        cls._made = made


def compared(program: KernelProgram, launch: Launch) -> Counter[str]:
    """Compares all waves of a launch; raises `DifferError` where a formula is wrong."""
    records = recorded(program, replace(launch, args=copy.deepcopy(list(launch.args))))
    words = Words()
    flow = read_flow([step.instruction for step in program.steps], program.architecture)
    before = {
        step.operation.number: step.state.copy()
        for step, _ in follow(words, flow, program.facts, program.architecture)
    }  # fmt: skip
    made: dict[int, list[Atom]] = {}
    for atom in words.atoms.every():
        if atom.op in {"unknown", "launch"} and len(atom.args) > 1 and isinstance(atom.args[1], int):
            made.setdefault(atom.args[1], []).append(atom)
    Comparison.of(made)
    numbers = [each for each in launch.args if not isinstance(each, np.ndarray)]
    names = [each.name for each in program.facts.arguments if each.kind == "by_value"]
    total, items = Counter[str](), int(np.prod(launch.block))
    for record in records:
        meaning = Meaning(
            arguments=dict(zip(names, map(int, numbers), strict=True)), group=launch.group, wave=record.number
        )  # fmt: skip
        comparison = Comparison(flow, before, record, meaning, items - LANES * record.number)
        comparison.run()
        total.update(comparison.counts)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    differ, total, start = 0, Counter[str](), time.perf_counter()
    for seed in range(given.seed, given.seed + given.examples):
        made = of_seed(seed)
        try:
            total.update(compared(made.program, made.launch))
        except DifferError as error:
            differ += 1
            print(f"DIFFER: seed {seed}: {error}", flush=True)
    print(f"{given.examples} kernels, {differ} differ; {dict(total)}; {time.perf_counter() - start:.0f} s")
    return 1 if differ else 0
