"""Waves that come together again: takes squads, gives fewer, where those at one place have comparable registers."""

from __future__ import annotations

import numpy as np

from rota.prove.lane_mask import Mask, Masks
from rota.prove.squad import Accesses, Flight, Half, Squad
from rota.prove.symbol import Lanes, Linear, Value, simple


class _ApartError(Exception):
    """Two squads that can't be one."""


def join(squads: list[Squad], masks: Masks, accesses: Accesses) -> list[Squad]:
    """Squads at one place, with the same memory ops under way, go on together."""
    joined: list[Squad] = []
    for squad in squads:
        for place, other in enumerate(joined):
            if squad.at == other.at and squad.ended == other.ended and squad.barriers == other.barriers:
                try:
                    joined[place] = _both(other, squad, masks, accesses)
                except _ApartError:
                    continue
                break
        else:
            joined.append(squad)
    return joined


def _both(one: Squad, other: Squad, masks: Masks, accesses: Accesses) -> Squad:
    if one.ended:
        return _husk(one, other, masks)
    counts = len(one.waves), len(other.waves)
    rows = one.registers.keys() & other.registers.keys()  # one that only some have was never written by the others
    registers = {row: _value(one.registers[row], other.registers[row], counts, masks) for row in rows}
    vm = _flights(one.vm, other.vm, accesses)
    ds = _flights(one.ds, other.ds, accesses)
    if [each.same for each in one.sm] != [each.same for each in other.sm] or one.flat or other.flat:
        raise _ApartError
    both = Squad(
        waves=(*one.waves, *other.waves),
        at=one.at,
        registers=registers,
        exec=_mask(one.exec, other.exec, masks),
        vm=vm,
        ds=ds,
        sm=one.sm,
        busy=one.busy,
        barriers=one.barriers,
    )
    order = sorted(range(len(both.waves)), key=both.waves.__getitem__)
    return both if order == list(range(len(order))) else both.part(order, masks, accesses)


def _husk(one: Squad, other: Squad, masks: Masks) -> Squad:
    """Ended waves, of which only the number of barriers matters, and what they left under way."""
    if any((*one.vm, *other.vm, *one.ds, *other.ds, *one.flat, *other.flat)):
        raise _ApartError
    waves = tuple(sorted((*one.waves, *other.waves)))
    return Squad(
        waves=waves, at=one.at, registers={}, exec=masks.leaf((0,) * len(waves)), ended=True, barriers=one.barriers
    )


def _flights(one: tuple[Flight, ...], other: tuple[Flight, ...], accesses: Accesses) -> tuple[Flight, ...]:
    if len(one) != len(other):
        raise _ApartError
    both = []
    for a, b in zip(one, other, strict=True):
        if a.rows != b.rows or (a.access is None) != (b.access is None):
            raise _ApartError
        if a.access is not None and b.access is not None:
            if a.number != b.number or a.access.how != b.access.how:
                raise _ApartError
            octets = (*a.access.bytes, *b.access.bytes)
            access = accesses.make(a.number, a.access.how, octets, exact=a.access.exact and b.access.exact)
            both.append(a._replace(access=access))
        elif a.bare or (a.number, a.also) == (b.number, b.also):
            both.append(a)
        else:  # loads to the same registers, by two copies of the code
            also = {a.number, *a.also, b.number, *b.also}
            first = min(also)
            both.append(a._replace(number=first, also=tuple(sorted(also - {first})), near=_agreed(a.near, b.near)))
    return tuple(both)


def _agreed(one: int, other: int) -> int:
    """The wait that nearly covered both, if it is one."""
    return one if one == other else -1


def _value(one: Value | Half, other: Value | Half, counts: tuple[int, int], masks: Masks) -> Value | Half:
    if isinstance(one, Half) or isinstance(other, Half):
        if not isinstance(one, Half) or not isinstance(other, Half) or one.which != other.which:
            raise _ApartError
        return Half(_mask(one.mask, other.mask, masks), one.which)
    if isinstance(one, Linear) or isinstance(other, Linear):
        if not isinstance(one, Linear) or not isinstance(other, Linear):
            raise _ApartError
        if one.base is not other.base or one.scale != other.scale:
            raise _ApartError
        offset = _value(one.offset, other.offset, counts, masks)
        if isinstance(offset, (Linear, Half)):
            raise _ApartError
        return Linear(one.base, one.scale, offset)
    if isinstance(one, int) and isinstance(other, int) and one == other:
        return one
    width = max(1 if isinstance(each, int) else each.shape[1] for each in (one, other))
    parts: list[Lanes] = [
        np.broadcast_to(np.asarray(each, np.int64), (count, width))
        for each, count in zip((one, other), counts, strict=True)
    ]
    return simple(np.concatenate(parts))


def _mask(one: Mask, other: Mask, masks: Masks) -> Mask:
    if one.leaf is not None and other.leaf is not None:
        return masks.leaf((*one.leaf, *other.leaf))
    if one.atom is None or one.atom is not other.atom or one.high is None or one.low is None:
        raise _ApartError
    if other.high is None or other.low is None:
        raise _ApartError
    return masks.choice(one.atom, _mask(one.high, other.high, masks), _mask(one.low, other.low, masks))
