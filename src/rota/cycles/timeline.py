"""The values of a predicted run and of its timeline.

Clocks count from 0, the workgroup's start; an interval ends where the next may begin.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from rota.program.kinds import Phase


class Lane(enum.StrEnum):
    """The unit that a slice shows, in the order in which pictures show them: what must stay busy comes first."""

    MMA = "MMA"  # one per SIMD
    VALU = "VALU"  # one per SIMD
    LDS = "LDS"  # one port for all waves
    GLOBAL = "global memory"  # from issue until the data has landed


class Cause(enum.StrEnum):
    """Why a wave did not issue; besides these, it waits for a counter (`wait_for`)."""

    BARRIER = "barrier"
    LDS_PORT = "LDS port"  # the part of a wait for an LDS op during which the port served others
    DMA_PATH = "DMA path"  # the part of a wait for a global memory op during which the path from L2 served others
    MMA_BUSY = "MMA busy"
    VALU_BUSY = "VALU busy"  # with an instruction that takes several turns
    DEPENDENCY = "result not ready"  # of an MFMA or VALU op, by the architecture's wait states
    COUNTER_FULL = "counter full"
    ISSUE = "issue turn"  # another wave of the SIMD had the turn, or this one spent it on scalar set-up


def wait_for(counter: str) -> str:
    """The cause of standing until a counter has come down, or until what it tracks has come."""
    return f"wait {counter}"


class At(NamedTuple):
    """An entry as executed: its phase, its `time_slot` there, and the trip (0 in prologue, last trip in epilogue)."""

    phase: Phase
    slot: int
    trip: int


class Slice(NamedTuple):
    """A unit held by `instructions` of one entry without a gap; the last one's result is there at `done`."""

    wave: int
    lane: Lane
    start: int
    end: int
    done: int
    at: At
    label: str
    instructions: int


class Stall(NamedTuple):
    """A wave stalled at an entry; `label` names where, as `wait_vm(4)`."""

    wave: int
    start: int
    end: int
    cause: str
    at: At
    label: str


class Crossing(NamedTuple):
    """One wave at one barrier; where arriving and waiting are apart, it does one of both and crosses twice."""

    wave: int
    arrived: int
    released: int
    at: At
    barrier: str
    arrives: bool = True
    awaits: bool = True


class Level(NamedTuple):
    """From `clock` on, `tokens` are pending on a wave's counter."""

    wave: int
    counter: str
    clock: int
    tokens: int


class Registers(NamedTuple):
    """From `clock` on, a wave holds `live` registers per lane."""

    wave: int
    clock: int
    live: int


class BufferUse(NamedTuple):
    """An LDS buffer holds one tile from its first write's issue to its last read's end."""

    buffer: str
    start: int
    end: int


class Flow(NamedTuple):
    producer: int
    consumer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A predicted run of one workgroup on one compute unit."""

    name: str
    machine: str
    waves: int
    simds: int  # waves i and i + simds share one
    roles: tuple[str, ...]  # of each wave
    end: int
    window: tuple[int, int]  # one steady trip of wave 0, `tiles_per_trip` K-tiles long
    edges: tuple[int, ...]  # where wave 0 began each trip, and ended the last
    tiles_per_trip: int
    slices: tuple[Slice, ...]
    stalls: tuple[Stall, ...]
    crossings: tuple[Crossing, ...]
    levels: tuple[Level, ...]
    counter_limits: tuple[tuple[str, int], ...]
    registers: tuple[Registers, ...]  # none where the ops don't say how many they hold
    register_limit: int
    buffers: tuple[BufferUse, ...]
    flows: tuple[Flow, ...]


Lost = dict[tuple[int, int], int]
"""Clocks by (entry's key, cause's number)."""


class Occupied(NamedTuple):
    """A unit held by one instruction of the entry that `key` numbers."""

    wave: int
    lane: Lane
    issued: int
    start: int
    end: int
    done: int
    key: int
    trip: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """When each wave began its trips and ended the last (`edges`), and the clocks it lost, by entry and cause."""

    edges: tuple[tuple[int, ...], ...]
    lost: tuple[tuple[Lost, ...], ...]
    idle: tuple[tuple[Lost, ...], ...]  # for which the matrix unit waited for the wave, by what held that up
    end: int
    issued: int
    causes: tuple[str, ...]
    period: int  # trips after which the unit's state repeated, or 0
    occupied: tuple[Occupied, ...]
    stalls: tuple[Stall, ...]
    crossings: tuple[Crossing, ...]

    @property
    def apart(self) -> bool:
        """True if a wave finished before another began its last trip: nothing ties them, and one starves."""
        return not self.period and min(edges[-1] for edges in self.edges) < max(edges[-2] for edges in self.edges)

    @property
    def trips(self) -> int:
        return len(self.edges[0]) - 1

    @property
    def averaged_over(self) -> int:
        """The last trips that losses are averaged over: one period, all if waves drift apart, else the later half."""
        return self.trips if self.apart else self._recent

    @property
    def clocks_per_trip(self) -> float:
        """The steady rate, by wave 0's edges; if waves drift apart, not faster than the last of them came through."""
        edges = self.edges[0]
        recent = (edges[-1] - edges[-1 - self._recent]) / self._recent
        if not self.apart:
            return recent
        return max(recent, (max(each[-1] for each in self.edges) - edges[0]) / self.trips)

    @property
    def _recent(self) -> int:
        return self.period or max(self.trips // 2, 1)
