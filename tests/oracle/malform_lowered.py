"""Edits that make what no program can be: takes a random generator and a draft, gives it with such an edit.

Roles, counters, barriers and counts that aren't there; entries that contradict themselves; ordinals of other places.
Some leave a program right all the same, as one without a wait that it doesn't need.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from rota.program.entry import BARRIER, Effect, Entry, Op, Place, Space, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import Barrier
from tests.oracle.edit_lowered import (
    NEAR,
    Weighted,
    changing,
    drawn,
    is_any,
    is_barrier,
    is_data,
    is_sync,
    is_wait,
    lists_of,
    other_does,
)
from tests.oracle.role_steps import Draft

_FENCE = Op(kind=OpKind.FENCE, name="fence")


def _no_such_roles(random: Random, draft: Draft, entry: Entry) -> tuple[str, Entry]:
    last = len(draft.roles)
    roles: Any = random.choice(
        ((-1,), (-1,), (7,), (last,), (), (), (0, 0), (0, -1), (0, last), ("0",), (0.0,), (True,))
    )
    return f"by {roles}", replace(entry, roles=roles)


def _no_such_wait(random: Random, draft: Draft, entry: Entry) -> tuple[str, Entry]:
    counter, left = entry.effect.counter or "", entry.effect.wait_value
    holds = {each.name: each.holds.value for each in draft.machine.counters}
    bad: list[tuple[str | None, Any]] = [
        ("nocnt", left),
        (None, left),
        (counter, -1),
        (counter, holds.get(counter, 1)),
        (counter, holds.get(counter, 1) + 5),
        (counter, 0.5),
        (counter, None),
        (counter, "0"),
    ]
    name, count = random.choice(bad)
    effect = Effect(kind=OpKind.WAIT, counter=name, wait_value=count)
    return f"on {name}, {count!r}", replace(entry, op=wait_op(name or "", count), effect=effect)


def _misnamed(random: Random, draft: Draft, entry: Entry) -> tuple[str, Entry]:
    """The op says something other than the effect."""
    if is_wait(entry):
        other = random.choice([each.name for each in draft.machine.counters if each.name != entry.effect.counter])
        op = random.choice((wait_op(other, entry.effect.wait_value), wait_op(other, 0), BARRIER, _FENCE))
    elif is_barrier(entry):
        names = ("barrier", "barrier_arrive", "barrier_wait")
        op = random.choice((_FENCE, *(replace(BARRIER, name=name) for name in names if name != entry.op.name)))
    else:
        op = random.choice((replace(entry.op, kind=OpKind.VALU), replace(entry.op, name="nothing"), _FENCE))
    return f"was {entry.op.name}", replace(entry, op=op)


def _misdeclared(random: Random, draft: Draft, entry: Entry) -> tuple[str, Entry]:
    """The effect isn't that of the op."""
    effect = entry.effect
    tile = Place(Space.LDS, next(v.name for v in draft.semantics.values if v.size > 100))
    tokens = random.choice((-3, 0, effect.tokens + 1))
    changes: list[dict[str, Any]] = [
        {"tokens": tokens},
        {"counter": "nocnt"},
        {"counter": None},
        {"reads": effect.reads[1:]},
        {"writes": (*effect.writes, tile)},
        {"wants": ()},
        {"kind": OpKind.NOTHING},
    ]
    change = random.choice(changes)
    changed = replace(effect, **change)
    told = "unchanged" if changed == effect else f"with {next(iter(change))} changed"
    return told, replace(entry, effect=changed)


def _touching(random: Random, draft: Draft, entry: Entry) -> tuple[str, Entry]:
    place = random.choice([place for e in draft.entries for place in (*e.effect.reads, *e.effect.writes)])
    side = random.choice(("reads", "writes"))
    change: dict[str, Any] = {side: (place,)}
    return f"{side} {place}", replace(entry, effect=replace(entry.effect, **change))


def _no_such_barrier(random: Random, draft: Draft, entry: Entry) -> tuple[str, Entry]:
    name = random.choice(("nowhere", "", None))
    side = random.choice(("arrives", "awaits"))
    change: dict[str, Any] = {side: name}
    return f"{side} at {name}", replace(entry, effect=replace(entry.effect, **change))


def slots(random: Random, draft: Draft) -> tuple[str, Draft] | None:
    """Ordinals that aren't those of the entries' places."""
    slot = random.choice((lambda at: 0, lambda at: random.randint(0, 3), lambda at: -at, lambda at: at + 1))
    phases: dict[str, Any] = {
        phase.value.lower(): tuple(replace(entry, time_slot=slot(at)) for at, entry in enumerate(entries))
        for phase, entries in lists_of(draft).items()
    }
    return "other time slots", replace(draft, **phases)


def other_phases(random: Random, draft: Draft) -> tuple[str, Draft] | None:
    """Entries that say that they belong to another phase."""
    phase = random.choice(list(Phase))
    return f"all entries say {phase.value.lower()}", replace(
        draft, kernel=tuple(replace(entry, phase=phase) for entry in draft.kernel)
    )


def other_barriers(random: Random, draft: Draft) -> tuple[str, Draft] | None:
    """Other roles take part, or none; or some barrier isn't declared, or twice."""
    barriers, everyone = list(draft.barriers), tuple(range(len(draft.roles)))
    at = random.randrange(len(barriers))
    name, arriving, waiting = barriers[at]
    fewer = tuple(role for role in arriving if role != random.choice(everyone))
    changed = random.choice(
        (
            [Barrier(name, fewer, waiting)],
            [Barrier(name, arriving, fewer)],
            [Barrier(name, everyone, waiting)],
            [Barrier(name, (*arriving, len(everyone)), waiting)],
            [Barrier(name, (*arriving, -1), waiting)],
            [Barrier(name, (), waiting)],
            [],
            [barriers[at], barriers[at]],
            [barriers[at], Barrier(name, (), ())],
            [Barrier(name, arriving[::-1], waiting)],
        )
    )
    barriers[at : at + 1] = changed
    return f"barrier {name} became {changed}", replace(draft, barriers=tuple(barriers))


def frame(random: Random, draft: Draft) -> tuple[str, Draft] | None:
    """What isn't an entry: tiles, sizes, roles."""
    changes: list[dict[str, Any]] = [
        {"tiles_per_trip": random.choice((0, -1, draft.tiles_per_trip + 1))},
        {"tiles_outside": random.choice((-1, draft.tiles_outside + 1, draft.tiles_outside - 1))},
        {"lds_bytes": random.choice((16, -5, 0, (draft.lds_bytes or 0) - 1, None))},
        {"registers": random.choice((-1, None)), "register_limit": None},
        {"roles": ()},
        {"roles": tuple(role._replace(name="same") for role in draft.roles)},
        {"roles": draft.roles[:-1]},
        {"waves": random.choice((0, -1, None))},
    ]
    change = random.choice(changes)
    return f"frame: {next(iter(change))} {next(iter(change.values()))!r}", replace(draft, **change)


_MALFORMED: Weighted = (
    (3, changing(is_sync, _no_such_roles)),
    (2, changing(is_data, _no_such_roles)),
    (3, changing(is_wait, _no_such_wait)),
    (3, changing(is_any, _misnamed)),
    (2, changing(is_data, _misdeclared)),
    (1, changing(is_sync, _touching)),
    (2, changing(is_barrier, _no_such_barrier)),
    (2, slots),
    (1, other_phases),
    (2, other_barriers),
    (1, other_does),
    (2, frame),
)


def edited(random: Random, draft: Draft) -> tuple[str, Draft]:
    """One edit or a few near the border; in a fifth of all cases the last makes what no program can be."""
    edits = [NEAR] * random.choice((1, 1, 1, 1, 2, 3))
    if random.random() < 0.2:
        edits[-1] = _MALFORMED
    told = []
    for weighted in edits:
        found = drawn(random, weighted, draft)
        if found is not None:
            told.append(found[0])
            draft = found[1]
    return "; ".join(told), draft
