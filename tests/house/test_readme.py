"""The README puts the framework at the front door: what it is, where it comes from, its five names; and it is short."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.docs.blocks import ROOT, blocks_of, matches

README = (ROOT / "README.md").read_text("utf-8")
LINES = README.splitlines()
PYTHON = [block for block in blocks_of(README) if block.language == "python" and block.excuse is None]
NAMES = ("PipelineSchedule", "ScheduleConfig", "build_kernel_program", "derive_prologue_from_program", "Pipeline4Wave")
MOST_LINES = 200
_LINK = re.compile(r"\]\(([^)#]+)(?:#([^)]+))?\)")


def linked(text: str) -> set[str]:
    """Names in code that are the text of a link, or stand in a table's row with one."""
    in_links = re.findall(r"\[`(\w+)`\]\(", text)
    return {*in_links, *re.findall(r"^\| `(\w+)` \|.*\]\(", text, re.MULTILINE)}


def test_it_is_short() -> None:
    assert len(LINES) <= MOST_LINES


def test_what_it_is_and_where_it_comes_from_stand_at_the_top() -> None:
    top = " ".join(LINES[:15])
    for said in (
        "software-pipelining framework for GPU kernel loops",
        "`pipeline` scheduling package",
        "Modular's MAX kernels",
    ):
        assert said in top


def test_the_five_names_are_linked_on_the_first_screen() -> None:
    assert linked("\n".join(LINES[:60])) >= set(NAMES)


def test_the_five_names_have_rows() -> None:
    rows = re.search(r"^\| the published page \| here \|\n\|---\|---\|\n((?:\|.*\n)+)", README, re.MULTILINE)
    assert rows is not None
    assert tuple(re.findall(r"^\| `(\w+)` \| `rota\.pipeline\.\1`", rows[1], re.MULTILINE)) == NAMES


def test_a_name_without_a_link_is_noticed() -> None:
    assert linked("| `a` | b |\n`c` and [`d`](e.md)\n| `f` | [g](h.md) |\n") == {"d", "f"}


def test_every_link_leads_somewhere() -> None:
    for page, anchor in _LINK.findall(README):
        if page.startswith("http"):
            continue
        file = ROOT / page
        assert file.exists(), page
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text("utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{page}#{anchor}"


def test_every_block_of_code_has_its_output() -> None:
    assert [block.output is not None for block in PYTHON] == [True]


def test_the_example_is_short_and_prints_what_is_shown() -> None:
    (example,) = PYTHON
    assert example.output is not None
    ran = subprocess.run([sys.executable, "-c", example.text], check=True, capture_output=True, text=True)
    assert matches(example.output.text, ran.stdout)
    (declared,) = re.findall(r"^class .*?(?=^\S)", example.text, re.DOTALL | re.MULTILINE)
    assert len([line for line in declared.splitlines() if line]) <= 16
