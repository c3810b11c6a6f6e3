"""What happened when: takes nothing, gives the values that a timeline of predicted clocks is made of.

Clocks count from 0, the workgroup's start; an interval ends where the next may begin.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from rota.program.phase import Phase


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
    """A wave stood at an entry; `label` names what it stood at, as `wait_vm(4)`."""

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
    """A slice (by its number) made what another one used."""

    producer: int
    consumer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A predicted run of one workgroup on one compute unit.

    `roles` name each wave's role; waves i and i + `simds` share a SIMD.  `edges` are the clocks at which wave 0
    began each trip, and ended the last; `window` is one steady trip of wave 0, `tiles_per_trip` K-tiles long.
    `registers` is empty where the ops don't say how many they hold.
    """

    name: str
    machine: str
    waves: int
    simds: int
    roles: tuple[str, ...]
    end: int
    window: tuple[int, int]
    edges: tuple[int, ...]
    tiles_per_trip: int
    slices: tuple[Slice, ...]
    stalls: tuple[Stall, ...]
    crossings: tuple[Crossing, ...]
    levels: tuple[Level, ...]
    counter_limits: tuple[tuple[str, int], ...]
    registers: tuple[Registers, ...]
    register_limit: int
    buffers: tuple[BufferUse, ...]
    flows: tuple[Flow, ...]
