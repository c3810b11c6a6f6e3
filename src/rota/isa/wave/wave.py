"""One wave: its registers, its memory ops in flight, and the wait states it has passed.

Asynchrony follows the machine model: a memory op's registers hold poison from its issue until it lands, and it lands
when a wait of the same wave retires it, or earlier if the interleaving says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rota.errors import Finding, Severity
from rota.isa.disassembly import Instruction
from rota.isa.hazards.spacing import NOTHING, Spacing
from rota.isa.registers import EXEC, M0, SCALAR, is_scalar, row_name
from rota.isa.wave.meeting import WaveMeetings
from rota.isa.wave.operand import Reader
from rota.targets.architecture import Architecture, Pipe, Traffic

if TYPE_CHECKING:
    from rota.isa.launch.run import Visit
    from rota.isa.memory.memories import Lds, Memory


class Private:
    """The private memory of a wave: `size` bytes per lane, at first poison."""

    def __init__(self, size: int, lanes: int) -> None:
        self.size = size
        self.bytes = np.full((lanes, max(size, 1)), 0xFF, np.uint8)

    def index(
        self, wave: Wave, instruction: Instruction, offset: NDArray[np.int64], size: int, active: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Byte numbers, lanes by bytes, and the lanes that stay inside; the others are an I105."""
        inside = active & (offset >= 0) & (offset + size <= self.size)
        if (active & ~inside).any():
            message = f"{instruction.opcode} accesses private memory outside the lane's allocation"
            first = ("offset", f"{int(offset[active & ~inside][0]):#x}")
            wave.faults.add("I105", instruction, message, first, ("private bytes", self.size), ("wave", wave.number))
        return np.where(inside, offset, 0)[:, None] + np.arange(size), inside

    def get(self, index: NDArray[np.int64], lanes: NDArray[np.bool_]) -> NDArray[np.uint8]:
        taken = self.bytes[np.arange(len(self.bytes))[:, None], np.minimum(index, self.bytes.shape[1] - 1)]
        taken[~lanes] = 0xFF
        return taken

    def put(self, index: NDArray[np.int64], lanes: NDArray[np.bool_], data: NDArray[np.uint8]) -> None:
        self.bytes[np.flatnonzero(lanes)[:, None], index[lanes]] = data[lanes]


Act = Callable[["Wave"], int | None]  # returns the number of the next instruction; None falls through
AT_BARRIER, AT_END, AT_NAMED = -1, -2, -3  # returned instead of a number


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One instruction, ready to run.

    `sources` and `results` are the rows that it reads and writes, SCC included, without the implicit EXEC of vector
    instructions. `touches` are those that must not belong to a memory op in flight: both, except the results of a load,
    because an earlier load may return to them first (`Wave.launch` checks those). `spacing` is what wait states depend
    on. While a wave indexes registers, `indexed` gives the step to run instead.
    """

    instruction: Instruction
    act: Act
    sources: frozenset[int]
    results: frozenset[int]
    touches: frozenset[int]
    states: int = 1  # wait states that pass
    spacing: Spacing = NOTHING
    indexed: Callable[[Wave], Step] | None = None


def make_step(instruction: Instruction, act: Act, *, states: int = 1) -> Step:
    read, written, *_ = instruction.registers
    return Step(instruction=instruction, act=act, sources=read, results=written, touches=read | written, states=states)


# Bits of the MODE register, without rounding: nearest even is the only mode.
DENORM32, DX10_CLAMP, IEEE, INDEXED = 3 << 4, 1 << 8, 1 << 9, 1 << 27
START = 0xF << 4 | DX10_CLAMP | IEEE
"""MODE as compilers set it: denormals kept, clamping a NaN gives zero, IEEE rules for signalling NaNs."""
_TINY = np.float32(2.0**-126)


def flush_denormals(values: Any) -> Any:  # noqa: ANN401
    return np.where(np.abs(values) < _TINY, np.copysign(np.float32(0), values), values).astype(np.float32)


def obey_mode(take: Reader) -> Reader:
    """A reader of float32 that flushes denormals if MODE says so."""
    return lambda wave: take(wave) if wave.mode & DENORM32 == DENORM32 else flush_denormals(take(wave))


def clamp_float(wave: Wave, value: Any) -> Any:  # noqa: ANN401
    """Clamps a float to 0..1; a NaN becomes 0 if DX10_CLAMP is set."""
    kind = np.asarray(value).dtype.type
    low = np.where((value < 0) | (np.isnan(value) if wave.mode & DX10_CLAMP else False), kind(0), value)
    return np.where(low > 1, kind(1), low)


def with_indexing(step: Step, decode: Callable[[Instruction], Step]) -> Step:
    """Gives a vector step an `indexed` one, so that waits and wait states apply to the registers really used."""
    seen = dict[tuple[int, int], "Step"]()

    def meant(wave: Wave) -> Step:
        index, which = key = (wave.s[M0] & 0xFF, wave.s[M0] >> 12 & 15)
        if key not in seen:
            operands = list(step.instruction.operands)
            for place, bit in enumerate((3, 0, 1, 2)):  # the destination's bit is the last one
                if which >> bit & 1 and place < len(operands) and step.instruction.spec.unit.computes_lanes:
                    operands[place] = _shift_operand(operands[place], index)
            seen[key] = decode(replace(step.instruction, operands=tuple(operands)))
        return seen[key]

    return replace(step, indexed=meant)


def _shift_operand(text: str, index: int) -> str:
    head, sign, rest = "", "", text
    while rest and rest[0] in "-|":
        head, rest = head + rest[0], rest[1:]
    if rest.endswith("|"):
        sign, rest = "|", rest[:-1]
    if not rest.startswith("v") or not (rest[1:].isdigit() or rest[1:2] == "["):
        return text
    numbers = [int(number) + index for number in rest[1:].strip("[]").split(":")]
    return f"{head}v{numbers[0]}{sign}" if len(numbers) == 1 else f"{head}v[{numbers[0]}:{numbers[1]}]{sign}"


_WORD_BITS = 32
POISON = 0xFFFF_FFFF  # a NaN as f32, as two f16 or bf16, and as four OCP fp8


class Faults:
    """The findings of an execution: one for each instruction, or pair of instructions."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], dict[int | None, Finding]] = {}

    def add(
        self,
        code: str,
        instruction: Instruction,
        message: str,
        *evidence: tuple[str, str | int],
        other: Instruction | None = None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Records a fault once for these instructions; `other` is the other end."""
        known = self._found.setdefault((code, instruction.line), {})
        end = None if other is None else other.line
        if end in known or (end is None and known):
            return
        known.pop(None, None)  # now its other end is known
        ends = ((instruction, ""), (other, "the other one"))
        concerns = tuple(each.concern(role) for each, role in ends if each)
        known[end] = Finding(code, message, severity=severity, concerns=concerns, evidence=evidence)

    def confirm(
        self, code: str, instruction: Instruction, *evidence: tuple[str, str | int], other: Instruction | None = None
    ) -> None:
        known = self._found.get((code, instruction.line), {})
        end = None if other is None else other.line
        if (found := known.get(end)) is not None:
            known[end] = replace(found, evidence=tuple({**dict(found.evidence), **dict(evidence)}.items()))

    def merge(self, others: Faults) -> None:
        for key, found in others._found.items():
            known = self._found.setdefault(key, {})
            for end, finding in found.items():
                if end not in known and not (end is None and known):
                    known.pop(None, None)
                    known[end] = finding

    def clear(self) -> None:
        self._found.clear()

    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for found in self._found.values() for finding in found.values())


@dataclass(slots=True, kw_only=True, eq=False)
class Pending:
    """A memory op in flight: the rows it will write, and what its landing does."""

    instruction: Instruction
    rows: tuple[int, ...]
    finish: Callable[[], None]
    covers: tuple[Callable[[int], None], ...] = ()  # called with the epoch of the wait that covers it
    landed: bool = False
    counter: str = ""  # for flat ops none
    in_order: bool = True


@dataclass(slots=True, kw_only=True, eq=False)
class Wave:
    """The state of one wave, changed in place by every instruction."""

    architecture: Architecture
    number: int
    faults: Faults
    memory: Memory
    lds: Lds
    at_issue: Callable[[], bool]  # True if the next memory op lands at once
    lanes: int = field(init=False)
    all: NDArray[np.bool_] = field(init=False)  # every lane is active
    v: NDArray[np.uint32] = field(init=False)
    i: NDArray[np.int32] = field(init=False)
    f: NDArray[np.float32] = field(init=False)
    s: list[int] = field(default_factory=lambda: [POISON] * 128)
    scc: int = 0
    mode: int = START  # the MODE register
    mask: NDArray[np.bool_] | None = None  # the active lanes, if not all are
    pc: int = 0
    now: int = 0  # wait states passed
    executed: int = 0
    ended: bool = False
    waiting: bool = False  # at a barrier
    at_named: bool = False  # and that is a named one
    spinning: bool = False  # came back to a place with nothing changed
    branches: int = 0  # backward ones that were taken
    visit: Visit | None = None  # what the wave was at one of them
    epoch: int = 0  # barriers that it waits at, or has passed
    signals: int = 0  # barriers that it has arrived at
    meetings: WaveMeetings | None = None  # of its workgroup, if there are others beside the workgroup's barrier
    ending: list[tuple[set[Pending], Callable[[], None]]] = field(
        default_factory=list
    )  # what follows the last of these
    busy: dict[int, Pending] = field(default_factory=dict)
    ordered: dict[str, deque[Pending]] = field(init=False)  # by counter, or by one of the orders that it counts
    lines: dict[str, tuple[str, ...]] = field(init=False)  # those orders, by counter
    unordered: dict[str, list[Pending]] = field(init=False)
    uncounted: dict[str, list[Callable[[int], None]]] = field(default_factory=dict)  # what waits for 0 cover
    flat: dict[Pending, set[str]] = field(default_factory=dict)  # and the counters that were waited for since
    workgroup: tuple[int, int, int] = (0, 0, 0)
    private_bytes: int = 0  # per lane
    private: Private = field(init=False)
    m0_at: int = -9  # when M0 was set last
    recent: list[tuple[int, int, Step]] = field(default_factory=list)  # steps that later ones may need to wait for
    stalled: int = 0  # wait states for which MFMAs waited for their unit, besides `now`
    unit: tuple[Pipe | None, int, int] = (None, 0, 0)  # of the last MFMA, when that began, and when it is free
    most: dict[str, int] = field(init=False)  # what counters hold; issuing past it stalls until the oldest is back

    def __post_init__(self) -> None:
        self.lanes = self.architecture.lanes.value
        self.all = np.ones(self.lanes, np.bool_)
        self.all.flags.writeable = False
        self.v = np.full((self.architecture.vector_rows, self.lanes), POISON, np.uint32)
        self.private = Private(self.private_bytes, self.lanes)
        counters = [queue.counter for queue in self.architecture.queues]
        self.most = {name: self.architecture.no_wait(name) for name in counters}
        self.lines = {queue.counter: queue.lines for queue in self.architecture.queues}
        self.ordered = {line: deque() for lines in self.lines.values() for line in lines}
        self.unordered = {name: [] for name in counters}
        self.i = self.v.view(np.int32)
        self.f = self.v.view(np.float32)
        self.s[EXEC] = self.s[EXEC + 1] = 0xFFFF_FFFF

    def mask_at(self, number: int) -> int:
        """The bit of each lane, from a scalar register, and from the next one in waves of 64 lanes."""
        return self.s[number] | (self.s[number + 1] << 32 if self.lanes > _WORD_BITS else 0)

    def update_mask(self) -> None:
        bits = self.mask_at(EXEC)
        some = [bits >> lane & 1 for lane in range(self.lanes)]
        self.mask = None if all(some) else np.array(some, np.bool_)

    @property
    def active(self) -> NDArray[np.bool_]:
        return self.all if self.mask is None else self.mask

    def other_half(self, row: int) -> NDArray[np.uint32]:
        """What a load of half a register finds in the other half: the old value, or poison if the device drops it."""
        return self.v[row].copy() if self.architecture.d16_kept.value else np.full(self.lanes, POISON, np.uint32)

    def launch(
        self,
        instruction: Instruction,
        *covers: Callable[[int], None],
        rows: tuple[int, ...] = (),
        finish: Callable[[], None] = lambda: None,
    ) -> Pending:
        """Issues a memory op; its registers are poison until it lands."""
        traffic = instruction.traffic
        queue = None if traffic is None or instruction.is_flat else self.architecture.queue_of(traffic)
        counter, in_order, line = "", False, ""
        if queue is not None and traffic is not None:
            counter, in_order, line = queue.counter, traffic in queue.in_order, queue.line_of(traffic)
        pending = Pending(
            instruction=instruction, rows=rows, finish=finish, covers=covers, counter=counter, in_order=in_order
        )
        for row in rows:
            holder = self.busy.get(row)
            if holder is not None and (holder.counter, holder.in_order) != (counter, in_order):
                self.report_early_use(instruction, row)
            self.busy[row] = pending
            if not is_scalar(row):
                np.copyto(self.v[row], POISON, where=True if self.mask is None else self.mask)
            else:
                self.s[row - SCALAR] = POISON
        if queue is None:
            self.flat[pending] = set()
        elif in_order:
            self.ordered[line].append(pending)
        else:
            self.unordered[counter].append(pending)
        if self.at_issue():
            self.land(pending)
        if in_order and len(self.ordered[line]) > self.most[counter]:
            self._retire(self.ordered[line], self.most[counter])
        return pending

    def cover_at_zero(self, counter: str, cover: Callable[[int], None]) -> None:
        """Calls `cover` at the next wait that leaves nothing of a counter, which doesn't count what is covered."""
        self.uncounted.setdefault(counter, []).append(cover)

    def land(self, pending: Pending) -> None:
        """Completes a memory op, after older ones that write the same registers."""
        if pending.landed:
            return
        pending.landed = True
        if pending.rows and pending.in_order:
            for other in [*takewhile(lambda each: each is not pending, self.ordered[pending.counter])]:
                if not set(pending.rows).isdisjoint(other.rows):
                    self.land(other)
        for row in pending.rows:
            if self.busy.get(row) is pending:
                del self.busy[row]
        pending.finish()
        for awaited, follow in [*self.ending]:
            awaited.discard(pending)
            if not awaited:
                self.ending.remove((awaited, follow))
                follow()

    def end_with(self, awaited: set[Pending], follow: Callable[[], None]) -> None:
        """Calls `follow` when all of these have landed, or now."""
        if awaited:
            self.ending.append((awaited, follow))
        else:
            follow()

    def report_early_use(self, instruction: Instruction, row: int) -> None:
        holder = self.busy[row].instruction
        name = row_name(row, f"{instruction.text} {holder.text}")
        message = f"{instruction.opcode} uses {name}, but no wait covers the {holder.opcode} in flight to it"
        under_way = ("under way", f"{holder.text} ({holder.place})")
        self.faults.add("I103", instruction, message, under_way, ("wave", self.number))

    def wait(self, counter: str, most: int) -> None:
        """Leaves at most `most` ops of a counter in flight; those that return in any order are covered by 0 alone."""
        for line in self.lines[counter]:
            self._retire(self.ordered[line], most)
        if most == 0:
            for pending in self.unordered[counter]:
                self._complete(pending)
            self.unordered[counter].clear()
            self._drain_flat(counter)
            for cover in self.uncounted.pop(counter, ()):
                cover(self.releases)

    @property
    def in_flight(self) -> int:
        return len(self.flat) + sum(map(len, (*self.ordered.values(), *self.unordered.values())))

    @property
    def landing(self) -> Iterator[Pending]:
        """The ops in flight that may land by themselves; scalar loads land when they are waited for."""
        for queue in (*self.ordered.values(), self.flat):
            yield from tuple(queue)

    def _retire(self, queue: deque[Pending], most: int) -> None:
        while len(queue) > most:
            self._complete(queue[0])
            queue.popleft()

    def _complete(self, pending: Pending) -> None:
        self.land(pending)
        for cover in pending.covers:
            cover(self.releases)

    @property
    def releases(self) -> int:
        """How often it has let others go on."""
        return self.signals if self.meetings is None else int(self.meetings.known[self.number].releases[self.number])

    def _drain_flat(self, counter: str) -> None:
        """Retires flat ops once waits have drained all counters that they count on."""
        for pending, waited in tuple(self.flat.items()):
            waited.add(counter)
            if waited >= self._flat_counters(pending):
                del self.flat[pending]
                self._complete(pending)

    def _flat_counters(self, pending: Pending) -> set[str]:
        kinds = (pending.instruction.traffic or Traffic.LOAD, Traffic.LDS)
        return {self.architecture.queue_of(each).counter for each in kinds}
