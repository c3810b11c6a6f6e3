"""Markdown in a terminal: takes a page, gives it with headings, code and emphasis set apart by style, not by signs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|(?<!\*)\*([^*\s][^*]*)\*(?!\*)|\[([^\]]*)\]\([^)]*\)")


def rendered(markdown: str) -> str:
    """What a finding's page needs: headings, fenced code, inline code, emphasis and links."""
    return "\n".join(_lines(markdown.rstrip().splitlines()))


def _lines(lines: list[str]) -> Iterator[str]:
    code = False
    for line in lines:
        if line.startswith("```"):
            code = not code
        elif code:
            yield click.style(f"    {line}", fg="cyan") if line else ""
        elif line.startswith("#"):
            yield click.style(_INLINE.sub(_plain, line.lstrip("# ")), bold=True)
        else:
            yield _INLINE.sub(_styled, line)


def _styled(found: re.Match[str]) -> str:
    code, strong, slanted, link = found.groups()
    if code is not None:
        return click.style(code, fg="cyan")
    return click.style(strong, bold=True) if strong is not None else click.style(slanted or link or "", italic=True)


def _plain(found: re.Match[str]) -> str:
    return next(part for part in found.groups() if part is not None)
