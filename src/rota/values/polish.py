"""Polish: takes a synchronised loop, gives it with entries moved between matrix instructions, if it is faster so.

A search for starts gives a turn to every op of the loop.  Waits, barriers, the loop's edge and what sets up a load take
turns, too, and stand where they are needed; so some gaps between two matrix instructions are crowded while others are
empty.  Other orders are sought by a quick model (`order_search`); the cycle model decides which is faster, and of those
that are as fast, which is faster when loads and reads are late.  No entry passes another that it must stay behind
(`sync.passing`), and the result is proved like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rota.cycles.instructions import encode, in_order
from rota.cycles.order_pace import OrderPace, in_lockstep
from rota.cycles.paced_loop import paced_loop
from rota.cycles.parameters import nominal, unlucky
from rota.cycles.predict import clocks_of
from rota.errors import RotaError
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.phase import Phase
from rota.sync.passing import derive_must_follow
from rota.sync.repair import renumbered
from rota.targets.device import device_of
from rota.values.compiled_loop import CompiledLoop
from rota.values.order_search import OrderSearch

_ABOUT_THE_REPAIR = "W102"  # what a proof finds besides, that of the new order finds again
_JUDGED = 2  # orders, by the cycle model


def faster_order(written: CompiledLoop) -> tuple[int, ...] | None:
    """An order of the kernel's entries in which the loop is faster, not proved; None if none was found."""
    program = written.lowered
    try:
        device = device_of(program.machine)
        parameters, slow = nominal(device), unlucky(device)
        code = encode(program, parameters)
    except RotaError:  # the cycle model takes no such program, or has no figures of the device
        return None
    if written.staggered or not in_lockstep(code) or not code.load.mma_clocks:
        return None
    late = encode(program, slow)
    found = _found(written, (OrderPace(paced_loop(code, parameters)), OrderPace(paced_loop(late, slow))))
    tried = [range(len(program.kernel)), *found]
    clocks = [clocks_of(in_order(code, order), parameters) for order in tried]
    fastest = [number for number, each in enumerate(clocks) if each == min(clocks)]
    if len(fastest) > 1:
        fastest.sort(key=lambda number: clocks_of(in_order(late, tried[number]), slow))
    return found[fastest[0] - 1] if fastest[0] else None


def _found(written: CompiledLoop, waves: tuple[OrderPace, OrderPace]) -> list[tuple[int, ...]]:
    """Orders by the quick model; the same in all periods of the unrolled kernel if these are alike."""
    kernel = written.lowered.kernel
    unroll = written.placement.unroll
    periods = next(count for count in range(unroll, 0, -1) if unroll % count == 0 and _alike(kernel, count))
    length = len(kernel) // periods
    behind = [set[int]() for _ in range(length)]
    for later, those in enumerate(derive_must_follow(written.lowered)):
        behind[later % length] |= {each % length for each in those if each // length == later // length}
    fixed = [entry.effect.kind is OpKind.MMA for entry in kernel[:length]]
    return OrderSearch(*waves, behind, fixed, periods).run(_JUDGED)


def reordered(written: CompiledLoop, order: Sequence[int]) -> CompiledLoop:
    """The loop with the entries of its kernel in another order; its repairs keep to their entries."""
    places = {number: place for place, number in enumerate(order)}
    moved = replace(
        written,
        kernel=tuple(replace(written.kernel[number], time_slot=place) for place, number in enumerate(order)),
        certificate=None,
        repairs=(),
        findings=tuple(each for each in written.findings if each.code == _ABOUT_THE_REPAIR),
    )
    repairs = tuple(renumbered(each, Phase.KERNEL, places) for each in written.repairs)
    return replace(moved, repairs=tuple(sorted(repairs, key=lambda each: (list(Phase).index(each.phase), each.slot))))


def _alike(kernel: Sequence[Entry], periods: int) -> bool:
    """Do all periods have the same entries, but for the copies and counts?"""
    length = len(kernel) // periods
    said = [entry.effect.counter if entry.effect.kind is OpKind.WAIT else entry.op.name for entry in kernel]
    return len(kernel) == length * periods and said == said[:length] * periods
