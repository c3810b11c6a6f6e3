from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from rota import CompiledSchedule
from rota.cycles.timeline import Timeline
from rota.view.page import page, show
from tests.view.kernels import by_values, four_wave, ping_pong
from tests.view.scenes import HOSTILE

Kernel = Callable[[], tuple[CompiledSchedule, Timeline]]
KERNELS = pytest.mark.parametrize("kernel", [ping_pong, four_wave, by_values])
VOID = {"meta", "input"}


class Reader(HTMLParser):
    """Checks that tags are balanced and collects what a test asks about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not {name for name, _ in attrs if name in ("src", "href", "onload", "onclick")}
        if tag not in VOID:
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


@KERNELS
def test_a_page_holds_picture_controls_and_every_entry(kernel: Kernel) -> None:
    compiled, timeline = kernel()
    shown = show(compiled, timeline)
    reader = Reader(shown.html())
    entries = compiled.lowered.entries
    assert reader.tags.count("details") == 3
    assert reader.tags.count("tr") == 3 + len(entries)
    assert reader.cells[0::4] == [str(entry.time_slot) for entry in entries]
    listed = [cell.partition(" (group ")[0] for cell in reader.cells[1::4]]
    assert listed == [str(entry.op) for entry in entries]
    assert reader.tags.count("script") == 1
    assert "predicted, not measured" in shown.html()


@KERNELS
def test_a_notebook_gets_the_picture_with_a_folded_table_and_no_script(kernel: Kernel) -> None:
    shown = show(*kernel())
    reader = Reader(shown._repr_html_())
    assert "script" not in reader.tags
    assert reader.tags.count("details") == 3
    assert shown.svg() in shown._repr_html_()
    assert "open" not in re.findall(r"<details([^>]*)>", shown._repr_html_())


@KERNELS
def test_nothing_is_fetched(kernel: Kernel) -> None:
    addresses = re.findall(r"(?:https?:)?//[^\s\"'<>)]+", show(*kernel()).html())
    assert set(addresses) == {"http://www.w3.org/2000/svg"}


def test_printed_it_is_the_timeline_and_its_repr_one_line() -> None:
    shown = show(*ping_pong())
    lines = str(shown).splitlines()
    assert lines[0].startswith("DeclarativeSchedule · MI355X · ")
    assert max(map(len, lines)) <= 100
    assert repr(shown).startswith("<Shown DeclarativeSchedule · MI355X")
    assert "\n" not in repr(shown)


def test_hostile_names_stay_text() -> None:
    compiled, timeline = four_wave()
    kernel = tuple(
        entry if entry.op.is_framework else replace(entry, op=entry.op.but(label=HOSTILE)) for entry in compiled.kernel
    )
    evil = replace(compiled, name=HOSTILE, kernel=kernel)
    reader = Reader(show(evil, replace(timeline, name=HOSTILE)).html())
    assert reader.tags.count("script") == 1


def test_extra_barriers_of_one_group_are_marked() -> None:
    compiled, timeline = ping_pong()
    shown = show(compiled, timeline)
    assert "barrier (group 1 only)" in page(shown.scene, compiled)
    assert "barrier (group 0 only)" in page(shown.scene, compiled)


def test_pages_do_not_depend_on_when_they_are_made() -> None:
    compiled, timeline = by_values()
    assert show(compiled, timeline).html() == show(compiled, timeline).html()
