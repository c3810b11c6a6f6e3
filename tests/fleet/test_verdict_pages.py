"""The pages of verdicts: the same bytes for the same verdicts, headlines only of what is shown, nothing left out."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from rota.cli.commands.verdict_report import _read_adjudications
from rota.errors import Finding
from rota.fleet.kernel_job import NOT_READ, row_without_kernels
from rota.fleet.verdict_pages import DISPUTED, FALSE, FIXED, SUMS, Adjudication, VerdictSite, sum_files
from rota.fleet.verdict_store import FleetRow, FleetRun
from rota.prove.causes import EvidenceLevel, level_of
from tests.campaigns.fleet.verdict_table import KNOWN
from tests.cli.command import rota
from tests.fleet.test_fleet import RIGHT, WRONG, contents, run
from tests.shared import shared
from tests.wording.golden import mentions


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> FleetRun:
    """One kernel proved, one refuted, and a file that can't be read."""
    made = run(tmp_path_factory.mktemp("store"), RIGHT, WRONG)
    unread = FleetRow("broken.co", row_without_kernels((Finding("T103", "it is cut off"),)))
    return made._replace(rows=(*made.rows, unread))


def refuted(judged: FleetRun) -> FleetRow:
    (found,) = (each for each in judged.rows if each.row.status == "refuted")
    return found


def known(judged: FleetRun, says: str, **more: object) -> Adjudication:
    (finding,) = refuted(judged).row.findings
    ends = tuple(each.label.partition(" ")[0] for each in finding.concerns)
    said = Adjudication(files=("*.co",), code=finding.code, ends=ends, says=says, text="so it is", source="there")
    return replace(said, **more)  # type: ignore[arg-type]  # fields


def test_a_record_names_the_object_the_verdict_and_what_it_rests_on(judged: FleetRun) -> None:
    right, wrong, unread = VerdictSite(judged, (known(judged, FIXED),)).table()
    assert right["object"] == hashlib.sha256(contents(RIGHT)).hexdigest()
    assert (right["status"], right["level"], right["shown"], right["adjudications"]) == ("proved", "", 0, "")
    assert (wrong["status"], wrong["level"], wrong["shown"]) == ("refuted", "shown", 1)
    assert wrong["adjudications"] == f"{FIXED}: so it is"
    assert "LDS" in wrong["policies"]
    assert (unread["status"], unread["object"], unread["first"]) == (NOT_READ, "", "it is cut off")


def test_the_same_verdicts_give_the_same_bytes(judged: FleetRun) -> None:
    later = judged._replace(
        ended=judged.ended + 1000,
        number=7,
        facts={"machine": "another"},
        rows=tuple(each._replace(row=replace(each.row, seconds=9.0, attempts=2)) for each in judged.rows),
    )
    first, again = ({name: text.encode() for name, text in VerdictSite(run).build().items()} for run in (judged, later))
    assert sum_files(first.items()) == sum_files(again.items())
    assert {name for name in first if first[name] != again[name]} == {"times.csv", "run.json"}
    other = judged._replace(rows=judged.rows[1:])
    assert sum_files(first.items()) != sum_files(
        (name, text.encode()) for name, text in VerdictSite(other).build().items()
    )


@pytest.mark.parametrize("level", [each for each in EvidenceLevel if each is not EvidenceLevel.SHOWN])
def test_headlines_are_what_is_shown_or_repaired_in_public(judged: FleetRun, level: EvidenceLevel) -> None:
    row = refuted(judged)
    (finding,) = row.row.findings
    assert [(each.code, each.objects) for each in VerdictSite(judged).headlines()] == [("I109", 1)]
    evidence = tuple((name, level.value if name == "level" else value) for name, value in finding.evidence)
    weaker = replace(finding, evidence=evidence)
    assert level_of(weaker) is level
    less = judged._replace(rows=(row._replace(row=replace(row.row, findings=(weaker,))),))
    assert VerdictSite(less).headlines() == []
    assert VerdictSite(less, (known(judged, DISPUTED),)).headlines() == []
    (repaired,) = VerdictSite(less, (known(judged, FIXED),)).headlines()
    assert [each.source for each in repaired.known] == ["there"]


def test_what_was_shown_to_be_false_is_no_headline_and_stays_on_its_page(judged: FleetRun) -> None:
    site = VerdictSite(judged, (known(judged, FALSE, text="the barrier is there"),))
    assert site.headlines() == []
    (page,) = (text for name, text in site.build().items() if name.startswith("kernels/") and "the barrier" in text)
    assert "I109" in page


@pytest.mark.parametrize("change", [{"files": ("x/*",)}, {"code": "I103"}, {"ends": ("ds_write_b64",)}])
def test_an_adjudication_is_about_its_files_code_and_ends(judged: FleetRun, change: dict[str, object]) -> None:
    row = refuted(judged)
    (finding,) = row.row.findings
    said = known(judged, FIXED)
    assert said.is_about(row.file, finding)
    assert not replace(said, **change).is_about(row.file, finding)  # type: ignore[arg-type]  # fields


def test_two_kernels_have_two_pages_and_every_link_is_there(judged: FleetRun) -> None:
    row = refuted(judged)
    twice = judged._replace(rows=(row, row._replace(file="again.co")))
    pages = VerdictSite(twice).build()
    links = [name for name in pages if name.startswith("kernels/")]
    assert len(links) == 2
    assert all(pages["index.html"].count(f'href="{name}"') for name in links)


def test_what_an_author_calls_a_kernel_stays_text(judged: FleetRun) -> None:
    row = refuted(judged)
    odd = judged._replace(rows=(row._replace(file="<script>.co", row=replace(row.row, kernel="<b>k</b>")),))
    pages = VerdictSite(odd).build()
    assert all("<b>k</b>" not in text and "<script>.co" not in text for name, text in pages.items() if "html" in name)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    run(tmp_path / "store", RIGHT, WRONG)
    return tmp_path


def test_the_command_writes_pages_tables_and_their_digests(store: Path) -> None:
    (store / "known.toml").write_text(
        '[[cause]]\nfiles = ["raw_*"]\ncode = "I109"\nsays = "public fix"\ntext = "mended"\nsource = "https://x"\n'
    )
    done = rota("report store -o site --known known.toml --json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    for line in (store / "site" / SUMS).read_text("utf-8").splitlines():
        digest, name = line.split()
        assert hashlib.sha256((store / "site" / name).read_bytes()).hexdigest() == digest
    table = [*csv.DictReader(io.StringIO((store / "site/verdicts.csv").read_text("utf-8")))]
    assert [each["adjudications"] for each in table] == ["", "public fix: mended"]
    assert said["digests"]["verdicts.csv"] in (store / "site" / SUMS).read_text("utf-8")
    again = json.loads(rota("report store -o other --known known.toml --json").stdout)
    assert again["digests"] == said["digests"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[cause", "can't be read"),
        ("x = 1", "[[cause]]"),
        ("cause = 3", "[[cause]]"),
        ('[[cause]]\nfiles = ["*"]\ncode = "I109"\nsays = "read by hand"', "text"),
        ('[[cause]]\nfiles = "*"\ncode = "I109"\nsays = "read by hand"\ntext = "t"', "files"),
        ('[[cause]]\nfiles = [1]\ncode = "I109"\nsays = "read by hand"\ntext = "t"', "files"),
        ('[[cause]]\nfiles = ["*"]\ncode = "I109"\nsays = "wrong"\ntext = "t"', "disputed"),
        ('[[cause]]\nfiles = ["*"]\ncode = "I109"\nsays = "public fix"\ntext = "t"', "source"),
        ('[[cause]]\nfiles = ["*"]\ncode = "Z999"\nsays = "disputed"\ntext = "t"', "Z999"),
        ('[[cause]]\nfiles = ["*"]\ncode = "I109"\nsays = "disputed"\ntext = "t"\nlevel = "shown"', "level"),
    ],
)
def test_what_is_no_adjudication_is_refused_by_its_number(store: Path, text: str, words: str) -> None:
    (store / "known.toml").write_text(text)
    done = rota("report store -o site --known known.toml")
    assert done.exit_code == 2
    assert mentions(done.output, words)
    assert not (store / "site").exists()


def test_what_is_known_of_shipped_kernels_names_kernels_that_are_shipped() -> None:
    curated = json.loads(shared("kernels/aiter/CURATED.json").read_text("utf-8"))
    names = [f"aiter/{each['path'].removeprefix('hsa/')}" for each in curated["objects"]]
    causes = _read_adjudications(KNOWN)
    assert {each.says for each in causes} == {"public fix", "read by hand"}
    assert not [each for each in causes if not any(fnmatchcase(name, own) for own in each.files for name in names)]
