"""Control flow, and the backward slice that a proof evaluates.

A proof evaluates only operations on which LDS addresses, branches or EXEC depend (program slicing: Weiser, 1981).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from rota.isa.opcodes import IsaFlow, IsaUnit, Trait
from rota.isa.wave.operand import File, Operand
from rota.prove.operation import EXEC_BITS, M0_BIT, VECTORS, Operation, OperationKind


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


def find_reached(successors: Sequence[Sequence[int]], starts: Iterable[int]) -> set[int]:
    """What can be executed after some operations; they themselves only if it comes back to them."""
    found: set[int] = set()
    work = list(starts)
    while work:
        for each in successors[work.pop()]:
            if each not in found:
                found.add(each)
                work.append(each)
    return found


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


@dataclass(frozen=True, slots=True)
class FlowBlock:
    """Operations without a branch between them."""

    first: int
    last: int
    successors: tuple[int, ...]
    predecessors: tuple[int, ...]


def split_blocks(successors: Sequence[Sequence[int]]) -> tuple[FlowBlock, ...]:
    """The stretches of operations without a branch, in their order."""
    count = len(successors)
    leaders = {0}
    for at, following in enumerate(successors):
        if list(following) != [at + 1]:
            leaders.update(following)
            if at + 1 < count:
                leaders.add(at + 1)
    starts = sorted(leaders)
    place_of = {first: place for place, first in enumerate(starts)}
    ends = [*(each - 1 for each in starts[1:]), count - 1]
    into: list[list[int]] = [[] for _ in starts]
    for place, end in enumerate(ends):
        for each in dict.fromkeys(successors[end]):
            into[place_of[each]].append(place)
    return tuple(
        FlowBlock(first, end, tuple(dict.fromkeys(place_of[each] for each in successors[end])), tuple(into[place]))
        for place, (first, end) in enumerate(zip(starts, ends, strict=True))
    )


def forget_polls(operations: Sequence[Operation], needed: Sequence[int]) -> list[Operation]:
    """The operations; a loop whose results are needed after it isn't one that only polls a barrier in LDS."""
    found = list(operations)
    for number, each in enumerate(operations):
        if each.polls and not each.tensor:
            first, last = each.polls
            written = reduce(or_, (inside.writes | inside.data for inside in operations[first : last + 1]))
            if last + 1 < len(operations) and written & needed[last + 1]:
                found[number] = replace(each, polls=())
    return found


_MEETING = frozenset({OperationKind.LDS, OperationKind.BARRIER, OperationKind.ARRIVAL})


def find_interacting(operations: Sequence[Operation], successors: Sequence[Sequence[int]], *, flat: bool) -> list[bool]:
    """For each operation, whether an LDS access or a barrier can be reached from it."""
    into = _invert(successors)
    found = [each.kind in _MEETING or bool(each.copies) or (flat and each.flat) for each in operations]
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


def find_meeting_points(successors: Sequence[Sequence[int]]) -> list[int]:
    """For each operation, the next one that all ways from it lead to; as many as there are if there is none.

    Immediate postdominators, by the method of Cooper, Harvey and Kennedy (2001).
    """
    end = len(successors)
    into = [*_invert(successors), [at for at, following in enumerate(successors) if not following]]
    order, seen, work = [], {end}, [(end, iter(into[end]))]
    while work:
        at, rest = work[-1]
        following = next((each for each in rest if each not in seen), None)
        if following is None:
            order.append(at)
            work.pop()
        else:
            seen.add(following)
            work.append((following, iter(into[following])))
    place = {at: number for number, at in enumerate(order)}
    found = {end: end}
    changed = True
    while changed:
        changed = False
        for at in reversed(order[:-1]):
            ways = [each for each in (successors[at] or [end]) if each in found]
            meets = ways[0]
            for each in ways[1:]:
                way = each
                while meets != way:
                    if place[meets] < place[way]:
                        meets = found[meets]
                    else:
                        way = found[way]
            changed |= found.get(at) != meets
            found[at] = meets
    return [found.get(at, end) for at in range(end)]


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
    if sources and operation.copies == "dma":
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
    widens = [bool(each.writes & EXEC_BITS) and not narrows_exec(each) for each in operations]
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


def narrows_exec(operation: Operation) -> bool:
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
    if operation.kind is OperationKind.EXCHANGE:
        return operation.reads & ~EXEC_BITS if operation.operands else 0
    if operation.kind is not OperationKind.VALUE or operation.spec.unit is IsaUnit.MATRIX:  # never evaluated
        return 0
    return operation.reads & ~EXEC_BITS | (M0_BIT & operation.reads)
