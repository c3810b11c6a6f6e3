"""What the proof's symbols mean in one launch: takes values and what the interpreter has, and says if they differ.

A symbol means one number for the whole workgroup, for each wave or for each lane, as its spread promises.  Where it was
made by an operation that is computed here, in plain Python, it means that operation's result; all others are unknown
and take what a register shows when they are first met, and must stay that.  Whatever is met again has to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.prove.state import Half, Mask
from rota.prove.symbol import GROUP, LANE, M32, Linear, Parts, Symbol, Value
from tests.campaigns.machine_code.plain_integers import PLAIN

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Args = tuple[Any, ...]
LANES = 64
ALL = np.ones(LANES, np.bool_)
NONE = np.zeros(LANES, np.bool_)


class DifferError(Exception):
    """The proof's value and the interpreter's are not the same."""


@dataclass(frozen=True, slots=True)
class Where:
    """A wave, and its place in a wave_set of so many."""

    wave: int
    row: int
    count: int


@dataclass(slots=True)
class Known:
    """Numbers of all lanes, and which of them are known."""

    numbers: Numbers
    lanes: Flags

    @property
    def whole(self) -> bool:
        """Is every lane known?"""
        return bool(self.lanes.all())


def unknown() -> Known:
    """Nothing is known."""
    return Known(np.zeros(LANES, np.int64), NONE.copy())


def _full(numbers: Any) -> Known:
    return Known(np.broadcast_to(np.asarray(numbers, np.int64), (LANES,)), ALL)


class Meaning:
    """What symbols mean, found out as registers are met."""

    def __init__(self) -> None:
        self._known: dict[tuple[Symbol, int | None], Known] = {}
        self.checked = self.bound = 0

    def forget(self) -> None:
        """Symbols that are not made of arguments alone may mean something else from now on."""
        self._known = {key: value for key, value in self._known.items() if key[0].stable}

    # What is known.

    def value(self, value: Value | Half, at: Where, *, again: bool = False) -> Known:
        """A register's contents; with `again`, its symbol is computed anew."""
        if isinstance(value, Half):
            found = self.mask(value.mask, at)
            bits = sum(int(bit) << lane for lane, bit in enumerate(found.numbers.tolist())) >> 32 * value.which & M32
            half = slice(32 * value.which, 32 * value.which + 32)
            return _full(bits) if found.lanes[half].all() else unknown()
        if isinstance(value, int):
            return _full(value)
        if isinstance(value, Linear):
            base, offset = self.symbol(value.base, at, again=again), self.value(value.offset, at)
            numbers = [
                (value.scale * a + b) & M32 for a, b in zip(base.numbers.tolist(), offset.numbers.tolist(), strict=True)
            ]
            return Known(np.array(numbers, np.int64), base.lanes & offset.lanes)
        if value.shape[0] not in {1, at.count}:
            return unknown()
        return _full(value[at.row if value.shape[0] > 1 else 0])

    def mask(self, mask: Mask, at: Where) -> Known:
        """Lanes that are in."""
        if mask.leaf is not None:
            if len(mask.leaf) not in {1, at.count}:
                return unknown()
            number = mask.leaf[at.row if len(mask.leaf) > 1 else 0]
            return _full([number >> lane & 1 for lane in range(LANES)])
        chooser, if_set, if_not = _choice(mask)
        atom, high, low = self.symbol(chooser, at), self.mask(if_set, at), self.mask(if_not, at)
        same = high.lanes & low.lanes & (high.numbers == low.numbers)
        chosen = np.where(atom.numbers != 0, high.numbers, low.numbers)
        lanes = atom.lanes & np.where(atom.numbers != 0, high.lanes, low.lanes)
        return Known(np.where(same, high.numbers, chosen), same | lanes)

    def symbol(self, base: Symbol, at: Where, *, again: bool = False) -> Known:
        """What a symbol means for a wave, as far as that is known."""
        key = (base, None if base.spread == GROUP else at.wave)
        found = self._known.get(key)
        if found is not None and found.whole and not again:
            return found
        made = self._made(base, at)
        if made is not None and made.lanes.any():
            self._store(key, made, "is computed as")
            found = self._known[key]
        return found if found is not None else unknown()

    def _store(self, key: tuple[Symbol, int | None], new: Known, how: str) -> None:
        base = key[0]
        wrong = new.lanes & (new.numbers & ~base.bits != 0)
        if wrong.any():
            raise DifferError(f"{base} {how} {_shown(new, wrong)}, outside of its bits {base.bits:#x}")
        if base.spread != LANE and new.lanes.any():
            numbers = new.numbers[new.lanes]
            if (numbers != numbers[0]).any():
                raise DifferError(f"{base} {how} {_shown(new, new.lanes)}, not the same in all lanes")
            new = _full(numbers[0])
        old = self._known.get(key)
        if old is None:
            self._known[key] = Known(new.numbers.copy(), new.lanes.copy())
            return
        differ = old.lanes & new.lanes & (old.numbers != new.numbers)
        if differ.any():
            raise DifferError(f"{base} {how} {_shown(new, differ)}, and was {_shown(old, differ)}")
        self._known[key] = Known(np.where(old.lanes, old.numbers, new.numbers), old.lanes | new.lanes)

    # What it must be.

    def hold(
        self, value: Value | Half, at: Where, concrete: Numbers, lanes: Flags = ALL, *, again: bool = False
    ) -> None:
        """A register shows that in some lanes: checks what is known of it, and learns the rest."""
        if isinstance(value, Half):
            bits = {lane: int(concrete[0]) >> lane & 1 for lane in range(32)}
            for lane, bit in bits.items():
                self.hold_bit(value.mask, at, 32 * value.which + lane, bit)
            return
        if isinstance(value, Linear) and self._split(value, at, concrete, lanes):
            return
        found = self.value(value, at, again=again)
        self._compare(found, concrete, lanes)
        if isinstance(value, Linear):
            self._bind(value, at, concrete, lanes & ~found.lanes)

    def _compare(self, found: Known, concrete: Numbers, lanes: Flags) -> None:
        differ = found.lanes & lanes & (found.numbers != concrete)
        if differ.any():
            raise DifferError(
                f"the proof has {_shown(found, differ)}, the interpreter {_shown(_full(concrete), differ)}"
            )
        self.checked += int((found.lanes & lanes).sum())

    def _split(self, value: Linear, at: Where, concrete: Numbers, lanes: Flags) -> bool:
        """A value that a mask or a condition chooses: each part has to hold where it is chosen."""
        parts = _parts(value.base)
        if parts is None or value.scale != 1 or not isinstance(value.offset, int):
            return False
        key = (value.base, None if value.base.spread == GROUP else at.wave)
        if (found := self._known.get(key)) is not None and found.whole:
            return False
        chooser, one, other = parts
        chosen = self.mask(chooser, at) if isinstance(chooser, Mask) else self.symbol(chooser, at)
        rest = (concrete - value.offset) & M32
        for part, wanted in ((one, 1), (other, 0)):
            mine = lanes & chosen.lanes & ((chosen.numbers != 0) == bool(wanted))
            if mine.any():
                self.hold(part, at, rest, mine)
        decided = lanes & chosen.lanes
        if decided.any():
            self._store(key, Known(rest, decided.copy()), "shows")
        left = lanes & ~chosen.lanes
        if left.any():
            self._bind(value, at, concrete, left)
        return True

    def _bind(self, value: Linear, at: Where, concrete: Numbers, lanes: Flags) -> None:
        offset = self.value(value.offset, at)
        lanes = lanes & offset.lanes
        if not lanes.any():
            return
        unit = value.scale & -value.scale
        rest = (concrete - offset.numbers) & M32
        wrong = lanes & (rest % unit != 0)
        if wrong.any():
            raise DifferError(f"{_shown(_full(concrete), wrong)} is no multiple of {unit} plus what is known")
        turn = pow(value.scale // unit, -1, 1 << 32)
        numbers = np.array([each // unit * turn % ((1 << 32) // unit) for each in rest.tolist()], np.int64)
        key = (value.base, None if value.base.spread == GROUP else at.wave)
        if unit > 1 and value.base.bits >= (1 << 32) // unit:
            return  # several numbers would do
        self._store(key, Known(numbers, lanes.copy()), "shows")
        self.bound += int(lanes.sum())

    def hold_mask(self, mask: Mask, at: Where, bits: int) -> None:
        """EXEC is that."""
        for lane in range(LANES):
            self.hold_bit(mask, at, lane, bits >> lane & 1)

    def hold_bit(self, mask: Mask, at: Where, lane: int, bit: int) -> None:
        """A lane is in, or isn't."""
        if bit not in self._possible(mask, at, lane):
            raise DifferError(f"lane {lane} is {'in' if bit else 'not in'}, which the proof's mask excludes")
        self.checked += 1
        while mask.leaf is None:
            chooser, if_set, if_not = _choice(mask)
            atom = self.symbol(chooser, at)
            if atom.lanes[lane]:
                mask = if_set if atom.numbers[lane] else if_not
                continue
            high, low = (bit in self._possible(each, at, lane) for each in (if_set, if_not))
            if high and low:
                return
            only = NONE.copy()
            only[lane] = True
            key = (chooser, None if chooser.spread == GROUP else at.wave)
            self._store(key, Known(np.full(LANES, int(high), np.int64), only), "shows")
            mask = if_set if high else if_not

    def _possible(self, mask: Mask, at: Where, lane: int) -> set[int]:
        if mask.leaf is not None:
            if len(mask.leaf) not in {1, at.count}:
                return {0, 1}
            return {mask.leaf[at.row if len(mask.leaf) > 1 else 0] >> lane & 1}
        chooser, if_set, if_not = _choice(mask)
        atom = self.symbol(chooser, at)
        if atom.lanes[lane]:
            return self._possible(if_set if atom.numbers[lane] else if_not, at, lane)
        return self._possible(if_set, at, lane) | self._possible(if_not, at, lane)

    # What symbols are made of.

    def _key(self, key: Hashable, at: Where) -> Known:
        """A value of which the key is given."""
        if isinstance(key, int):
            return _full(key)
        if isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], Symbol):
            base, offset = self.symbol(key[0], at), self._key(key[2], at)
            numbers = [
                (key[1] * a + b) & M32 for a, b in zip(base.numbers.tolist(), offset.numbers.tolist(), strict=True)
            ]
            return Known(np.array(numbers, np.int64), base.lanes & offset.lanes)
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], bytes):
            return self.value(np.frombuffer(key[1], np.int64).reshape(key[0]), at)
        return unknown()

    def _made(self, base: Symbol, at: Where) -> Known | None:
        if _parts(base) is not None:
            return self._chosen(base, at)
        do = _MADE.get(base.op)
        return self._computed(base, at) if do is None else do(self, base.args, at)

    def _chosen(self, base: Symbol, at: Where) -> Known:
        chooser, one, other = _parts(base) or (base, 0, 0)
        chosen = self.mask(chooser, at) if isinstance(chooser, Mask) else self.symbol(chooser, at)
        high, low = self.value(one, at), self.value(other, at)
        return Known(
            np.where(chosen.numbers != 0, high.numbers, low.numbers),
            chosen.lanes & np.where(chosen.numbers != 0, high.lanes, low.lanes),
        )

    def _any(self, args: Args, at: Where) -> Known | None:
        mask = self.mask(args[0], at)
        if (mask.lanes & (mask.numbers != 0)).any():
            return _full(1)
        return _full(0) if mask.whole else None

    def _share(self, args: Args, at: Where) -> Known:
        total = self.symbol(args[0], at)
        return Known(total.numbers // args[1], total.lanes)

    def _pair(self, args: Args, at: Where) -> Known | None:
        low, high = (self._key(each, at) for each in args[:2])
        if not (low.whole and high.whole):
            return None
        number = int(low.numbers[0]) | int(high.numbers[0]) << 32
        return _full([number >> lane & 1 for lane in range(LANES)])

    def _first(self, args: Args, at: Where) -> Known | None:
        value, mask = self._key(args[0], at), self.mask(args[1], at)
        lane = int(np.argmax(mask.numbers != 0)) if mask.numbers.any() else 0
        return _full(value.numbers[lane]) if mask.whole and value.lanes[lane] else None

    def _one_lane(self, args: Args, at: Where) -> Known | None:
        value, place = (self._key(each, at) for each in args[:2])
        lane = int(place.numbers[0]) & 63
        return _full(value.numbers[lane]) if place.whole and value.lanes[lane] else None

    def _computed(self, base: Symbol, at: Where) -> Known | None:
        args = base.args[:-1]
        do = PLAIN.get((base.op, len(args)))
        if do is None:
            return None
        values = [self._key(each, at) for each in args]
        lanes = ALL
        for each in values:
            lanes = lanes & each.lanes
        if not lanes.any():
            return None
        columns = zip(*(each.numbers.tolist() for each in values), strict=True)
        numbers = [do(*column) & M32 if known else 0 for column, known in zip(columns, lanes.tolist(), strict=True)]
        if base.op == "and" and isinstance(args[1], int) and args[1]:
            unit = args[1] & -args[1]  # the proof keeps such a mask's multiple
            numbers = [each // unit for each in numbers]
        return Known(np.array(numbers, np.int64), lanes)


_MADE: dict[str, Callable[[Meaning, Args, Where], Known | None]] = {
    "half": lambda one, args, at: one.value(Half(args[0], args[1]), at),
    "any": Meaning._any,  # its own
    "/": Meaning._share,
    "pair": Meaning._pair,
    "first": Meaning._first,
    "lane": Meaning._one_lane,
}


def _choice(mask: Mask) -> tuple[Symbol, Mask, Mask]:
    assert mask.atom is not None
    assert mask.high is not None
    assert mask.low is not None
    return mask.atom, mask.high, mask.low


def _parts(base: Symbol) -> tuple[Any, Any, Any] | None:
    if base.op not in {"pick", "select"}:
        return None
    held = base.args[3]
    return held.parts if isinstance(held, Parts) else None


def _shown(known: Known, lanes: Flags) -> str:
    lane = int(np.argmax(lanes))
    return f"{int(known.numbers[lane]):#x} in lane {lane}"
