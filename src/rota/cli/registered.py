"""Something named on the command line: takes a registry and a name, gives what has the name, or a usage error."""

from __future__ import annotations

from typing import TypeVar

import click

from rota.registry import Registry

T = TypeVar("T")


def registered(registry: Registry[T], name: str) -> T:
    """What has that name; one that an installed package registers and that can't be used ends in its finding."""
    if not registry.knows(name):
        raise click.UsageError("\n".join(registry.unknown(name)))
    return registry.named(name)
