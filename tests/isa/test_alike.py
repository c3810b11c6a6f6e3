"""Pairs of instructions that one missing wait or barrier leaves unordered are one finding; others stay apart."""

from __future__ import annotations

from rota.errors import Concern, Finding, SourceLine
from rota.isa.races import cause_of, number_stretches, summarise_races
from tests.isa.corpus.cases import FOLDER, Case, judged
from tests.isa.single import loaded
from tests.shared import shared
from tests.wording.golden import mentions, worded

CODE = """
ds_write_b32 v0, v1
ds_write_b32 v0, v2 offset:4
s_barrier
ds_read_b32 v3, v0
loop:
ds_read_b32 v4, v0 offset:4
s_cbranch_scc0 loop
ds_read_b32 v5, v0
"""


def race(one: int, other: int, code: str = "I109", source: int | None = None, **evidence: str) -> Finding:
    where = None if source is None else SourceLine(file="k.py", line=source)
    ends = tuple(Concern(label=f"line {line}", index=line, source=where) for line in (one, other))
    told = {"wave": "0", "other wave": "1", "bytes": "0 to 3", "rests on": "no barrier"}
    told |= {name.replace("_", " "): value for name, value in evidence.items()}
    return Finding(code, "ds_x reads LDS", concerns=ends, evidence=tuple(told.items()))


def test_a_stretch_ends_at_barriers_branches_and_labels() -> None:
    found = number_stretches([step.instruction for step in loaded(CODE).steps])
    numbers = [*found.values()]
    assert numbers == [0, 0, 0, 1, 2, 2, 3, 3]


def test_alike_are_the_same_rule_between_the_same_stretches_and_source_lines() -> None:
    stretch = {1: 0, 2: 0, 3: 1, 4: 1, 5: 2}
    first = cause_of(race(3, 1), stretch)
    assert first is not None
    assert cause_of(race(4, 2), stretch) == first
    others = (race(5, 1), race(1, 3), race(3, 1, code="I302"), race(3, 1, source=7), race(3, 1, rests_on="policy"))
    assert first not in {cause_of(each, stretch) for each in others}
    assert cause_of(race(3, 1, bytes="0 to 3 of argument 0 (x)"), stretch) != cause_of(
        race(3, 1, bytes="0 to 3 of argument 1 (y)"), stretch
    )
    assert cause_of(race(3, 1, code="I122"), stretch) is None
    assert cause_of(Finding("I109", "", concerns=()), stretch) is None


def test_together_they_say_how_many_and_where() -> None:
    alike = [race(30, 10), race(31, 12, bytes="32 of 8 to 99", wave="2")]
    assert mentions(worded(summarise_races(alike)), 2, "#30", "#31", "#10", "#12", "0 to 99", "waves 0, 2", "wave 1")
    own = [Finding(each.code, "", concerns=each.concerns, evidence=each.evidence[::2]) for each in alike]
    assert "waves 0, 2" in summarise_races(own)
    assert "wave 1" not in summarise_races(own)


def test_seventy_eight_pairs_of_a_published_race_are_two_findings() -> None:
    """Of the A tile and of the B tile: one wait is missing, and the two lines of the source are told apart."""
    name = "triton-3.8.0/pp_on.gfx942"
    verdict = judged(Case(path=shared(f"{FOLDER}/{name}.hsaco"), name=name), orders=1)
    races = [finding for finding in verdict.findings if finding.code == "I109"]
    assert [{end.source.line for end in finding.concerns if end.source} for finding in races] == [{17}, {18}]
    told = [str(dict(finding.evidence)["more like it"]) for finding in races]
    numbers = [(14, "0x2118", "0x2154", "0x1f30", "0x1fa8"), (64, "0x2160", "0x219c", "0x1f48", "0x1f80")]
    assert [mentions(each, *names) for each, names in zip(told, numbers, strict=True)] == [True, True]
