"""Values as a notebook shows them: escaped, closed, and with what they are in words."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from rota import Finding, KernelGeometry, Pipeline4Wave, Severity, compile_schedule, verify
from rota.markup import card, folded, lines, shares
from rota.prove.verdict import Statistics, Status, Verdict


class Balance(HTMLParser):
    """Counts what is opened and closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def balanced(markup: str) -> bool:
    parser = Balance()
    parser.feed(markup)
    return parser.open == []


def test_texts_are_escaped() -> None:
    for markup in (card("<b>"), lines("<b>"), folded("<b>", "<b>"), shares([("<b>", 1.0)], "<b>")):
        assert "&lt;b&gt;" in markup
        assert balanced(markup)


def test_nothing_is_shown_of_nothing() -> None:
    assert lines("") == folded("summary", "") == shares([], "clk") == shares([("none", 0.0)], "clk") == ""


def test_shares_add_up() -> None:
    markup = shares([("at work", 3.0), ("idle", 1.0)], "clk")
    assert "width:75.00%" in markup
    assert "width:25.00%" in markup
    assert "idle 1 clk" in markup


def test_a_finding_keeps_its_words() -> None:
    finding = Finding(code="D102", message="a < b", severity=Severity.WARNING, evidence=(("got", 1),))
    markup = finding._repr_html_()
    assert "warning[D102]: a &lt; b" in markup
    assert "got: 1" in markup
    assert balanced(markup)


def test_a_proved_schedule_and_a_wrong_one_differ() -> None:
    schedule = Pipeline4Wave(KernelGeometry())
    written = compile_schedule(schedule, sync="as_written")
    wrong, right = verify(written)._repr_html_(), verify(compile_schedule(schedule))._repr_html_()
    assert "error[R102]" in wrong
    assert "proved for every trip count" not in wrong
    assert "proved for every trip count" in right
    assert "not proved" in written._repr_html_()
    assert balanced(wrong)
    assert balanced(written._repr_html_())


@pytest.mark.parametrize("status", Status)
def test_a_verdict_says_its_status_in_words(status: Status) -> None:
    verdict = Verdict(
        kernel="k<1>", arch="gfx950", status=status, findings=(), assumptions=(), policies=(), statistics=Statistics()
    )
    assert f"k&lt;1&gt; (gfx950): {status.value}" in verdict._repr_html_()
    assert balanced(verdict._repr_html_())
