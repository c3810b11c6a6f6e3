"""Why an entry stands where it stands: takes a compiled schedule, gives for each entry what it needs and follows.

Found by walking the loop, three trips deep, with the last writer and the last readers of every place: what a reader of
the listing would trace by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import NamedTuple

from rota.compiler.compiled import CompiledSchedule
from rota.declare.effects import Action, Counter, Place, Space
from rota.declare.op import OpDesc
from rota.declare.vocabulary import OpRole, Phase
from rota.program.loop import Step, steps_of

_TRIPS = 3
_MOST_NAMED = 4


class Key(NamedTuple):
    """An entry of a schedule: its phase and `time_slot`."""

    phase: Phase
    slot: int

    def __str__(self) -> str:
        return f"{self.phase.value.lower()} #{self.slot}"


class Reason(NamedTuple):
    """An entry with what made its operands (latest first), its K-tile's place in the trip, and its story in words."""

    op: OpDesc
    needs: tuple[Key, ...]
    stage: int
    source: str
    lines: tuple[str, ...]


class _Ran(NamedTuple):
    """An entry as it ran, in running order."""

    order: int
    key: Key
    trip: int
    op: OpDesc


def reasons_of(compiled: CompiledSchedule) -> Mapping[Key, Reason]:
    """One reason per entry; where the stagger's extra barrier shares an entry's slot, the entry's."""
    walk = _Walk(compiled)
    steps = steps_of(compiled)
    walk.run(steps.prologue, Phase.PROLOGUE, 0)
    for trip in range(_TRIPS):
        walk.run(steps.kernel, Phase.KERNEL, trip)
    walk.run(steps.epilogue, Phase.EPILOGUE, _TRIPS)
    return walk.reasons


class _Walk:
    """The state of the walk: who wrote each place last, and who read it since."""

    def __init__(self, compiled: CompiledSchedule) -> None:
        self.reasons: dict[Key, Reason] = {}
        self._compiled = compiled
        self._repairs = {Key(repair.phase, repair.slot): repair.reason for repair in compiled.repairs}
        self._writers: dict[Place, _Ran] = {}
        self._readers: dict[Place, list[_Ran]] = {}
        self._pending: dict[Counter, list[_Ran]] = {counter: [] for counter in Counter}
        self._count = 0

    def run(self, steps: tuple[Step, ...], phase: Phase, trip: int) -> None:
        """One phase, or one trip of the kernel; a later trip's reasons replace an earlier one's."""
        for step in steps:
            key = Key(phase, step.entry.time_slot)
            self._count += 1
            ran = _Ran(self._count, key, trip, step.entry.op)
            self.reasons[key] = self._reason(step, ran)
            self._record(step, ran)

    def _record(self, step: Step, ran: _Ran) -> None:
        for place in step.effect.reads:
            self._readers.setdefault(place, []).append(ran)
        for place in step.effect.writes:
            self._writers[place] = ran
            self._readers[place] = []
        effect = step.effect
        if effect.counter is not None:
            pending = self._pending[effect.counter]
            pending += [ran] * effect.tokens
            if effect.action is Action.WAIT:
                del pending[: max(len(pending) - effect.wait_value, 0)]

    def _reason(self, step: Step, ran: _Ran) -> Reason:
        reads = [place for place in step.effect.reads if place.space is not Space.ACCUMULATOR]
        makers = _latest_first(self._writers[place] for place in reads if place in self._writers)
        users = _latest_first(
            user for place in step.effect.writes if place.space is Space.LDS for user in self._readers.get(place, ())
        )
        lines = [f"added: {self._repairs[ran.key]}"] if ran.key in self._repairs else []
        if makers:
            lines.append("uses what " + _named(makers, ran) + (" brings" if len(makers) == 1 else " bring"))
        if users:
            lines.append("overwrites a buffer last read by " + _named(users[:1], ran))
        if step.effect.action is Action.WAIT and step.effect.counter is not None:
            lines.append(self._waited(step.effect.counter, step.effect.wait_value, ran))
        lines += self._plan(ran.op)
        source = ran.op.source
        return Reason(
            op=ran.op,
            needs=tuple(maker.key for maker in makers),
            stage=self._stage(step, makers),
            source=f"{'/'.join(PurePath(source.file).parts[-2:])}:{source.line}" if source else "",
            lines=tuple(lines),
        )

    def _stage(self, step: Step, makers: list[_Ran]) -> int:
        """Which K-tile of the trip an entry works for, which is also its buffer where tiles have as many copies.

        A compute of the seed's way doesn't say: it works for the K-tile of its operands.
        """
        op, placement = step.entry.op, self._compiled.placement
        if placement is not None and step.effect.instance is not None:
            return step.effect.instance.iteration % placement.unroll
        if op.role in (OpRole.COMPUTE, OpRole.VALU_COMPUTE):
            return self.reasons[makers[0].key].stage if makers else 0
        return op.stage

    def _waited(self, counter: Counter, leaves: int, ran: _Ran) -> str:
        pending = self._pending[counter]
        over = pending[: max(len(pending) - leaves, 0)]
        count = f"{len(pending)} of {counter.value} are pending"
        if not over:
            return f"{count} here, so it holds nobody up"
        return f"waits for {_named(_latest_first(over), ran)}: {count}, {leaves} may stay"

    def _plan(self, op: OpDesc) -> list[str]:
        """Where the modulo schedule put a loop op."""
        placement, loop = self._compiled.placement, self._compiled.loop
        if placement is None or loop is None or op.is_framework:
            return []
        start = placement.starts[op.subtile]
        slot, late = start % placement.interval, placement.stage(op.subtile)
        when = {0: "in its iteration's first period", 1: "1 period later"}.get(late, f"{late} periods later")
        return [f"planned at issue slot {slot} of {placement.interval}, {when}"]


def _latest_first(runs: Iterable[_Ran]) -> list[_Ran]:
    unique = {ran.order: ran for ran in runs}
    return [unique[order] for order in sorted(unique, reverse=True)]


def _named(runs: list[_Ran], reader: _Ran) -> str:
    texts = []
    for ran in runs[:_MOST_NAMED]:
        back = reader.trip - ran.trip
        same = ran.key.phase is reader.key.phase
        where = (
            ""
            if same and back == 0
            else " of the trip before"
            if same and back == 1
            else f" ({ran.key.phase.value.lower()})"
        )
        texts.append(f"#{ran.key.slot} {ran.op}{where}")
    more = len(runs) - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
