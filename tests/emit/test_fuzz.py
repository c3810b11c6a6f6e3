from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rota.cli.main import main
from tests.emit.fuzzed import BASES, campaign, text_of

pytestmark = pytest.mark.no_cover  # drawn schedules, whose emission other tests cover

EACH = 30
"""Edits of each base; `python -m benchmarks.fuzz_json` runs tens of thousands."""


@pytest.mark.parametrize("base", BASES)
def test_an_edited_document_is_refused_or_does_what_it_declares(base: str) -> None:
    tally = campaign(base, range(EACH))
    assert tally.defects == []
    assert tally.edits == EACH
    assert tally.refused
    assert tally.proved + tally.unproved
    assert tally.slowest < 5  # seconds


def test_a_judge_is_asked() -> None:
    """A campaign whose judge never agrees must find that something was taken."""
    assert any("it is proved, and wrong" in each for each in campaign("two stages", range(40), lambda _: False).defects)


def test_no_command_takes_a_document_for_a_kernel(tmp_path: Path) -> None:
    document = tmp_path / "schedule.json"
    document.write_text(text_of("two stages"))
    for command in ("check", "show", "trace", "emit", "run"):
        assert CliRunner().invoke(main, [command, str(document)]).exit_code == 2
