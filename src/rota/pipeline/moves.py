"""What is not issued where the body has it: takes the order, the blocks and the kernel, gives a note for each cause.

A block issues its fragments and loads in two groups, `max_globals` takes loads out of over-full blocks, and an author's
hooks may list anything.  Each may do so; a reader of the body must be told.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from rota.compiled.proved import MOVED
from rota.errors import Concern, Finding, Severity, several
from rota.order.acyclic.problem import Ordering
from rota.pipeline.op import OpDesc
from rota.pipeline.pipeline_program import PipelineProgram
from rota.pipeline.schedule_entry import ScheduleEntry
from rota.program.kinds import OpRole


class _Move(NamedTuple):
    """An op of the body that has passed others, and from which block to which the plan took it."""

    place: int
    passed: str
    block: int
    planned: int


def count_moved(findings: Iterable[Finding]) -> int:
    """How many ops of the body are not issued where their order says."""
    return sum(len(finding.concerns) for finding in findings if finding.code in MOVED)


def moved_ops(
    body: Sequence[OpDesc], ordering: Ordering, program: PipelineProgram, kernel: Sequence[ScheduleEntry]
) -> Iterator[Finding]:
    """Notes about the ops that blocks, `max_globals` and hooks move from their place in the order."""
    planned = [(number, op) for number, block in enumerate(program.blocks) for op in block.data_ops]
    by_hand = bool(program.explicit_blocks) or [entry.op for entry in kernel] != [
        op for index in range(len(program.blocks)) for op in program.block_ops(index)
    ]
    issued = [entry.op for entry in kernel if not entry.op.is_framework] if by_hand else [op for _, op in planned]
    order = [index for index in ordering.order if not (by_hand and body[index].is_framework)]
    if all(body[index] is op for index, op in zip(order, issued, strict=False)):  # far cheaper than equality
        return
    after = _indices(body, order, issued)
    computes = accumulate((body[index].role is OpRole.COMPUTE for index in ordering.order), initial=0)
    block_of = dict(zip(ordering.order, computes, strict=False))
    blocks = dict(zip(_indices(body, ordering.order, [op for _, op in planned]), (b for b, _ in planned), strict=False))
    last = len(program.blocks) - 1
    verb = "declared" if ordering.certificate.by == "identity" else f"put by {ordering.certificate.by}"
    moves = [
        _Move(index, passed, min(block_of[index], last), blocks.get(index, min(block_of[index], last)))
        for index, passed in _passed(body, order, after, verb)
    ]
    capped = [move for move in moves if move.block != move.planned]
    rest = [move for move in moves if move.block == move.planned]
    if capped:
        yield _capped(body, capped, program.config.block_sizing.max_globals, verb)
    if rest:
        yield _by_hand(body, rest) if by_hand else _by_template(body, rest, program)


def moved_by_hand(body: Sequence[OpDesc], kernel: Sequence[ScheduleEntry]) -> Iterator[Finding]:
    """The same for a single buffer, whose kernel is its body unless a hook changes it."""
    issued = [entry.op for entry in kernel if not entry.op.is_framework]
    order = [index for index, op in enumerate(body) if not op.is_framework]
    after = _indices(body, order, issued)
    if after != order:
        yield _by_hand(body, [_Move(index, passed, 0, 0) for index, passed in _passed(body, order, after, "declared")])


def _capped(body: Sequence[OpDesc], moves: Sequence[_Move], limit: int, verb: str) -> Finding:
    return _note(
        "P114",
        f"max_globals={limit} moves {several(len(moves), 'load')} to other blocks",
        [body[m.place].concern(m.place, f"{verb} in block {m.block}, issued in block {m.planned}") for m in moves],
        len(body),
        "max_globals=0 leaves every load in its block",
    )


def _by_template(body: Sequence[OpDesc], moves: Sequence[_Move], program: PipelineProgram) -> Finding:
    first, second = ("loads", "fragments") if program.blocks[0].global_before_frag else ("fragments", "loads")
    return _note(
        "P113",
        f"a block issues its {first} before its {second}: {several(len(moves), 'op')} moved",
        [body[move.place].concern(move.place, move.passed) for move in moves],
        len(body),
        f"in each block, declare the {first} in front of the {second}: then the body shows what is issued",
        "build_explicit_blocks() lists whole blocks verbatim",
    )


def _by_hand(body: Sequence[OpDesc], moves: Sequence[_Move]) -> Finding:
    return _note(
        "P115",
        f"build_explicit_blocks() or transform_kernel() moves {several(len(moves), 'op')}",
        [body[move.place].concern(move.place, move.passed) for move in moves],
        len(body),
    )


def _note(code: str, message: str, concerns: Sequence[Concern], ops: int, *fixes: str) -> Finding:
    return Finding(
        code=code,
        severity=Severity.NOTE,
        message=message,
        concerns=tuple(concerns),
        evidence=(("moved", len(concerns)), ("ops in the body", ops)),
        fixes=fixes,
    )


def _indices(body: Sequence[OpDesc], order: Sequence[int], issued: Iterable[OpDesc]) -> list[int]:
    """The place in the body of every issued op; of equal ops the first issued is the first in order."""
    places: defaultdict[OpDesc, deque[int]] = defaultdict(deque)
    for index in order:
        places[body[index]].append(index)
    return [places[op].popleft() for op in issued if places[op]]


def _passed(body: Sequence[OpDesc], order: Sequence[int], after: Sequence[int], verb: str) -> Iterator[tuple[int, str]]:
    """The ops that have moved, in body order, each with what it stood in front of or behind.

    Loads are what rota moves, so as many of the other ops as possible count as those that stayed.
    """
    rank = {index: place for place, index in enumerate(order)}
    loads = {index for index in after if body[index].role is OpRole.GLOBAL_LOAD}
    stayed = _in_order([index for index in after if index not in loads], rank)
    ahead, behind = _counts_ahead(order, stayed), _counts_ahead(after, stayed)
    still = [index for index in after if index in stayed or (index in loads and ahead[index] == behind[index])]
    stayed = _in_order(still, rank)
    ahead, behind = _counts_ahead(order, stayed), _counts_ahead(after, stayed)
    kept = [index for index in order if index in stayed]
    for index in sorted(set(after) - stayed):
        was, now = ahead[index], behind[index]
        if now > was:
            yield index, f"{verb} in front of {body[kept[now - 1]]} (#{kept[now - 1]}), issued behind it"
        else:
            yield index, f"{verb} behind {body[kept[now]]} (#{kept[now]}), issued in front of it"


def _counts_ahead(sequence: Sequence[int], stayed: frozenset[int]) -> dict[int, int]:
    counts = accumulate((index in stayed for index in sequence), initial=0)
    return dict(zip(sequence, counts, strict=False))


def _in_order(sequence: Sequence[int], rank: dict[int, int]) -> frozenset[int]:
    """A longest part of the sequence whose ranks rise (patience sorting)."""
    tails: list[int] = []
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for index in sequence:
        at = bisect_left(tails, rank[index])
        before[index] = ends[at - 1] if at else None
        tails[at : at + 1], ends[at : at + 1] = [rank[index]], [index]
    kept: list[int] = []
    link = ends[-1] if ends else None
    while link is not None:
        kept.append(link)
        link = before[link]
    return frozenset(kept)
