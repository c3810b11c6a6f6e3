"""A wave under way: takes its instructions, gives the state that the cycle model moves forward."""

from __future__ import annotations

from dataclasses import dataclass

from rota.simulate.instructions import Instruction
from rota.simulate.run import Lost
from rota.targets.rates import SIMDS


class Wave:
    """One wave: where it stands, what it has under way."""

    __slots__ = (
        "code",
        "edges",
        "ended",
        "held_up",
        "idle",
        "idles",
        "last",
        "lds_done",
        "lds_late",
        "lost",
        "number",
        "pc",
        "priority",
        "ready",
        "simd",
        "start",
        "trip",
        "trips",
        "vm_done",
        "vm_issued",
        "vm_landed",
        "vm_late",
        "waits_for",
    )

    def __init__(self, number: int, code: tuple[Instruction, ...], registers: int) -> None:
        self.number = number
        self.simd = number % SIMDS
        self.code = code
        self.pc = self.start = self.trip = self.priority = self.vm_issued = self.ended = 0
        self.last = -1
        self.ready = [0] * registers
        self.lds_done: list[int] = []
        self.lds_late: list[int] = []
        self.vm_done: list[int] = []
        self.vm_late: list[int] = []
        self.vm_landed: dict[int, tuple[int, int]] = {}
        self.waits_for: tuple[int, int, int, bool] | None = None
        self.edges: list[int] = []
        self.lost: Lost = {}
        self.idle: Lost = {}
        self.trips: list[Lost] = []
        self.idles: list[Lost] = []
        self.held_up: list[tuple[int, int, int, int]] = []

    def blame(self, key: int, cause: int, start: int, end: int) -> None:
        """The matrix unit stood idle: for as long as this wave was held up since its last MFMA, that was why.

        The rest, in which it issued other instructions, goes to the MFMA that came late.
        """
        idle = self.idle
        rest = end - start
        for each, why, begin, finish in self.held_up:
            shared = min(finish, end) - max(begin, start)
            if shared > 0:
                idle[each, why] = idle.get((each, why), 0) + shared
                rest -= shared
        if rest:
            idle[key, cause] = idle.get((key, cause), 0) + rest

    def next_trip(self) -> None:
        """Close the books of one trip."""
        self.trips.append(self.lost)
        self.idles.append(self.idle)
        self.lost = {}
        self.idle = {}


@dataclass(slots=True)
class Landing:
    """A load on its way: `late` counts the clocks it queued."""

    wave: Wave
    token: int
    key: int
    port: int
    late: int
    issued: int
    trip: int
