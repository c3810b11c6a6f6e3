from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import click
import pytest

from rota.cli.commands.look_up import render
from rota.cli.output import text_columns
from tests.cli.command import data, rota
from tests.wording.golden import worded

pytestmark = pytest.mark.thorough  # runs for seconds


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_timeline_is_plain_text_of_at_most_100_columns() -> None:
    result = rota("show ping_pong")
    assert result.exit_code == 0
    assert result.stdout.startswith("ping_pong · MI355X · ")
    worded(result.stdout.splitlines()[2])
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert "\x1b" not in result.stdout


def test_files_are_written_and_named() -> None:
    result = rota("show four_wave --html page.html --svg picture.svg")
    assert result.exit_code == 0
    assert {"page.html", "picture.svg"} <= set(result.stdout.split())
    assert Path("page.html").read_text("utf-8").startswith("<!doctype html>")
    assert ET.fromstring(Path("picture.svg").read_text("utf-8")).tag.endswith("svg")


def test_a_file_that_cannot_be_written_is_a_usage_error() -> None:
    result = rota("show ping_pong --svg nowhere/picture.svg")
    assert result.exit_code == 2
    worded(result.output)
    assert "nowhere/picture.svg" in result.output


def test_json_of_show_is_the_prediction() -> None:
    given = data("show gemm_small --set instructions=false")
    prediction = given["prediction"]
    assert 0 < prediction["mma_share"] <= 1
    assert prediction["cycles_band"]["low"] <= prediction["cycles"] <= prediction["cycles_band"]["high"]


def test_the_listing_has_every_entry() -> None:
    text = rota("show single_buffer --listing")
    assert "single_buffer: kernel: " in text.stdout
    worded(text.stderr)
    assert "--notes" in text.stderr
    given = data("show single_buffer --listing")
    for phase in ("prologue", "kernel", "epilogue"):
        assert f"{phase}: {len(given[phase])} entries" in text.stdout
    assert len(given["repairs"]) == 5
    assert "--notes" in worded(rota("show ping_pong --listing").stderr)


def test_a_trace_is_named_after_its_kernel() -> None:
    pytest.importorskip("perfetto")
    result = rota("trace ping_pong")
    assert result.exit_code == 0
    assert result.stdout.startswith("ping_pong.perfetto-trace: ")
    assert Path("ping_pong.perfetto-trace").stat().st_size == data("trace ping_pong -o other")["bytes"]


def test_a_kernel_does_not_differ_from_itself() -> None:
    assert data("diff ping_pong ping_pong")["same"] is True
    worded(rota("diff ping_pong").stdout)


def test_settings_are_what_the_second_schedule_differs_in() -> None:
    given = data("diff ping_pong --set waits.auto_drain=true")
    assert (given["before"], given["after"]) == ("ping_pong", "ping_pong waits.auto_drain=true")
    added = [row["text"] for row in given["rows"] if row["change"] == "added"]
    assert added
    assert all("wait_lgkm(0)" in text for text in added)
    figures = {figure["name"]: figure for figure in given["figures"]}
    assert figures["kernel waits"]["after"] - figures["kernel waits"]["before"] == len(added)


def test_a_diff_as_a_page() -> None:
    assert rota("diff ping_pong four_wave --html diff.html").stdout == "diff.html\n"
    assert Path("diff.html").read_text("utf-8").startswith("<!doctype html>")


def test_a_listing_is_no_picture(tmp_path: Path) -> None:
    result = rota(f"show four_wave --listing --svg {tmp_path / 'x.svg'}")
    assert result.exit_code == 2
    worded(result.output)
    assert "--listing" in result.output


def test_in_a_terminal_the_picture_is_as_wide_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    for given, columns in ((150, 150), (20, 60), (900, 240)):
        monkeypatch.setenv("COLUMNS", str(given))
        assert text_columns() == columns
    monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
    assert text_columns() == 100


def test_a_page_is_rendered_for_a_terminal_and_plain_elsewhere() -> None:
    page = render("# A `head`\n\nSome `code`, **more**, [](x.md) and 2 * 3 * 4.\n\n```python\nx = 1\n```\n")
    assert "\x1b[" in page
    assert not {"**", "```", "[]", "# "} & {page[at : at + size] for at in range(len(page)) for size in (2, 3)}
    assert click.unstyle(page) == "A head\n\nSome code, more,  and 2 * 3 * 4.\n\n    x = 1"
    assert rota("explain R102").stdout.count("```") > 0


def test_races_are_drawn_on_a_page_of_their_own() -> None:
    result = rota("check four_wave --set sync=strict --picture races.html")
    assert result.exit_code == 1
    page = Path("races.html").read_text("utf-8")
    assert page.count("<svg xmlns") == 15
    assert "error[R103]" in page


def test_a_listing_says_what_made_each_entry() -> None:
    told = rota("show four_wave --listing --why")
    lines = told.stdout.splitlines()
    assert any("mma[0,0]" in line and "[op #2] (four_wave.py:" in line for line in lines)
    assert any("wait_vm(28)" in line and "[bootstrap_frags()]" in line for line in lines)
    assert any("+ added" in line and "repair: " in line for line in lines)
    kernel = data("show four_wave --listing --why")["kernel"]
    assert kernel[7]["origin"]["knobs"] == ["inter_block_lgkm_drain"]
    by_values = rota("show gemm_small --listing --why").stdout
    assert "(gemm.py:" in by_values
    worded(next(line for line in by_values.splitlines() if "wait_vm(18)" in line))


def test_why_goes_with_a_listing_of_a_schedule() -> None:
    assert rota("show four_wave --why").exit_code == 2
    assert rota("show kernel.co --listing --why").exit_code == 2


def test_a_diff_says_what_made_what_differs() -> None:
    told = rota("diff ping_pong --set config.lgkm_after_last=true").stdout
    assert [line for line in told.splitlines() if line.startswith("  + ") and "lgkm_after_last" in line]
