"""What entries of a pipeline by stages do: takes ops and the pipeline config, gives steps.

A pipeline of one stage moves tiles through staging registers; each compute takes a slice of K.  Any other one moves
them by DMA, and computes a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rota.declare.vocabulary import OpRole
from tests.oracle.step import LDS, LGKM, REGISTER, VM, Content, Kind, Meaning, Source, Spot, Step, Unset, WrongError

if TYPE_CHECKING:
    from rota import CompiledSchedule, OpDesc, ScheduleEntry
    from tests.oracle.wave import Wave

_A, _B = 0, 1


class ByStages(Meaning):
    """Every accumulator takes every K-tile once, both factors of the same one."""

    def __init__(self, compiled: CompiledSchedule) -> None:
        self.config = config = compiled.config
        self.staged = config.depth == 1
        self.steps: dict[tuple[OpDesc, int], Step] = {}
        knobs = compiled.schedule_config
        self.vm = {_A: config.vm_per_load_a}
        self.lgkm = {_A: config.lgkm_per_load_a or knobs.lgkm_per_load_a}
        self.other_vm = config.vm_per_load_b
        self.other_lgkm = config.lgkm_per_load_b or knobs.lgkm_per_load_b
        per = config.num_partitions
        self.tiles_per_trip, self.tiles_outside = compiled.trip_tiles or ((1, 2) if self.staged else (per, per))
        self.slices = {op.subtile for op in compiled.body if op.role is OpRole.COMPUTE}
        self.accumulators = len(self.slices) if self.staged else config.m_mmas * config.n_mmas

    def step(self, entry: ScheduleEntry, k: int) -> Step:
        """What the op's role says."""
        at = (entry.op, k if entry.op.role is OpRole.GLOBAL_LOAD else 0)
        step = self.steps.get(at)
        if step is None:
            step = self.steps[at] = self._step(entry.op, k)
        return step

    def _step(self, op: OpDesc, k: int) -> Step:
        if op.role is OpRole.GLOBAL_LOAD:
            return self._load(op, k)
        if op.role is OpRole.SHARED_STORE:
            return self._moved(op, (REGISTER, "staging", op.channel), self._tile(op), _same)
        if op.role is OpRole.FRAGMENT_LOAD:
            does = partial(_slice, op.subtile) if self.staged else _same
            return self._moved(op, self._tile(op), (REGISTER, op.channel, op.subtile), does)
        if op.role is OpRole.COMPUTE:
            return self._compute(op)
        return Step(str(op), Kind.NOTHING)

    def check(self, wave: Wave, tiles: int) -> None:
        """Every declared accumulator has every tile once, and there is nothing else."""
        if wave.done.total() != self.accumulators * tiles:
            raise WrongError("count", f"{wave.done.total()} products of {self.accumulators} in {tiles} K-tiles")
        for (accumulator, tile), times in wave.done.items():
            if times != 1 or not 0 <= tile < tiles or not self._is_declared(accumulator):
                raise WrongError("count", f"accumulator {accumulator} takes K-tile {tile} of {tiles} {times} times")

    def _is_declared(self, accumulator: Any) -> bool:
        if self.staged:
            return accumulator in self.slices
        row, column = accumulator
        return bool(row < self.config.m_mmas and column < self.config.n_mmas)

    def _tile(self, op: OpDesc) -> Spot:
        return (LDS, op.channel, op.stage, 0 if self.staged else op.subtile)

    def _load(self, op: OpDesc, k: int) -> Step:
        tokens = max(op.vm_cost or self.vm.get(op.channel, self.other_vm), 1)
        if self.staged:
            target: Spot = (REGISTER, "staging", op.channel)
            return Step(str(op), Kind.WORK, VM, tokens, targets=(target,), does=partial(_next_tile, op.channel))
        tile = k + (op.k_offset.value or 0)
        return Step(str(op), Kind.WORK, VM, tokens, targets=(self._tile(op),), does=partial(_fetched, tile))

    def _moved(self, op: OpDesc, source: Spot, target: Spot, does: Any) -> Step:
        tokens = max(op.lgkm_cost or self.lgkm.get(op.channel, self.other_lgkm), 1)
        return Step(str(op), Kind.WORK, LGKM, tokens, sources=(Source(source),), targets=(target,), does=does)

    def _compute(self, op: OpDesc) -> Step:
        if self.staged:
            slices = (Source((REGISTER, _A, op.subtile)),)
            return Step(str(op), Kind.WORK, sources=slices, does=partial(_add_slice, op.subtile))
        fields = (op.stage, op.subtile)
        operands = (
            Source((REGISTER, _A, fields[self.config.ch0_match_field])),
            Source((REGISTER, _B, fields[self.config.ch1_match_field])),
        )
        return Step(str(op), Kind.WORK, sources=operands, does=partial(_add_product, fields))


def _next_tile(channel: int, wave: Wave, found: Sequence[Content]) -> Sequence[Content]:
    wave.fetched[channel] += 1
    return (wave.fetched[channel] - 1,)


def _fetched(tile: int, wave: Wave, found: Sequence[Content]) -> Sequence[Content]:
    return (tile,)


def _same(wave: Wave, found: Sequence[Content]) -> Sequence[Content]:
    return found


def _slice(number: int, wave: Wave, found: Sequence[Content]) -> Sequence[Content]:
    return [each if isinstance(each, Unset) else (each, number) for each in found]


def _add_slice(number: int, wave: Wave, found: Sequence[Content]) -> Sequence[Content]:
    (held,) = found
    if not isinstance(held, tuple) or held[1] != number:
        raise WrongError("value", f"slice {number} is computed from {held}")
    wave.done[number, held[0]] += 1
    return ()


def _add_product(accumulator: tuple[int, int], wave: Wave, found: Sequence[Content]) -> Sequence[Content]:
    a, b = found
    if not isinstance(a, int) or a != b:
        raise WrongError("value", f"accumulator {accumulator} is given the product of tiles {a} and {b}")
    wave.done[accumulator, a] += 1
    return ()
