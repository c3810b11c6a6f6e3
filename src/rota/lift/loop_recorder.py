"""What loops do with LDS: takes a proof under way, gives the bytes that each wave uses in each trip.

The proof follows a loop until its state repeats: the trips from the state that is met again to its repetition are all
that there is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

from rota.lift.natural_loops import NaturalLoop
from rota.prove.product_state import ProductState
from rota.prove.squad import LdsUse, Squad


class LoopRecorder:
    """A `rota.prove.recorder.Recorder` for some loops.

    `bytes` has for each trip, wave and operation the sets of bytes that were seen, as numbers with a bit for each byte.
    `periods` has for each head pairs of trips with the same state; `entered` has for each head how many barriers each
    wave had come to when it first came there.
    """

    def __init__(self, loops: Sequence[NaturalLoop]) -> None:
        self._heads = {each.number: loop.head for loop in loops for each in loop.chain}
        self._trips: dict[Hashable, int] = {}
        self._last: tuple[ProductState, tuple[int, ...], int] | None = None
        self._trip = 0
        self.bytes: defaultdict[tuple[int, int, int], set[int]] = defaultdict(set)
        self.inexact: set[int] = set()
        self.periods: dict[int, set[tuple[int, int]]] = {loop.head: set() for loop in loops}
        self.entered: dict[int, dict[int, int]] = {loop.head: {} for loop in loops}

    def came(self, product: ProductState, head: tuple[Hashable, ...], key: Hashable) -> None:
        """Counts trips, and notes which are alike."""
        self._last = None
        squad = next((each for each in product.squads if head == (each.waves[0],)), None)
        if squad is None or squad.at not in self.entered:
            return
        trip = _visits(product, squad, squad.at)
        for wave in squad.waves:
            self.entered[squad.at].setdefault(wave, squad.barriers)
        first = self._trips.setdefault(key, trip)
        if first < trip:
            self.periods[squad.at].add((first, trip))

    def accessed(self, product: ProductState, squad: Squad, access: LdsUse) -> None:
        """Notes the bytes of an operation of a loop."""
        head = self._heads.get(access.number)
        if head is None:
            return
        here = (product, squad.waves, head)
        if self._last is None or self._last[0] is not product or self._last[1:] != here[1:]:
            self._last, self._trip = here, _visits(product, squad, head) - 1
        if not access.exact:
            self.inexact.add(access.number)
        for place, wave in enumerate(squad.waves):
            self.bytes[self._trip, wave, access.number].add(access.bytes[place])


def _visits(product: ProductState, squad: Squad, head: int) -> int:
    """How often these waves have come to a loop's head on this path."""
    who, at = (squad.waves[0],), (squad.waves, head)
    return sum(
        len(visits)
        for place, visits in product.history.items()
        if isinstance(place, tuple) and place[0] == who and at in place[1:]
    )
