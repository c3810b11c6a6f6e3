"""Settings of a form of emission: takes what `--with` was given, gives it by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])


def with_option(command: Command) -> Command:
    """Adds `--with`."""
    return click.option(
        "--with",
        "options",
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting of the form. Of kernel and launcher: output (bf16, f16, fp32), epilogue (steps, with commas "
        "between), xcds, group, persistent, layout, scales. Repeatable.",
    )(command)


def told_options(options: Sequence[str]) -> dict[str, str]:
    """By name; a usage error if one isn't NAME=VALUE, or stands there twice."""
    found: dict[str, str] = {}
    for told in options:
        name, equals, value = told.partition("=")
        if not equals or name in found:
            raise click.UsageError(f"--with {told}: expected NAME=VALUE" + (", once" if equals else ""))
        found[name] = value
    return found
