"""The instructions that waves issue, as the cycle model runs them, and the model's parameters.

`program_of` fills in how many instructions each op is; `encode` writes them out for every role. Parameters come from
the device: nominal, or with one estimate moved to an end of its range.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple, Protocol

from rota.errors import DeclarationError, did_you_mean
from rota.program.entry import Entry, Place, Space, Work
from rota.program.kinds import SYNC_INSTRUCTIONS, Home, OpKind, Phase, Unit
from rota.program.loop_spec import MOST_INSTRUCTIONS, check_count
from rota.program.lowered import Lowerable, LoweredProgram
from rota.program.machine import Counter
from rota.targets.architecture import has_one_wait
from rota.targets.cdna import shape_named
from rota.targets.device import Device, Rates, rates_of


class Arbitration(enum.Enum):
    """Which of two waves of one priority gets a turn that both want."""

    FAIR = "fair"  # the one that had the unit longest ago
    OLDEST = "oldest first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Clocks, turns and bytes per clock, as `targets.timing` names them.  The arbiter's rule is not published."""

    issue_classes: int
    lds_latency: int
    lds_read: int
    lds_read_transposed: int  # 0 where there is no such read
    lds_write: int
    dma_latency: int
    dma_jitter: int
    dma_rate: int
    dma_setup: int
    barrier: int
    loop_edge: int
    result_turns: int
    operand_turns: int
    simds: int
    turn: int
    arbitration: Arbitration = Arbitration.FAIR
    seed: int = 1

    def but(self, **changes: Any) -> Parameters:
        return replace(self, **changes)


class Variant(NamedTuple):
    """One estimate at an end of its range; the others stay nominal."""

    name: str
    value: int | str
    parameters: Parameters


_ESTIMATES = "issue_classes lds_latency lds_write dma_latency dma_jitter dma_rate dma_setup barrier loop_edge"


def nominal(device: Device) -> Parameters:
    timing = device.timing
    transposed = timing.rates.lds_read_transposed
    return Parameters(
        **{name: getattr(timing, name).fact.value for name in _ESTIMATES.split()},
        lds_read=timing.rates.lds_read.value,
        lds_read_transposed=0 if transposed is None else transposed.fact.value,
        result_turns=timing.result_turns.value,
        operand_turns=timing.operand_turns.value,
        simds=timing.rates.simds.value,
        turn=timing.rates.clocks_per_slot.value,
    )


def unlucky(device: Device) -> Parameters:
    """Nominal but for loads and reads, which take as long as they are estimated to at most."""
    timing = device.timing
    return nominal(device).but(dma_latency=timing.dma_latency.high, lds_latency=timing.lds_latency.high)


def variants(device: Device, base: Parameters, *, transposed: bool = False) -> Iterator[Variant]:
    """Every estimate at both ends of its range (also that of transposed reads, if asked), and the other arbiter."""
    rate = device.rates.lds_read_transposed if transposed else None
    ranges = device.timing.estimates if rate is None else (*device.timing.estimates, ("lds_read_transposed", rate))
    for name, estimate in ranges:
        for value in (estimate.low, estimate.high):
            if value != getattr(base, name):
                yield Variant(name, value, base.but(**{name: value}))
    for rule in Arbitration:
        if rule is not base.arbitration:
            yield Variant("arbitration", rule.value, base.but(arbitration=rule))


_BLOCKS = re.compile(r"x\d+_(\d+)b_")


class WorkSource(Protocol):
    """Says how many instructions ops are and how many waves run them; `rota.pipeline.geometry.TileShape` is one."""

    def fill(self, program: LoweredProgram) -> LoweredProgram: ...


def program_of(schedule: Lowerable, shape: WorkSource | None) -> LoweredProgram:
    program = schedule.lowered
    if shape is not None:
        program = shape.fill(program)
    silent = [entry for entry in program.entries if not entry.op.is_framework and entry.op.work is None]
    if silent:
        raise DeclarationError.of(
            "D109",
            f"{program.name} is declared in tiles: nothing says how many instructions an op represents",
            concerns=(silent[0].concern(),),
            fixes=("pass shape=TileShape(geometry=..., waves=..., instruction=...)",),
        )
    return program


def work_of(entry: Entry) -> Work:
    """What one wave issues for an entry of a program that `program_of` gave."""
    return entry.op.work or Work(int(entry.op.kind in SYNC_INSTRUCTIONS))


def waves_of(program: LoweredProgram) -> tuple[int, ...]:
    """The role of each wave, the first role's first; roles have equal shares where only the program says a number."""
    own = [role.waves for role in program.roles]
    if None in own and program.waves is not None:
        count = len(own)
        own = [program.waves // count + (number < program.waves % count) for number in range(count)]
    waves = tuple(role for role, count in enumerate(own) for _ in range(count or 0))
    if None in own or not waves:
        raise DeclarationError.of(
            "D109",
            f"{program.name} doesn't say how many waves run it",
            evidence=tuple((role.name, f"{role.waves} waves") for role in program.roles),
            fixes=("give every role its waves, or the program", "pass shape=TileShape(...), which has waves"),
        )
    return waves


def flops_of(instruction: str) -> int:
    """Floating-point (or integer) operations of one MFMA, from its name: v_mfma_f32_16x16x32_bf16, 4x4x4_16b for 16."""
    shape = shape_named(instruction)
    if shape is None:
        raise DeclarationError.of("D105", f"{instruction!r} doesn't name its shape, as 16x16x32")
    blocks = _BLOCKS.search(instruction)
    return 2 * prod(shape) * (int(blocks[1]) if blocks else 1)


CODE: Mapping[OpKind, int] = {kind: number for number, kind in enumerate(OpKind)}
"""Kinds as numbers: the model finds an instruction's handler by index, not by hash."""

SCALAR, ENTER, EDGE, END = range(len(CODE), len(CODE) + 4)
"""Set-up before a DMA; the loop begins (no instruction); count, compare, branch back; the wave ends."""


NOBODY = -1
"""No counter, or no barrier."""


class ModelInstruction(NamedTuple):
    """`kind` is a number of `CODE` or one of the four above, `key` numbers the entry that the instruction belongs to.

    `held` and `after` are clocks.  MFMA and VALU: unit held, result ready after issue.  LDS: port held, latency.
    Global memory: path held, port held by what lands in LDS.  Of a wait or priority `held` is the count or level; of a
    barrier `held` and `after` number the barriers where the wave arrives and which it awaits.  `needs` are registers
    with clocks on top of their ready time, `makes` are registers; `counter` numbers the one that counts or is awaited.
    """

    kind: int
    key: int
    held: int = 0
    after: int = 0
    needs: tuple[tuple[int, int], ...] = ()
    makes: tuple[int, ...] = ()
    counter: int = NOBODY


class IssuedEntry(NamedTuple):
    phase: Phase
    slot: int
    label: str


class MeetingPoint(NamedTuple):
    """A barrier, the waves that must arrive there, and the waves that ever wait there."""

    name: str
    arriving: tuple[int, ...]
    waiting: tuple[int, ...]


class UnitLoad(NamedTuple):
    """What one trip asks of the units; the first three are those of the busiest SIMD."""

    mma_clocks: int = 0  # for which its matrix unit is held
    valu_clocks: int = 0
    math_turns: int = 0  # clocks of the turns in which it issues MFMA and VALU instructions
    lds_clocks: int = 0
    dma_clocks: int = 0
    flops: int = 0
    mma_simds: int = 0  # SIMDs whose matrix unit is used


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Instructions per role, each wave's role, the entries that keys number, and what one trip asks of the units."""

    name: str
    roles: tuple[int, ...]
    instructions: tuple[tuple[ModelInstruction, ...], ...]
    keys: tuple[IssuedEntry, ...]
    entries: tuple[Entry | None, ...]
    counters: tuple[Counter, ...]
    barriers: tuple[MeetingPoint, ...]
    registers: tuple[Place, ...]
    register_counters: tuple[int, ...]  # of what fills each register, or `NOBODY`
    tiles_per_trip: int
    load: UnitLoad
    fused_waits: bool = False  # waits that are adjacent are one instruction

    @property
    def waves(self) -> int:
        return len(self.roles)


def encode(schedule: Lowerable, parameters: Parameters, shape: WorkSource | None = None) -> Code:
    """The program as instructions, entries of several instructions written out."""
    program = program_of(schedule, shape)
    for role in range(len(program.roles)):
        own = (entry for entry in program.entries if entry.executed_by(role))
        check_count(program.name, "instructions", sum(work_of(entry).instructions for entry in own), MOST_INSTRUCTIONS)
    waves = waves_of(program)
    encoder = _Encoder(program, parameters, rates_of(program.machine))
    phases = [[(entry, encoder.entry(entry)) for entry in program.phase(phase)] for phase in Phase]
    edge = encoder.key(IssuedEntry(Phase.KERNEL, len(program.kernel), "loop edge"), None)
    enter, turn, end = (ModelInstruction(kind, edge) for kind in (ENTER, EDGE, END))
    kernels = []
    lists = []
    for role in range(len(program.roles)):
        prologue, kernel, epilogue = (
            [each for entry, instructions in encoded if entry.executed_by(role) for each in instructions]
            for encoded in phases
        )
        kernels.append(kernel)
        lists.append((*prologue, enter, *kernel, turn, *epilogue, end))
    return Code(
        name=program.name,
        roles=waves,
        instructions=tuple(lists),
        keys=tuple(encoder.keys),
        entries=tuple(encoder.entries),
        counters=program.machine.counters,
        barriers=tuple(_meeting_points(program, waves)),
        registers=tuple(encoder.registers),
        register_counters=tuple(encoder.counters[place] for place in encoder.registers),
        tiles_per_trip=program.tiles_per_trip,
        load=_load(program, kernels, waves, parameters),
        fused_waits=has_one_wait(program.machine),
    )


class WrittenLoop(NamedTuple):
    """A role's instructions: before the kernel, those of each of its entries, and from its edge on."""

    before: tuple[ModelInstruction, ...]
    entries: tuple[tuple[ModelInstruction, ...], ...]
    after: tuple[ModelInstruction, ...]


def write_loop(code: Code, role: int) -> WrittenLoop:
    """What a role issues, the kernel entry by entry; entries of other roles have nothing."""
    written = code.instructions[role]
    kinds = [instruction.kind for instruction in written]
    begins, ends = kinds.index(ENTER) + 1, kinds.index(EDGE)
    entries: list[list[ModelInstruction]] = [[] for _ in range(code.keys[written[ends].key].slot)]
    for instruction in written[begins:ends]:
        entries[code.keys[instruction.key].slot].append(instruction)
    return WrittenLoop(written[:begins], tuple(map(tuple, entries)), written[ends:])


def in_order(code: Code, order: Sequence[int]) -> Code:
    """The same program with the entries of its kernel in another order; keys still number them as they were."""
    loops = [write_loop(code, role) for role in range(len(code.instructions))]
    kernels = [[instruction for entry in order for instruction in loop.entries[entry]] for loop in loops]
    written = tuple((*loop.before, *kernel, *loop.after) for loop, kernel in zip(loops, kernels, strict=True))
    return replace(code, instructions=written)


class _Encoder:
    def __init__(self, program: LoweredProgram, parameters: Parameters, rates: Rates) -> None:
        self.program, self.parameters, self.rates = program, parameters, rates
        self.counter_numbers = {counter.name: number for number, counter in enumerate(program.machine.counters)}
        self.barrier_numbers = {barrier.name: number for number, barrier in enumerate(program.barriers)}
        self.keys: list[IssuedEntry] = []
        self.entries: list[Entry | None] = []
        self.registers: dict[Place, int] = {}
        self.counters: dict[Place, int] = {}
        self.producers: dict[Place, OpKind] = {}
        self.makers: dict[str, OpKind] = {}
        # A program that lists its scalar instructions has the set-up of its DMAs among them.
        listed = any(entry.op.kind is OpKind.SCALAR for entry in program.kernel)
        self.setup = 0 if listed else parameters.dma_setup
        read = {place for entry in program.entries for place in entry.effect.reads}
        for entry in program.entries:
            kind = entry.effect.kind
            self.makers |= {made.name: kind for _, made in entry.effect.makes}
            for place in entry.effect.writes:
                # Nothing but a store waits for a sum, and sums are many: those that nobody reads are left out.
                if place.space is Space.REGISTER or (place.space is Space.ACCUMULATOR and place in read):
                    self.registers.setdefault(place, len(self.registers))
                    self.producers[place] = kind
                    self.counters[place] = self.counter(entry)

    def entry(self, entry: Entry) -> tuple[ModelInstruction, ...]:
        """Operands are needed by the first instruction, the result is there after the last."""
        work = work_of(entry)
        if not work.instructions:
            return ()
        key = self.key(IssuedEntry(entry.phase, entry.time_slot, str(entry.op)), entry)
        return tuple(self._instructions(entry, work, key))

    def counter(self, entry: Entry) -> int:
        """The number of the counter that tracks an entry, or that it waits for."""
        name = entry.effect.counter
        return NOBODY if name is None else self._look_up(self.counter_numbers, name, "counter")

    def _instructions(self, entry: Entry, work: Work, key: int) -> Iterator[ModelInstruction]:
        effect, kind = entry.effect, entry.effect.kind
        held, after = self._clocks(entry, work)
        maker = {place: self.makers[wanted.name] for place, wanted in effect.wants if wanted.name in self.makers}
        needs = tuple(
            (self.registers[place], self._later(kind, maker.get(place, self.producers[place]), place in effect.writes))
            for place in effect.reads
            if place in self.registers
        )
        makes = tuple(self.registers[place] for place in effect.writes if place in self.registers)
        code, counter, last = CODE[kind], self.counter(entry), work.instructions - 1
        for number in range(work.instructions):
            if kind is OpKind.DMA:
                yield from [ModelInstruction(SCALAR, key)] * self.setup
            first_needs, last_makes = needs if not number else (), makes if number == last else ()
            yield ModelInstruction(code, key, held, after, first_needs, last_makes, counter)

    def _clocks(self, entry: Entry, work: Work) -> tuple[int, int]:
        """An instruction's `held` and `after`."""
        p, effect, kind = self.parameters, entry.effect, entry.effect.kind
        if kind is OpKind.BARRIER:
            return self._barrier(effect.arrives), self._barrier(effect.awaits)
        if kind.synchronises:
            return effect.wait_value, 0
        if kind.unit is Unit.MMA:
            passes = self.rates.passes(work.instruction, work.bits)
            return p.turn * passes, p.turn * (passes + p.result_turns + 1)
        if kind.unit is Unit.LDS:
            rate = p.lds_write if kind is OpKind.LDS_WRITE else p.lds_read
            if kind is OpKind.LDS_READ_TRANSPOSED:  # `lds_rate` refuses it where the device has no such read
                rate = p.lds_read_transposed or self.rates.lds_rate(kind).value
            return -(-work.moved // rate), p.lds_latency
        if kind.unit is Unit.DMA:
            return -(-work.moved // p.dma_rate), -(-work.moved // p.lds_write) if Home.LDS in kind.writes else 0
        clocks = p.turn * self.rates.valu_slots(kind)
        return clocks, clocks

    def _later(self, kind: OpKind, maker: OpKind, in_place: bool) -> int:
        """An MFMA waits longer for a VALU result than a VALU op does, and not at all for what it adds to in place."""
        if kind is not OpKind.MMA:
            return 0
        if maker is OpKind.MMA and in_place:
            return -self.parameters.turn * (self.parameters.result_turns + 1)
        vector = maker.unit is Unit.VALU or maker is OpKind.NOTHING
        return self.parameters.turn * self.parameters.operand_turns if vector else 0

    def _barrier(self, name: str | None) -> int:
        return NOBODY if name is None else self._look_up(self.barrier_numbers, name, "barrier")

    def _look_up(self, numbers: Mapping[str, int], name: str, what: str) -> int:
        if name in numbers:
            return numbers[name]
        message = f"{self.program.name} names the {what} {name!r}, which doesn't exist"
        raise DeclarationError.of("D105", message, fixes=did_you_mean(name, numbers))

    def key(self, key: IssuedEntry, entry: Entry | None) -> int:
        self.keys.append(key)
        self.entries.append(entry)
        return len(self.keys) - 1


def _meeting_points(program: LoweredProgram, waves: Sequence[int]) -> Iterator[MeetingPoint]:
    for barrier in program.barriers:
        waits = [entry for entry in program.entries if entry.effect.awaits == barrier.name]
        waiting = {role for role in range(len(program.roles)) if any(entry.executed_by(role) for entry in waits)}
        yield MeetingPoint(
            barrier.name,
            arriving=tuple(wave for wave, role in enumerate(waves) if role in barrier.arriving),
            waiting=tuple(wave for wave, role in enumerate(waves) if role in waiting),
        )


def _load(
    program: LoweredProgram, kernels: Sequence[Iterable[ModelInstruction]], waves: Sequence[int], parameters: Parameters
) -> UnitLoad:
    """Each role's own trip, times its waves; waves i and i + `simds` share one."""
    each = [_own_load(kernel, parameters.turn) for kernel in kernels]
    flops = 0
    for entry in program.kernel:
        work = work_of(entry)
        if entry.op.kind is OpKind.MMA and work.instruction:
            executing = sum(entry.executed_by(role) for role in waves)
            flops += work.instructions * flops_of(work.instruction) * executing
    simds = [[each[role] for role in waves[simd :: parameters.simds]] for simd in range(parameters.simds)]
    return UnitLoad(
        mma_clocks=max(sum(load.mma_clocks for load in own) for own in simds),
        valu_clocks=max(sum(load.valu_clocks for load in own) for own in simds),
        math_turns=max(sum(load.math_turns for load in own) for own in simds),
        lds_clocks=sum(each[role].lds_clocks for role in waves),
        dma_clocks=sum(each[role].dma_clocks for role in waves),
        flops=flops,
        mma_simds=sum(any(load.mma_clocks for load in own) for own in simds),
    )


_KINDS = tuple(OpKind)


def _own_load(kernel: Iterable[ModelInstruction], turn: int) -> UnitLoad:
    mma = valu = turns = lds = dma = 0
    for instruction in kernel:
        kind = _KINDS[instruction.kind] if instruction.kind < len(_KINDS) else OpKind.FENCE
        if kind.unit is Unit.MMA:
            mma += instruction.held
            turns += turn
        elif kind.unit is Unit.VALU or kind is OpKind.NOTHING:
            valu += instruction.held
            turns += turn
        elif kind.unit is Unit.LDS:
            lds += instruction.held
        elif kind.unit is Unit.DMA:
            dma += instruction.held
            lds += instruction.after
    return UnitLoad(mma, valu, turns, lds, dma)
