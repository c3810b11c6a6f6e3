"""A loop by values, derived again: takes a schedule that was read, gives it, or an error where a part differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rota.emit.document.derived_again import DerivedAgain, Waits
from rota.emit.document.disagreement import demand, derived_again, disagreement
from rota.emit.document.interval_claim import with_interval_as_claimed
from rota.program.effects import Effect
from rota.program.entry import Entry, Op, barrier_ops, wait_effect, wait_op
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopSpec
from rota.program.machine import Machine
from rota.program.phase import Phase
from rota.values.compiled_loop import CompiledLoop
from rota.values.unroll import Placement, derive_loop_phases


class ValuesAgain(DerivedAgain[CompiledLoop]):
    """Reads loops by values."""

    result = CompiledLoop

    def with_own_entries(self, schedule: CompiledLoop) -> CompiledLoop:
        """The schedule with the entries that loop and placement give; their order within a phase is free.

        Waits and barriers say all themselves.
        """
        loop, placement, tiles = schedule.loop, schedule.placement, schedule.trip_tiles
        _check_copies(loop, placement)
        _check_sizes(schedule, loop, placement, tiles)
        with derived_again("loop"):
            due = derive_loop_phases(loop, placement, schedule.machine, tiles[1] - placement.stages + 1)
        return replace(
            schedule,
            prologue=tuple(_matched(Phase.PROLOGUE, schedule.prologue, due.prologue, schedule.machine)),
            kernel=tuple(_matched(Phase.KERNEL, schedule.kernel, due.kernel, schedule.machine)),
            epilogue=tuple(_matched(Phase.EPILOGUE, schedule.epilogue, due.epilogue, schedule.machine)),
        )

    def waits(self, schedule: CompiledLoop, entry: Entry) -> Waits | None:
        """What an entry waits for, if it is a wait."""
        effect = entry.effect
        waits = effect.kind is OpKind.WAIT and effect.counter is not None
        return Waits(effect.counter or "", effect.wait_value) if waits else None

    def check_parts(self, schedule: CompiledLoop) -> None:
        """The size of its tiles, and where the second group falls back."""
        demand("lds_bytes", schedule.lds_bytes, schedule.loop.lds_bytes(dict(schedule.placement.copies)))
        demand("compiler_tracks_registers", schedule.compiler_tracks_registers, found=False)
        last = len(schedule.prologue)
        if not schedule.staggered:
            demand("stagger_index", schedule.stagger_index, last)
        elif not 0 <= schedule.stagger_index <= last:
            raise disagreement("stagger_index", f"{schedule.stagger_index} is no place in a prologue of {last} entries")

    def as_claimed(self, schedule: CompiledLoop) -> CompiledLoop:
        """Of what is said about the interval, what a bound shows again."""
        return with_interval_as_claimed(schedule)


def _check_copies(loop: LoopSpec, placement: Placement) -> None:
    own = {value.name for value in loop.values if value.home in (Home.LDS, Home.REGISTERS) and not value.into}
    names = [name for name, _ in placement.copies]
    for number, (name, count) in enumerate(placement.copies):
        where = f"placement.copies[{number}]"
        if name not in own:
            raise disagreement(where, f"{name!r:.60} is no value of the loop that has copies of its own")
        if names.count(name) > 1 or count < 1:
            raise disagreement(where, f"{count} copies of {name}, which stands there {names.count(name)} times")


def _check_sizes(schedule: CompiledLoop, loop: LoopSpec, placement: Placement, tiles: tuple[int, int]) -> None:
    """Before anything is unrolled, so that nothing is that isn't in the document."""
    if len(placement.starts) != len(loop.ops) or min(placement.starts, default=0) < 0:
        raise disagreement("placement.starts", f"expected {len(loop.ops)} slots from 0 on, one for each op")
    inside, prologue, epilogue = (
        sum(not entry.op.is_framework for entry in entries)
        for entries in (schedule.kernel, schedule.prologue, schedule.epilogue)
    )
    demand("trip_tiles[0]", tiles[0], placement.unroll)
    if placement.stages > tiles[1] + 1:
        raise disagreement(
            "trip_tiles[1]",
            f"{placement.stages} stages leave {placement.stages - 1} K-tiles or more outside the loop, not {tiles[1]}",
        )
    expected = tiles[0] * len(loop.ops), tiles[1] * len(loop.ops)
    demand("kernel", inside, expected[0], f"has {inside} data entries; the loop gives {expected[0]}")
    outside = prologue + epilogue
    demand(
        "epilogue", outside, expected[1], f"has {outside} data entries with the prologue; the loop gives {expected[1]}"
    )


def _matched(phase: Phase, said: Sequence[Entry], due: Sequence[Entry], machine: Machine) -> Iterator[Entry]:
    """The entries that are due, in the order that is said, with the waits and barriers between."""
    missing: dict[Entry, list[Entry]] = {}
    for entry in due:
        missing.setdefault(replace(entry, time_slot=0), []).append(entry)
    for slot, entry in enumerate(said):
        where = f"{phase.value.lower()}[{slot}]"
        if entry.op.is_framework:
            yield _ours(where, entry, machine)
            continue
        left = missing.get(replace(entry, time_slot=0))
        if not left:
            raise disagreement(where, f"{entry.op} is none of the data entries that loop and placement give here")
        yield replace(left.pop(0), time_slot=slot)


def _ours(where: str, said: Entry, machine: Machine) -> Entry:
    """A wait or a barrier is what its effect says; a loop by values has no other ops of rota's own."""
    for name, nothing in (("is_prefetch", False), ("roles", None), ("listed", True)):
        demand(f"{where}.{name}", getattr(said, name), nothing)
    op, effect = _due(where, said, machine)
    demand(f"{where}.op", said.op, op, f"{said.op!s:.60} is not how {op} is written")
    demand(f"{where}.effect", said.effect, effect)
    return replace(said, op=op, effect=effect)


def _due(where: str, said: Entry, machine: Machine) -> tuple[Op, Effect]:
    if said.op.kind is OpKind.WAIT:
        counter, count = said.effect.counter, said.effect.wait_value
        if counter is None or counter not in [each.name for each in machine.counters]:
            raise disagreement(f"{where}.effect.counter", f"{machine.name} has no counter {counter!r:.60}")
        if count < 0:
            raise disagreement(f"{where}.effect.wait_value", f"{count} tokens can't be left")
        return wait_op(counter, count), wait_effect(counter, count)
    known = {op: (op, effect) for op, effect in barrier_ops(split=machine.split_barrier)}
    if said.op not in known:
        raise disagreement(f"{where}.op", f"{said.op!s:.60} is no wait and no barrier of {machine.name}")
    return known[said.op]
