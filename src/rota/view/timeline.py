"""What a picture needs of a predicted run: takes nothing, gives the protocols that a simulated timeline satisfies.

Pictures and simulation stand beside each other and import neither the other; `rota.simulate.timeline` has the values.
Clocks count from the workgroup's start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rota.declare.effects import Counter
from rota.declare.vocabulary import Phase


class At(Protocol):
    """An entry as executed."""

    @property
    def phase(self) -> Phase:
        """Where it stands."""
        ...

    @property
    def slot(self) -> int:
        """Its `time_slot` in the phase."""
        ...

    @property
    def trip(self) -> int:
        """In which trip it ran."""
        ...


class OfWave(Protocol):
    """Something that one wave did at one entry."""

    @property
    def wave(self) -> int:
        """Which wave."""
        ...

    @property
    def at(self) -> At:
        """Which entry."""
        ...


class Stretch(OfWave, Protocol):
    """The same, over some time."""

    @property
    def start(self) -> int:
        """First clock."""
        ...

    @property
    def end(self) -> int:
        """The clock at which something else may begin."""
        ...

    @property
    def label(self) -> str:
        """The entry in words."""
        ...


class Slice(Stretch, Protocol):
    """A unit held by instructions of one entry."""

    @property
    def lane(self) -> str:
        """The unit: "MMA", "VALU", "LDS" or "global memory"."""
        ...

    @property
    def done(self) -> int:
        """When the last result is there."""
        ...

    @property
    def instructions(self) -> int:
        """How many."""
        ...


class Stall(Stretch, Protocol):
    """A wave that issued nothing."""

    @property
    def cause(self) -> str:
        """Why not."""
        ...


class Crossing(OfWave, Protocol):
    """One wave at one barrier."""

    @property
    def arrived(self) -> int:
        """When it came."""
        ...

    @property
    def released(self) -> int:
        """When it went on."""
        ...


class Level(Protocol):
    """Tokens on a wave's counter from a clock on."""

    @property
    def wave(self) -> int:
        """Which wave."""
        ...

    @property
    def counter(self) -> Counter:
        """Which counter."""
        ...

    @property
    def clock(self) -> int:
        """Since when."""
        ...

    @property
    def tokens(self) -> int:
        """How many."""
        ...


class Registers(Protocol):
    """Live registers of a wave from a clock on."""

    @property
    def wave(self) -> int:
        """Which wave."""
        ...

    @property
    def clock(self) -> int:
        """Since when."""
        ...

    @property
    def live(self) -> int:
        """How many per lane."""
        ...


class BufferUse(Protocol):
    """An LDS buffer that holds a tile."""

    @property
    def buffer(self) -> str:
        """Which buffer."""
        ...

    @property
    def start(self) -> int:
        """From its first write."""
        ...

    @property
    def end(self) -> int:
        """To its last read."""
        ...


class Flow(Protocol):
    """A slice, by its number, that made what another one used."""

    @property
    def producer(self) -> int:
        """The one that made it."""
        ...

    @property
    def consumer(self) -> int:
        """The one that used it."""
        ...


class Timeline(Protocol):
    """A predicted run of one workgroup on one compute unit; waves i and i + 4 share a SIMD."""

    @property
    def name(self) -> str:
        """The schedule's."""
        ...

    @property
    def machine(self) -> str:
        """The device's."""
        ...

    @property
    def waves(self) -> int:
        """How many."""
        ...

    @property
    def groups(self) -> Sequence[int]:
        """Each wave's group."""
        ...

    @property
    def end(self) -> int:
        """When the last wave is through."""
        ...

    @property
    def window(self) -> tuple[int, int]:
        """One steady trip of wave 0."""
        ...

    @property
    def tiles_per_trip(self) -> int:
        """K-tiles of a trip."""
        ...

    @property
    def slices(self) -> Sequence[Slice]:
        """What the units did."""
        ...

    @property
    def stalls(self) -> Sequence[Stall]:
        """What the waves didn't do."""
        ...

    @property
    def crossings(self) -> Sequence[Crossing]:
        """The barriers."""
        ...

    @property
    def levels(self) -> Sequence[Level]:
        """The counters."""
        ...

    @property
    def counter_limits(self) -> Sequence[tuple[Counter, int]]:
        """What a counter can hold."""
        ...

    @property
    def registers(self) -> Sequence[Registers]:
        """Live registers; empty where unknown."""
        ...

    @property
    def register_limit(self) -> int:
        """Registers a lane has."""
        ...

    @property
    def buffers(self) -> Sequence[BufferUse]:
        """LDS buffers in use."""
        ...

    @property
    def flows(self) -> Sequence[Flow]:
        """Who made what for whom."""
        ...
