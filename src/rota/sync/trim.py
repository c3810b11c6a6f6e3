"""What a repair can do without: takes barriers, waits and the options of each obligation, gives what is needed of them.

Leaving out or weakening one change makes no other needless that was needed before, so one look at each is enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota.sync.options import Option, WaitSite
from rota.sync.unrolled import InsertionPoint

Change = InsertionPoint | WaitSite
"""A place at which barriers are added, or a wait that is added or strengthened."""


class Trimmed:
    """Fewer barriers, then fewer and weaker waits, as long as every obligation is met.

    `needed_by` is, for each change that is left, the number of an obligation that would be unmet with any less of it.
    """

    def __init__(
        self, barriers: Mapping[InsertionPoint, int], waits: Mapping[WaitSite, int], options: Sequence[Sequence[Option]]
    ) -> None:
        self.options = options
        self.barriers, self.waits = dict(barriers), dict(waits)
        self.needed_by: dict[Change, int] = {}
        self.users: dict[Change, dict[int, None]] = {}
        for number, some in enumerate(options):
            for change in (change for option in some for change in (option.site, *option.gaps)):
                if change is not None:
                    self.users.setdefault(change, {})[number] = None
        for gap in barriers:
            self._trim_barriers(gap)
        for site in waits:
            self._trim_wait(site)

    def _unmet(self, change: Change) -> int | None:
        """An obligation that the change could help to meet, and that nothing meets."""
        for number in self.users[change]:
            if not any(option.holds(self.barriers, self.waits) for option in self.options[number]):
                return number
        return None

    def _trim_barriers(self, gap: InsertionPoint) -> None:
        while count := self.barriers.pop(gap, 0):
            self.barriers[gap] = count - 1
            number = self._unmet(gap)
            if number is not None:
                self.barriers[gap], self.needed_by[gap] = count, number
                return

    def _trim_wait(self, site: WaitSite) -> None:
        counts = {option.weakest for n in self.users[site] for option in self.options[n] if option.site == site}
        del self.waits[site]
        number = self._unmet(site)
        for weakest in sorted(counts, reverse=True):
            if number is None:
                return
            self.waits[site], self.needed_by[site] = weakest, number
            number = self._unmet(site)
