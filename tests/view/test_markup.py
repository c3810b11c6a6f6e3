"""Values as a notebook shows them: escaped, closed, and with what they are in words."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from rota import DepEdge, Finding, KernelGeometry, LoopBody, Pipeline4Wave, Severity, compile_schedule, verify
from rota.markup import Link, arcs, boxes, card, fold, lines, shares
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
    drawn = (boxes([("<b>", [("<b>", [("<b>", True)])])]), arcs(["<b>"], [Link(0, 0, "<b>", "<b>")]))
    for markup in (card("<b>"), lines("<b>"), fold("<b>", "<b>"), shares([("<b>", 1.0)], "<b>"), *drawn):
        assert "<b><b>" not in markup
        assert "&lt;b&gt;" in markup
        assert balanced(markup)


def test_nothing_is_shown_of_nothing() -> None:
    assert lines("") == fold("summary", "") == shares([], "clk") == shares([("none", 0.0)], "clk") == ""


def test_shares_add_up() -> None:
    markup = shares([("at work", 3.0), ("idle", 1.0)], "clk")
    assert "width:75.00%" in markup
    assert "width:25.00%" in markup
    assert "idle 1 clk" in markup


def test_a_finding_keeps_its_words() -> None:
    finding = Finding("D102", "a < b", severity=Severity.WARNING, evidence=(("got", 1),))
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


def test_a_program_and_its_blocks_are_boxes() -> None:
    program = compile_schedule(Pipeline4Wave(KernelGeometry())).program
    assert program is not None
    markup = program._repr_html_()
    assert balanced(markup)
    assert markup.count("border-radius") == len(program.blocks)
    assert [name for name in ("partition 0, stage 0", "partition 1, stage 1") if name in markup] != []
    for entry in program.expand_to_list():
        assert f">{entry.time_slot} {entry.op}<" in markup
    block = program.blocks[0]._repr_html_()
    assert balanced(block)
    assert "load_a s0 t0 k0" in block


def test_edges_are_arcs_and_those_that_cross_the_loop_edge_are_dashed() -> None:
    graph = compile_schedule(Pipeline4Wave(KernelGeometry())).graph
    markup = graph._repr_html_()
    assert balanced(markup)
    assert markup.count("<title>") == len(graph.edges)
    later = [edge for edge in graph.edges if edge.loop_distance]
    assert markup.count("stroke-dasharray") == len(later) > 0
    assert "FLOW" in markup
    assert "ANTI" in markup
    assert "later iteration" not in LoopBody(graph.ops, [DepEdge(0, 1)])._repr_html_()
    assert "#fff" not in markup  # the page's own colours, light or dark
    assert balanced(LoopBody((), ())._repr_html_())
