"""Which waves load the same words to LDS."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from operator import or_
from typing import NamedTuple

import numpy as np

from rota.isa.opcodes import IsaUnit, Opcode
from rota.isa.registers import EXEC, SCALAR
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.operation import EXEC_BITS, Operation, OperationKind, rows_of
from rota.prove.slicing import BackwardSlice, derive_slice, find_meeting_points
from rota.prove.state import Half, Leaf, WaveSet
from rota.prove.symbol import GROUP, M32, Lanes, Linear
from rota.prove.transfer import evaluate_scalar, evaluate_vector

Classes = tuple[int, ...]  # for each wave the first wave that it agrees with
RowState = int | Lanes | Classes  # known numbers of a register, or which waves agree on it
_EXEC_ROWS = (SCALAR + EXEC, SCALAR + EXEC + 1)


def _is_unknown(spec: Opcode) -> bool:
    """True for results that aren't evaluated, or differ in every wave."""
    return spec.unit is IsaUnit.MATRIX or spec.root == "getreg"


class _Region(NamedTuple):
    """The ways from a branch to where they meet: operations, and the rows that these write."""

    meets: int
    inside: frozenset[int]
    written: int


_SEPARATING = frozenset({OperationKind.BARRIER, OperationKind.SIGNAL, OperationKind.CALL, OperationKind.END})


class Agreement:
    """Which waves load the same words to LDS; computed at the first question.

    Two waves agree on a register if it holds the same in both, lane by lane, whenever they reach an instruction on the
    same path.  They start with the same arguments and different work items.  An operation on registers on which they
    agree gives a result on which they agree; known numbers are compared.

    Waves that a branch may separate meet again where all ways from it lead.  What is written on these ways they don't
    agree on, nor on what is loaded there; and if there is a barrier on the way, on nothing after it.
    """

    def __init__(self, operations: Sequence[Operation], start: WaveSet, lanes: int, *, full: bool) -> None:
        self._operations, self._start, self._full = operations, start, full
        self._evaluator = Evaluator(lanes)
        self._alike: Classes = (0,) * len(start.waves)
        self._alone: Classes = tuple(range(len(start.waves)))
        self._together = self._alike  # waves that no branch separates for good
        self._apart: dict[int, Classes] = {}  # by a branch that separates waves until they meet again
        self._regions: dict[int, _Region | None] = {}
        self._meets: list[int] = []
        self._found: dict[int, Classes] | None = None

    def find_classes(self, number: int) -> Classes:
        """Classes of waves that load the same words to the same bytes by that operation, if they issue it at all."""
        if self._found is None:
            self._found = {}
            if not any(each.indexed for each in self._operations):
                self._find()
        if number not in self._found:
            return self._alone
        inside = [classes for branch, classes in self._apart.items() if self._is_inside(number, branch)]
        return _refine(self._found[number], self._together, *inside)

    def _is_inside(self, number: int, branch: int) -> bool:
        region = self._regions[branch]
        return region is not None and number in region.inside

    def _find(self) -> None:
        sliced = derive_slice(self._operations, full=self._full, sources=True)
        self._meets = find_meeting_points(sliced.successors)
        known: object = None
        while known != (known := (self._together, dict(self._apart))):  # what separates waves shows as it goes on
            self._iterate(sliced)

    def _find_region(self, branch: int, successors: Sequence[Sequence[int]]) -> _Region | None:
        """The ways from a branch to where all of them lead; None if there is no such place, or a barrier on the way."""
        if branch not in self._regions:
            meets, inside, work = self._meets[branch], set[int](), list(successors[branch])
            while work:
                at = work.pop()
                if at != meets and at not in inside:
                    inside.add(at)
                    work += successors[at]
            operations = [self._operations[at] for at in inside]
            ends = any(each.kind in _SEPARATING for each in operations) or meets >= len(self._operations)
            written = functools.reduce(or_, (each.writes | each.data for each in operations), 0)
            self._regions[branch] = None if ends else _Region(meets, frozenset(inside), written)
        return self._regions[branch]

    def _separate(self, operation: Operation, classes: Classes, successors: Sequence[Sequence[int]]) -> None:
        if len({*zip(self._together, classes, strict=True)}) == len({*self._together}):
            return
        region = self._find_region(operation.number, successors) if operation.kind is OperationKind.BRANCH else None
        if region is None:
            self._together = _refine(self._together, classes)
        else:
            self._apart[operation.number] = _refine(self._apart.get(operation.number, self._alike), classes)

    def _iterate(self, sliced: BackwardSlice) -> None:
        """Data-flow analysis to the fixed point, with a state at every join point."""
        successors = sliced.successors
        heads = {0} | {to for at, following in enumerate(successors) for to in following if following != (at + 1,)}
        initial: dict[int, RowState] = {}
        for row, value in self._start.registers.items():
            if isinstance(value, Linear):
                initial[row] = self._alike if value.base.spread == GROUP else self._alone
            elif not isinstance(value, Half):
                initial[row] = value
        states = {0: initial | _halves(self._start.exec.leaf)}
        work = [0]
        while work:
            at = work.pop()
            state = dict(states[at])
            while True:
                following = successors[at]
                operation = self._operations[at]
                if operation.kind in {OperationKind.BRANCH, OperationKind.CALL}:
                    self._separate(operation, self._agree_on(state, operation.reads), successors)
                else:
                    self._step(operation, state, evaluated=sliced.evaluated[at])
                if len(following) == 1 and following[0] not in heads:
                    at = following[0]
                    continue
                work += [to for to in following if self._join_into(states, to, state, sliced.needed[to])]
                break

    def _join_into(
        self, states: dict[int, dict[int, RowState]], to: int, state: dict[int, RowState], needed: int
    ) -> bool:
        """Join a state into that of an operation; True if less is known there now."""
        wanted = needed | EXEC_BITS
        for branch, classes in self._apart.items():
            region = self._regions[branch]
            if region is not None and region.meets == to:
                written = [row for row in state if region.written >> row & 1]
                state = state | {row: _refine(self._classes(state[row]), classes) for row in written}
        if to not in states:
            states[to] = {row: held for row, held in state.items() if wanted >> row & 1}
            return True
        before, changed = states[to], False
        for row, held in before.items():
            now = self._join(held, state.get(row, self._alone))
            if now is not held:
                before[row], changed = now, True
        return changed

    def _join(self, old: RowState, new: RowState) -> RowState:
        if not isinstance(old, tuple) and not isinstance(new, tuple):
            a, b = np.broadcast_arrays(np.asarray(old), np.asarray(new))
            if np.array_equal(a, b):
                return old
        classes = _refine(self._classes(old), self._classes(new))
        return old if isinstance(old, tuple) and classes == old else classes

    def _classes(self, held: RowState) -> Classes:
        if isinstance(held, tuple):
            return held
        if isinstance(held, int) or len(held) == 1:
            return self._alike
        first: dict[bytes, int] = {}
        return tuple(first.setdefault(row.tobytes(), wave) for wave, row in enumerate(held))

    def _agree_on(self, state: dict[int, RowState], rows: int) -> Classes:
        return _refine(self._alike, *(self._classes(state.get(row, self._alone)) for row in rows_of(rows)))

    def _step(self, operation: Operation, state: dict[int, RowState], *, evaluated: bool) -> None:
        if operation.copies == "dma" and self._found is not None:
            classes = self._agree_on(state, operation.reads)
            self._found[operation.number] = _refine(self._found.get(operation.number, self._alike), classes)
        elif evaluated:
            state |= self._evaluate(operation, state)

    def _evaluate(self, operation: Operation, state: dict[int, RowState]) -> dict[int, RowState]:
        written = operation.writes | operation.data
        if operation.kind is OperationKind.VALUE and not _is_unknown(operation.spec):
            reads = operation.reads | EXEC_BITS * operation.is_vector
            known = self._compute(operation, state, reads)
            halves = [state.get(row, self._alone) for row in self._evaluator.exec_rows]
            full = not any(isinstance(each, tuple) or bool(np.any(each != M32)) for each in halves)
            kept = written if operation.keeps_target or (operation.is_vector and not full) else 0
            classes = self._agree_on(state, reads | kept)
        elif operation.kind is OperationKind.SMEM and operation.verb == "load":
            shared = "glc" not in operation.instruction.modifiers
            known, classes = {}, self._agree_on(state, operation.reads) if shared else self._alone
        else:
            known, classes = {}, self._alone
        return dict.fromkeys(rows_of(written), classes) | known

    def _compute(self, operation: Operation, state: dict[int, RowState], reads: int) -> dict[int, RowState]:
        held = {row: state.get(row, self._alone) for row in rows_of(reads)}
        if any(isinstance(each, tuple) for each in held.values()):
            return {}
        waves = self._start.waves
        exec_ = [held.pop(row, 0) for row in _EXEC_ROWS]  # if it doesn't read EXEC, only words that it writes count
        low, high = (np.broadcast_to(np.asarray(half), (len(waves), 1))[:, 0].tolist() for half in exec_)
        before = {row: state[row] for row in rows_of(operation.writes & ~EXEC_BITS) if row in state}
        registers = {row: each for row, each in (before | held).items() if not isinstance(each, tuple)}
        mask = self._evaluator.masks.leaf(tuple(one | other << 32 for one, other in zip(low, high, strict=True)))
        wave_set = WaveSet(waves=waves, at=operation.number, registers=dict(registers), exec=mask)
        self._evaluator.symbols.row_waves = waves
        evaluate = evaluate_vector if operation.is_vector else evaluate_scalar
        evaluate(self._evaluator, wave_set, operation, Decisions())
        after = wave_set.registers | _halves(wave_set.exec.leaf)
        found = {row: after[row] for row in rows_of(operation.writes) if row in after}
        return {row: each for row, each in found.items() if not isinstance(each, (Linear, Half))}


def _refine(*several: Classes) -> Classes:
    """The coarsest classes that refine all of these."""
    first: dict[Classes, int] = {}
    return tuple(first.setdefault(each, wave) for wave, each in enumerate(zip(*several, strict=True)))


def _halves(leaf: Leaf | None) -> dict[int, Lanes]:
    if leaf is None:
        return {}
    numbers = np.array(leaf, np.uint64)[:, None]
    return {
        row: (numbers >> np.uint64(32 * half) & np.uint64(M32)).astype(np.int64) for half, row in enumerate(_EXEC_ROWS)
    }
