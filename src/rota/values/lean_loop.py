"""A loop without needless waits: takes a synchronised loop, gives it with the waits and barriers that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rota.program.entry import Entry, wait_effect, wait_op
from rota.program.lowered import numbered
from rota.program.phase import Phase
from rota.sync.needless import Indispensable, derive_needed
from rota.sync.repair import Repair, renumbered
from rota.values.compiled_loop import CompiledLoop


def without_needless(written: CompiledLoop) -> CompiledLoop:
    """The same loop if it needs all of them, as strong as they are; else not proved, what is left with new reasons."""
    program = written.lowered
    needed = derive_needed(program)
    before = {phase: tuple(entry for entry in program.phase(phase) if entry.listed) for phase in Phase}
    kept = {phase: tuple(_kept(before[phase], needed)) for phase in Phase}
    if kept == before:
        return written
    said = {
        (entry.phase, entry.time_slot): why.reason
        for phase in Phase
        for entry in before[phase]
        if (why := needed.get(id(entry))) is not None
    }
    repairs = []
    for each in written.repairs:
        now = next((entry.op for entry in kept[each.phase] if entry.time_slot == each.slot), None)
        if now is not None:
            reason = str(said.get((each.phase, each.slot), each.reason))
            repairs.append(_in_new_places(replace(each, op=now, reason=reason), kept))
    return replace(
        written,
        prologue=numbered(kept[Phase.PROLOGUE]),
        kernel=numbered(kept[Phase.KERNEL]),
        epilogue=numbered(kept[Phase.EPILOGUE]),
        repairs=tuple(repairs),
    )


def _kept(entries: Iterable[Entry], needed: Mapping[int, Indispensable | None]) -> Iterator[Entry]:
    """Entries where they stood, without what is needless, waits as weak as they may be."""
    for entry in entries:
        why, counter = needed.get(id(entry)), entry.effect.counter
        if why is not None and counter is not None and why.leaves != entry.effect.wait_value:
            yield replace(entry, op=wait_op(counter, why.leaves), effect=wait_effect(counter, why.leaves))
        elif why is not None or id(entry) not in needed:
            yield entry


def _in_new_places(each: Repair, kept: Mapping[Phase, tuple[Entry, ...]]) -> Repair:
    for phase, entries in kept.items():
        each = renumbered(each, phase, {entry.time_slot: place for place, entry in enumerate(entries)})
    return each
