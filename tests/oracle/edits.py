"""Edits of a program: takes a lowered one and a random generator, gives it with a few entries changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from rota.program.entry import Effect, Entry, Op, Place, Space, Version, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import LoweredProgram

Lists = dict[Phase, list[Entry]]
_FENCE = Op(kind=OpKind.FENCE, name="fence")


def _is_sync(entry: Entry) -> bool:
    return entry.op.is_framework


def _is_wait(entry: Entry) -> bool:
    return entry.effect.kind is OpKind.WAIT


def _is_barrier(entry: Entry) -> bool:
    return entry.effect.kind is OpKind.BARRIER


def _is_fetch(entry: Entry) -> bool:
    effect = entry.effect
    return effect.kind is OpKind.DMA and not effect.wants and bool(effect.makes or effect.fetches is not None)


def _is_by_tiles(entry: Entry) -> bool:
    return not _is_sync(entry) and not entry.effect.instance.name


def _any(entry: Entry) -> bool:
    return True


def _pick(random: Random, lists: Lists, wanted: Callable[[Entry], bool]) -> tuple[Phase, int] | None:
    found = [(phase, slot) for phase, each in lists.items() for slot, entry in enumerate(each) if wanted(entry)]
    return random.choice(found) if found else None


def _deleting(wanted: Callable[[Entry], bool]) -> Callable[[Random, Lists], str]:
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
    before, counter = entry.effect.wait_value, entry.effect.counter or ""
    changed = random.choice((before + 1, before + 1, before + 2, 0, 15, 63))
    lists[phase][slot] = replace(entry, op=wait_op(counter, changed), effect=wait_effect(counter, changed))
    return f"{phase.value} {entry} became {changed}"


def _moving(wanted: Callable[[Entry], bool]) -> Callable[[Random, Lists], str]:
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
    for each in lists.values():
        each[:] = [entry for entry in each if entry.op.name != op.name]
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
    known = _pick(random, lists, _is_sync)
    if known is None:
        return ""
    like = lists[known[0]][known[1]]
    if _is_wait(like):
        counter, left = like.effect.counter or "", random.choice((0, 1))
        like = replace(like, op=wait_op(counter, left), effect=wait_effect(counter, left))
    phase = random.choice(list(lists))
    slot = random.randint(0, len(lists[phase]))
    lists[phase].insert(slot, replace(like, phase=phase, listed=True))
    return f"added {like.op} at {phase.value} {slot}"


def other_buffer(random: Random, lists: Lists) -> str:
    """Another stage for an op, or another copy of a value."""
    at = _pick(random, lists, lambda entry: not _is_sync(entry))
    if at is None:
        return ""
    phase, slot = at
    entry = lists[phase][slot]
    in_one_copy = (Space.ACCUMULATOR, Space.MEMORY)
    tiles = [place for place in (*entry.effect.reads, *entry.effect.writes) if place.space not in in_one_copy]
    if not tiles:
        return ""
    chosen = random.choice(tiles)
    lists[phase][slot] = replace(entry, effect=_elsewhere(entry.effect, chosen))
    return f"{phase.value} {entry} in another buffer"


def other_iteration(random: Random, lists: Lists) -> str:
    """A load of the tile before or after."""
    at = _pick(random, lists, _is_fetch)
    if at is None:
        return ""
    phase, slot = at
    entry = lists[phase][slot]
    effect, by = entry.effect, random.choice((-1, 1))
    changed = replace(effect, fetches=(effect.fetches or 0) + by)
    if effect.instance.name:
        makes = tuple((place, Version(version.name, version.iteration + by)) for place, version in effect.makes)
        instance = Version(effect.instance.name, effect.instance.iteration + by)
        changed = replace(effect, makes=makes, instance=instance)
    lists[phase][slot] = replace(entry, effect=changed)
    return f"{phase.value} {entry} of another iteration"


def other_order(random: Random, lists: Lists) -> str:
    """Two iterations of one op exchanged."""
    at = _pick(random, lists, lambda entry: not _is_sync(entry))
    if at is None:
        return ""
    phase, slot = at
    each = lists[phase]
    same = [other for other, entry in enumerate(each) if entry.op.name == each[slot].op.name]
    other = random.choice(same or [slot])
    each[slot], each[other] = each[other], each[slot]
    return f"exchanged {phase.value} {each[slot]} and {each[other]}" if other != slot else ""


def other_part(random: Random, lists: Lists) -> str:
    """Of a sum over K-tiles: another part of a tile, other registers, or another number of tokens."""
    at = _pick(random, lists, _is_by_tiles)
    if at is None:
        return ""
    phase, slot = at
    entry = lists[phase][slot]
    effect = entry.effect
    (place, *others), change = effect.writes, random.choice(("written", "read", "tokens"))
    if change == "written":
        effect = replace(effect, writes=(_next_part(place), *others))
    elif change == "read" and effect.reads:
        effect = replace(effect, reads=(_next_part(effect.reads[0]), *effect.reads[1:]))
    elif effect.counter:
        effect = replace(effect, tokens=random.randint(1, 5))
    lists[phase][slot] = replace(entry, effect=effect)
    return f"{phase.value} {entry} with other {change}"


def believed(random: Random, lists: Lists) -> str:
    """An entry that claims to be the wait or barrier that it no longer is."""
    at = _pick(random, lists, _is_wait if random.random() < 0.5 else _is_barrier)
    if at is None:
        return ""
    phase, slot = at
    entry = lists[phase][slot]
    lists[phase][slot] = replace(entry, op=_FENCE)
    return f"{phase.value} {entry} is a fence that claims to be it"


def one_group(random: Random, lists: Lists) -> str:
    """Only one group of waves executes an entry."""
    at = _pick(random, lists, _any)
    if at is None:
        return ""
    phase, slot = at
    lists[phase][slot] = replace(lists[phase][slot], roles=(random.choice((0, 1)),))
    return f"{phase.value} {lists[phase][slot]} by roles {lists[phase][slot].roles}"


def _elsewhere(effect: Effect, chosen: Place) -> Effect:
    """All parts of one copy of a value become those of another."""
    moved = {
        place: place._replace(copy=1 - min(place.copy, 1))
        for place in (*effect.reads, *effect.writes)
        if place._replace(part=0) == chosen._replace(part=0)
    }
    return replace(
        effect,
        reads=tuple(moved.get(place, place) for place in effect.reads),
        writes=tuple(moved.get(place, place) for place in effect.writes),
        wants=tuple((moved.get(place, place), version) for place, version in effect.wants),
        makes=tuple((moved.get(place, place), version) for place, version in effect.makes),
    )


def _next_part(place: Place) -> Place:
    """Of a tile; other registers have another number."""
    if place.space is Space.LDS:
        return place._replace(part=1 - min(place.part, 1))
    return place._replace(copy=1 - min(place.copy, 1))


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
    (1, other_part),
    (1, believed),
    (1, other_order),
)
_STAGGERED = (*_WEIGHTED, (1, one_group))
EDITS = {
    staggered: tuple(edit for weight, edit in (_STAGGERED if staggered else _WEIGHTED) for _ in range(weight))
    for staggered in (False, True)
}


def edited(random: Random, program: LoweredProgram) -> tuple[str, LoweredProgram]:
    """One edit, or a few."""
    lists: Lists = {phase: list(program.phase(phase)) for phase in Phase}
    edits = EDITS[len(program.roles) > 1]
    told = [random.choice(edits)(random, lists) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    phases = {phase: [replace(entry, phase=phase) for entry in entries] for phase, entries in lists.items()}
    return "; ".join(filter(None, told)), program.with_phases(phases)
