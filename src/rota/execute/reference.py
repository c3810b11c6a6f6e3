"""A loop as its author wrote it, executed one iteration after the other.

Iterations run in the order of declaration, without stages, buffers or time: a schedule is right if it computes this.
Nothing here has seen a schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rota.check import bad_field
from rota.errors import Concern, DeclarationError, did_you_mean
from rota.execute.lazy_numpy import Floats, np
from rota.execute.semantics import Semantics
from rota.execute.wave_trace import Workgroup, writer_of_slices
from rota.program.entry import Entry, Version
from rota.program.kinds import GLOBAL_LOADS, LDS_READS, Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read
from rota.program.lowered import LoweredProgram

ADDRESSED = (*GLOBAL_LOADS, *LDS_READS)
"""Ops whose register operands are addresses: wrong ones bring wrong data."""

Doing = Callable[[str], Sequence[int]]
"""The waves that do an op, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """All values by [1, wave, ...], tiles by [1, wave, part, slice, ...]: `made` by version, `sums` by accumulator."""

    made: dict[Version, Floats] = field(default_factory=dict)
    sums: dict[str, Floats] = field(default_factory=dict)
    stored: dict[str, Floats] = field(default_factory=dict)  # in global memory, by [1, wave, op, iteration, ...]

    def like(self, value: str) -> tuple[int, ...]:
        return self.made[Version(value, 0)].shape[2:]


def data_operands(spec: LoopSpec, op: LoopOp, operands: tuple[Floats, ...]) -> tuple[Floats, ...]:
    """The operands that are data; a load or a read of LDS has addresses in registers as well."""
    if op.kind not in ADDRESSED:
        return operands
    homes = [spec.value(read.value).home for read in op.reads]
    return tuple(found for found, home in zip(operands, homes, strict=True) if home is Home.LDS)


def results_of(semantics: Semantics, op: LoopOp, operands: tuple[Floats, ...]) -> list[Floats]:
    """What the op makes, an array per value that it writes; poison may be among the operands, and warns of nothing."""
    with np.errstate(all="ignore"):
        results = [np.asarray(result) for result in semantics.results(op, operands)]
    if len(results) != len(op.writes) or any(result.ndim < 2 for result in results):
        raise DeclarationError.of(
            "D104",
            f"{type(semantics).__name__} gives {len(results)} results of {op.name}; "
            f"expected {len(op.writes)}, each with the axes [run, wave]",
            concerns=(Concern(label=op.name, source=op.source),),
            evidence=(("shapes", ", ".join(str(result.shape) for result in results)),),
        )
    return results


def of_parts(tile: Floats, parts: tuple[int, ...]) -> Floats:
    """These parts of a tile by [run, wave, part, ...]; all of them, or all of another value, if none are named."""
    return tile[:, :, list(parts)] if parts else tile


def run_plainly(spec: LoopSpec, semantics: Semantics, total: int, waves: int, doing: Doing | None = None) -> Plain:
    """Iterations 0 .. total - 1, the first always, to know the shapes; `doing` has an op's waves, by default all."""
    run = _PlainRun(spec, semantics, total, waves, doing or (lambda _: range(waves)))
    for iteration in range(max(total, 1)):
        for op in spec.ops:
            run.execute(op, iteration)
    if total == 0:
        for value, added in run.plain.sums.items():
            run.plain.sums[value] = added * 0.0
    return run.plain


def initial_value(spec: LoopSpec, semantics: Semantics, version: Version, waves: int) -> Floats:
    """A carried value of an iteration before the first, as an operand by [1, wave, ...]."""
    value = np.asarray(semantics.initial(version.name, version.iteration), dtype=np.float64)
    parts = (len(spec.writers(version.name)), waves) if spec.value(version.name).home is Home.LDS else ()
    return np.broadcast_to(value, (1, waves, *parts, *value.shape))


class _PlainRun:
    def __init__(self, spec: LoopSpec, semantics: Semantics, total: int, waves: int, doing: Doing) -> None:
        self.spec, self.semantics, self.doing = spec, semantics, doing
        self.total, self.waves = total, waves
        self.plain = Plain()

    def execute(self, op: LoopOp, iteration: int) -> None:
        if op.kind in GLOBAL_LOADS:
            for value in op.writes:
                part = self.spec.writers(value).index(op)
                brought = self.semantics.load(value, part, iteration, self.waves)
                if self.spec.value(value).home is Home.LDS:
                    self._fill(op, Version(value, iteration), brought)
                else:
                    self.plain.made[Version(value, iteration)] = brought[np.newaxis]
            return
        wanted = [(Version(read.value, iteration - read.distance), read.parts) for read in op.reads]
        operands = tuple(of_parts(self._operand(version), parts) for version, parts in wanted)
        data = data_operands(self.spec, op, operands)
        for value, result in zip(op.writes, results_of(self.semantics, op, data), strict=True):
            home, own = self.spec.value(value).home, np.broadcast_to(result, (1, self.waves, *result.shape[2:]))
            if home is Home.ACCUMULATOR:
                self.plain.sums[value] = self.plain.sums.get(value, 0.0) + self._of_doers(op, own)
            elif home is Home.MEMORY:
                self._leave(op, Version(value, iteration), own)
            elif home is Home.LDS:
                slices = writer_of_slices(self.doing(op.name), self.waves)
                self._fill(op, Version(value, iteration), own[0][slices])
            else:
                self.plain.made[Version(value, iteration)] = own

    def _of_doers(self, op: LoopOp, own: Floats) -> Floats:
        added = np.zeros(own.shape)
        doers = list(self.doing(op.name))
        added[:, doers] = own[:, doers]
        return added

    def _leave(self, op: LoopOp, version: Version, own: Floats) -> None:
        writers = self.spec.writers(version.name)
        empty = np.zeros((1, self.waves, len(writers), self.total, *own.shape[2:]))
        left = self.plain.stored.setdefault(version.name, empty)
        if version.iteration < self.total:
            left[:, :, writers.index(op), version.iteration] = self._of_doers(op, own)

    def _operand(self, version: Version) -> Floats:
        if version.iteration < 0:
            return initial_value(self.spec, self.semantics, version, self.waves)
        return self.plain.made[version]

    def _fill(self, op: LoopOp, version: Version, slices: Floats) -> None:
        """One part of a tile, as every wave will read it."""
        writers = self.spec.writers(version.name)
        before = self.plain.made.get(version, np.full((1, self.waves, len(writers), *slices.shape), np.nan))
        before[:, :, writers.index(op)] = slices
        self.plain.made[version] = before


_LAST = (Home.ACCUMULATOR, Home.MEMORY)
"""Homes whose places come last among those that an entry writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A loop by values as it was declared and scheduled; every entry is an op of `spec`."""

    spec: LoopSpec
    semantics: Semantics
    program: LoweredProgram

    def __post_init__(self) -> None:
        for place, op in enumerate(self.spec.ops):
            for read in op.reads:
                if read.distance == 0 and not set(self.spec.writers_of(read)) <= set(self.spec.ops[:place]):
                    expected = f"a value that is made in front of {op.name}"
                    raise bad_field(self.spec, "ops", read.value, expected, op.source)
        ops = {op.name: op for op in self.spec.ops}
        for entry in self.program.entries:
            effect, instance = entry.effect, entry.effect.instance
            if effect.kind.synchronises or effect.kind is OpKind.NOTHING:
                continue
            if instance.name not in ops:
                raise _refuse(entry, "D105", f"no op of {self.spec.name}", did_you_mean(entry.op.name, ops))
            op = ops[instance.name]
            parts = sum(len(self.parts(read)) for read in op.reads)
            if len(effect.reads) != parts or len(effect.writes) != len(op.writes):
                raise _refuse(entry, "D104", f"{parts} places to read and {len(op.writes)} to write")

    def parts(self, read: Read) -> tuple[int, ...]:
        """The places that hold what is read: a tile has as many as ops write it, and all are read if none are named."""
        whole = len(self.spec.writers(read.value)) if self.spec.value(read.value).home is Home.LDS else 1
        return read.parts or tuple(range(whole))

    def outputs(self, op: LoopOp) -> list[str]:
        """The values that an op writes, in the order of its effect's places: what only takes in comes last."""
        return sorted(op.writes, key=lambda value: self.spec.value(value).home in _LAST)

    def list_carried(self) -> tuple[str, ...]:
        """Register values that a later iteration reads."""
        names = dict.fromkeys(read.value for op in self.spec.ops for read in op.reads if read.distance)
        return tuple(name for name in names if self.spec.value(name).home is Home.REGISTERS)


def _refuse(entry: Entry, code: str, expected: str, fixes: tuple[str, ...] = ()) -> DeclarationError:
    return DeclarationError.of(
        code,
        f"{entry} of the {entry.phase.value.lower()} doesn't belong to the loop that was declared",
        concerns=(entry.op.concern(entry.time_slot),),
        evidence=(("the declaration has", expected),),
        fixes=fixes,
    )


class Moment(NamedTuple):
    """An op of one iteration as the roles execute it: each at its own ordinal, None where a role doesn't."""

    entry: Entry
    op: LoopOp
    iteration: int
    ordinals: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.entry} of iteration {self.iteration}"


def moments_of(loop: Declared, group: Workgroup) -> Iterator[Moment]:
    """Everything that the roles execute, in the order of the program's one list."""
    ops = {op.name: op for op in loop.spec.ops}
    ordinals: dict[tuple[int, int], list[int | None]] = {}
    executed: dict[tuple[int, int], tuple[Entry, LoopOp, int]] = {}
    for role, trace in enumerate(group.traces):
        for ordinal, ((entry, trip), position) in enumerate(zip(trace.steps, trace.positions, strict=True)):
            instance = entry.effect.instance
            if instance.name:
                key = (trip, position)
                iteration = loop.program.k_of(entry.phase, trip) + instance.iteration
                executed[key] = (entry, ops[instance.name], iteration)
                ordinals.setdefault(key, [None] * len(group.traces))[role] = ordinal
    for key in sorted(executed):
        yield Moment(*executed[key], tuple(ordinals[key]))
