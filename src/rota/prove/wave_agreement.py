"""Waves that load the same words: takes a kernel's operations, gives, for loads to LDS, which waves' addresses agree.

Two waves agree on a register if it holds the same in both, lane by lane, whenever they come to an instruction by the
same way.  Both start with the same arguments and with different work items; an operation on what they agree on gives
what they agree on; what is known in numbers is compared.  Waves that a branch may part agree on nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rota.isa.wave.operand import EXEC, SCALAR
from rota.prove.backward_slice import BackwardSlice, derive_slice
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.lane_mask import Leaf
from rota.prove.operation import EXEC_BITS, Operation, OperationKind, rows_of
from rota.prove.scalar_values import evaluate_scalar
from rota.prove.squad import Half, Squad
from rota.prove.symbol import GROUP, M32, Lanes, Linear
from rota.prove.vector_values import evaluate_vector

Classes = tuple[int, ...]
"""For each wave the first one that it agrees with."""
Held = int | Lanes | Classes
"""What a register holds: numbers, or who agrees on it."""
_EXEC_ROWS = (SCALAR + EXEC, SCALAR + EXEC + 1)
_OWN_WAYS = ("v_mfma", "v_smfmac", "s_getreg")  # not followed, or different in every wave


class Agreement:
    """Made when it is first asked."""

    def __init__(self, operations: Sequence[Operation], start: Squad, *, full: bool) -> None:
        self._operations, self._start, self._full = operations, start, full
        self._one = Evaluator()
        self._alike: Classes = (0,) * len(start.waves)
        self._alone: Classes = tuple(range(len(start.waves)))
        self._together = self._alike  # by every branch
        self._found: dict[int, Classes] | None = None

    def of(self, number: int) -> Classes:
        """Waves with the same number load the same words to the same bytes, if they issue that load at all."""
        if self._found is None:
            self._found = {}
            if not any(each.indexed for each in self._operations):
                self._follow(derive_slice(self._operations, full=self._full, sources=True))
        return self._refined(self._found[number], self._together) if number in self._found else self._alone

    def _follow(self, sliced: BackwardSlice) -> None:
        """To the fixed point: states stand where ways meet."""
        ways = sliced.successors
        heads = {0} | {to for at, following in enumerate(ways) for to in following if following != (at + 1,)}
        met: dict[int, dict[int, Held]] = {0: self._started()}
        work = [0]
        while work:
            at = work.pop()
            state = dict(met[at])
            while True:
                self._step(self._operations[at], state, evaluated=sliced.evaluated[at])
                following = ways[at]
                if len(following) == 1 and following[0] not in heads:
                    at = following[0]
                    continue
                work += [to for to in following if self._meets(met, to, state, sliced.needed[to])]
                break

    def _started(self) -> dict[int, Held]:
        held: dict[int, Held] = {}
        for row, value in self._start.registers.items():
            if isinstance(value, Linear):
                held[row] = self._alike if value.base.spread == GROUP else self._alone
            elif not isinstance(value, Half):
                held[row] = value
        held |= _halves(self._start.exec.leaf)
        return held

    def _meets(self, met: dict[int, dict[int, Held]], to: int, state: dict[int, Held], needed: int) -> bool:
        """One more way to come there; says whether less is known now."""
        wanted = needed | EXEC_BITS
        if to not in met:
            met[to] = {row: held for row, held in state.items() if wanted >> row & 1}
            return True
        before, less = met[to], False
        for row, held in before.items():
            now = self._joined(held, state.get(row, self._alone))
            if now is not held:
                before[row], less = now, True
        return less

    def _joined(self, one: Held, other: Held) -> Held:
        """The first one itself, if the other adds nothing."""
        if not isinstance(one, tuple) and not isinstance(other, tuple):
            a, b = np.broadcast_arrays(np.asarray(one), np.asarray(other))
            if np.array_equal(a, b):
                return one
        classes = self._refined(self._classes(one), self._classes(other))
        return one if isinstance(one, tuple) and classes == one else classes

    def _classes(self, held: Held) -> Classes:
        if isinstance(held, tuple):
            return held
        if isinstance(held, int) or len(held) == 1:
            return self._alike
        first: dict[bytes, int] = {}
        return tuple(first.setdefault(row.tobytes(), wave) for wave, row in enumerate(held))

    def _refined(self, *several: Classes) -> Classes:
        """Who agrees on all of it."""
        first: dict[Classes, int] = {}
        return tuple(first.setdefault(each, wave) for wave, each in enumerate(zip(*several, strict=True)))

    def _on(self, state: dict[int, Held], rows: int) -> Classes:
        """Who agrees on all of these registers."""
        return self._refined(self._alike, *(self._classes(state.get(row, self._alone)) for row in rows_of(rows)))

    def _step(self, operation: Operation, state: dict[int, Held], *, evaluated: bool) -> None:
        kind, number = operation.kind, operation.number
        if kind in {OperationKind.BRANCH, OperationKind.CALL}:
            reads = operation.reads | EXEC_BITS * ("_exec" in operation.instruction.opcode)
            self._together = self._refined(self._together, self._on(state, reads))
        elif operation.to_lds and self._found is not None:
            classes = self._on(state, operation.reads)
            self._found[number] = self._refined(self._found.get(number, self._alike), classes)
        elif evaluated:
            state |= self._made(operation, state)

    def _made(self, operation: Operation, state: dict[int, Held]) -> dict[int, Held]:
        written = operation.writes | operation.data
        if operation.kind is OperationKind.VALUE and not operation.name.startswith(_OWN_WAYS):
            reads = operation.reads | EXEC_BITS * operation.vector
            known = self._computed(operation, state, reads)
            kept = written if operation.keeps or (operation.vector and not self._all_lanes(state)) else 0
            classes = self._on(state, reads | kept)
        elif (
            operation.kind is OperationKind.SMEM
            and operation.verb == "load"
            and "glc" not in operation.instruction.modifiers
        ):
            known, classes = {}, self._on(state, operation.reads)
        else:
            known, classes = {}, self._alone
        return dict.fromkeys(rows_of(written), classes) | known

    def _all_lanes(self, state: dict[int, Held]) -> bool:
        """Is EXEC known to be full, so that nothing stays as it was?"""
        halves = [state.get(row, self._alone) for row in _EXEC_ROWS]
        return not any(isinstance(each, tuple) or bool(np.any(each != M32)) for each in halves)

    def _computed(self, operation: Operation, state: dict[int, Held], reads: int) -> dict[int, Held]:
        """The results that are numbers, if all that it reads is."""
        held = {row: state.get(row, self._alone) for row in rows_of(reads)}
        if any(isinstance(each, tuple) for each in held.values()):
            return {}
        waves = self._start.waves
        exec_ = [held.pop(row, 0) for row in _EXEC_ROWS]  # of which only halves that it writes count if it reads none
        low, high = (np.broadcast_to(np.asarray(half), (len(waves), 1))[:, 0].tolist() for half in exec_)
        before = {row: state[row] for row in rows_of(operation.writes & ~EXEC_BITS) if row in state}
        registers = {row: each for row, each in (before | held).items() if not isinstance(each, tuple)}
        mask = self._one.masks.leaf(tuple(one | other << 32 for one, other in zip(low, high, strict=True)))
        squad = Squad(waves=waves, at=operation.number, registers=dict(registers), exec=mask)
        self._one.symbols.company = waves
        evaluate = evaluate_vector if operation.vector else evaluate_scalar
        evaluate(self._one, squad, operation, Decisions())
        after = squad.registers | _halves(squad.exec.leaf)
        found = {row: after[row] for row in rows_of(operation.writes) if row in after}
        return {row: each for row, each in found.items() if not isinstance(each, (Linear, Half))}


def _halves(leaf: Leaf | None) -> dict[int, Lanes]:
    """EXEC as two registers of numbers, if they are known."""
    if leaf is None:
        return {}
    numbers = np.array(leaf, np.uint64)[:, None]
    return {
        row: (numbers >> np.uint64(32 * half) & np.uint64(M32)).astype(np.int64) for half, row in enumerate(_EXEC_ROWS)
    }
