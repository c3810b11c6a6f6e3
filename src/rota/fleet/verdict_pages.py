"""The verdicts of a run as static pages and as tables, for people who look at a library and not at one kernel.

Pages and tables depend on the verdicts alone: the same verdicts give the same bytes, and `SHA256SUMS` lists their
digests. How long the run took, on what, is in files of its own.

What a person found out about a cause is an adjudication: read from a file, and shown beside the finding. The first page
gives as headlines only causes that are *shown*, or that a public fix repairs.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from rota.errors import CODES, Finding, several
from rota.fleet.kernel_job import FAILED, NO_KERNEL, NOT_READ, KernelRow, digest_of
from rota.fleet.verdict_store import FleetRow, FleetRun
from rota.isa.binary.code_object import demangle
from rota.prove.causes import EvidenceLevel, level_of
from rota.prove.verdict import Status
from rota.view.page import render

MOST_LISTED = 2_000  # kernels in the table of the first page; the other files have all
_TONES = {
    Status.REFUTED.value: "error", Status.ALARM.value: "warning", Status.BROKEN.value: "warning", FAILED: "error",
    NOT_READ: "error", Status.UNDECIDED.value: "note", Status.INCONCLUSIVE.value: "note",
    Status.ONE_SOURCE.value: "note", NO_KERNEL: "note", Status.PROVED.value: "ok",
}  # fmt: skip
"""Statuses in the order of the page: what needs a look comes first."""
SUMS = "SHA256SUMS"
FIXED, READ, FALSE, DISPUTED = "public fix", "read by hand", "false alarm", "disputed"
SAID = (FIXED, READ, FALSE, DISPUTED)
"""What an adjudication can say: the place is one that a public change repairs; somebody read the disassembly, and
agrees; somebody showed that it can't happen; somebody disagrees, and it is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudication:
    """What is known about causes of some files: patterns of files, a code, and how the labels of both ends begin."""

    files: tuple[str, ...]
    code: str
    ends: tuple[str, ...] = ()
    says: str
    text: str
    source: str = ""

    def is_about(self, file: str, finding: Finding) -> bool:
        labels = [each.label for each in finding.concerns]
        return (
            finding.code == self.code
            and any(fnmatchcase(file, each) for each in self.files)
            and all(any(label.startswith(end) for label in labels) for end in self.ends)
        )

    def __str__(self) -> str:
        return f"{self.says}: {self.text}"


class ListedKernel(NamedTuple):
    status: str
    tone: str
    level: str
    file: str
    kernel: str
    codes: str
    object: str
    link: str


class Headline(NamedTuple):
    """A cause as one finds it in a library: the same two opcodes in a folder; with the first place of it."""

    code: str
    message: str
    ends: str
    folder: str
    objects: int
    kernel: str
    places: str
    link: str
    known: tuple[Adjudication, ...]


class VerdictSite:
    """The pages and tables of a run."""

    def __init__(self, run: FleetRun, known: Sequence[Adjudication] = ()) -> None:
        self.run, self.known = run, known

    def build(self) -> dict[str, str]:
        """The pages by name: `index.html`, one for each kernel that has findings, `verdicts.csv`, times and sums."""
        pages = {"index.html": self._index(), "verdicts.csv": self._csv(self.table())}
        pages |= {_link(each): self._kernel_page(each) for each in self.run.rows if each.row.findings}
        return pages | self._about_the_run()

    def table(self) -> list[dict[str, Any]]:
        """A flat record for each kernel, of nothing but the verdict and what it rests on."""
        return [self._record(each) for each in self.run.rows]

    def _record(self, each: FleetRow) -> dict[str, Any]:
        row, made = each.row, each.row.verdict
        levels = Counter(map(level_of, row.findings))
        return {
            "object": row.object,
            "file": each.file,
            "kernel": row.kernel,
            "arch": "" if made is None else made.arch,
            "status": row.status,
            "level": "" if row.level is None else row.level.value,
            "codes": " ".join(row.codes),
            **{each.value.replace(" ", "_"): levels[each] for each in EvidenceLevel},
            "first": row.findings[0].message if row.findings else "",
            "adjudications": "; ".join(dict.fromkeys(str(said) for _, said in self._adjudicate(each))),
            "assumptions": "; ".join(() if made is None else made.assumptions),
            "policies": "; ".join(() if made is None else made.policies),
            "steps": 0 if made is None else made.statistics.effort,
            "key": row.key,
        }

    def _adjudicate(self, each: FleetRow) -> Iterator[tuple[int, Adjudication]]:
        """What is known of each finding, by its number."""
        for number, finding in enumerate(each.row.findings):
            yield from ((number, said) for said in self.known if said.is_about(each.file, finding))

    def headlines(self) -> list[Headline]:
        """Causes that are shown or that a public fix repairs, those of most objects first."""
        groups: dict[tuple[str, ...], list[tuple[FleetRow, Finding]]] = {}
        known: dict[tuple[str, ...], dict[Adjudication, None]] = {}
        for each in self.run.rows:
            said: dict[int, list[Adjudication]] = {}
            for number, one in self._adjudicate(each):
                said.setdefault(number, []).append(one)
            for number, finding in enumerate(each.row.findings):
                fixed = any(one.says == FIXED for one in said.get(number, ()))
                if level_of(finding) is not EvidenceLevel.SHOWN and not fixed:
                    continue
                if any(one.says == FALSE for one in said.get(number, ())):
                    continue
                ends = sorted(end.label.partition(" ")[0] for end in finding.concerns)
                group = (finding.code, str(Path(each.file).parent), *ends)
                groups.setdefault(group, []).append((each, finding))
                known.setdefault(group, {}).update(dict.fromkeys(said.get(number, ())))
        made = [_headline(group, found, tuple(known[group])) for group, found in groups.items()]
        return sorted(made, key=lambda each: (not each.known, -each.objects, each.code, each.folder, each.ends))

    def _index(self) -> str:
        run, order = self.run, [*_TONES]
        ranked = sorted(run.rows, key=lambda each: order.index(each.row.status))
        counts = Counter(each.row.status for each in run.rows)
        codes = Counter(code for each in run.rows for code in each.row.codes)
        levels = Counter("nothing" if each.row.level is None else each.row.level.value for each in run.rows)
        shown = [each.value for each in EvidenceLevel]
        return render(
            "verdicts.html",
            title=f"{counts[Status.PROVED.value]:,} of {several(len(run.rows), 'kernel')} proved race-free in LDS",
            about=f"{'Kernels' if run.place in {'', '.'} else run.place}, judged by rota {run.version}.",
            counts=[(status, counts[status], tone) for status, tone in _TONES.items() if counts[status]],
            levels=[(name, levels[name]) for name in (*shown, "nothing") if levels[name]],
            headlines=self.headlines(),
            causes=[(code, count, CODES[code]) for code, count in codes.most_common()],
            rows=[_list_kernel(each) for each in ranked[:MOST_LISTED]],
            more=max(0, len(run.rows) - MOST_LISTED),
        )

    def _kernel_page(self, each: FleetRow) -> str:
        row, made, said = each.row, each.row.verdict, [*self._adjudicate(each)]
        findings = []
        for number, finding in enumerate(row.findings):
            head, _, text = str(finding).partition("\n")
            listing = row.listings[number] if number < len(row.listings) else ""
            findings.append((head, text, listing, [one for at, one in said if at == number]))
        rests = []
        if made is not None:
            rests = [*(f"assumes: {each}" for each in made.assumptions), *(f"policy: {each}" for each in made.policies)]
        return render(
            "verdict.html",
            kernel=_name(each),
            file=each.file,
            digest=row.object,
            status=row.status,
            tone=_TONES[row.status],
            arch="" if made is None else made.arch,
            version=self.run.version,
            rests=rests,
            findings=findings,
        )

    def _about_the_run(self) -> dict[str, str]:
        """What two runs that find the same differ in."""
        run = self.run
        times = [
            {"file": each.file, "kernel": each.row.kernel, "seconds": f"{each.row.seconds:.3f}"} for each in run.rows
        ]
        seconds = [each.row.seconds for each in run.rows] or [0.0]
        ended = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(run.ended)) if run.ended else ""
        facts = {
            "ended": ended,
            "kernels": len(run.rows),
            "seconds in workers": round(sum(seconds), 1),
            "median": round(statistics.median(seconds), 2),
            "most": round(max(seconds), 1),
            **run.facts,
        }
        return {"times.csv": self._csv(times), "run.json": json.dumps(facts, indent=2) + "\n"}

    @staticmethod
    def _csv(table: Sequence[Mapping[str, object]]) -> str:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(table[0]) if table else ["file"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
        return text.getvalue()


ABOUT_THE_RUN = frozenset({"times.csv", "run.json"})


def sum_files(files: Iterable[tuple[str, bytes]]) -> str:
    """The digests of all files that depend on nothing but the verdicts, as `sha256sum -c` reads them."""
    return "".join(f"{digest_of(held)}  {name}\n" for name, held in sorted(files) if name not in ABOUT_THE_RUN)


def _headline(
    group: tuple[str, ...], found: Sequence[tuple[FleetRow, Finding]], known: tuple[Adjudication, ...]
) -> Headline:
    code, folder, *_ = group
    first, finding = found[0]
    return Headline(
        code=code,
        message=finding.message,
        ends=" / ".join(each.label.partition(" ")[0] for each in finding.concerns),
        folder="" if folder == "." else folder,
        objects=len({each.subject for each, _ in found}),
        kernel=_name(first),
        places=", ".join(each.place for each in finding.concerns if each.place),
        link=_link(first),
        known=known,
    )


def _link(each: FleetRow) -> str:
    """The same page for the same kernel of the same object in every run."""
    about = f"{each.row.object}:{each.subject}"
    return f"kernels/{hashlib.sha256(about.encode()).hexdigest()[:20]}.html"


def _name(each: FleetRow) -> str:
    return demangle(each.row.kernel) or Path(each.file).name


def _list_kernel(each: FleetRow) -> ListedKernel:
    row: KernelRow = each.row
    return ListedKernel(
        status=row.status,
        tone=_TONES[row.status],
        level="" if row.level is None else row.level.value,
        file=each.file,
        kernel=_name(each),
        codes=" ".join(row.codes),
        object=row.object[:12],
        link=_link(each) if row.findings else "",
    )
