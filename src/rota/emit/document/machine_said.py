"""The machine of a document: takes a machine, gives what a document says of it; takes that, gives the machine meant.

A device is looked up, not believed: a document names it.  How far its counters are trusted is the author's own choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rota.emit.document.disagreement import demand, disagreement
from rota.errors import DeclarationError, did_you_mean
from rota.program.machine import Machine
from rota.targets.registry import device_named


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSaid:
    """A machine by name; `out_of_order` are the counters among whose ops the proof takes no order for granted."""

    name: str
    arch: str
    out_of_order: tuple[str, ...] = ()


def machine_said(machine: Machine) -> MachineSaid:
    """How a document names a machine."""
    doubted = tuple(counter.name for counter in machine.counters if not counter.in_order)
    return MachineSaid(name=machine.name, arch=machine.arch, out_of_order=doubted)


def machine_meant(said: MachineSaid, machines: Iterable[Machine] | None) -> Machine:
    """The machine of that name, trusted as far as the document does; without `machines`, any that is registered."""
    machine = _registered(said.name) if machines is None else _among(said.name, machines)
    demand("machine.name", said.name, machine.name)
    demand("machine.arch", said.arch, machine.arch)
    names = [counter.name for counter in machine.counters]
    for number, name in enumerate(said.out_of_order):
        if name not in names:
            fixes = "; ".join(did_you_mean(name, names))
            raise disagreement(
                f"machine.out_of_order[{number}]", f"{machine.name} has no counter {name!r:.60}; {fixes}"
            )
        machine = machine.doubting(name)
    demand("machine.out_of_order", said.out_of_order, machine_said(machine).out_of_order)
    return machine


def _among(name: str, machines: Iterable[Machine]) -> Machine:
    known = {machine.name: machine for machine in machines}
    if name not in known:
        fixes = "; ".join(did_you_mean(name, known))
        raise disagreement("machine.name", f"no machine is named {name!r:.60}; {fixes}")
    return known[name]


def _registered(name: str) -> Machine:
    try:
        return device_named(name)
    except DeclarationError as error:
        said = error.findings[0]
        raise disagreement("machine.name", "; ".join((said.message, *said.fixes))) from error
