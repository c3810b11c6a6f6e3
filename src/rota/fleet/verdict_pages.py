"""The verdicts of a run as static pages and as tables, for people who look at a library and not at one kernel."""

from __future__ import annotations

import csv
import io
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from rota.errors import CODES, several
from rota.fleet.kernel_job import FAILED, NO_KERNEL, NOT_READ
from rota.fleet.verdict_store import FleetRow, FleetRun, table_of
from rota.isa.binary.code_object import demangle
from rota.prove.verdict import Status
from rota.view.page import render

MOST_LISTED = 2_000  # kernels in the table of the first page; the other files have all
_TONES = {
    Status.REFUTED.value: "error", Status.ALARM.value: "warning", Status.BROKEN.value: "warning", FAILED: "error",
    NOT_READ: "error", Status.UNDECIDED.value: "note", Status.INCONCLUSIVE.value: "note",
    Status.ONE_SOURCE.value: "note", NO_KERNEL: "note", Status.PROVED.value: "ok",
}  # fmt: skip
"""Statuses in the order of the page: what needs a look comes first."""


class ListedKernel(NamedTuple):
    status: str
    tone: str
    level: str
    file: str
    kernel: str
    codes: str
    seconds: str
    link: str


def build_site(run: FleetRun) -> dict[str, str]:
    """The pages by name: `index.html`, one for each kernel that isn't proved, and `verdicts.csv`."""
    order = [*_TONES]
    ranked = sorted(enumerate(run.rows), key=lambda item: (order.index(item[1].row.status), item[0]))
    names = {number: f"kernels/{number}.html" for number, each in enumerate(run.rows) if each.row.findings}
    counts = Counter(each.row.status for each in run.rows)
    codes = Counter(code for each in run.rows for code in each.row.codes)
    proved = counts[Status.PROVED.value]
    ended = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(run.ended)) if run.ended else "now"
    index = render(
        "verdicts.html",
        title=f"{proved:,} of {several(len(run.rows), 'kernel')} proved race-free in LDS",
        about=f"{run.place or 'kernels'}, judged by rota {run.version}, {ended}. Nothing was run on a GPU.",
        counts=[(status, counts[status], tone) for status, tone in _TONES.items() if counts[status]],
        causes=[(code, count, CODES[code]) for code, count in codes.most_common()],
        rows=[_list_kernel(each, names.get(number, "")) for number, each in ranked[:MOST_LISTED]],
        more=max(0, len(run.rows) - MOST_LISTED),
    )
    pages = {name: _kernel_page(run.rows[number]) for number, name in names.items()}
    return {"index.html": index, "verdicts.csv": _csv(run), **pages}


def _list_kernel(each: FleetRow, link: str) -> ListedKernel:
    row = each.row
    return ListedKernel(
        status=row.status,
        tone=_TONES[row.status],
        level="" if row.level is None else row.level.value,
        file=each.file,
        kernel=demangle(row.kernel) or Path(each.file).name,
        codes=" ".join(row.codes),
        seconds=f"{row.seconds:.1f}",
        link=link,
    )


def _kernel_page(each: FleetRow) -> str:
    row = each.row
    findings = []
    for number, finding in enumerate(row.findings):
        head, _, text = str(finding).partition("\n")
        findings.append((head, text, row.listings[number] if number < len(row.listings) else ""))
    made = row.verdict
    rests = []
    if made is not None:
        rests = [*(f"assumes: {each}" for each in made.assumptions), *(f"policy: {each}" for each in made.policies)]
    return render(
        "verdict.html",
        kernel=demangle(row.kernel) or Path(each.file).name,
        file=each.file,
        status=row.status,
        tone=_TONES[row.status],
        arch="" if made is None else made.arch,
        rests=rests,
        findings=findings,
    )


def _csv(run: FleetRun) -> str:
    text, table = io.StringIO(), table_of(run)
    writer = csv.DictWriter(text, list(table[0]) if table else ["file"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()
