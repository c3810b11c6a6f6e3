"""`rota explain`: takes a finding's code, gives its page: what it means, the smallest example, what to do."""

from __future__ import annotations

from importlib import resources

import click

from rota.cli.output import give, json_option
from rota.cli.terminal_markdown import rendered
from rota.errors import CODES, did_you_mean

_FAMILIES = {
    "D": "declare",
    "G": "graph",
    "O": "order",
    "P": "program and phases",
    "W": "waits",
    "B": "barriers",
    "R": "races",
    "V": "values",
    "L": "limits",
    "T": "toolchain",
    "I": "isa audit",
    "M": "measurements and whole problems",
    "S": "spaces and stores of a tuned library",
}


@click.command(epilog="\b\nExamples:\n  rota explain R102\n  rota explain")
@click.argument("code", required=False)
@json_option
def explain(code: str | None) -> None:
    """Say what a finding's CODE means.

    With the smallest example that ends in it, and how to fix it.  Without a code, list them all.
    """
    if code is None:
        give("\n".join(f"{each}  {meaning}" for each, meaning in CODES.items()), CODES)
        return
    known = code.upper()
    if known not in CODES:
        guesses = did_you_mean(known, CODES)[:-1]
        raise click.UsageError("; ".join([f"no finding has the code {code!r}", *guesses, "`rota explain` lists them"]))
    page = resources.files("rota").joinpath("findings", f"{known}.md").read_text("utf-8")
    data = {"code": known, "meaning": CODES[known], "family": _FAMILIES[known[0]], "page": page}
    give(page.removeprefix("# ").rstrip(), data, rendered=lambda: rendered(page))
