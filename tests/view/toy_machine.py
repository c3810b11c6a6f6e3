"""A crude machine for pictures: takes a compiled schedule, gives a `Timeline` whose every number is easy to work out.

It issues an entry every 4 clocks, takes what its tables say for each op, and has one MMA unit per SIMD.  It predicts
nothing: pictures of it are tested, not it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from rota import CompiledSchedule, Phase
from rota.cycles.timeline import (
    At,
    BufferUse,
    Cause,
    Crossing,
    Flow,
    Lane,
    Level,
    Registers,
    Slice,
    Stall,
    Timeline,
    wait_for,
)
from rota.program.entry import WORKGROUP, Entry, Place
from rota.program.kinds import OpKind

SIMDS = 4
HELD = {OpKind.MMA: 16, OpKind.LDS_READ: 12, OpKind.LDS_WRITE: 12, OpKind.DMA: 800}
LANES = {OpKind.MMA: Lane.MMA, OpKind.LDS_READ: Lane.LDS, OpKind.LDS_WRITE: Lane.LDS, OpKind.DMA: Lane.GLOBAL}


@dataclass
class Wave:
    number: int
    role: int
    work: list[tuple[Entry, At]]
    at: int = 0
    clock: int = 0
    pending: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    makers: dict[Place, int] = field(default_factory=dict)


def run(
    compiled: CompiledSchedule, waves: int | None = None, trips: int = 4, held: dict[str, int] | None = None
) -> Timeline:
    """`held` gives the clocks of single ops by the name that they print as."""
    program = compiled.lowered
    roles = len(program.roles)
    count = waves or program.waves or SIMDS * roles
    team = [Wave(number, number // SIMDS if roles > 1 else 0, []) for number in range(count)]
    plan = [(entry, At(Phase.PROLOGUE, entry.time_slot, 0)) for entry in program.prologue]
    for trip in range(trips):
        plan += [(entry, At(Phase.KERNEL, entry.time_slot, trip)) for entry in program.kernel]
    plan += [(entry, At(Phase.EPILOGUE, entry.time_slot, trips)) for entry in program.epilogue]
    for wave in team:
        wave.work = [(entry, at) for entry, at in plan if entry.executed_by(wave.role)]
    machine = Machine(held or {})
    while any(wave.at < len(wave.work) for wave in team):
        machine.turn(team)
    first = [machine.trip_starts[trip] for trip in range(trips)]
    order = sorted(
        range(len(machine.slices)), key=lambda number: (machine.slices[number].start, machine.slices[number].wave)
    )
    rank = {old: new for new, old in enumerate(order)}
    return Timeline(
        name=compiled.name,
        machine=compiled.machine.name,
        waves=count,
        simds=4,
        roles=tuple(program.roles[wave.role].name for wave in team),
        end=max(wave.clock for wave in team),
        window=(first[-2], first[-1]),
        edges=tuple(first),
        tiles_per_trip=program.tiles_per_trip,
        slices=tuple(machine.slices[number] for number in order),
        stalls=tuple(machine.stalls),
        crossings=tuple(machine.crossings),
        levels=tuple(machine.levels),
        counter_limits=(("vmcnt", 63), ("lgkmcnt", 15)),
        registers=tuple(Registers(0, clock, 100 + number % 7) for number, clock in enumerate(first)),
        register_limit=256,
        buffers=tuple(machine.buffers),
        flows=tuple(Flow(rank[flow.producer], rank[flow.consumer]) for flow in machine.flows),
    )


class Machine:
    def __init__(self, held: dict[str, int]) -> None:
        self.held = held
        self.slices: list[Slice] = []
        self.stalls: list[Stall] = []
        self.crossings: list[Crossing] = []
        self.levels: list[Level] = []
        self.buffers: list[BufferUse] = []
        self.flows: list[Flow] = []
        self.mma_free: dict[int, int] = {}
        self.lds_free = 0
        self.trip_starts: dict[int, int] = {}

    def turn(self, team: list[Wave]) -> None:
        """The wave that is furthest after issues; when all stand at a barrier, all pass it."""
        running = [wave for wave in team if wave.at < len(wave.work)]
        free = [wave for wave in running if wave.work[wave.at][0].effect.kind is not OpKind.BARRIER]
        if not free:
            release = max(wave.clock for wave in running)
            for wave in running:
                at = wave.work[wave.at][1]
                self.crossings.append(Crossing(wave.number, wave.clock, release, at, WORKGROUP))
                self.stall(wave, release, Cause.BARRIER, at, "barrier")
                wave.clock = release
                wave.at += 1
            return
        wave = min(free, key=lambda wave: (wave.clock, wave.number))
        entry, at = wave.work[wave.at]
        if at.phase is Phase.KERNEL and wave.number == 0:
            self.trip_starts.setdefault(at.trip, wave.clock)
        self.issue(wave, entry, at)
        wave.clock += 4
        wave.at += 1

    def issue(self, wave: Wave, entry: Entry, at: At) -> None:
        effect, name = entry.effect, str(entry.op)
        if effect.kind is OpKind.WAIT and effect.counter:
            pending = wave.pending[effect.counter]
            over = pending[: max(len(pending) - effect.wait_value, 0)]
            self.stall(wave, max(over, default=0), wait_for(effect.counter), at, name)
            del pending[: len(over)]
            self.levels.append(Level(wave.number, effect.counter, wave.clock, len(pending)))
        if effect.kind not in LANES:
            return
        lane, held = LANES[effect.kind], self.held.get(name, HELD[effect.kind])
        start = wave.clock
        if lane is Lane.MMA:
            start = max(start, self.mma_free.get(wave.number % SIMDS, 0))
            self.stall(wave, start, Cause.MMA_BUSY, at, name)
            self.mma_free[wave.number % SIMDS] = start + held
        if lane is Lane.LDS:
            start = max(start, self.lds_free)
            self.lds_free = start + held
        for place in effect.reads:
            if place in wave.makers:
                self.flows.append(Flow(wave.makers[place], len(self.slices)))
        for place in effect.writes:
            wave.makers[place] = len(self.slices)
        self.slices.append(Slice(wave.number, lane, start, start + held, start + held, at, name, 1))
        if effect.counter:
            wave.pending[effect.counter] += [start + held] * effect.tokens
            self.levels.append(Level(wave.number, effect.counter, start, len(wave.pending[effect.counter])))
        if effect.kind is OpKind.DMA and wave.number == 0:
            self.buffers.append(BufferUse(str(effect.writes[0]), start, start + 3 * held))

    def stall(self, wave: Wave, until: int, cause: str, at: At, name: str) -> None:
        if until > wave.clock:
            self.stalls.append(Stall(wave.number, wave.clock, until, cause, at, name))
            wave.clock = until
