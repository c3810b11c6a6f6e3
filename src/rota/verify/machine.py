"""The abstract machine: takes steps one by one, gives each access the barriers it lies between, and what places hold.

All waves of a group execute the same steps, so one queue per group and counter stands for all of them.  A wave's epoch
is the number of barriers it has passed; an access is under way from the epoch of its issue to that of the wait that
covers it (docs/machine_model.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from rota.declare.effects import Action, Counter, Place, Version
from rota.program.loop import Step
from rota.targets.machine import Machine
from rota.verify.accumulate import Taken


class Access:
    """One dynamic execution of a memory op; `done[g]` is the epoch in which group g's wait covered it."""

    __slots__ = ("done", "issued", "number", "run", "step")

    def __init__(self, step: Step, run: int, number: int, issued: tuple[int, ...], done: list[int | None]) -> None:
        self.step = step
        self.run = run
        self.number = number
        self.issued = issued
        self.done = done

    def over_before(self, epoch: int) -> bool:
        """Complete in every group in an epoch before `epoch`."""
        return all(done is not None and done < epoch for done in self.done)

    @property
    def covered(self) -> bool:
        """Complete, by a wait, in every group."""
        return None not in self.done


class LastWait(NamedTuple):
    """The newest wait on a counter."""

    step: Step
    number: int


class AbstractMachine:
    """Epochs, queues and contents between two steps. Mutable: a proof forks it at the loop edge."""

    def __init__(self, machine: Machine, groups: int) -> None:
        self.machine = machine
        self.epochs = [0] * groups
        self.number = 0
        self.run = 0
        self.queues: dict[Counter, list[deque[Access]]] = {c: [deque() for _ in range(groups)] for c in Counter}
        self.pending: dict[Counter, list[int]] = {c: [0] * groups for c in Counter}
        self.fullest: dict[Counter, tuple[int, Step | None]] = dict.fromkeys(Counter, (0, None))
        self.last_wait: dict[Counter, LastWait] = {}
        self.writer: dict[Place, Access] = {}
        self.readers: dict[Place, list[Access]] = {}
        self.loading: dict[Place, Access] = {}
        self.holds: dict[Place, int] = {}
        self.versions: dict[Place, Version] = {}
        self.fetched: dict[Place, int] = {}
        self.taken: dict[tuple[Place, int], Taken] = {}
        self.executed: dict[str, Taken] = {}

    @property
    def epoch(self) -> int:
        """The least epoch that any wave can be in at this step."""
        return min(self.epochs)

    def barrier(self, step: Step) -> None:
        """Every wave that executes it enters its next epoch."""
        if step.group is None:
            self.epochs = [epoch + 1 for epoch in self.epochs]
        elif step.group < len(self.epochs):
            self.epochs[step.group] += 1

    def wait(self, step: Step) -> None:
        """The oldest ops complete until at most the wait's count of tokens is left; all ones is no wait."""
        counter, count = step.effect.counter, step.effect.wait_value
        if counter is None or count >= self.machine.no_wait(counter):
            return
        if count and not self.machine.counts_in_order(counter):  # which ops are left is anybody's guess
            self.last_wait[counter] = LastWait(step, self.number)
            return
        for group, queue in enumerate(self.queues[counter]):
            if step.group is None or step.group == group:
                self._complete(counter, queue, group, count)
        self.last_wait[counter] = LastWait(step, self.number)

    def issue(self, step: Step) -> Access:
        """A memory op goes under way in every group; a compute is over at once."""
        counter = step.effect.counter
        at_once = step.effect.action is Action.COMPUTE
        done: list[int | None] = [*self.epochs] if at_once else [None] * len(self.epochs)
        access = Access(step, self.run, self.number, tuple(self.epochs), done)
        if counter is not None and not at_once:
            for group, queue in enumerate(self.queues[counter]):
                queue.append(access)
                self.pending[counter][group] += step.effect.tokens
            if self.pending[counter][0] > self.fullest[counter][0]:
                self.fullest[counter] = (self.pending[counter][0], step)
        return access

    def cover(self, access: Access) -> None:
        """What a compiler's own wait does: `access` and everything older on its counter completes now."""
        counter = access.step.effect.counter
        if counter is None:
            return
        for group, queue in enumerate(self.queues[counter]):
            while access.done[group] is None and queue:
                self._pop(counter, queue, group)

    def younger_tokens(self, access: Access, group: int) -> int:
        """How many tokens stand behind `access` in its group's queue."""
        counter = access.step.effect.counter
        if counter is None:
            return 0
        return sum(o.step.effect.tokens for o in self.queues[counter][group] if o.number > access.number)

    def weakest_cover(self, access: Access, group: int) -> int:
        """The largest count of a wait that would cover `access` now."""
        counter = access.step.effect.counter
        in_order = counter is not None and self.machine.counts_in_order(counter)
        return self.younger_tokens(access, group) if in_order else 0

    def _complete(self, counter: Counter, queue: deque[Access], group: int, count: int) -> None:
        """An op is complete when the wait's count is no more than the tokens behind it."""
        while queue and count <= self.pending[counter][group] - queue[0].step.effect.tokens:
            self._pop(counter, queue, group)

    def _pop(self, counter: Counter, queue: deque[Access], group: int) -> None:
        access = queue.popleft()
        access.done[group] = self.epochs[group]
        self.pending[counter][group] -= access.step.effect.tokens

    def fork(self) -> AbstractMachine:
        """A copy that goes its own way; accesses that are shared between tables stay shared."""
        copies: dict[int, Access] = {}

        def copy(access: Access) -> Access:
            made = copies.get(id(access))
            if made is None:
                made = Access(access.step, access.run, access.number, access.issued, list(access.done))
                copies[id(access)] = made
            return made

        other = AbstractMachine(self.machine, len(self.epochs))
        other.epochs = list(self.epochs)
        other.number = self.number
        other.run = self.run
        other.queues = {c: [deque(map(copy, queue)) for queue in queues] for c, queues in self.queues.items()}
        other.pending = {counter: list(tokens) for counter, tokens in self.pending.items()}
        other.fullest = dict(self.fullest)
        other.last_wait = dict(self.last_wait)
        other.writer = {place: copy(access) for place, access in self.writer.items()}
        other.readers = {place: list(map(copy, accesses)) for place, accesses in self.readers.items()}
        other.loading = {place: copy(access) for place, access in self.loading.items()}
        other.holds = dict(self.holds)
        other.versions = dict(self.versions)
        other.fetched = dict(self.fetched)
        other.taken = {key: taken.fork() for key, taken in self.taken.items()}
        other.executed = {name: taken.fork() for name, taken in self.executed.items()}
        return other

    def enter_again(self) -> None:
        """The loop is run once more: what is under way stays under way, but new values are due everywhere."""
        self.run += 1
        self.forget_the_past()
        for contents in (self.holds, self.versions, self.fetched, self.taken, self.executed):
            contents.clear()

    def forget_the_past(self) -> None:
        """Drop what no later step can collide with, so that the loop edge has finitely many states.

        Accesses that are over come before everything that is still to issue.  Of several reads by one entry the newest
        stands for all, since reads complete in order.
        """
        low = self.epoch
        self.writer = {place: access for place, access in self.writer.items() if not access.over_before(low)}
        kept = {
            place: {(a.step.entry.phase, a.step.entry.time_slot): a for a in reads if not a.over_before(low)}
            for place, reads in self.readers.items()
        }
        self.readers = {place: list(reads.values()) for place, reads in kept.items() if reads}
        self.loading = {place: access for place, access in self.loading.items() if not access.covered}

    def state(self, base: int, tiles_per_trip: int, tiles_outside: int) -> tuple[object, ...]:
        """Everything the future depends on, relative to the current epoch and K-tile.

        Epochs before the current one are alike, since no later access can issue in them; so are K-tiles too old for
        any compute to want, and those so far ahead that no trip count has them.  All are cut off, which keeps the
        number of states finite.  A queue is told by the ops that somebody may still ask for, each with the tokens
        behind it, up to the largest count that a wait can have.
        """
        low = self.epoch
        stale = -4 * max(tiles_per_trip, 1)
        ahead = tiles_outside - stale

        def seen(access: Access) -> tuple[object, ...]:
            entry = access.step.entry
            done = tuple(None if epoch is None else max(epoch - low, -1) for epoch in access.done)
            return (entry.phase, entry.time_slot, done)

        wanted = {id(access) for access in (*self.writer.values(), *self.loading.values())}
        wanted.update(id(access) for reads in self.readers.values() for access in reads)

        def pending(counter: Counter, queue: deque[Access]) -> Iterator[tuple[object, ...]]:
            younger, most = 0, self.machine.largest_wait(counter)
            for access in reversed(queue):
                if id(access) in wanted:
                    yield (*seen(access), min(younger, most))
                younger += access.step.effect.tokens

        return (
            tuple(epoch - low for epoch in self.epochs),
            tuple(tuple(pending(counter, queue)) for counter, queues in self.queues.items() for queue in queues),
            frozenset((place, seen(access)) for place, access in self.writer.items()),
            frozenset((place, tuple(map(seen, accesses))) for place, accesses in self.readers.items()),
            frozenset((place, seen(access)) for place, access in self.loading.items()),
            frozenset((place, min(max(tile - base, stale), ahead)) for place, tile in self.holds.items()),
            frozenset((place, v.name, max(v.iteration - base, stale)) for place, v in self.versions.items()),
            frozenset((name, taken.relative(base, stale)) for name, taken in self.executed.items()),
            frozenset((place, min(max(tile - base, stale), ahead)) for place, tile in self.fetched.items()),
            frozenset((key, taken.relative(base, stale)) for key, taken in self.taken.items()),
        )
