"""Races by brute force: takes what two waves do, gives whether any two accesses are unordered, from intervals alone.

An access lasts from the epoch of its issue to the epoch of the wait that covers it.  Programs are drawn; every pair of
accesses is looked at, and nothing is known of the order in which anything runs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product

_NEVER = 99
_LDS = {
    # name: text, bytes of each lane, what it does, counter
    "read": ("ds_read_b32 v8, v2 offset:{}", 4, "r", "lgkmcnt"),
    "read byte": ("ds_read_u8 v9, v2 offset:{}", 1, "r", "lgkmcnt"),
    "write": ("ds_write_b32 v2, v3 offset:{}", 4, "w", "lgkmcnt"),
    "write half": ("ds_write_b16 v2, v0 offset:{}", 2, "w", "lgkmcnt"),
    "atomic": ("ds_add_u32 v2, v3 offset:{}", 4, "a", "lgkmcnt"),
    "dma": ("buffer_load_dword v2, s[4:7], 0 offen offset:{} lds", 4, "d", "vmcnt"),
}
_GLOBAL = {
    "load": ("global_load_dword v8, v2, s[4:5] offset:{}", 4, "r", "vmcnt"),
    "load byte": ("global_load_ubyte v9, v2, s[4:5] offset:{}", 1, "r", "vmcnt"),
    "store": ("global_store_dword v2, v3, s[4:5] offset:{}", 4, "w", "vmcnt"),
    "store byte": ("global_store_byte v2, v0, s[4:5] offset:{}", 1, "w", "vmcnt"),
    "atomic": ("global_atomic_add v2, v3, s[4:5] offset:{}", 4, "a", "vmcnt"),
}


@dataclass(slots=True, eq=False)
class _Access:
    octets: frozenset[int]
    does: str
    counter: str
    epoch: int
    place: int  # in its program
    covered: int = _NEVER
    covered_place: int = _NEVER


@dataclass(frozen=True, slots=True)
class Program:
    """The lines of one wave, and its accesses."""

    lines: tuple[str, ...]
    accesses: tuple[_Access, ...]


def draw(chooser: random.Random, space: str, barriers: int) -> Program:
    """A wave's program, with so many barriers."""
    kinds = _LDS if space == "lds" else _GLOBAL
    steps = ["barrier"] * barriers + chooser.choices([*kinds, *["wait"] * 5], k=chooser.randrange(1, 6))
    chooser.shuffle(steps)
    lines, accesses, epoch = [], [], 0
    pending: dict[str, list[_Access]] = {"vmcnt": [], "lgkmcnt": []}
    for place, step in enumerate(steps):
        if step == "barrier":
            lines.append("s_barrier")
            epoch += 1
        elif step == "wait":
            counter, left = chooser.choice(["vmcnt", "lgkmcnt"]), chooser.choice([0, 0, 1])
            lines.append(f"s_waitcnt {counter}({left})")
            while len(pending[counter]) > left:
                over = pending[counter].pop(0)
                over.covered, over.covered_place = epoch, place
        else:
            text, size, does, counter = kinds[step]
            offset = 4 * chooser.choice([0, 0, 1, 40, 64]) + (chooser.randrange(4) if size == 1 else 0)
            octets = frozenset(lane * 4 + offset + byte for lane, byte in product(range(64), range(size)))
            access = _Access(octets, does, counter, epoch, place)
            lines.append(text.format(offset))
            accesses.append(access)
            pending[counter].append(access)
    return Program(tuple(lines), tuple(accesses))


def races(one: Program, other: Program) -> bool:
    """Is there a pair of accesses of the two that nothing orders?"""
    return any(
        a.octets & b.octets
        and {a.does, b.does} & {"w", "d", "a"}
        and not a.does == b.does == "a"
        and not (a.covered < b.epoch or b.covered < a.epoch)
        for a, b in product(one.accesses, other.accesses)
    )


def overtakes(program: Program) -> bool:
    """Does a wave use bytes while a load to LDS of its own, or an access before one, is in flight?"""
    return any(
        a.place < b.place
        and a.octets & b.octets
        and "d" in {a.does, b.does}
        and {a.does, b.does} & {"w", "d", "a"}
        and not a.covered_place < b.place
        for a, b in product(program.accesses, program.accesses)
    )
