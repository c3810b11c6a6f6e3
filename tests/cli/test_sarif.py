"""The log is read by models of SARIF that somebody else wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sarif_pydantic import Sarif

from rota.cli.output import as_sarif
from rota.errors import Concern, Finding, Severity, SourceLine
from rota.version import __version__

BOTH_ENDS = Finding(
    "I109",
    "ds_read_b32 reads LDS; no wait and barrier keep it behind another wave's write",
    concerns=(
        Concern(label="ds_read_b32 v4, v1", index=19, source=SourceLine("kernels/reverse.hip", 6)),
        Concern(label="ds_write_b32 v0, v4", index=17, source=SourceLine("kernels/reverse.hip", 4)),
    ),
    evidence=(("bytes", "768 to 1023"),),
)
NO_LINES = Finding("I104", "too early", severity=Severity.WARNING, concerns=(Concern(label="s_nop 0", index=3),))


def log(*found: tuple[str, Finding]) -> Any:  # as the models have it
    return Sarif.model_validate_json(json.dumps(as_sarif(found)))


def test_a_finding_is_a_result_at_its_first_line_with_the_other_one_related() -> None:
    (run,) = log(("build/k.hsaco:reverse", BOTH_ENDS)).runs
    (result,) = run.results
    assert (result.rule_id, result.level.value) == ("I109", "error")
    place = result.locations[0].physical_location
    assert (place.artifact_location.uri, place.region.start_line) == ("kernels/reverse.hip", 6)
    related = result.related_locations[0].physical_location
    assert (related.artifact_location.uri, related.region.start_line) == ("kernels/reverse.hip", 4)
    assert "768 to 1023" in str(result.message.text)
    assert [rule.id for rule in run.tool.driver.rules] == ["I109"]


def test_without_a_line_the_place_is_the_file_and_the_instruction() -> None:
    (run,) = log(("build/k.hsaco:reverse", NO_LINES)).runs
    (result,) = run.results
    location = result.locations[0]
    assert location.physical_location.artifact_location.uri == "build/k.hsaco"
    assert [each.name for each in location.logical_locations] == ["reverse", "#3 s_nop 0"]
    assert result.level.value == "warning"


def test_nothing_found_is_a_run_without_results() -> None:
    (run,) = log().runs
    assert run.results == []


@pytest.mark.parametrize("name", ["a b.hip", "100%.hip"])
def test_names_of_files_elsewhere_are_escaped(name: str, tmp_path: Path) -> None:
    there = Finding("I104", "m", concerns=(Concern(label="x", source=SourceLine(str(tmp_path / name), 1)),))
    uri = as_sarif([("k", there)])["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"][
        "uri"
    ]
    assert uri.startswith("file:///")
    assert " " not in uri
    assert uri.endswith(name.replace("%", "%25").replace(" ", "%20"))


def test_the_tool_has_a_version_and_an_instruction_its_address() -> None:
    early = Finding("I104", "too early", concerns=(Concern(label="s_nop 0", index=3, place="0x1a40"),))
    (run,) = log(("build/k.hsaco:reverse", early)).runs
    assert run.tool.driver.version == __version__
    address = run.results[0].locations[0].physical_location.address
    assert (address.absolute_address, address.kind) == (0x1A40, "instruction")
    (written,) = as_sarif([("build/k.hsaco:reverse", NO_LINES)])["runs"][0]["results"]
    assert "address" not in written["locations"][0]["physicalLocation"]
