"""Orders next to an order: takes what must stay behind what, gives orders in which one entry or a stretch has moved."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

_FURTHEST = 3  # matrix instructions that one entry passes


class EntryMoves:
    """Moves that no entry makes past one that it must stay behind; matrix instructions are `fixed` in their order."""

    def __init__(self, behind: Sequence[Collection[int]], fixed: Sequence[bool]) -> None:
        self.behind, self.fixed = behind, fixed

    def single(self, order: Sequence[int], entry: int) -> Iterator[list[int]]:
        """The entry one to three matrix instructions earlier, or else later."""
        place = order.index(entry)
        for step in (-1, 1):
            other, passed = place + step, 0
            while 0 <= other < len(order) and passed < _FURTHEST and self._may_swap(order[other], entry, step):
                if self.fixed[order[other]]:
                    passed += 1
                    yield _moved(order, place, other)
                other += step

    def shifted(self, order: Sequence[int], stretch: Sequence[int], step: int) -> list[int] | None:
        """Each matrix instruction of a stretch, in order, one entry earlier (-1) or later (1); None if one can't.

        So an entry moves from the gap at one end of the stretch to the gap at the other, although none moves far.
        """
        moved: list[int] | None = list(order)
        for entry in stretch if step < 0 else reversed(stretch):
            moved = None if moved is None else self._passed(moved, moved.index(entry), step)
        return moved

    def carried(self, order: Sequence[int], place: int, other: int) -> list[int] | None:
        """The entry at one place carried to another; None if it may not pass one in between."""
        entry, step = order[place], 1 if other > place else -1
        passed = range(place + step, other + step, step)
        return _moved(order, place, other) if all(self._may_swap(order[each], entry, step) for each in passed) else None

    def _passed(self, order: Sequence[int], place: int, step: int) -> list[int] | None:
        """The order with the nearest entry of the gap before or behind a matrix instruction on its other side."""
        other = place + step
        while 0 <= other < len(order) and not self.fixed[order[other]]:
            carried = self.carried(order, other, place)
            if carried is not None:
                return carried
            other += step
        return None

    def _may_swap(self, other: int, entry: int, step: int) -> bool:
        """May an entry move past the other, which stands before it (-1) or behind it (1)?"""
        first, second = (other, entry) if step < 0 else (entry, other)
        return first not in self.behind[second]


def _moved(order: Sequence[int], place: int, other: int) -> list[int]:
    moved = [*order[:place], *order[place + 1 :]]
    moved.insert(other, order[place])
    return moved
