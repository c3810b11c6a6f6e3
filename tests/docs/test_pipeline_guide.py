"""The guide to the pipeline framework leaves no hook and no field out."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from rota import PipelineSchedule, ScheduleConfig
from tests.docs.blocks import ROOT

pytestmark = pytest.mark.no_cover  # what pages run counts as covered where it is tested by itself

GUIDE = ROOT / "docs" / "pipeline"


def headings(page: str, level: str) -> list[str]:
    return re.findall(rf"^{level} (.+)$", (GUIDE / page).read_text("utf-8"), re.MULTILINE)


def test_every_field_has_a_section_of_its_own() -> None:
    told = [name for heading in headings("knobs.md", "###") for name in heading.split(", ")]
    assert sorted(told) == sorted(field.name for field in fields(ScheduleConfig))


def test_every_hook_is_told_in_the_order_of_the_calls() -> None:
    page = (GUIDE / "hooks.md").read_text("utf-8")
    calls = re.search(r"```text\n(config\n.*?)```", page, re.DOTALL)
    assert calls is not None
    asked = list(dict.fromkeys(line.split()[0] for line in calls[1].splitlines()))
    assert [heading.split(". ")[1] for heading in headings("hooks.md", "##") if heading[0].isdigit()] == asked
    assert set(asked) == {name for name in vars(PipelineSchedule) if not name.startswith("_")}
