"""Devices by name, rota's own and those that installed packages register.

The module of a device is loaded when the device is asked for. An architecture names a device only where a user types a
name; no fact is looked up by architecture, except where there is only a code object.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, cast

from rota.errors import DeclarationError, Finding, did_you_mean
from rota.registry import Registry, object_at
from rota.targets.architecture import Architecture
from rota.targets.device import Device

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "rota.targets"

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "mi355x": "rota.targets.cdna4:MI355X",
        "mi300x": "rota.targets.cdna3:MI300X",
        "mi350x": "rota.targets.cdna4:MI350X",
        "mi325x": "rota.targets.cdna3:MI325X",
        "mi300a": "rota.targets.cdna3:MI300A",
    }
)
"""Where each device is, as an entry point says it; the first of an architecture is the one to suggest."""

STANDS_FOR: Mapping[str, str] = MappingProxyType({"gfx950": "mi355x", "gfx942": "mi300x"})
"""The device that is meant by a user who types an architecture."""

ARCHITECTURES: Mapping[str, str] = MappingProxyType(
    {
        "gfx950": "rota.targets.cdna4:CDNA4",
        "gfx942": "rota.targets.cdna3:CDNA3",
        "gfx1250": "rota.targets.cdna5:CDNA5",
        "gfx1201": "rota.targets.cdna5:RDNA4",
    }
)
"""What a code object's architecture says, as far as rota knows it itself; the last two have no device yet."""

DEFAULT_NAME = "mi355x"

_DEVICES: Registry[Device] = Registry(
    what="machine",
    group=ENTRY_POINT_GROUP,
    own=BUILT_IN,
    expected="a rota.targets.device.Device of that name",
    lacks=lambda found: None if isinstance(found, Device) else "is not a Device",
)


class Known(NamedTuple):
    """All devices that could be loaded, and a finding for each that couldn't."""

    devices: tuple[Device, ...]
    findings: tuple[Finding, ...]


def default() -> Device:
    """The device that a schedule is for whose author names none."""
    return device_named(DEFAULT_NAME)


def names() -> tuple[str, ...]:
    """What a user may type for a device, in lower case: devices first, then architectures that represent one."""
    return (*dict.fromkeys((*BUILT_IN, *_list_registered(), *STANDS_FOR)),)


def device_named(name: str) -> Device:
    """The device of that name, in any case; packages are asked only for names that rota doesn't know itself."""
    if not isinstance(name, str):
        raise _unknown(repr(name))
    wanted = name.lower()
    wanted = STANDS_FOR.get(wanted, wanted)
    if wanted in BUILT_IN:
        return _load_built_in(wanted)
    registered = _list_registered()
    if wanted in registered:
        return _load(registered[wanted])
    raise _unknown(name)


def known_devices() -> Known:
    """Every device, rota's own first; what a package registers and can't be used is a finding."""
    devices = [_load_built_in(name) for name in BUILT_IN]
    findings: list[Finding] = []
    for name, entry in _list_registered().items():
        if name not in BUILT_IN:
            try:
                devices.append(_load(entry))
            except DeclarationError as error:
                findings.extend(error.findings)
    return Known(tuple(devices), tuple(findings))


def architecture_named(arch: str) -> Architecture | None:
    """What all devices of an architecture share, where there is only a code object."""
    if arch in ARCHITECTURES:
        return _architecture(arch)
    return next((device.architecture for device in known_devices().devices if device.arch == arch), None)


def machine_named(name: str) -> Architecture:
    """A device by its name, or an architecture of which no device is known; any that code can be compiled for."""
    if name.lower() in ARCHITECTURES and name.lower() not in STANDS_FOR:
        return _architecture(name.lower())
    return device_named(name)


def architecture_with(elf_machine: int) -> Architecture | None:
    """The architecture that the flags of a code object name."""
    for arch in ARCHITECTURES:
        if _architecture(arch).elf_machine.value == elf_machine:
            return _architecture(arch)
    found = (device for device in known_devices().devices if device.elf_machine.value == elf_machine)
    return next((device.architecture for device in found), None)


def list_architectures() -> tuple[Architecture, ...]:
    """Every architecture that rota or a registered device knows."""
    own = {arch: _architecture(arch) for arch in ARCHITECTURES}
    others = {device.arch: device.architecture for device in known_devices().devices if device.arch not in own}
    return (*own.values(), *others.values())


def _load_built_in(name: str) -> Device:
    return cast("Device", object_at(BUILT_IN[name]))


def _architecture(arch: str) -> Architecture:
    return cast("Architecture", object_at(ARCHITECTURES[arch]))


def _list_registered() -> dict[str, EntryPoint]:
    return {entry.name.lower(): entry for entry in _DEVICES.registered()}


def _load(entry: EntryPoint) -> Device:
    """What the entry point names, if that is a device of the name under which it is registered."""
    found = _DEVICES.made_by(entry)
    if found.name.lower() != entry.name.lower():
        raise _DEVICES.unusable(entry, f"the device calls itself {found.name!r}")
    return found


def _unknown(name: str) -> DeclarationError:
    known = names()
    return DeclarationError.of(
        "D105",
        f"no machine is named {name!r:.60}",
        evidence=(("got", f"{name:.60}"), ("known", ", ".join(sorted(known)))),
        fixes=(
            *did_you_mean(name.lower(), known),
            f"install the package that registers it in the entry-point group {ENTRY_POINT_GROUP!r}",
        ),
    )
