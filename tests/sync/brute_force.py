"""Repairs by trying everything: takes a small loop, gives the cost of the cheapest insertions that the proof accepts.

Cost is (barriers added, waits added or strengthened, how many of these stand in the loop, strength lost), compared in
that order, as `rota.sync.plan` does.  Shares nothing with it but the proof, which is asked about every candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, combinations_with_replacement, product
from typing import NamedTuple

from rota import CompiledSchedule, FrameworkTag, OpDesc, Phase, ScheduleEntry, verify

Cost = tuple[int, int, int, int]
_WAITS = {"vm": OpDesc.wait_vm, "lgkm": OpDesc.wait_lgkm}
_LARGEST = {"vm": 62, "lgkm": 14}
_TAGS = {FrameworkTag.WAIT_VM: "vm", FrameworkTag.WAIT_LGKM: "lgkm"}


class Site(NamedTuple):
    """A place for a wait: a gap, or the wait that stands in front of it."""

    phase: Phase
    gap: int
    counter: str
    existing: int | None


def races(loop: CompiledSchedule) -> bool:
    """Does the proof find a race (whatever it says about values)?"""
    return any(finding.code.startswith("R") for finding in verify(loop).errors)


def cheapest(loop: CompiledSchedule, most_barriers: int = 3) -> Cost | None:
    """The least cost, or None if no number of barriers up to the limit helps."""
    gaps = [(phase, gap) for phase in Phase for gap in range(len(_entries(loop, phase)) + 1)]
    sites = list(_sites(loop))
    for barriers in range(most_barriers + 1):
        placements = [
            placed
            for placed in combinations_with_replacement(gaps, barriers)
            if not races(_changed(loop, placed, dict.fromkeys(sites, 0)))
        ]
        if placements:
            return _cheapest_waits(loop, placements, sites)
    return None


def _cheapest_waits(
    loop: CompiledSchedule, placements: Sequence[tuple[tuple[Phase, int], ...]], sites: Sequence[Site]
) -> Cost:
    for number in range(len(sites) + 1):
        working = [
            (placed, chosen)
            for placed in placements
            for chosen in combinations(sites, number)
            if not races(_changed(loop, placed, dict.fromkeys(chosen, 0)))
        ]
        if working:
            least = min(_in_loop(*pair) for pair in working)
            best = [pair for pair in working if _in_loop(*pair) == least]
            return len(best[0][0]), number, least, min(_least_loss(loop, placed, chosen) for placed, chosen in best)
    raise AssertionError("all waits at 0 were enough before")


def _in_loop(placed: Sequence[tuple[Phase, int]], chosen: Sequence[Site]) -> int:
    return sum(phase is Phase.KERNEL for phase, _ in placed) + sum(site.phase is Phase.KERNEL for site in chosen)


def _least_loss(loop: CompiledSchedule, placed: Sequence[tuple[Phase, int]], chosen: Sequence[Site]) -> int:
    """A load has four tokens and a fragment one, so only these counts make a difference."""
    most = [_LARGEST[site.counter] if site.existing is None else site.existing for site in chosen]
    steps = {"vm": range(0, 25, 4), "lgkm": range(6)}
    ranges = [
        sorted({limit, *(count for count in steps[site.counter] if count < limit)})
        for site, limit in zip(chosen, most, strict=True)
    ]
    return min(
        sum(limit - count for limit, count in zip(most, counts, strict=True))
        for counts in product(*ranges)
        if not races(_changed(loop, placed, dict(zip(chosen, counts, strict=True))))
    )


def _sites(loop: CompiledSchedule) -> Iterator[Site]:
    for phase in Phase:
        entries = _entries(loop, phase)
        for gap in range(len(entries) + 1):
            for counter in _WAITS:
                yield Site(phase, gap, counter, None)
            if gap < len(entries) and entries[gap].op.tag in _TAGS:
                op = entries[gap].op
                yield Site(phase, gap, _TAGS[FrameworkTag(op.tag)], op.wait_value)


def _entries(loop: CompiledSchedule, phase: Phase) -> tuple[ScheduleEntry, ...]:
    return {Phase.PROLOGUE: loop.prologue, Phase.KERNEL: loop.kernel, Phase.EPILOGUE: loop.epilogue}[phase]


def _changed(loop: CompiledSchedule, barriers: Sequence[tuple[Phase, int]], waits: dict[Site, int]) -> CompiledSchedule:
    """The loop with new waits, then new barriers in front of what stands at each gap."""
    phases: dict[Phase, tuple[ScheduleEntry, ...]] = {}
    for phase in Phase:
        ops: list[OpDesc] = []
        entries = _entries(loop, phase)
        for gap in range(len(entries) + 1):
            ops += [
                _WAITS[s.counter](n)
                for s, n in waits.items()
                if s.existing is None and (s.phase, s.gap) == (phase, gap)
            ]
            ops += [OpDesc.barrier()] * list(barriers).count((phase, gap))
            if gap < len(entries):
                stronger = [n for s, n in waits.items() if s.existing is not None and (s.phase, s.gap) == (phase, gap)]
                op = entries[gap].op
                ops.append(op.but(wait_value=stronger[0]) if stronger else op)
        phases[phase] = tuple(ScheduleEntry(op=op, time_slot=slot, phase=phase) for slot, op in enumerate(ops))
    return replace(
        loop,
        prologue=phases[Phase.PROLOGUE],
        kernel=phases[Phase.KERNEL],
        epilogue=phases[Phase.EPILOGUE],
        warp_stagger_index=len(phases[Phase.PROLOGUE]) + 1,
    )
