"""Races in LDS and register hazards: the accesses that a step may collide with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rota.errors import Concern, Finding, Severity, Witness
from rota.program.entry import Entry, Place, Space, wait_name
from rota.program.kinds import OpKind, Phase
from rota.verify.abstract_machine import AbstractMachine, Access
from rota.verify.report import REGISTER_WAITS

_MESSAGES = {
    "R101": "LDS race: a wave loads into a tile while its own earlier load into it may still land",
    "R102": "LDS race: a tile is read before every wave's part of it has landed",
    "R103": "LDS race: a tile is overwritten while a wave may still be reading it",
}
_RULES = {
    "R101": "a wait of the wave covers the earlier load before the later one issues",
    "R102": "each wave waits for its part, then passes a barrier; the reader passes that barrier before it reads",
    "R103": "each wave waits for its read, then passes a barrier; the writer passes that barrier before it writes",
}
_KINDS = {"R101": "WAW", "R102": "RAW", "R103": "WAR"}


def find_read_hazards(machine: AbstractMachine, step: Entry, trip: int) -> Iterator[Finding]:
    """Find tiles that are read before their last write is complete in every wave, whatever kind of op reads them."""
    for place in step.effect.reads:
        writer = machine.writer.get(place)
        if writer is not None and not writer.over_for(machine.known_to(step)):
            yield _race("R102", machine, writer, step, place=place, trip=trip)


def find_write_hazards(machine: AbstractMachine, step: Entry, trip: int) -> Iterator[Finding]:
    """Find tiles that are overwritten while a read, or an earlier load of the same wave, may be in flight.

    Each wave writes its own slice, so only its own earlier write can land on top of the new one.  LDS writes of the ds
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


def lands_after(machine: AbstractMachine, loader: Access, step: Entry) -> bool:
    """True if what `step` writes reaches its registers after what the earlier load brings there.

    Two ops on one counter that counts down in order land in order; any other op must wait for the load.
    """
    counter = loader.entry.effect.counter
    return counter is not None and counter == step.effect.counter and machine.machine.counts_in_order(counter)


class Overlap(NamedTuple):
    """An op that touches registers while a load into them may be in flight."""

    loader: Access
    step: Entry
    place: Place
    trip: int

    def finding(self, machine: AbstractMachine, *, writes: bool, compiler_waits: bool) -> Finding:
        """R104 for a use, R105 for a write on which the load may land; a note if the compiler adds the wait."""
        loader, step = self.loader, self.step
        counter = loader.entry.effect.counter
        wait = f"{wait_name(counter)}({machine.weakest_cover(loader, step)})" if counter else "a wait"
        where = name_place(self.place, loader.entry, step)
        message = f"{where} are used while their load may be in flight"
        if writes:
            message = f"{where} are written while an earlier load into them may still land on top"
        does = "writes" if writes else "uses"
        role = next((r for r, done in enumerate(loader.done) if done is None and step.executed_by(r)), 0)
        witness = Witness(kind="REG", trip_count=trips_at(step, self.trip), ahead=role, behind=role)
        return Finding(
            "R105" if writes else "R104",
            f"the compiler will add {wait}: {message}" if compiler_waits else message,
            severity=Severity.NOTE if compiler_waits else Severity.ERROR,
            concerns=(
                _describe_end(loader.entry, loader.issued, f"loads {where}"),
                _describe_end(step, machine.clocks, f"{does} {where}"),
            ),
            evidence=(
                ("found", _explain_cover(machine, loader, self.step)),
                *((("assumption", REGISTER_WAITS),) if compiler_waits else ()),
            ),
            fixes=(f"{wait} in front of {step.op}",),
            witness=None if compiler_waits else _witness(machine, loader, witness),
        )


def report_initial_overwritten(machine: AbstractMachine, loader: Access, place: Place) -> Finding:
    """Report a load in flight into registers that get their initial value for the next run of the loop."""
    where = name_place(place, loader.entry)
    return Finding(
        "R105",
        f"{where} get their initial value for the next run while a load into them may still land on top",
        concerns=(_describe_end(loader.entry, loader.issued, f"loads {where}"),),
        evidence=(
            ("found", _explain_cover(machine, loader, loader.entry)),
            ("on re-entry", "the load belongs to the previous run"),
        ),
    )


def trips_at(step: Entry, trip: int) -> int:
    """The smallest trip count at which `step` runs in `trip`; the epilogue counts as the trip after the last."""
    return trip - 1 if step.phase is Phase.EPILOGUE else trip


def _race(code: str, machine: AbstractMachine, earlier: Access, step: Entry, *, place: Place, trip: int) -> Finding:
    first = "reads" if place in earlier.entry.effect.reads else "writes"
    second = "reads" if place in step.effect.reads else "writes"
    late, ahead = _find_furthest_apart(machine, earlier, step)
    kind = _KINDS[code]
    same_wave = kind == "WAW"
    where = name_place(place, earlier.entry, step)
    return Finding(
        code,
        _MESSAGES[code],
        concerns=(
            _describe_end(earlier.entry, earlier.issued, f"{first} {where}"),
            _describe_end(step, machine.clocks, f"{second} {where}"),
        ),
        evidence=(
            ("rule", _RULES[code]),
            ("found", _explain_cover(machine, earlier, step)),
            *((("on re-entry", "the earlier op belongs to the previous run"),) if earlier.run != machine.run else ()),
            ("first seen at trip count", trips_at(step, trip)),
        ),
        witness=_witness(
            machine,
            earlier,
            Witness(kind=kind, trip_count=trips_at(step, trip), ahead=late if same_wave else ahead, behind=late),
        ),
    )


def _witness(machine: AbstractMachine, earlier: Access, witness: Witness) -> Witness | None:
    """The witness, if the race lies within one run.  The executor knows no interleaving of two runs."""
    return witness if earlier.run == machine.run else None


def name_place(place: Place, *steps: Entry) -> str:
    """A place by the name of the value it holds, where an op states which."""
    for step in steps:
        for held, version in (*step.effect.makes, *step.effect.wants):
            if held == place and place.space is Space.LDS:
                return f"part {place.part} of LDS {version.name}[{place.copy}]"
            if held == place:
                return f"registers {version.name}[{place.copy}]"
    return str(place)


def _describe_end(step: Entry, epochs: tuple[int, ...] | list[int], does: str) -> Concern:
    epoch = "/".join(str(epoch) for epoch in dict.fromkeys(epochs))
    return step.concern(f"{step.phase.value.lower()}, epoch {epoch}: {does}")


def _find_furthest_apart(machine: AbstractMachine, earlier: Access, step: Entry) -> tuple[int, int]:
    """The role in which the earlier op completes last, and the role that may issue the later op first."""
    roles = machine.everyone if earlier.entry.roles is None else earlier.entry.roles
    late = max(roles, key=lambda role: (earlier.done[role] is None, earlier.done[role] or 0, role))
    others = machine.everyone if step.roles is None else step.roles
    return late, min(others, key=lambda role: (machine.meetings.known_to((role,))[late], role))


def _lands_first(machine: AbstractMachine, writer: Access, step: Entry) -> bool:
    """True if an earlier write is complete, or certain to land before the later one.

    Waves of the same roles each write a slice of their own; other roles may write anywhere in the tile.
    """
    if writer.entry.roles != step.roles:
        return writer.over_for(machine.known_to(step))
    return writer.covered or writer.entry.effect.kind is step.effect.kind is OpKind.LDS_WRITE


def _explain_cover(machine: AbstractMachine, access: Access, step: Entry) -> str:
    """Why `access` may be incomplete: no wait, a wait that is too weak, or a wait with no barrier after it."""
    counter = access.entry.effect.counter
    if counter is None:
        return "it completes at once, but no barrier separates the two" if access.covered else "nothing tracks it"
    if access.covered:
        late, _ = _find_furthest_apart(machine, access, step)
        latest, known = access.done[late], machine.known_to(step)[late]
        if latest == known:
            return f"a wait in epoch {latest} covers it, but no barrier separates that wait from the later op"
        return f"a wait in epoch {latest} covers it, after a wave still in epoch {known} may have issued the later op"
    waiting = [role for role, done in enumerate(access.done) if done is None]
    role = next((each for each in waiting if step.executed_by(each)), waiting[0])
    younger = machine.younger_tokens(access, role)
    last = machine.last_wait.get((counter, role))
    if last is None or last.number < access.number:
        return f"{counter} holds {younger} younger tokens, and no wait on it separates the two"
    entry = last.entry
    leaves = f"{entry.op} at {entry.phase.at(entry.time_slot)} leaves it in flight"
    if not machine.machine.counts_in_order(counter):
        return f"{leaves}: {counter} doesn't count down in order, so only a wait for 0 covers it"
    return f"{leaves}; by now {counter} holds {younger} younger tokens"
