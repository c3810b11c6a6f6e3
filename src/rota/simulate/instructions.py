"""What a wave issues: takes a compiled loop and the model's parameters, gives the instructions of each wave group."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rota.declare.effects import Action, Counter, Place, Space
from rota.declare.limits import MOST_INSTRUCTIONS, check_count
from rota.declare.vocabulary import FrameworkTag, OpRole, Phase
from rota.program.loop import LoopSteps, Step, steps_of
from rota.simulate.parameters import Parameters
from rota.simulate.work import TileShape, TimedLoop, Work, Worker, flops_of, waves_of, work_of
from rota.targets.rates import CLOCKS_PER_SLOT, SIMDS, Rates, rates_of


class Kind(enum.IntEnum):
    """What an instruction does; the cycle model has a handler for each."""

    MFMA = 0
    VALU = 1
    LDS_READ = 2
    LDS_WRITE = 3
    DMA = 4
    GLOBAL_TO_REGISTER = 5
    WAIT_VM = 6
    WAIT_LGKM = 7
    BARRIER = 8
    PRIORITY = 9
    SCALAR = 10
    ENTER = 11  # the loop begins; not an instruction
    EDGE = 12  # count, compare, branch back
    END = 13


class Instruction(NamedTuple):
    """`key` numbers the entry; `held` and `after` are clocks, or a wait's count, or a priority.

    MFMA and VALU: unit held, result ready after issue.  LDS: port held, latency.  DMA: path held, port held by the
    landing.  `needs` are registers with clocks on top of their ready time; `makes` are registers.
    """

    kind: int
    key: int
    held: int = 0
    after: int = 0
    needs: tuple[tuple[int, int], ...] = ()
    makes: tuple[int, ...] = ()


class Key(NamedTuple):
    """The entry behind an instruction."""

    phase: Phase
    slot: int
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Instructions per wave group, the entries they come from, and what one trip of the workgroup asks of the units.

    `mma_clocks` and `math_turns` are those of the busiest SIMD: how long its matrix unit is held, and the clocks of the
    turns in which it issues MFMA and VALU instructions.
    """

    name: str
    waves: int
    groups: tuple[int, ...]
    instructions: tuple[tuple[Instruction, ...], ...]
    keys: tuple[Key, ...]
    steps: tuple[Step | None, ...]
    registers: tuple[Place, ...]
    register_kinds: tuple[int, ...]
    tiles_per_trip: int
    flops: int
    mma_clocks: int
    math_turns: int
    lds_clocks: int
    dma_clocks: int


_KINDS = {
    Action.DMA: Kind.DMA,
    Action.GLOBAL_TO_REGISTER: Kind.GLOBAL_TO_REGISTER,
    Action.LDS_READ: Kind.LDS_READ,
    Action.LDS_WRITE: Kind.LDS_WRITE,
    Action.BARRIER: Kind.BARRIER,
}


def encode(loop: TimedLoop, parameters: Parameters, shape: TileShape | None = None) -> Code:
    """The loop as instructions, entries of several instructions written out."""
    steps = steps_of(loop)
    work = work_of(loop, steps, shape)
    issued = sum(work(step).instructions for step in (*steps.prologue, *steps.kernel, *steps.epilogue))
    check_count(loop.name, "instructions", issued, MOST_INSTRUCTIONS)
    encoder = _Encoder(parameters, rates_of(loop.machine), work, steps)
    waves = waves_of(loop, shape)
    per_group = waves // steps.groups
    groups = tuple(min(wave // per_group, steps.groups - 1) for wave in range(waves))
    instructions = tuple(tuple(encoder.group(group)) for group in range(steps.groups))
    return Code(
        name=loop.name,
        waves=waves,
        groups=groups,
        instructions=instructions,
        keys=tuple(encoder.keys),
        steps=tuple(encoder.steps),
        registers=tuple(encoder.registers),
        register_kinds=tuple(encoder.producers[place] for place in encoder.registers),
        tiles_per_trip=steps.tiles_per_trip,
        **_load(instructions[0], encoder, steps, waves),
    )


class _Encoder:
    """Numbers entries and registers while it writes instructions."""

    def __init__(self, parameters: Parameters, rates: Rates, work: Worker, loop: LoopSteps) -> None:
        self.parameters = parameters
        self.rates = rates
        self.work = work
        self.loop = loop
        self.keys: list[Key] = []
        self.steps: list[Step | None] = []
        self.known: dict[int, int] = {}
        self.registers: dict[Place, int] = {}
        self.producers: dict[Place, int] = {}
        self.makers: dict[str, int] = {}
        for step in (*loop.prologue, *loop.kernel, *loop.epilogue):
            self.makers |= {made.name: _kind(step) for _, made in step.effect.makes}
            for place in step.effect.writes:
                if place.space is Space.REGISTER:
                    self.registers.setdefault(place, len(self.registers))
                    self.producers[place] = _kind(step)

    def group(self, group: int) -> Iterator[Instruction]:
        """All instructions of one wave group."""
        edge = self.key(Key(Phase.KERNEL, len(self.loop.kernel), "loop edge"), None)
        yield from self.phase(self.loop.prologue, group)
        yield Instruction(Kind.ENTER, edge)
        yield from self.phase(self.loop.kernel, group)
        yield Instruction(Kind.EDGE, edge)
        yield from self.phase(self.loop.epilogue, group)
        yield Instruction(Kind.END, edge)

    def phase(self, steps: Iterable[Step], group: int) -> Iterator[Instruction]:
        """The instructions of those steps that the group executes."""
        for step in steps:
            if step.group in (None, group):
                yield from self.step(step)

    def step(self, step: Step) -> Iterator[Instruction]:
        """Operands are needed by the first instruction, the result is there after the last."""
        work = self.work(step)
        if not work.instructions:
            return
        if id(step) not in self.known:
            entry = step.entry
            self.known[id(step)] = self.key(Key(entry.phase, entry.time_slot, str(entry.op)), step)
        key, kind = self.known[id(step)], _kind(step)
        held, after = self.clocks(kind, step, work)
        maker = {place: self.makers[wanted.name] for place, wanted in step.effect.wants if wanted.name in self.makers}
        needs = tuple(
            (
                self.registers[place],
                self.later(kind, maker.get(place, self.producers[place]), place in step.effect.writes),
            )
            for place in step.effect.reads
            if place in self.registers
        )
        makes = tuple(self.registers[place] for place in step.effect.writes if place in self.registers)
        last = work.instructions - 1
        for number in range(work.instructions):
            if kind is Kind.DMA:
                yield from [Instruction(Kind.SCALAR, key)] * self.parameters.dma_setup
            yield Instruction(kind, key, held, after, needs if not number else (), makes if number == last else ())

    def clocks(self, kind: Kind, step: Step, work: Work) -> tuple[int, int]:
        """An instruction's `held` and `after`."""
        p = self.parameters
        if kind is Kind.MFMA:
            passes = self.rates.passes(work.instruction)
            return CLOCKS_PER_SLOT * passes, CLOCKS_PER_SLOT * (passes + p.result_turns + 1)
        if kind is Kind.VALU:
            return CLOCKS_PER_SLOT, CLOCKS_PER_SLOT
        if kind in (Kind.LDS_READ, Kind.LDS_WRITE):
            return -(-work.moved // (p.lds_read if kind is Kind.LDS_READ else p.lds_write)), p.lds_latency
        if kind in (Kind.DMA, Kind.GLOBAL_TO_REGISTER):
            return -(-work.moved // p.dma_rate), -(-work.moved // p.lds_write) if kind is Kind.DMA else 0
        return step.entry.op.wait_value, 0

    def later(self, kind: Kind, maker: int, in_place: bool) -> int:
        """An MFMA waits longer for a VALU result than a VALU op does, and not at all for what it adds to in place."""
        if kind is not Kind.MFMA:
            return 0
        if maker == Kind.MFMA and in_place:
            return -CLOCKS_PER_SLOT * (self.parameters.result_turns + 1)
        return CLOCKS_PER_SLOT * self.parameters.operand_turns if maker == Kind.VALU else 0

    def key(self, key: Key, step: Step | None) -> int:
        """A new number for an entry."""
        self.keys.append(key)
        self.steps.append(step)
        return len(self.keys) - 1


def _kind(step: Step) -> Kind:
    op, effect = step.entry.op, step.effect
    if effect.action is Action.WAIT:
        return Kind.WAIT_VM if effect.counter is Counter.VM else Kind.WAIT_LGKM
    if op.tag == FrameworkTag.SET_PRIO:
        return Kind.PRIORITY
    if effect.action is Action.COMPUTE and op.role is OpRole.COMPUTE:
        return Kind.MFMA
    return _KINDS.get(effect.action, Kind.VALU)


def _load(code: Iterable[Instruction], encoder: _Encoder, steps: LoopSteps, waves: int) -> dict[str, int]:
    """What one trip asks of each unit; every wave does the same work."""
    each = dict.fromkeys(("mma_clocks", "math_turns", "lds_clocks", "dma_clocks"), 0)
    simd_waves = -(-waves // SIMDS)
    for instruction in code:
        if encoder.keys[instruction.key].phase is not Phase.KERNEL:
            continue
        kind = instruction.kind
        if kind in (Kind.MFMA, Kind.VALU):
            each["mma_clocks"] += instruction.held * simd_waves if kind == Kind.MFMA else 0
            each["math_turns"] += CLOCKS_PER_SLOT * simd_waves
        elif kind in (Kind.LDS_READ, Kind.LDS_WRITE):
            each["lds_clocks"] += instruction.held * waves
        elif kind in (Kind.DMA, Kind.GLOBAL_TO_REGISTER):
            each["dma_clocks"] += instruction.held * waves
            each["lds_clocks"] += instruction.after * waves
    flops = sum(
        work.instructions * flops_of(work.instruction) for work in map(encoder.work, steps.kernel) if work.instruction
    )
    return {**each, "flops": flops * waves}
