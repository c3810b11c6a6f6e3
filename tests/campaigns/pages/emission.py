"""The zoo as source and machine code: takes the shipped kernels, prints what each compiler made of them.

Run `python -m benchmarks.emission [--only TEXT] [--compiler NAME] [--page docs/emission.md]` from the repository's
root.  Each kernel is emitted, compiled by every toolchain that is found, and audited; the exit status is 1 if any of
them is not exactly its schedule, or if the page shows something else.  Bank conflicts are clocks that they add to the
reads of one part, with and without the exchange of chunks.  The table is Markdown; progress goes to stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rota.audit.audit import Audit, WaitVerdict, audit_gemm
from rota.emit.gemm.gemm_tile import gemm_tile
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.gemm.lds_layout import bank_conflicts, free_layout, plain_layout
from rota.isa.binary.toolchain import Toolchain, find_toolchain, find_toolchains
from tests.emit.kernels import ZOO, Emitted

HEAD = (
    "kernel",
    "target",
    "compiler",
    "entries",
    "instructions",
    "order and operands",
    "waits equal / stronger / weaker / added (fused)",
    "barriers",
    "registers (AGPRs) of at most",
    "SGPRs",
    "LDS bytes",
    "spills",
    "bank conflicts (plain)",
    "proved on the machine code",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="kernels whose name contains this text")
    parser.add_argument("--compiler", help="one toolchain instead of all: a path, a name, or ziglang")
    parser.add_argument("--page", type=Path, help="a page that must show every row")
    options = parser.parse_args(arguments)
    kept = options.page.read_text("utf-8").splitlines() if options.page else None
    toolchains = [find_toolchain(options.compiler)] if options.compiler else list(find_toolchains())
    print("| " + " | ".join(HEAD) + " |")
    print("|" + " --- |" * len(HEAD))
    wrong = 0
    for name in (name for name in ZOO if options.only in name):
        emitted = ZOO[name]()
        for toolchain in toolchains:
            print(f"{name} by {toolchain.name}", file=sys.stderr)
            audit = _audited(emitted, toolchain)
            row = _row(name, emitted, audit)
            stale = kept is not None and page_row(row) not in kept
            wrong += not audit.exact or stale
            print("| " + " | ".join(row) + " |", flush=True)
            if stale:
                print(f"{options.page} should show\n{page_row(row)}", file=sys.stderr)
            for finding in audit.findings:
                print(finding, file=sys.stderr)
    return 1 if wrong else 0


def page_row(row: Sequence[str]) -> str:
    """A row as the page shows it: without the compiler, waits that aren't equal (there are none) and conflicts."""
    kernel, target, _, entries, instructions, order, waits, *counts, _, proved = row
    equal, *_, fused = waits.split()
    return f"| {' | '.join((kernel, target, entries, instructions, order, f'{equal} {fused}', *counts, proved))} |"


def _audited(emitted: Emitted, toolchain: Toolchain) -> Audit:
    compiled, geometry = emitted
    return audit_gemm(compiled, geometry, toolchain.compile(emit_gemm(compiled, geometry), compiled.machine.arch))


def _row(name: str, emitted: Emitted, audit: Audit) -> tuple[str, ...]:
    compiled, geometry = emitted
    tile = gemm_tile(compiled, geometry)
    moved = any(finding.code in ("I202", "I203", "I205") for finding in audit.findings)
    limit = audit.prediction.limit if audit.prediction else 0
    return (
        name,
        compiled.machine.arch,
        audit.toolchain,
        str(audit.entries),
        str(audit.instructions),
        "differ" if moved else "exact",
        " / ".join(str(audit.tally(verdict)) for verdict in WaitVerdict) + f" ({audit.fused})",
        str(audit.barriers),
        f"{audit.facts.vgprs} ({audit.facts.agprs}) of {limit}",
        str(audit.facts.sgprs),
        str(audit.facts.lds_bytes),
        str(audit.facts.spills),
        f"{bank_conflicts(tile, free_layout(tile))} ({bank_conflicts(tile, plain_layout(tile))})",
        "yes" if audit.certificate else "no",
    )
