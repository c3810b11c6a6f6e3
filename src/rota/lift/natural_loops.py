"""Loops of machine code: takes a kernel's operations and where each leads, gives the loops to lift, or T304.

A loop is lifted if it is innermost and one chain of instructions, from its head around to its head: it may be left
anywhere.  Only a stretch without memory and matrix instructions, waits and barriers may be skipped in it, such as the
mask of an edge tile; it is left out, and counted.  Of several loops the one with the most matrix instructions is meant,
then the one with the most memory instructions.  Others with as many of both are candidates, too: waves may each have
their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rota.errors import Concern, Finding, ProgramError
from rota.prove.operation import Operation, OperationKind

MATRIX = ("v_mfma", "v_smfmac")
_MEMORY = frozenset({OperationKind.LDS, OperationKind.VMEM, OperationKind.EXCHANGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class NaturalLoop:
    """Its operations, in the order in which they are executed; the first is its head.

    `skipped` are how many are left out, of stretches over which a branch may go.
    """

    chain: tuple[Operation, ...]
    skipped: int = 0

    @property
    def head(self) -> int:
        """The number of the operation where it begins."""
        return self.chain[0].number


def find_loops(name: str, operations: Sequence[Operation], ways: Sequence[Sequence[int]]) -> tuple[NaturalLoop, ...]:
    """The loop that a kernel spends its time in, as far as instructions tell, and those that look like it."""
    bodies = _bodies(ways)
    inner = {
        head: body
        for head, body in bodies.items()
        if not any(other != head and other in body and bodies[other] < body for other in bodies)
    }
    if not inner:
        raise not_lifted(name, "it has no loop")
    counts = {head: _counts(operations, body) for head, body in inner.items()}
    most = max(counts.values())
    chosen = [head for head in sorted(inner) if counts[head] == most]
    if not any(most):
        raise not_lifted(name, "no loop of it uses memory or matrix instructions", operations[chosen[0]])
    return tuple(_chain(name, operations, ways, head, inner[head]) for head in chosen)


def not_lifted(name: str, why: str, operation: Operation | None = None) -> ProgramError:
    """The finding about a kernel whose loop can't be lifted."""
    concerns: tuple[Concern, ...] = () if operation is None else (operation.instruction.concern(),)
    return ProgramError(Finding(code="T304", message=f"{name} is not lifted: {why}", concerns=concerns))


def _bodies(ways: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """The operations of each loop by its head: what comes to a branch back without passing the head."""
    into: list[list[int]] = [[] for _ in ways]
    for number, following in enumerate(ways):
        for each in following:
            into[each].append(number)
    bodies: dict[int, set[int]] = {}
    for number, following in enumerate(ways):
        for head in following:
            if head > number:
                continue
            body = bodies.setdefault(head, {head})
            work = [number]
            while work:
                each = work.pop()
                if each not in body:
                    body.add(each)
                    work += into[each]
    return bodies


def _counts(operations: Sequence[Operation], body: set[int]) -> tuple[int, int]:
    matrix = sum(operations[each].name.startswith(MATRIX) for each in body)
    return matrix, sum(operations[each].kind in _MEMORY for each in body)


def _chain(
    name: str, operations: Sequence[Operation], ways: Sequence[Sequence[int]], head: int, body: set[int]
) -> NaturalLoop:
    chain, at, skipped = [operations[head]], head, 0
    while True:
        if operations[at].kind is OperationKind.CALL:
            raise not_lifted(name, "its loop calls a function", operations[at])
        following = {each for each in ways[at] if each in body}
        far = max(following)
        if len(following) > 1:
            if not _may_be_skipped(operations, at, following):
                raise not_lifted(name, "its loop has more than one way through", operations[at])
            skipped += far - at - 1
        at = far
        if at == head:
            return NaturalLoop(chain=tuple(chain), skipped=skipped)
        if len(chain) == len(body):
            raise not_lifted(name, "its loop has a loop inside", operations[at])
        chain.append(operations[at])


def _may_be_skipped(operations: Sequence[Operation], at: int, following: set[int]) -> bool:
    """Does a branch go forward over nothing but values and further such branches?"""
    far = max(following)
    return following == {at + 1, far} and all(
        each.kind is OperationKind.QUIET
        or (each.kind is OperationKind.VALUE and not each.name.startswith(MATRIX))
        or (each.kind is OperationKind.BRANCH and at < (each.instruction.target or 0) <= far)
        for each in operations[at + 1 : far]
    )
