"""Waves that load the same words: takes a kernel's operations, gives, for loads to LDS, which waves' addresses agree.

Two waves agree on a register if it holds the same in both, lane by lane, whenever they come to an instruction by the
same way.  Both start with the same arguments and with different work items; an operation on what they agree on gives
what they agree on; what is known in numbers is compared.  Waves that a branch may part agree on nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rota.isa.wave.operand import EXEC, SCALAR, File, Operand
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.operation import EXEC_BITS, M0_BIT, VECTORS, Operation, OperationKind, rows_of
from rota.prove.state import Half, Leaf, WaveSet
from rota.prove.symbol import GROUP, M32, Lanes, Linear
from rota.prove.transfer import evaluate_scalar, evaluate_vector

_BLIND = ("v_mfma", "v_smfmac")  # results that are never followed


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardSlice:
    """For each operation: is it evaluated, and which registers are needed when it starts, for what."""

    evaluated: tuple[bool, ...]
    needed: tuple[int, ...]
    for_addresses: tuple[int, ...]
    successors: tuple[tuple[int, ...], ...]
    looping: tuple[bool, ...]


def derive_slice(operations: Sequence[Operation], *, full: bool, sources: bool = False) -> BackwardSlice:
    """The slices of a kernel; `full` says that every wave starts with all lanes.

    With `sources` it is to be known from where loads to LDS load, too.
    """
    ways = derive_successors(operations)
    whole = _full_exec(operations, ways, full=full)
    needed, evaluated = _needed(operations, ways, whole, control=True, sources=sources)
    addresses, _ = _needed(operations, ways, whole, control=False)
    return BackwardSlice(
        evaluated=tuple(evaluated),
        needed=tuple(needed),
        for_addresses=tuple(addresses),
        successors=tuple(map(tuple, ways)),
        looping=tuple(_looping(ways)),
    )


def find_call_targets(operations: Sequence[Operation]) -> frozenset[int]:
    """Where a jump by register may go: behind calls, and to the beginnings of functions."""
    targets = set()
    for number, each in enumerate(operations):
        if (
            each.kind is OperationKind.CALL
            and each.instruction.opcode != "s_setpc_b64"
            and number + 1 < len(operations)
        ):
            targets.add(number + 1)
        if number and each.instruction.symbol != operations[number - 1].instruction.symbol:
            targets.add(number)
    return frozenset(targets)


def derive_successors(operations: Sequence[Operation]) -> list[list[int]]:
    """Where each operation may lead."""
    anywhere = (
        sorted(find_call_targets(operations)) if any(each.kind is OperationKind.CALL for each in operations) else []
    )
    ways: list[list[int]] = []
    last = len(operations) - 1
    for number, each in enumerate(operations):
        target, opcode = each.instruction.target, each.instruction.opcode
        if each.kind is OperationKind.CALL:
            ways.append([target] if opcode == "s_call_b64" and target is not None else list(anywhere))
        elif each.kind is OperationKind.END:
            ways.append([])
        elif each.kind is OperationKind.BRANCH and target is not None:
            ways.append([target] if opcode == "s_branch" or number == last else [target, number + 1])
        else:
            ways.append([number + 1] if number < last else [])
    return ways


def find_interacting(operations: Sequence[Operation], ways: Sequence[Sequence[int]], *, flat: bool) -> list[bool]:
    """Does a way lead from each operation to one that uses LDS, or to a barrier?"""
    into: list[list[int]] = [[] for _ in operations]
    for number, following in enumerate(ways):
        for each in following:
            into[each].append(number)
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


def _looping(ways: list[list[int]]) -> list[bool]:
    """Can control come back to each operation?  Those of one strongly connected component can (Tarjan, 1972)."""
    count = len(ways)
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
                lowest[number] = min(lowest[number], lowest[ways[number][place - 1]])
            while place < len(ways[number]):
                following = ways[number][place]
                place += 1
                if order[following] < 0:
                    work += [(number, place), (following, 0)]
                    break
                if held[following]:
                    lowest[number] = min(lowest[number], order[following])
            else:
                if lowest[number] == order[number]:
                    several = stack[-1] != number or number in ways[number]
                    each = -1
                    while each != number:
                        each = stack.pop()
                        held[each], found[each] = False, several
    return found


def _bits(operand: Operand) -> int:
    """The scalar registers of an operand."""
    return sum(1 << row for row in operand.rows) if operand.file is File.SCALAR else 0


def _full_exec(operations: Sequence[Operation], ways: list[list[int]], *, full: bool) -> list[bool]:
    """Is EXEC all ones before each operation, on every way to it?"""
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
            ones = _ones_behind(operations[number], now)
            following = ways[number]
            if not following:
                break
            work.extend((each, ones) for each in following[1:])
            number = following[0]
    return [each is not None and each & EXEC_BITS == EXEC_BITS for each in known]


def _ones_behind(operation: Operation, ones: int) -> int:
    """The scalar registers that are all ones behind an operation."""
    if not operation.writes & ~VECTORS:
        return ones
    after = ones & ~operation.writes
    name, operands = operation.name, operation.operands
    if not name.endswith(("_b64", "_b32")) or operation.kind is not OperationKind.VALUE or len(operands) < 2:
        return after

    def holds(operand: Operand) -> bool:
        rows = _bits(operand)
        return ones & rows == rows if rows else operand.file is File.LITERAL and operand.literal == -1

    was, target = ones & EXEC_BITS == EXEC_BITS, _bits(operands[0])
    if "_saveexec" in name:
        is_full = (
            (holds(operands[1]) or was)
            if name.startswith("s_or_")
            else holds(operands[1]) and was and name.startswith("s_and_")
        )
        return after | EXEC_BITS * is_full | target * was
    operator = name[:-4]
    if operator == "s_mov":
        gives = holds(operands[1])
    elif operator == "s_or":
        gives = holds(operands[1]) or holds(operands[2])
    else:
        gives = operator in {"s_and", "s_cselect"} and holds(operands[1]) and holds(operands[2])
    return after | target * gives


def _demands(operation: Operation, *, control: bool, sources: bool) -> int:
    """Registers whose values an operation needs for its own sake."""
    if sources and operation.to_lds:
        return operation.reads & ~EXEC_BITS
    if operation.address:  # of LDS
        return operation.address
    if control and operation.kind in {OperationKind.BRANCH, OperationKind.CALL, OperationKind.INDEX}:
        return operation.reads
    if control and operation.kind is OperationKind.VALUE and operation.writes & EXEC_BITS:
        return operation.reads & ~EXEC_BITS
    return 0


def _needed(
    operations: Sequence[Operation],
    ways: list[list[int]],
    whole: list[bool],
    *,
    control: bool,
    sources: bool = False,
) -> tuple[list[int], list[bool]]:
    count = len(operations)
    into: list[list[int]] = [[] for _ in operations]
    for number, following in enumerate(ways):
        for each in following:
            into[each].append(number)
    demands = [_demands(each, control=control, sources=sources) for each in operations]
    feeds = [_feeds(each) for each in operations]
    kills = [
        0
        if each.slots and each.verb == "store" and not whole[number]
        else each.writes
        if (whole[number] or not each.is_vector) and not each.indexed
        else each.writes & ~VECTORS
        for number, each in enumerate(operations)
    ]
    needed = [0] * count
    evaluated = [False] * count
    work, pending = list(range(count)), [True] * count
    while work:
        number = work.pop()
        pending[number] = False
        now = 0
        for each in ways[number]:
            now |= needed[each]
        if operations[number].writes & (now | EXEC_BITS * control):
            evaluated[number] = True
            now = now & ~kills[number] | feeds[number]
        now |= demands[number]
        if now != needed[number]:
            needed[number] = now
            for each in into[number]:
                if not pending[each]:
                    pending[each] = True
                    work.append(each)
    return needed, evaluated


def _feeds(operation: Operation) -> int:
    """What a result that is needed is made of; the results of loads and matrices are not followed, but for spills."""
    if operation.slots:
        return operation.reads & ~EXEC_BITS
    if operation.kind is OperationKind.SMEM:
        return operation.reads if operation.verb == "load" else 0
    if operation.kind is not OperationKind.VALUE or operation.name.startswith(_BLIND):
        return 0
    return operation.reads & ~EXEC_BITS | (M0_BIT & operation.reads)


Classes = tuple[int, ...]
"""For each wave the first one that it agrees with."""
RowState = int | Lanes | Classes
"""What a register holds: numbers, or who agrees on it."""
_EXEC_ROWS = (SCALAR + EXEC, SCALAR + EXEC + 1)
_OWN_WAYS = ("v_mfma", "v_smfmac", "s_getreg")  # not followed, or different in every wave


class Agreement:
    """Made when it is first asked."""

    def __init__(self, operations: Sequence[Operation], start: WaveSet, *, full: bool) -> None:
        self._operations, self._start, self._full = operations, start, full
        self._evaluator = Evaluator()
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
        met: dict[int, dict[int, RowState]] = {0: self._started()}
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

    def _started(self) -> dict[int, RowState]:
        held: dict[int, RowState] = {}
        for row, value in self._start.registers.items():
            if isinstance(value, Linear):
                held[row] = self._alike if value.base.spread == GROUP else self._alone
            elif not isinstance(value, Half):
                held[row] = value
        held |= _halves(self._start.exec.leaf)
        return held

    def _meets(self, met: dict[int, dict[int, RowState]], to: int, state: dict[int, RowState], needed: int) -> bool:
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

    def _joined(self, one: RowState, other: RowState) -> RowState:
        """The first one itself, if the other adds nothing."""
        if not isinstance(one, tuple) and not isinstance(other, tuple):
            a, b = np.broadcast_arrays(np.asarray(one), np.asarray(other))
            if np.array_equal(a, b):
                return one
        classes = self._refined(self._classes(one), self._classes(other))
        return one if isinstance(one, tuple) and classes == one else classes

    def _classes(self, held: RowState) -> Classes:
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

    def _on(self, state: dict[int, RowState], rows: int) -> Classes:
        """Who agrees on all of these registers."""
        return self._refined(self._alike, *(self._classes(state.get(row, self._alone)) for row in rows_of(rows)))

    def _step(self, operation: Operation, state: dict[int, RowState], *, evaluated: bool) -> None:
        kind, number = operation.kind, operation.number
        if kind in {OperationKind.BRANCH, OperationKind.CALL}:
            reads = operation.reads | EXEC_BITS * ("_exec" in operation.instruction.opcode)
            self._together = self._refined(self._together, self._on(state, reads))
        elif operation.to_lds and self._found is not None:
            classes = self._on(state, operation.reads)
            self._found[number] = self._refined(self._found.get(number, self._alike), classes)
        elif evaluated:
            state |= self._made(operation, state)

    def _made(self, operation: Operation, state: dict[int, RowState]) -> dict[int, RowState]:
        written = operation.writes | operation.data
        if operation.kind is OperationKind.VALUE and not operation.name.startswith(_OWN_WAYS):
            reads = operation.reads | EXEC_BITS * operation.is_vector
            known = self._computed(operation, state, reads)
            kept = written if operation.keeps_target or (operation.is_vector and not self._all_lanes(state)) else 0
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

    def _all_lanes(self, state: dict[int, RowState]) -> bool:
        """Is EXEC known to be full, so that nothing stays as it was?"""
        halves = [state.get(row, self._alone) for row in _EXEC_ROWS]
        return not any(isinstance(each, tuple) or bool(np.any(each != M32)) for each in halves)

    def _computed(self, operation: Operation, state: dict[int, RowState], reads: int) -> dict[int, RowState]:
        """The results that are numbers, if all that it reads is."""
        held = {row: state.get(row, self._alone) for row in rows_of(reads)}
        if any(isinstance(each, tuple) for each in held.values()):
            return {}
        waves = self._start.waves
        exec_ = [held.pop(row, 0) for row in _EXEC_ROWS]  # of which only halves that it writes count if it reads none
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


def _halves(leaf: Leaf | None) -> dict[int, Lanes]:
    """EXEC as two registers of numbers, if they are known."""
    if leaf is None:
        return {}
    numbers = np.array(leaf, np.uint64)[:, None]
    return {
        row: (numbers >> np.uint64(32 * half) & np.uint64(M32)).astype(np.int64) for half, row in enumerate(_EXEC_ROWS)
    }
