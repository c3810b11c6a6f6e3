"""Edits of lowered programs with roles: takes a right draft, gives it with less to spare, or with something changed.

They are near the border between right and wrong: a wait or a barrier dropped, moved, weakened, or executed by fewer
roles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from rota.program.entry import Entry, Space, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import number_entries
from tests.oracle.draw_lowered import Lists, half, meet, wait
from tests.oracle.role_form import broken_rules
from tests.oracle.role_machine import judge
from tests.oracle.role_steps import Draft

_TRIED_AT = range(4)
Edit = Callable[[Random, Draft], tuple[str, Draft] | None]
Weighted = tuple[tuple[int, Edit], ...]


def lists_of(draft: Draft) -> Lists:
    """The entries, phase by phase."""
    return {Phase.PROLOGUE: [*draft.prologue], Phase.KERNEL: [*draft.kernel], Phase.EPILOGUE: [*draft.epilogue]}


def _with(draft: Draft, lists: Lists) -> Draft:
    phases: dict[str, Any] = {phase.value.lower(): number_entries(entries) for phase, entries in lists.items()}
    return replace(draft, **phases)


def is_wait(entry: Entry) -> bool:
    """A wait?"""
    return entry.effect.kind is OpKind.WAIT


def is_barrier(entry: Entry) -> bool:
    """A barrier, or half of one?"""
    return entry.effect.kind is OpKind.BARRIER


def is_sync(entry: Entry) -> bool:
    """Either?"""
    return is_wait(entry) or is_barrier(entry)


def is_data(entry: Entry) -> bool:
    """An op of the loop?"""
    return not entry.effect.kind.synchronises


def is_any(entry: Entry) -> bool:
    """Every entry."""
    return True


def _pick(random: Random, lists: Lists, wanted: Callable[[Entry], bool]) -> tuple[Phase, int] | None:
    found = [(phase, at) for phase, each in lists.items() for at, entry in enumerate(each) if wanted(entry)]
    return random.choice(found) if found else None


def changing(
    wanted: Callable[[Entry], bool], change: Callable[[Random, Draft, Entry], tuple[str, Entry] | None]
) -> Edit:
    """An edit that changes one entry."""

    def edit(random: Random, draft: Draft) -> tuple[str, Draft] | None:
        lists = lists_of(draft)
        at = _pick(random, lists, wanted)
        changed = change(random, draft, lists[at[0]][at[1]]) if at else None
        if at is None or changed is None:
            return None
        told, entry = changed
        lists[at[0]][at[1]] = entry
        return f"{at[0].value.lower()}[{at[1]}] {entry.op.name} {told}", _with(draft, lists)

    return edit


def _deleting(wanted: Callable[[Entry], bool]) -> Edit:
    def edit(random: Random, draft: Draft) -> tuple[str, Draft] | None:
        lists = lists_of(draft)
        at = _pick(random, lists, wanted)
        if at is None:
            return None
        entry = lists[at[0]].pop(at[1])
        return f"{at[0].value.lower()}[{at[1]}] {entry.op.name} deleted", _with(draft, lists)

    return edit


def _moving(wanted: Callable[[Entry], bool]) -> Edit:
    def edit(random: Random, draft: Draft) -> tuple[str, Draft] | None:
        lists = lists_of(draft)
        at = _pick(random, lists, wanted)
        if at is None:
            return None
        phase, slot = at
        entry = lists[phase].pop(slot)
        to = max(0, min(len(lists[phase]), slot + random.choice((-3, -2, -1, -1, 1, 1, 2, 3))))
        lists[phase].insert(to, entry)
        return f"{phase.value.lower()}[{slot}] {entry.op.name} moved to {to}", _with(draft, lists)

    return edit


def exchange(random: Random, draft: Draft) -> tuple[str, Draft] | None:
    """Two neighbours, of one role or of different ones."""
    lists = lists_of(draft)
    at = _pick(random, lists, is_any)
    if at is None or at[1] + 1 >= len(lists[at[0]]):
        return None
    each, slot = lists[at[0]], at[1]
    each[slot], each[slot + 1] = each[slot + 1], each[slot]
    return f"{at[0].value.lower()}[{slot}] and the next exchanged", _with(draft, lists)


def elsewhere(random: Random, draft: Draft) -> tuple[str, Draft] | None:
    """An entry in another phase, or twice."""
    lists = lists_of(draft)
    at = _pick(random, lists, is_any)
    if at is None:
        return None
    phase, slot = at
    entry = lists[phase][slot]
    to = random.choice(list(Phase))
    if random.random() < 0.5:
        lists[phase].pop(slot)
    lists[to].insert(random.randint(0, len(lists[to])), replace(entry, phase=to))
    return f"{phase.value.lower()}[{slot}] {entry.op.name} in {to.value.lower()}", _with(draft, lists)


def add_sync(random: Random, draft: Draft) -> tuple[str, Draft] | None:
    """A wait, or a barrier or half of one, for some role or all."""
    lists = lists_of(draft)
    phase = random.choice(list(Phase))
    roles = random.choice((None, None, (random.randrange(len(draft.roles)),)))
    if random.random() < 0.5 or not draft.barriers:
        entry = wait(random.choice(draft.machine.counters).name, random.choice((0, 0, 1, 2)), phase, roles)
    else:
        name = random.choice(draft.barriers).name
        entry = random.choice(
            (meet(name, phase, roles), half(name, phase, roles, arrives=True), half(name, phase, roles, arrives=False))
        )
    slot = random.randint(0, len(lists[phase]))
    lists[phase].insert(slot, entry)
    return f"{entry.op.name} added at {phase.value.lower()}[{slot}]", _with(draft, lists)


def split(random: Random, draft: Draft) -> tuple[str, Draft] | None:
    """An entry of several roles as one entry for each, not far apart; or a barrier as its two halves."""
    lists = lists_of(draft)
    at = _pick(random, lists, lambda entry: is_barrier(entry) or len(draft.executing(entry)) > 1)
    if at is None:
        return None
    phase, slot = at
    entry = lists[phase].pop(slot)
    effect, roles = entry.effect, draft.executing(entry)
    if effect.arrives and effect.awaits and random.random() < 0.5:
        halves = [half(effect.arrives, phase, entry.roles, arrives=True)]
        halves.append(half(effect.awaits, phase, entry.roles, arrives=False))
    else:
        halves = [replace(entry, roles=(role,)) for role in roles]
    lists[phase][slot:slot] = halves
    if random.random() < 0.5:
        moved = lists[phase].pop(slot + len(halves) - 1)
        lists[phase].insert(min(len(lists[phase]), slot + len(halves) - 1 + random.randint(1, 3)), moved)
    return f"{phase.value.lower()}[{slot}] {entry.op.name} split", _with(draft, lists)


def one_sided(random: Random, draft: Draft) -> tuple[str, Draft] | None:
    """A role that no longer arrives at a barrier, or no longer waits there, wherever it did."""
    name, arriving, waiting = chosen = random.choice(draft.barriers)
    arrives = random.random() < 0.5
    side = arriving if arrives else waiting
    if not side or (arrives and len(side) == 1):
        return None
    gone = random.choice(side)
    left = tuple(role for role in side if role != gone)
    barrier = chosen._replace(arriving=left) if arrives else chosen._replace(waiting=left)
    lists = lists_of(draft)
    for phase, each in lists.items():
        each[:] = [part for entry in each for part in _without(draft, entry, phase, name, gone, arrives=arrives)]
    barriers = tuple(barrier if other is chosen else other for other in draft.barriers)
    told = f"role {gone} no longer {'arrives' if arrives else 'waits'} at {name}"
    return told, _with(replace(draft, barriers=barriers), lists)


def _without(draft: Draft, entry: Entry, phase: Phase, name: str, gone: int, *, arrives: bool) -> list[Entry]:
    effect, roles = entry.effect, draft.executing(entry)
    if gone not in roles or (effect.arrives if arrives else effect.awaits) != name:
        return [entry]
    left = tuple(role for role in roles if role != gone)
    kept = [replace(entry, roles=left)] if left else []
    other = effect.awaits if arrives else effect.arrives
    return [*([half(other, phase, (gone,), arrives=not arrives)] if other else []), *kept]


def _count(random: Random, draft: Draft, entry: Entry) -> tuple[str, Entry]:
    before, counter = entry.effect.wait_value, entry.effect.counter or ""
    left = max(0, before + random.choice((1, 1, 1, 2, 3, -1)))
    return f"was {before}", replace(entry, op=wait_op(counter, left), effect=wait_effect(counter, left))


def _other_counter(random: Random, draft: Draft, entry: Entry) -> tuple[str, Entry]:
    counter, left = random.choice(draft.machine.counters).name, entry.effect.wait_value
    return "on another counter", replace(entry, op=wait_op(counter, left), effect=wait_effect(counter, left))


def _fewer_roles(random: Random, draft: Draft, entry: Entry) -> tuple[str, Entry] | None:
    roles = draft.executing(entry)
    if len(roles) < 2:
        return None
    kept = tuple(sorted(random.sample(roles, random.randint(1, len(roles) - 1))))
    return f"by {kept}", replace(entry, roles=kept)


def _other_roles(random: Random, draft: Draft, entry: Entry) -> tuple[str, Entry]:
    everyone = tuple(range(len(draft.roles)))
    roles = random.choice((None, (random.choice(everyone),), everyone, everyone[::-1]))
    return f"by {roles}", replace(entry, roles=roles)


def _other_copy(random: Random, draft: Draft, entry: Entry) -> tuple[str, Entry] | None:
    places = [p for p in (*entry.effect.reads, *entry.effect.writes) if p.space in (Space.LDS, Space.REGISTER)]
    if not places:
        return None
    chosen = random.choice(places)
    copy = random.choice((1 - min(chosen.copy, 1), chosen.copy + 1, -1))
    same = {p: p._replace(copy=copy) for p in places if p[:3] == chosen[:3]}
    effect = entry.effect
    return f"in copy {copy} of {chosen.name}", replace(
        entry,
        effect=replace(
            effect,
            reads=tuple(same.get(p, p) for p in effect.reads),
            writes=tuple(same.get(p, p) for p in effect.writes),
            wants=tuple((same.get(p, p), v) for p, v in effect.wants),
            makes=tuple((same.get(p, p), v) for p, v in effect.makes),
        ),
    )


def _other_iteration(random: Random, draft: Draft, entry: Entry) -> tuple[str, Entry]:
    by, effect = random.choice((-1, 1)), entry.effect
    wants = tuple((place, version.at(by)) for place, version in effect.wants)
    makes = tuple((place, version.at(by)) for place, version in effect.makes)
    changed = replace(effect, instance=effect.instance.at(by), wants=wants, makes=makes)
    return f"an iteration {'later' if by > 0 else 'earlier'}", replace(entry, effect=changed)


def other_does(random: Random, draft: Draft) -> tuple[str, Draft] | None:
    """An op that one role more, or one less, or nobody does."""
    name = random.choice(draft.semantics.ops).name
    roles = [role._replace(does=frozenset(op.name for op in draft.semantics.ops)) for role in draft.roles]
    roles = [new if old.does is None else old for new, old in zip(roles, draft.roles, strict=True)]
    chosen = random.choice(((random.randrange(len(roles)),), tuple(range(len(roles)))))
    for at in chosen:
        roles[at] = roles[at]._replace(does=(roles[at].does or frozenset()) ^ {name})
    changed = replace(draft, roles=tuple(roles))
    if random.random() < 0.5:  # and the entries follow
        due = {op.name: changed.doing(op.name) for op in draft.semantics.ops}
        lists = lists_of(draft)
        for each in lists.values():
            each[:] = [replace(entry, roles=due[entry.op.name]) if entry.op.name in due else entry for entry in each]
        changed = _with(changed, lists)
    return f"{name} done by {changed.doing(name)}", changed


def frame(random: Random, draft: Draft) -> tuple[str, Draft] | None:
    """Assumptions, the machine, and how many waves a role has."""
    doubted = draft.machine.doubting(random.choice(draft.machine.counters).name)
    lone = tuple(role._replace(waves=1) for role in draft.roles)
    tracked = {"compiler_tracks_registers": not draft.compiler_tracks_registers}
    again = {"reentrant": not draft.reentrant and not _carries_tiles(draft)}
    alone = {"roles": lone, "waves": len(lone)}
    change: dict[str, Any] = random.choice((tracked, tracked, again, again, {"machine": doubted}, alone))
    return f"frame: {next(iter(change))}", replace(draft, **change)


def _carries_tiles(draft: Draft) -> bool:
    tiles = {value.name for value in draft.semantics.values if value.size > 100}
    return any(read.distance and read.value in tiles for op in draft.semantics.ops for read in op.reads)


NEAR: Weighted = (
    (6, _deleting(is_sync)),
    (1, _deleting(is_data)),
    (6, changing(is_wait, _count)),
    (2, changing(is_wait, _other_counter)),
    (5, changing(is_sync, _fewer_roles)),
    (1, changing(is_sync, _other_roles)),
    (1, changing(is_data, _other_roles)),
    (6, _moving(is_sync)),
    (2, _moving(is_data)),
    (4, exchange),
    (1, elsewhere),
    (3, add_sync),
    (4, split),
    (1, one_sided),
    (1, changing(is_data, _other_copy)),
    (1, changing(is_data, _other_iteration)),
    (2, other_does),
    (4, frame),
)
_TIGHTENING: Weighted = (
    (5, _deleting(is_sync)),
    (2, changing(is_wait, _count)),
    (3, changing(is_sync, _fewer_roles)),
    (2, split),
    (1, one_sided),
    (2, _moving(is_sync)),
    (1, exchange),
)


def drawn(random: Random, weighted: Weighted, draft: Draft) -> tuple[str, Draft] | None:
    """One of these edits, or None where there is nothing to edit."""
    (edit,) = random.choices([edit for _, edit in weighted], [weight for weight, _ in weighted])
    return edit(random, draft)


def tightened(random: Random, draft: Draft) -> Draft:
    """The draft with less to spare, as far as drawn edits find any, and as far as they leave it right."""
    for _ in range(random.choice((0, 4, 12, 25, 40))):
        edited = drawn(random, _TIGHTENING, draft)
        if edited is None or any(broken_rules(edited[1])):
            continue
        if judge(edited[1], _TRIED_AT) is None:
            draft = edited[1]
    return draft
