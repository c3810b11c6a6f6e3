"""Control flow, the backward slice that a proof evaluates, and which waves load the same words to LDS.

A proof evaluates only operations on which LDS addresses, branches or EXEC depend (program slicing: Weiser, 1981).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rota.isa.opcodes import IsaFlow, IsaUnit, Opcode, Trait
from rota.isa.registers import EXEC, SCALAR
from rota.isa.wave.operand import File, Operand
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.operation import EXEC_BITS, M0_BIT, VECTORS, Operation, OperationKind, rows_of
from rota.prove.state import Half, Leaf, WaveSet
from rota.prove.symbol import GROUP, M32, Lanes, Linear
from rota.prove.transfer import evaluate_scalar, evaluate_vector


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardSlice:
    """For each operation: is it evaluated, which rows are needed (by addresses), where it leads, is it in a loop.

    Of the rows in `unread` that it writes, nobody reads a lane that doesn't execute it.
    """

    evaluated: tuple[bool, ...]
    needed: tuple[int, ...]
    for_addresses: tuple[int, ...]
    unread: tuple[int, ...]
    successors: tuple[tuple[int, ...], ...]
    looping: tuple[bool, ...]


def derive_slice(operations: Sequence[Operation], *, full: bool, sources: bool = False) -> BackwardSlice:
    """Slice backwards; `full` if all lanes start active, `sources` if loads to LDS need their global addresses."""
    successors = derive_successors(operations)
    full_exec = _find_full_exec(operations, successors, full=full)
    needed, evaluated, unread = _find_needed(operations, successors, full_exec, control=True, sources=sources)
    addresses, _, _ = _find_needed(operations, successors, full_exec, control=False)
    return BackwardSlice(
        evaluated=tuple(evaluated),
        needed=tuple(needed),
        for_addresses=tuple(addresses),
        unread=tuple(unread),
        successors=tuple(map(tuple, successors)),
        looping=tuple(_find_looping(successors)),
    )


# Control flow.


def find_call_targets(operations: Sequence[Operation]) -> frozenset[int]:
    """Where a jump by register may go: to the instruction after a call, and to the beginning of a function."""
    targets = set()
    for number, each in enumerate(operations):
        if each.spec.flow.is_call and number + 1 < len(operations):
            targets.add(number + 1)
        if number and each.instruction.symbol != operations[number - 1].instruction.symbol:
            targets.add(number)
    return frozenset(targets)


def derive_successors(operations: Sequence[Operation]) -> list[list[int]]:
    calls = any(each.kind is OperationKind.CALL for each in operations)
    anywhere = sorted(find_call_targets(operations)) if calls else []
    successors: list[list[int]] = []
    last = len(operations) - 1
    for number, each in enumerate(operations):
        target, flow = each.instruction.target, each.spec.flow
        if each.kind is OperationKind.CALL:
            successors.append([target] if flow is IsaFlow.CALL and target is not None else list(anywhere))
        elif each.kind is OperationKind.END:
            successors.append([])
        elif each.kind is OperationKind.BRANCH and target is not None:
            successors.append([target] if flow is IsaFlow.JUMP or number == last else [target, number + 1])
        else:
            successors.append([number + 1] if number < last else [])
    return successors


def find_interacting(operations: Sequence[Operation], successors: Sequence[Sequence[int]], *, flat: bool) -> list[bool]:
    """For each operation, whether an LDS access or a barrier can be reached from it."""
    into = _invert(successors)
    found = [
        each.kind in {OperationKind.LDS, OperationKind.BARRIER} or bool(each.to_lds) or (flat and each.flat)
        for each in operations
    ]
    work = [number for number, each in enumerate(found) if each]
    while work:
        for each in into[work.pop()]:
            if not found[each]:
                found[each] = True
                work.append(each)
    return found


def _invert(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    into: list[list[int]] = [[] for _ in successors]
    for number, following in enumerate(successors):
        for each in following:
            into[each].append(number)
    return into


def _find_looping(successors: list[list[int]]) -> list[bool]:
    """For each operation, whether control can return to it: strongly connected components (Tarjan, 1972)."""
    count = len(successors)
    order, lowest = [-1] * count, [0] * count
    held, found = [False] * count, [False] * count
    stack: list[int] = []
    passed = 0
    for root in range(count):
        if order[root] >= 0:
            continue
        work = [(root, 0)]
        while work:
            number, place = work.pop()
            if not place:
                order[number] = lowest[number] = passed
                passed += 1
                stack.append(number)
                held[number] = True
            else:
                lowest[number] = min(lowest[number], lowest[successors[number][place - 1]])
            while place < len(successors[number]):
                following = successors[number][place]
                place += 1
                if order[following] < 0:
                    work += [(number, place), (following, 0)]
                    break
                if held[following]:
                    lowest[number] = min(lowest[number], order[following])
            else:
                if lowest[number] == order[number]:
                    several = stack[-1] != number or number in successors[number]
                    each = -1
                    while each != number:
                        each = stack.pop()
                        held[each], found[each] = False, several
    return found


# The slice.


def _scalar_rows(operand: Operand) -> int:
    return sum(1 << row for row in operand.rows) if operand.file is File.SCALAR else 0


def _find_full_exec(operations: Sequence[Operation], successors: list[list[int]], *, full: bool) -> list[bool]:
    """For each operation, whether EXEC is all ones before it on every path."""
    known: list[int | None] = [None] * len(operations)  # the scalar registers that are all ones
    work = [(0, EXEC_BITS if full else 0)]
    while work:
        number, ones = work.pop()
        while True:
            before = known[number]
            now = ones if before is None else ones & before
            if now == before:
                break
            known[number] = now
            ones = _transfer_ones(operations[number], now)
            following = successors[number]
            if not following:
                break
            work.extend((each, ones) for each in following[1:])
            number = following[0]
    return [each is not None and each & EXEC_BITS == EXEC_BITS for each in known]


def _transfer_ones(operation: Operation, ones: int) -> int:
    if not operation.writes & ~VECTORS:
        return ones
    after = ones & ~operation.writes
    spec, operands = operation.spec, operation.operands
    if spec.type not in {"b64", "b32"} or operation.kind is not OperationKind.VALUE or len(operands) < 2:
        return after

    def is_ones(operand: Operand) -> bool:
        rows = _scalar_rows(operand)
        return ones & rows == rows if rows else operand.file is File.LITERAL and operand.literal == -1

    was_full, target = ones & EXEC_BITS == EXEC_BITS, _scalar_rows(operands[0])
    if spec.words[-1] == "saveexec":
        if spec.words[0] == "or":
            is_full = is_ones(operands[1]) or was_full
        else:
            is_full = is_ones(operands[1]) and was_full and spec.words[0] == "and"
        return after | EXEC_BITS * is_full | target * was_full
    if spec.unit is not IsaUnit.SALU:
        return after
    if spec.root == "mov":
        result = is_ones(operands[1])
    elif spec.root == "or":
        result = is_ones(operands[1]) or is_ones(operands[2])
    else:
        result = spec.root in {"and", "cselect"} and is_ones(operands[1]) and is_ones(operands[2])
    return after | target * result


def _own_needs(operation: Operation, *, control: bool, sources: bool) -> int:
    """Registers that an operation needs whether or not its result is needed."""
    if sources and operation.to_lds:
        return operation.reads & ~EXEC_BITS
    if operation.address:
        return operation.address
    if control and operation.kind in {OperationKind.BRANCH, OperationKind.CALL, OperationKind.INDEX}:
        return operation.reads
    if control and operation.kind is OperationKind.VALUE and operation.writes & EXEC_BITS:
        return operation.reads & ~EXEC_BITS
    return 0


def _find_needed(
    operations: Sequence[Operation],
    successors: list[list[int]],
    full_exec: list[bool],
    *,
    control: bool,
    sources: bool = False,
) -> tuple[list[int], list[bool], list[int]]:
    """Live variables, of which an operation whose result isn't needed needs none.

    Needed rows, what to evaluate, and written rows of which nobody reads other lanes than those that execute.

    An operation that obeys EXEC reads only the lanes that execute.  While EXEC changes at most to fewer lanes, what it
    reads was all written by a write before it, whether or not that had all lanes: `few` are the rows of which only
    lanes are needed that execute, `many` those of which others are needed as well.
    """
    count = len(operations)
    into = _invert(successors)
    own = [_own_needs(each, control=control, sources=sources) for each in operations]
    sources_of = [_sources(each) for each in operations]
    lane_wise = [_is_lane_wise(each) for each in operations]
    widens = [bool(each.writes & EXEC_BITS) and not _narrows_exec(each) for each in operations]
    ends_few, ends_many = _find_ends(operations, full_exec, lane_wise)
    few, many = [0] * count, [0] * count
    evaluated = [False] * count
    work, pending = list(range(count)), [True] * count
    while work:
        number = work.pop()
        pending[number] = False
        some, others = _union(few, successors[number]), _union(many, successors[number])
        if widens[number]:
            some, others = 0, some | others
        reads = own[number]
        if operations[number].writes & (some | others | EXEC_BITS * control):
            evaluated[number] = True
            some, others = some & ~ends_few[number], others & ~ends_many[number]
            reads |= sources_of[number]
        if lane_wise[number]:
            some |= reads
        else:
            others |= reads
        if some != few[number] or others != many[number]:
            few[number], many[number] = some, others
            for each in into[number]:
                if not pending[each]:
                    pending[each] = True
                    work.append(each)
    unread = [
        operation.writes & VECTORS & ~_union(many, following) if operation.spec.obeys_exec else 0
        for operation, following in zip(operations, successors, strict=True)
    ]
    return [one | other for one, other in zip(few, many, strict=True)], evaluated, unread


def _union(rows: Sequence[int], places: Sequence[int]) -> int:
    found = 0
    for each in places:
        found |= rows[each]
    return found


def _find_ends(
    operations: Sequence[Operation], full_exec: Sequence[bool], lane_wise: Sequence[bool]
) -> tuple[list[int], list[int]]:
    """Rows that each operation writes in all lanes that execute, and those that it writes in all lanes."""
    few, many = [], []
    for operation, full, by_lane in zip(operations, full_exec, lane_wise, strict=True):
        whole = (full or not operation.is_vector) and not operation.indexed
        spills = operation.slots and operation.verb == "store" and not full
        many.append(0 if spills else operation.writes if whole else operation.writes & ~VECTORS)
        few.append(many[-1] | (operation.writes & VECTORS if by_lane else 0))
    return few, many


def _is_lane_wise(operation: Operation) -> bool:
    """True if each lane that executes reads and writes its own part of registers, and no other lane does."""
    spec = operation.spec
    across = Trait.LANE in spec.traits or Trait.PERMLANE in spec.traits or operation.instruction.is_dpp
    exchanges = across or operation.kind is OperationKind.EXCHANGE or spec.unit is IsaUnit.MATRIX
    return spec.obeys_exec and not exchanges and not operation.indexed and not operation.slots


def _narrows_exec(operation: Operation) -> bool:
    """True if an operation that writes EXEC leaves at most the lanes that it had."""
    spec, operands = operation.spec, operation.operands
    if Trait.COMPARES_EXEC in spec.traits:
        return True
    if spec.unit is not IsaUnit.SALU or len(operands) < 2:
        return False
    if spec.words[-1] == "saveexec":
        return spec.words[0] in {"and", "andn1"}
    kept = operands[1:2] if spec.root == "andn2" else operands[1:] if spec.root == "and" else ()
    return any(_scalar_rows(each) == operation.writes & EXEC_BITS == _scalar_rows(operands[0]) for each in kept)


def _sources(operation: Operation) -> int:
    """Registers that a result is computed from; none for loads (except spills) and matrix instructions."""
    if operation.slots:
        return operation.reads & ~EXEC_BITS
    if operation.kind is OperationKind.SMEM:
        return operation.reads if operation.verb == "load" else 0
    if operation.kind is not OperationKind.VALUE or operation.spec.unit is IsaUnit.MATRIX:  # never evaluated
        return 0
    return operation.reads & ~EXEC_BITS | (M0_BIT & operation.reads)


# Agreement of waves.

Classes = tuple[int, ...]  # for each wave the first wave that it agrees with
RowState = int | Lanes | Classes  # known numbers of a register, or which waves agree on it
_EXEC_ROWS = (SCALAR + EXEC, SCALAR + EXEC + 1)


def _is_unknown(spec: Opcode) -> bool:
    """True for results that aren't evaluated, or differ in every wave."""
    return spec.unit is IsaUnit.MATRIX or spec.root == "getreg"


class Agreement:
    """Which waves load the same words to LDS; computed at the first question.

    Two waves agree on a register if it holds the same in both, lane by lane, whenever they reach an instruction on the
    same path.  They start with the same arguments and different work items.  An operation on registers on which they
    agree gives a result on which they agree; known numbers are compared.  Waves that a branch may separate agree on
    nothing after it.
    """

    def __init__(self, operations: Sequence[Operation], start: WaveSet, lanes: int, *, full: bool) -> None:
        self._operations, self._start, self._full = operations, start, full
        self._evaluator = Evaluator(lanes)
        self._alike: Classes = (0,) * len(start.waves)
        self._alone: Classes = tuple(range(len(start.waves)))
        self._together = self._alike  # waves that no branch so far separates
        self._found: dict[int, Classes] | None = None

    def find_classes(self, number: int) -> Classes:
        """Classes of waves that load the same words to the same bytes by that operation, if they issue it at all."""
        if self._found is None:
            self._found = {}
            if not any(each.indexed for each in self._operations):
                self._iterate(derive_slice(self._operations, full=self._full, sources=True))
        return _refine(self._found[number], self._together) if number in self._found else self._alone

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
                self._step(self._operations[at], state, evaluated=sliced.evaluated[at])
                following = successors[at]
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
        kind, number = operation.kind, operation.number
        if kind in {OperationKind.BRANCH, OperationKind.CALL}:
            self._together = _refine(self._together, self._agree_on(state, operation.reads))
        elif operation.to_lds and self._found is not None:
            classes = self._agree_on(state, operation.reads)
            self._found[number] = _refine(self._found.get(number, self._alike), classes)
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
