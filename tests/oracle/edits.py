"""Edits of a schedule: takes a compiled one and a random generator, gives it with a few entries changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from rota import CompiledSchedule, OpDesc, Phase, PipelineConfig, ScheduleEntry
from rota.declare.effects import Effect, Space, Version, effect_of
from rota.declare.vocabulary import FrameworkTag, KOffsetKind

Lists = dict[Phase, list[ScheduleEntry]]
_WAITS = {FrameworkTag.WAIT_VM: OpDesc.wait_vm, FrameworkTag.WAIT_LGKM: OpDesc.wait_lgkm}


def _is_sync(entry: ScheduleEntry) -> bool:
    return entry.op.is_framework


def _is_wait(entry: ScheduleEntry) -> bool:
    return entry.op.is_framework and entry.op.tag in _WAITS


def _is_barrier(entry: ScheduleEntry) -> bool:
    return entry.op.is_framework and entry.op.tag == FrameworkTag.BARRIER


def _is_fetch(entry: ScheduleEntry) -> bool:
    return entry.effect is not None and not entry.effect.wants and bool(entry.effect.makes)


def _any(entry: ScheduleEntry) -> bool:
    return True


def _pick(random: Random, lists: Lists, wanted: Callable[[ScheduleEntry], bool]) -> tuple[Phase, int] | None:
    found = [(phase, slot) for phase, each in lists.items() for slot, entry in enumerate(each) if wanted(entry)]
    return random.choice(found) if found else None


def _deleting(wanted: Callable[[ScheduleEntry], bool]) -> Callable[[Random, Lists], str]:
    def delete(random: Random, lists: Lists) -> str:
        at = _pick(random, lists, wanted)
        return f"deleted {at[0].value} {lists[at[0]].pop(at[1])}" if at else ""

    return delete


def exchange(random: Random, lists: Lists) -> str:
    """Two neighbours."""
    at = _pick(random, lists, _any)
    if at is None or at[1] + 1 >= len(lists[at[0]]):
        return ""
    phase, slot = at
    each = lists[phase]
    each[slot], each[slot + 1] = each[slot + 1], each[slot]
    return f"exchanged {phase.value} {each[slot]} and {each[slot + 1]}"


def count(random: Random, lists: Lists) -> str:
    """A wait weakened or strengthened."""
    at = _pick(random, lists, _is_wait)
    if at is None:
        return ""
    phase, slot = at
    entry = lists[phase][slot]
    changed = random.choice((entry.op.wait_value + 1, entry.op.wait_value + 1, entry.op.wait_value + 2, 0, 15, 63))
    lists[phase][slot] = replace(entry, op=_WAITS[FrameworkTag(entry.op.tag)](changed))
    return f"{phase.value} {entry} became {changed}"


def _moving(wanted: Callable[[ScheduleEntry], bool]) -> Callable[[Random, Lists], str]:
    def move(random: Random, lists: Lists) -> str:
        at = _pick(random, lists, wanted)
        if at is None:
            return ""
        phase, slot = at
        entry = lists[phase].pop(slot)
        to = max(0, min(len(lists[phase]), slot + random.choice((-3, -2, -1, 1, 2, 3))))
        lists[phase].insert(to, entry)
        return f"moved {phase.value} {entry} to {to}"

    return move


def elsewhere(random: Random, lists: Lists) -> str:
    """An entry in another phase."""
    at = _pick(random, lists, _any)
    if at is None:
        return ""
    phase = random.choice([phase for phase in lists if phase is not at[0]])
    entry = replace(lists[at[0]].pop(at[1]), phase=phase)
    to = random.randint(0, len(lists[phase]))
    lists[phase].insert(to, entry)
    return f"moved {at[0].value} {entry} to {phase.value} {to}"


def drop_everywhere(random: Random, lists: Lists) -> str:
    """One op of all phases: one accumulator, one load, one fragment."""
    at = _pick(random, lists, lambda entry: not _is_sync(entry))
    if at is None:
        return ""
    op = lists[at[0]][at[1]].op
    key = (op.tag, op.subtile, op.channel)
    by_stages = lists[at[0]][at[1]].effect is None
    for each in lists.values():
        each[:] = [
            entry
            for entry in each
            if (entry.op.tag, entry.op.subtile, entry.op.channel) != key or (by_stages and entry.op.stage != op.stage)
        ]
    return f"dropped {op} everywhere"


def duplicate(random: Random, lists: Lists) -> str:
    """An entry twice."""
    at = _pick(random, lists, _any)
    if at is None:
        return ""
    phase, slot = at
    lists[phase].insert(slot + random.choice((0, 1, 1)), lists[phase][slot])
    return f"{phase.value} {lists[phase][slot]} twice"


def add_sync(random: Random, lists: Lists) -> str:
    """A barrier or wait that wasn't there."""
    phase = random.choice(list(lists))
    slot = random.randint(0, len(lists[phase]))
    left = random.choice((0, 1))
    op = random.choice((OpDesc.barrier(), OpDesc.wait_vm(left), OpDesc.wait_lgkm(left)))
    lists[phase].insert(slot, ScheduleEntry(op=op, time_slot=slot, phase=phase))
    return f"added {op} at {phase.value} {slot}"


def other_buffer(random: Random, lists: Lists) -> str:
    """Another stage for an op, or another copy of a value."""
    at = _pick(random, lists, lambda entry: not _is_sync(entry))
    if at is None:
        return ""
    phase, slot = at
    entry = lists[phase][slot]
    if entry.effect is None:
        lists[phase][slot] = replace(entry, op=entry.op.but(stage=1 - min(entry.op.stage, 1)))
    else:
        tiles = [place for place in (*entry.effect.reads, *entry.effect.writes) if place.space is not Space.ACCUMULATOR]
        if not tiles:
            return ""
        chosen = random.choice(tiles)
        lists[phase][slot] = replace(entry, effect=_elsewhere(entry.effect, chosen.channel, chosen.stage))
    return f"{phase.value} {entry} in another buffer"


def other_iteration(random: Random, lists: Lists) -> str:
    """A load of the tile before or after."""
    at = _pick(random, lists, _is_fetch)
    if at is None:
        return ""
    phase, slot = at
    entry = lists[phase][slot]
    effect = entry.effect
    assert effect is not None
    assert effect.instance is not None
    by = random.choice((-1, 1))
    makes = tuple((place, Version(version.name, version.iteration + by)) for place, version in effect.makes)
    instance = Version(effect.instance.name, effect.instance.iteration + by)
    lists[phase][slot] = replace(entry, effect=replace(effect, makes=makes, instance=instance))
    return f"{phase.value} {entry} of another iteration"


def other_order(random: Random, lists: Lists) -> str:
    """Two iterations of one op exchanged."""
    at = _pick(random, lists, lambda entry: not _is_sync(entry))
    if at is None:
        return ""
    phase, slot = at
    each = lists[phase]
    same = [other for other, entry in enumerate(each) if entry.op.label == each[slot].op.label and entry.op.label]
    other = random.choice(same or [slot])
    each[slot], each[other] = each[other], each[slot]
    return f"exchanged {phase.value} {each[slot]} and {each[other]}" if other != slot else ""


def other_field(random: Random, lists: Lists) -> str:
    """By stages: another tile, channel, cost or K offset."""
    at = _pick(random, lists, lambda entry: not _is_sync(entry) and entry.effect is None)
    if at is None:
        return ""
    phase, slot = at
    entry = lists[phase][slot]
    changes: tuple[dict[str, object], ...] = (
        {"subtile": 1 - min(entry.op.subtile, 1)},
        {"channel": 1 - max(min(entry.op.channel, 1), 0)},
        {"vm_cost": random.randint(0, 5), "lgkm_cost": random.randint(0, 3)},
        {"k_offset": random.choice(tuple(KOffsetKind))},
    )
    change = random.choice(changes)
    lists[phase][slot] = replace(entry, op=entry.op.but(**change))
    return f"{phase.value} {entry} with {change}"


def believed(random: Random, lists: Lists) -> str:
    """An entry that claims to be the wait or barrier that it no longer is."""
    at = _pick(random, lists, _is_wait if random.random() < 0.5 else _is_barrier)
    if at is None:
        return ""
    phase, slot = at
    entry = lists[phase][slot]
    claimed = effect_of(entry.op, PipelineConfig())
    lists[phase][slot] = replace(entry, op=OpDesc.schedule_barrier(), effect=claimed)
    return f"{phase.value} {entry} is a fence that claims to be it"


def one_group(random: Random, lists: Lists) -> str:
    """Only one group of waves executes an entry."""
    at = _pick(random, lists, _any)
    if at is None:
        return ""
    phase, slot = at
    lists[phase][slot] = replace(lists[phase][slot], group=random.choice((0, 1)))
    return f"{phase.value} {lists[phase][slot]} by group {lists[phase][slot].group}"


def _elsewhere(effect: Effect, channel: int, stage: int) -> Effect:
    """All parts of one copy of a value become those of another."""
    moved = {
        place: place._replace(stage=1 - min(place.stage, 1))
        for place in (*effect.reads, *effect.writes)
        if place.space is not Space.ACCUMULATOR and (place.channel, place.stage) == (channel, stage)
    }
    return replace(
        effect,
        reads=tuple(moved.get(place, place) for place in effect.reads),
        writes=tuple(moved.get(place, place) for place in effect.writes),
        wants=tuple((moved.get(place, place), version) for place, version in effect.wants),
        makes=tuple((moved.get(place, place), version) for place, version in effect.makes),
    )


_WEIGHTED: tuple[tuple[int, Callable[[Random, Lists], str]], ...] = (
    (3, _deleting(_is_sync)),
    (1, _deleting(_is_barrier)),
    (1, _deleting(_any)),
    (8, exchange),
    (4, count),
    (4, _moving(_is_sync)),
    (2, _moving(_any)),
    (1, elsewhere),
    (1, drop_everywhere),
    (1, duplicate),
    (3, add_sync),
    (1, other_buffer),
    (1, other_iteration),
    (1, other_field),
    (1, believed),
    (1, other_order),
)
_STAGGERED = (*_WEIGHTED, (1, one_group))
EDITS = {
    staggered: tuple(edit for weight, edit in (_STAGGERED if staggered else _WEIGHTED) for _ in range(weight))
    for staggered in (False, True)
}


def edited(random: Random, compiled: CompiledSchedule) -> tuple[str, CompiledSchedule]:
    """One edit, or a few."""
    lists: Lists = {
        Phase.PROLOGUE: list(compiled.prologue),
        Phase.KERNEL: list(compiled.kernel),
        Phase.EPILOGUE: list(compiled.epilogue),
    }
    staggered = compiled.config.warp_stagger.enabled
    told = [random.choice(EDITS[staggered])(random, lists) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    phases = {
        phase: tuple(replace(entry, time_slot=slot, phase=phase) for slot, entry in enumerate(entries))
        for phase, entries in lists.items()
    }
    at = compiled.warp_stagger_index
    if staggered:
        at = min(at, len(phases[Phase.PROLOGUE]))
        if random.random() < 0.1:
            at = random.randint(0, len(phases[Phase.PROLOGUE]))
            told.append(f"group 1 falls back at {at}")
    changed = replace(
        compiled,
        prologue=phases[Phase.PROLOGUE],
        kernel=phases[Phase.KERNEL],
        epilogue=phases[Phase.EPILOGUE],
        warp_stagger_index=at,
        certificate=None,
        repairs=(),
        findings=(),
    )
    return "; ".join(filter(None, told)), changed
