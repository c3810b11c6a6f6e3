"""Which K-tiles an accumulator has taken in: takes tile numbers one by one, gives what is doubled or missing."""

from __future__ import annotations


class Taken:
    """The tiles 0 .. `upto` - 1 and those in `beyond`; small because a loop takes its tiles nearly in order."""

    __slots__ = ("beyond", "upto")

    def __init__(self, upto: int = 0, beyond: frozenset[int] = frozenset()) -> None:
        self.upto = upto
        self.beyond = set(beyond)

    def add(self, tile: int) -> bool:
        """Take in a tile; False if it was there already."""
        if tile < self.upto or tile in self.beyond:
            return False
        self.beyond.add(tile)
        while self.upto in self.beyond:
            self.beyond.remove(self.upto)
            self.upto += 1
        return True

    def skip(self) -> int:
        """Give up on the lowest tile that is missing, and name it."""
        missing = self.upto
        self.add(missing)
        return missing

    def relative(self, base: int, stale: int) -> tuple[int, ...]:
        """The same for every trip of a loop that takes in its tiles regularly.

        Tiles further back than `stale` are alike: an accumulator that lacks one of them is wrong already.
        """
        return (max(self.upto - base, stale), *sorted({max(tile - base, stale) for tile in self.beyond}))

    def fork(self) -> Taken:
        """A copy that goes its own way."""
        return Taken(self.upto, frozenset(self.beyond))
