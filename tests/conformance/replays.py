"""All recorded cases replayed, file by file, and what is said about them.

`python -m pytest tests/conformance` ends with the tables; `python -m tests.conformance.replays` prints them too, and
writes them, with the sentences above them, into the pages that show them.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TypedDict

from tests.campaigns.schedules.races import table
from tests.conformance.as_recorded import BY_THEIR_NATURE, FIELDS, GROUPS, compare_as_recorded
from tests.conformance.compare import Comparison, compare_case
from tests.conformance.compare_generic import (
    compare_four_wave_scheduler,
    compare_halves,
    compare_odd,
    compare_optimal,
    compare_penalty,
    compare_single_buffer,
)
from tests.conformance.corpus import DOUBLE_BUFFER_FILES, Case, cases

FILES: dict[str, Callable[[Case], Comparison]] = {
    **dict.fromkeys(DOUBLE_BUFFER_FILES, compare_case),
    "single_buffer": compare_single_buffer,
    "four_wave_schedulers": compare_four_wave_scheduler,
    "generic_optimal": compare_optimal,
    "generic_penalty": compare_penalty,
    "generic_halves": compare_halves,
    "generic_odd": compare_odd,
}

INTENDED = {2, 3, 10, 12, 13, 14, 15, 16, 17, 18, 23, 24, 26}

_DOCS = Path(__file__).parents[2] / "docs"
PAGES = (_DOCS / "deviations.md", _DOCS / "pipeline" / "seed.md")
COMMAND = "python -m tests.conformance.replays"


class Compared(TypedDict):
    """In how many cases something was recorded, in how many it is equal, and which deviations the others have."""

    recorded: int
    equal: int
    because: dict[str, int]


class Tally(TypedDict):
    """One file of cases: what was compared with nothing reinstated, and what with the named faults put back."""

    file: str
    cases: int
    exact: int
    groups: dict[str, Compared]
    fields: dict[str, Compared]
    other_metadata: Compared
    compared: int
    deviations: dict[str, int]
    different: dict[str, list[str]]
    unexplained: list[str]


@cache
def tally(name: str) -> Tally:
    """Every case of a file, compared twice: as recorded, and with the reference's faults reinstated."""
    done = [(FILES[name](case), compare_as_recorded(name, case)) for case in cases(name)]

    def count(chosen: Sequence[str]) -> Compared:
        reasons = {number for field in chosen for number in FIELDS[field].deviations}
        same = [[equal[field] for field in chosen if field in equal] for _, equal in done]
        because = Counter(
            "+".join(map(str, sorted(result.deviations & reasons)))
            for (result, _), found in zip(done, same, strict=True)
            if not all(found)
        )
        return Compared(
            recorded=sum(bool(found) for found in same),
            equal=sum(bool(found) and all(found) for found in same),
            because=dict(sorted(because.items())),
        )

    of_group = {group: [name for name, field in FIELDS.items() if field.group == group] for group in GROUPS}
    return Tally(
        file=name,
        cases=len(done),
        exact=sum(all(equal.values()) for _, equal in done),
        groups={group: count(fields) for group, fields in of_group.items()},
        fields={field: count([field]) for field in FIELDS},
        other_metadata=count([field for field in of_group["metadata"] if field not in BY_THEIR_NATURE]),
        compared=sum(result.fields for result, _ in done),
        deviations=dict(Counter(str(number) for result, _ in done for number in sorted(result.deviations))),
        different={result.case["id"]: result.different for result, _ in done if result.different},
        unexplained=[
            f"{result.case['id']}: {sorted(result.deviations)}, {sorted(name for name in equal if not equal[name])}"
            for result, equal in done
            if not _explains(result, equal)
        ],
    )


def _explains(result: Comparison, equal: dict[str, bool]) -> bool:
    """True if what differs as recorded is what the deviations say, no more and no less."""
    differing = [set(FIELDS[name].deviations) for name, same in equal.items() if not same]
    return all(reasons & result.deviations for reasons in differing) and result.deviations <= set().union(*differing)


Rows = Iterator[tuple[object, ...]]


def by_group(tallies: Sequence[Tally]) -> Rows:
    """In how many cases everything of a group is equal as recorded; metadata also without what always differs."""
    yield ("file", "cases", *GROUPS[:3], "other metadata", *GROUPS[3:], "every field")

    def cells(found: Sequence[Tally]) -> Iterator[str]:
        for group in GROUPS:
            yield _of(_sum(each["groups"][group] for each in found))
            if group == "metadata":
                yield _of(_sum(each["other_metadata"] for each in found))

    for each in tallies:
        yield (each["file"], each["cases"], *cells([each]), each["exact"])
    yield ("all", sum(each["cases"] for each in tallies), *cells(tallies), sum(each["exact"] for each in tallies))


def by_field(tallies: Sequence[Tally]) -> Rows:
    """In how many cases a field is equal as recorded, and for which deviations it differs in the rest."""
    yield ("field", "group", "recorded", "equal", "differs", "for deviation (in cases)")
    for name, said in FIELDS.items():
        found = _sum(each["fields"][name] for each in tallies)
        yield (said.what, said.group, found["recorded"], found["equal"], _rest(found), _singly(found["because"]))


def reinstated(tallies: Sequence[Tally]) -> Rows:
    """In how many cases every field is equal once the faults that the deviations name are put back."""
    yield ("file", "cases", "fields compared", "equal", "different", "deviations (in cases)")
    for each in tallies:
        wrong = len(each["different"])
        why = _singly(each["deviations"])
        yield (each["file"], each["cases"], each["compared"], each["cases"] - wrong, wrong, why)
    total, wrong = sum(each["cases"] for each in tallies), sum(len(each["different"]) for each in tallies)
    yield ("all", total, sum(each["compared"] for each in tallies), total - wrong, wrong, "")


def _of(found: Compared) -> str:
    return f"{found['equal']} of {found['recorded']}" if found["recorded"] else "-"


def _rest(found: Compared) -> int:
    return found["recorded"] - found["equal"]


def _singly(because: dict[str, int]) -> str:
    """Each deviation with its cases, some of which have others too."""
    counts: Counter[int] = Counter()
    for reasons, count in because.items():
        counts.update({int(number): count for number in reasons.split("+")})
    return ", ".join(f"{number} ({counts[number]})" for number in sorted(counts)) or "-"


def _sum(found: Iterable[Compared]) -> Compared:
    listed = list(found)
    because: Counter[str] = Counter()
    for each in listed:
        because.update(each["because"])
    return Compared(
        recorded=sum(each["recorded"] for each in listed), equal=sum(each["equal"] for each in listed), because=because
    )


TABLES: dict[str, Callable[[Sequence[Tally]], Rows]] = {
    "Equal as recorded, with nothing reinstated, by group of fields": by_group,
    "The same by field": by_field,
    "With the named faults of the reference reinstated": reinstated,
}


_WORDS = """\
Of the {cases:,} cases, {recorded:,} have a prologue, a kernel and an epilogue on record; the others are graphs to be
ordered, or ended early. With nothing reinstated:

- **Entries: {entries} cases are equal**, op by op and wait by wait, in all three phases. In the other {unequal:,} the
reference loses declared ops ({lost} cases: deviations 2 and 3) or ignores the register budget that it was given
({refused}: 13). No entry differs for another reason.

- **Waits: {waits} are equal**: every wait and barrier with its count, and every derived count. The other
{unequal_waits:,} are among those {unequal:,}.

- **Metadata**, which is said about entries: two fields differ by their nature. A prologue's loads keep their channel
and registers, which the reference drops (23: equal in {channels}), and `total_edges` is counted for the body's shape
(24: equal in {total_edges}). The rest of it (slots, prefetch flags, positions, kernel dependencies, stagger) is equal
in {other}; the others lost ops or were refused, as above, or differ by 17 ({other_17}) or 18 ({other_18}).

- **Graphs: {graph} are equal**: ops, edges, start times, bounds. The others differ by deviation {why_graph}.

- **Orders: {order} are equal.** The others differ by deviation {why_order}: rota's is better, or within the budget, or
refused, or of the whole body.

- **Ends: {end} cases end alike.** The others differ by deviation {why_end}: the reference aborts or exceeds its time
where rota answers, or rota refuses with a finding.

For a reason that isn't named here, {different} cases differ.
"""


def in_words(tallies: Sequence[Tally]) -> str:
    """The same in sentences, which leave nothing to be misread."""
    found = {group: _sum(each["groups"][group] for each in tallies) for group in GROUPS}
    fields = {field: _sum(each["fields"][field] for each in tallies) for field in BY_THEIR_NATURE}
    other = _sum(each["other_metadata"] for each in tallies)
    entries = found["entries"]
    said = _WORDS.format(
        cases=sum(each["cases"] for each in tallies),
        recorded=entries["recorded"],
        unequal=_rest(entries),
        lost=_having(entries, 2, 3),
        refused=_having(entries, 13),
        unequal_waits=_rest(found["waits"]),
        other_17=_having(other, 17),
        other_18=_having(other, 18),
        different=sum(len(each["different"]) for each in tallies),
        **{name: _out_of(each) for name, each in (found | fields | {"other": other}).items()},
        **{f"why_{name}": _singly(found[name]["because"]) for name in ("graph", "order", "end")},
    )
    return "".join(
        textwrap.fill(each, 120, subsequent_indent="  " * each.startswith("-"), break_on_hyphens=False) + "\n\n"
        for each in said.split("\n\n")
    )


def _out_of(found: Compared) -> str:
    return f"{found['equal']:,} of {found['recorded']:,}"


def _having(found: Compared, *numbers: int) -> int:
    """Cases that differ for one of these deviations."""
    wanted = set(map(str, numbers))
    return sum(count for reasons, count in found["because"].items() if wanted & set(reasons.split("+")))


def report(tallies: Iterable[Tally]) -> str:
    """All tables, with their titles."""
    ordered = sorted(tallies, key=lambda each: list(FILES).index(each["file"]))
    return "\n\n".join(f"{title}\n\n{table(rows(ordered))}" for title, rows in TABLES.items())


def with_replays(page: Path, tallies: Sequence[Tally]) -> str:
    """The page with what it shows of the replays as it is now."""
    marked = "<!-- figures: " + COMMAND + "; compared: tests/conformance/test_corpus.py -->"
    parts = {
        "words": in_words(tallies),
        **{rows.__name__: f"\n{marked}\n{table(rows(tallies))}\n\n" for rows in TABLES.values()},
    }
    return re.sub(
        r"(<!-- made: (\w+) -->\n).*?(?=<!-- end of it -->)",
        lambda found: found[1] + parts[found[2]],
        page.read_text("utf-8"),
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    done = [tally(name) for name in FILES]
    print(f"{in_words(done)}\n{report(done)}")
    for page in PAGES:
        page.write_text(with_replays(page, done), "utf-8")
