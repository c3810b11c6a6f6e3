"""Races and register hazards: takes the machine before a step, gives a finding for each access it collides with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rota.errors import Concern, Finding, Severity, Witness
from rota.program.entry import Entry, Place, Space, wait_name
from rota.program.kinds import OpKind, Phase
from rota.verify.abstract_machine import AbstractMachine, Access
from rota.verify.report import REGISTER_WAITS

_MESSAGES = {
    "R101": "LDS race: a wave's load into a tile is issued while its earlier load into it may still land",
    "R102": "LDS race: a tile is read before every wave's part of it has landed",
    "R103": "LDS race: a tile is overwritten while a wave may still be reading it",
}
_RULES = {
    "R101": "the earlier load is covered by a wait of its own wave before the later one issues",
    "R102": "every wave's part lands, by its own wait, before a barrier that the reader passes before it reads",
    "R103": "every wave's read is complete, by its own wait, before a barrier that the writer passes before it writes",
}
_KINDS = {"R101": "WAW", "R102": "RAW", "R103": "WAR"}


def read_hazards(machine: AbstractMachine, step: Entry, trip: int) -> Iterator[Finding]:
    """The last write of every tile that is read must be over in every wave, whatever kind of op reads it."""
    for place in step.effect.reads:
        writer = machine.writer.get(place)
        if writer is not None and not writer.over_for(machine.known_to(step)):
            yield _race("R102", machine, writer, step, place=place, trip=trip)


def write_hazards(machine: AbstractMachine, step: Entry, trip: int) -> Iterator[Finding]:
    """The tile's reads must be over in every wave, and an earlier load of the same wave must have landed.

    Each wave writes its own slice, so only its own earlier write can land on top of the new one; LDS writes of the ds
    class keep their order among themselves.
    """
    for place in step.effect.writes:
        if place.space is not Space.LDS:
            continue
        for reader in machine.readers.get(place, ()):
            if not reader.over_for(machine.known_to(step)):
                yield _race("R103", machine, reader, step, place=place, trip=trip)
        writer = machine.writer.get(place)
        if writer is not None and not _lands_first(machine, writer, step):
            yield _race("R101", machine, writer, step, place=place, trip=trip)


def lands_behind(machine: AbstractMachine, loader: Access, step: Entry) -> bool:
    """Does what `step` writes come to stand in its registers after what an earlier load brings there?

    Two ops on one counter that counts down in order land in order; anything else must wait for the load.
    """
    counter = loader.entry.effect.counter
    return counter is not None and counter == step.effect.counter and machine.machine.counts_in_order(counter)


class Overlap(NamedTuple):
    """An op that touches registers while a load into them may be under way."""

    loader: Access
    step: Entry
    place: Place
    trip: int

    def finding(self, machine: AbstractMachine, *, writes: bool, compiler_waits: bool) -> Finding:
        """Wrong, or a wait that the compiler will add; R104 for a use, R105 for a write on which the load may land."""
        loader, step = self.loader, self.step
        counter = loader.entry.effect.counter
        wait = f"{wait_name(counter)}({machine.weakest_cover(loader, step)})" if counter else "a wait"
        where = named(self.place, loader.entry, step)
        message = f"{where} are used while their load may be under way"
        if writes:
            message = f"{where} are written while an earlier load into them may still land on top"
        does = "writes" if writes else "uses"
        role = next((r for r, done in enumerate(loader.done) if done is None and step.executed_by(r)), 0)
        witness = Witness(kind="REG", trip_count=trips_at(step, self.trip), ahead=role, behind=role)
        return Finding(
            code="R105" if writes else "R104",
            severity=Severity.NOTE if compiler_waits else Severity.ERROR,
            message=f"the compiler will add {wait}: {message}" if compiler_waits else message,
            concerns=(
                _end(loader.entry, loader.issued, f"loads {where}"),
                _end(step, machine.clocks, f"{does} {where}"),
            ),
            evidence=(
                ("found", _cover_text(machine, loader, self.step)),
                *((("assumption", REGISTER_WAITS),) if compiler_waits else ()),
            ),
            fixes=(f"{wait} in front of {step.op}",),
            witness=None if compiler_waits else _witness(machine, loader, witness),
        )


def initial_overwritten(machine: AbstractMachine, loader: Access, place: Place) -> Finding:
    """A load is under way into registers that get their initial value for the next run of the loop."""
    where = named(place, loader.entry)
    return Finding(
        code="R105",
        message=f"{where} get their initial value for the next run while a load into them may still land on top",
        concerns=(_end(loader.entry, loader.issued, f"loads {where}"),),
        evidence=(
            ("found", _cover_text(machine, loader, loader.entry)),
            ("on re-entry", "the load belongs to the run before"),
        ),
    )


def trips_at(step: Entry, trip: int) -> int:
    """The smallest trip count at which `step` is executed in `trip`: the epilogue counts as the trip after the last."""
    return trip - 1 if step.phase is Phase.EPILOGUE else trip


def _race(code: str, machine: AbstractMachine, earlier: Access, step: Entry, *, place: Place, trip: int) -> Finding:
    first = "reads" if place in earlier.entry.effect.reads else "writes"
    second = "reads" if place in step.effect.reads else "writes"
    late, ahead = _furthest_apart(machine, earlier, step)
    kind = _KINDS[code]
    same_wave = kind == "WAW"
    where = named(place, earlier.entry, step)
    return Finding(
        code=code,
        message=_MESSAGES[code],
        concerns=(
            _end(earlier.entry, earlier.issued, f"{first} {where}"),
            _end(step, machine.clocks, f"{second} {where}"),
        ),
        evidence=(
            ("rule", _RULES[code]),
            ("found", _cover_text(machine, earlier, step)),
            *_when(machine, earlier, step, trip),
        ),
        witness=_witness(
            machine,
            earlier,
            Witness(kind=kind, trip_count=trips_at(step, trip), ahead=late if same_wave else ahead, behind=late),
        ),
    )


def _when(machine: AbstractMachine, earlier: Access, step: Entry, trip: int) -> Iterator[tuple[str, str | int]]:
    if earlier.run != machine.run:
        yield "on re-entry", "the earlier op belongs to the run before"
    yield "first seen at trip count", trips_at(step, trip)


def _witness(machine: AbstractMachine, earlier: Access, witness: Witness) -> Witness | None:
    """An interleaving of one run; a race between two runs has none that the executor knows."""
    return witness if earlier.run == machine.run else None


def named(place: Place, *steps: Entry) -> str:
    """A place by the name of the value that it holds, where an op says which."""
    for step in steps:
        for held, version in (*step.effect.makes, *step.effect.wants):
            if held == place and place.space is Space.LDS:
                return f"part {place.part} of LDS {version.name}[{place.copy}]"
            if held == place:
                return f"registers {version.name}[{place.copy}]"
    return str(place)


def _end(step: Entry, epochs: tuple[int, ...] | list[int], does: str) -> Concern:
    epoch = "/".join(str(epoch) for epoch in dict.fromkeys(epochs))
    return step.concern(f"{step.phase.value.lower()}, epoch {epoch}: {does}")


def _furthest_apart(machine: AbstractMachine, earlier: Access, step: Entry) -> tuple[int, int]:
    """The role in which the earlier op is over last, and the one that may issue the later op first."""
    roles = machine.everyone if earlier.entry.roles is None else earlier.entry.roles
    late = max(roles, key=lambda role: (earlier.done[role] is None, earlier.done[role] or 0, role))
    others = machine.everyone if step.roles is None else step.roles
    return late, min(others, key=lambda role: (machine.meetings.known_to((role,))[late], role))


def _lands_first(machine: AbstractMachine, writer: Access, step: Entry) -> bool:
    """Is an earlier write over, or bound to land before the later one?

    Waves of the same roles each write a slice of their own; other roles may write anywhere in the tile.
    """
    if writer.entry.roles != step.roles:
        return writer.over_for(machine.known_to(step))
    return writer.covered or writer.entry.effect.kind is step.effect.kind is OpKind.LDS_WRITE


def _cover_text(machine: AbstractMachine, access: Access, step: Entry) -> str:
    """Why `access` isn't known to be over: no wait, a wait too weak, or a wait with no barrier behind it."""
    counter = access.entry.effect.counter
    if counter is None:
        return "it is over at once, but no barrier stands between the two" if access.covered else "nothing tracks it"
    if access.covered:
        late, _ = _furthest_apart(machine, access, step)
        latest, known = access.done[late], machine.known_to(step)[late]
        if latest == known:
            return f"covered by a wait in epoch {latest}, with no barrier between that wait and the later op"
        behind = f"a wave that is still in epoch {known}"
        return f"covered by a wait in epoch {latest}, which comes after {behind} has gone ahead with the later op"
    waiting = [role for role, done in enumerate(access.done) if done is None]
    role = next((each for each in waiting if step.executed_by(each)), waiting[0])
    younger = machine.younger_tokens(access, role)
    last = machine.last_wait.get((counter, role))
    if last is None or last.number < access.number:
        return f"{counter} holds {younger} younger tokens, and no wait on it stands between the two"
    entry = last.entry
    leaves = f"{entry.op} at {entry.phase.at(entry.time_slot)} leaves it under way"
    if not machine.machine.counts_in_order(counter):
        return f"{leaves}: {counter} doesn't count down in order, so only a wait for 0 covers it"
    return f"{leaves}; by now {counter} holds {younger} younger tokens"
