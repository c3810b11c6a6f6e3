"""What has to be evaluated: takes a kernel's operations, gives those that feed LDS addresses, M0, EXEC and branches.

Two slices are made: of all of these, and of addresses alone.  A vector write leaves the lanes that EXEC leaves out as
they were, so it only ends a register's life where EXEC is full on every path.  A load ends it always: what it leaves in
any lane is taken for unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rota.isa.wave.operand import File, Operand
from rota.prove.operation import EXEC_BITS, M0_BIT, VECTORS, Operation, OperationKind

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
    ways = derive_ways(operations)
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


def call_targets(operations: Sequence[Operation]) -> frozenset[int]:
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


def derive_ways(operations: Sequence[Operation]) -> list[list[int]]:
    """Where each operation may lead."""
    anywhere = sorted(call_targets(operations)) if any(each.kind is OperationKind.CALL for each in operations) else []
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


def meeting(operations: Sequence[Operation], ways: Sequence[Sequence[int]], *, flat: bool) -> list[bool]:
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
        if (whole[number] or not each.vector) and not each.indexed
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
