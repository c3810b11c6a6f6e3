"""A race is drawn with both waves, the barriers between them and what is missing."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from rota import Concern, Finding, KernelGeometry, Pipeline4Wave, compile_schedule, verify
from rota.errors import SourceLine
from rota.view.draw import width_of
from rota.view.race import Race, WaveAccess, draw_race, race_of, race_page
from tests.prove.written import judged
from tests.wording.golden import mentions, worded

SVG = "{http://www.w3.org/2000/svg}"
RACE = Race(
    code="I109",
    message="wave 0 reads LDS that wave 2 writes",
    first=WaveAccess("wave 2", "#19 ds_write_b32 v1, v2", 0, "sum.hip:8"),
    then=WaveAccess("wave 0", "#23 ds_read_b32 v2, v1", 1, "sum.hip:11"),
    place="256 of 0x200 to 0x2ff",
    missing="lgkmcnt(0) before the barrier",
)


def lines(picture: str) -> list[ET.Element]:
    return [
        line for line in ET.fromstring(picture).iter(f"{SVG}line") if "barrier" in (line.get("class") or "").split()
    ]


def texts(picture: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(picture).iter(f"{SVG}text")]


def test_the_finding_of_a_proof_of_machine_code_is_understood() -> None:
    """From the proof itself, so that other words or another order there are noticed here."""
    verdict = judged(
        """
        v_lshlrev_b32_e32 v1, 2, v0
        v_xor_b32_e32 v2, 0x100, v1
        ds_write_b32 v1, v0
        s_barrier
        ds_read_b32 v3, v2
        s_waitcnt lgkmcnt(0)
        s_endpgm
        """
    )
    race = next(filter(None, map(race_of, verdict.findings)))
    assert race.first.does.endswith("ds_write_b32 v1, v0")
    assert race.then.does.endswith("ds_read_b32 v3, v2")
    assert (race.first.passed, race.then.passed, race.barriers) == (0, 1, 1)
    assert race.first.wave != race.then.wave
    assert race.missing.startswith("lgkmcnt(0)")


def test_the_finding_of_a_proof_of_a_schedule_is_understood() -> None:
    findings = verify(compile_schedule(Pipeline4Wave(KernelGeometry()), sync="as_written")).errors
    races = [race_of(finding) for finding in findings]
    assert len(races) == len(findings) == 15
    assert all(race is not None and race.missing and race.place for race in races)


@pytest.mark.parametrize(
    "finding",
    [
        Finding("D102", "no race"),
        Finding("I109", "without waves", concerns=(Concern(label="a"), Concern(label="b"))),
        Finding("I109", "one end", concerns=(Concern(label="a"),), evidence=(("waves", "0 and 1"),)),
        Finding("R102", "without epochs", concerns=(Concern(label="a"), Concern(label="b"))),
    ],
    ids=lambda finding: finding.message,
)
def test_what_is_no_race_between_two_waves_has_no_picture(finding: Finding) -> None:
    assert race_of(finding) is None


def test_a_barrier_and_the_missing_wait_stand_between_the_accesses() -> None:
    picture = draw_race(RACE)
    missing, barrier = sorted(lines(picture), key=lambda line: float(line.get("x1") or 0))
    assert "missing" in (missing.get("class") or "")
    boxes = [
        (float(box.get("x") or 0), float(box.get("width") or 0))
        for group in ET.fromstring(picture).iter(f"{SVG}g")
        if (group.get("class") or "").startswith("bar ") and group.find(f"{SVG}text") is not None
        for box in group.findall(f"{SVG}rect")
    ]
    (first, wide), (then, _) = boxes
    assert first + wide < float(missing.get("x1") or 0) < float(barrier.get("x1") or 0) < then
    assert {"wave 2", "wave 0", "sum.hip:8", "sum.hip:11", "missing"} <= set(texts(picture))


def test_without_a_barrier_both_stand_in_one_stretch_and_it_says_so() -> None:
    picture = draw_race(RACE._replace(then=RACE.then._replace(passed=0)))
    assert lines(picture) == []
    assert "no barrier between the two" in texts(picture)


def test_many_barriers_stay_in_the_picture() -> None:
    picture = draw_race(RACE._replace(then=RACE.then._replace(passed=1000)))
    assert len(lines(picture)) == 5  # four of them, and the missing wait
    assert "after 1,000 barriers" in texts(picture)


@pytest.mark.parametrize("barriers", [0, 1, 4])
def test_the_key_stays_in_the_picture(barriers: int) -> None:
    picture = ET.fromstring(draw_race(RACE._replace(then=RACE.then._replace(passed=barriers))))
    wide, high = (float(picture.get(name) or 0) for name in ("width", "height"))
    for text in picture.iter(f"{SVG}text"):
        if "faint" in (text.get("class") or ""):
            assert float(text.get("x") or 0) + width_of(text.text or "", 10.5) <= wide
            assert float(text.get("y") or 0) < high


def test_names_are_escaped_in_picture_and_page() -> None:
    finding = Finding(
        "I109",
        "<b>",
        concerns=(Concern(label="<i>", source=SourceLine("<u>", 1)), Concern(label="<i>")),
        evidence=(("waves", "0 and 1"), ("barriers", "0 and 1 passed")),
    )
    page = race_page([("<s>", finding), ("other", replace(finding, evidence=()))])
    assert not {"<b>", "<i>", "<u>", "<s>"} & {page[at : at + 3] for at in range(len(page))}
    assert "2 findings, 1 race<" in page


def test_the_text_has_two_lanes() -> None:
    first, gap, then, told = str(RACE).splitlines()
    assert first.startswith("wave 2  [#19 ds_write_b32 v1, v2]▒▒┼▒")
    assert then.index("│") == first.index("┼") == gap.index("│")
    assert then.index("[") > then.index("│")
    assert mentions(worded(told.strip()), "256", "0x200", "0x2ff", "lgkmcnt(0)")
