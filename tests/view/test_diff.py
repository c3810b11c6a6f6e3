from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from hypothesis import given, strategies as st

from rota import CompiledSchedule, DeclarativeSchedule, OpDesc, Phase, Pipeline4Wave, compile_schedule
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.op import entries_of
from rota.program.entry import Entry
from rota.view.diff import Change, Figure, Row, ScheduleDiff, diff
from rota.view.page import diff_page
from tests.view.kernels import by_values, four_wave, ping_pong
from tests.view.scenes import HOSTILE
from tests.wording.golden import mentions, worded


def with_kernel(compiled: CompiledSchedule, ops: list[OpDesc]) -> CompiledSchedule:
    return replace(compiled, kernel=entries_of(ops, Phase.KERNEL))


def changes(found: ScheduleDiff, phase: Phase = Phase.KERNEL) -> list[Row]:
    return [row for row in dict(found.phases)[phase] if row.change is not Change.SAME]


def ops_of(compiled: CompiledSchedule) -> list[OpDesc]:
    return [entry.op for entry in compiled.kernel]


def test_a_schedule_is_the_same_as_itself() -> None:
    for compiled, _ in (ping_pong(), four_wave(), by_values()):
        found = diff(compiled, compiled)
        assert found.same
        worded(str(found).splitlines()[-1])
        assert all(figure.difference == "" for figure in found.figures)


def test_a_weakened_wait_has_changed_and_nothing_else() -> None:
    compiled, _ = ping_pong()
    ops = ops_of(compiled)
    at = ops.index(OpDesc.wait_vm(12))
    ops[at] = OpDesc.wait_vm(14)
    rows = changes(diff(compiled, with_kernel(compiled, ops)))
    assert [str(row) for row in rows] == [f"~ kernel[{at}] wait_vm(12) -> kernel[{at}] wait_vm(14)"]


def test_a_removed_barrier_is_removed_and_counted() -> None:
    compiled, _ = ping_pong()
    ops = ops_of(compiled)
    at = ops.index(OpDesc.barrier())
    del ops[at]
    found = diff(compiled, with_kernel(compiled, ops))
    assert [row.change for row in changes(found)] == [Change.REMOVED]
    figures = {figure.name: figure for figure in found.figures}
    assert figures["kernel barriers"].difference == "-1"
    assert figures["kernel entries"].difference == "-1"
    assert figures["kernel waits"].difference == ""
    back = diff(with_kernel(compiled, ops), compiled)
    assert [row.change for row in changes(back)] == [Change.ADDED]


def test_a_data_op_that_went_elsewhere_has_moved() -> None:
    compiled, _ = ping_pong()
    ops = ops_of(compiled)
    load = next(op for op in ops if str(op) == "load_b s0 t0 k0")
    at = ops.index(load)
    ops.remove(load)
    ops.insert(30, load)
    rows = changes(diff(compiled, with_kernel(compiled, ops)))
    assert [str(row) for row in rows] == [f"> kernel[{at}] -> kernel[30] load_b s0 t0 k0"]


def test_two_strategies_differ_and_the_text_names_every_change() -> None:
    before, after = compile_schedule(DeclarativeSchedule()), compile_schedule(Pipeline4Wave(KernelGeometry()))
    found = diff(before, after, cycles=(2000, 2100))
    text = str(found)
    assert text.startswith("DeclarativeSchedule -> Pipeline4Wave\n")
    assert mentions(worded(text.splitlines()[1]), "2,000", "2,100", "+5.0")
    for phase, rows in found.phases:
        assert f"{phase.value.lower()}:" in text
        assert all(f"  {row}" in text for row in rows if row.change is not Change.SAME)


def test_a_repair_is_two_additions() -> None:
    geometry = KernelGeometry(lgkm_per_load_a=0, lgkm_per_load_b=0)  # full drains: the loop is clean
    written = compile_schedule(Pipeline4Wave(geometry), sync="as_written")
    found = diff(written, compile_schedule(Pipeline4Wave(geometry)))
    assert changes(found) == []
    assert [str(row) for row in changes(found, Phase.EPILOGUE)] == ["+ epilogue[1] wait_vm(0)", "+ epilogue[2] barrier"]


@given(st.permutations(range(12)), st.lists(st.integers(0, 11), max_size=4))
def test_nothing_is_lost_and_the_listing_after_keeps_its_order(order: list[int], dropped: list[int]) -> None:
    compiled, _ = ping_pong()
    ops = ops_of(compiled)[:12]
    shuffled = [ops[number] for number in order if number not in dropped]
    before, after = with_kernel(compiled, ops), with_kernel(compiled, shuffled)
    rows = dict(diff(before, after).phases)[Phase.KERNEL]
    assert [row.after for row in rows if row.after] == list(after.lowered.kernel)
    gone = [row.before for row in rows if row.before]
    assert sorted(gone, key=_slot) == list(before.lowered.kernel)
    for row in rows:
        if row.before and row.after:
            assert row.before.op.name.partition("(")[0] == row.after.op.name.partition("(")[0]
            assert (row.before.op == row.after.op) or row.change is Change.CHANGED


def test_every_row_can_be_told() -> None:
    first, second, *_ = four_wave()[0].lowered.kernel
    assert str(Row(Change.SAME, first, first)) == f"  {first}"
    assert str(Row(Change.MOVED, first, second)) == f"> kernel[0] -> {second}"


def test_figures_say_how_much_more() -> None:
    assert Figure("waits", 10, 12).difference == "+2"
    assert Figure("waits", 0, 0).difference == ""
    assert Figure("clk, predicted, not measured", 1000, 950).difference == "-50 (-5.0 %)"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "tr" and dict(attrs).get("class"):
            self.rows.append(dict(attrs)["class"] or "")


def test_the_page_has_a_row_per_row_and_escapes_names() -> None:
    before = replace(four_wave()[0], name=HOSTILE)
    found = diff(before, ping_pong()[0])
    reader = _Reader()
    page = diff_page(found)
    reader.feed(page)
    words = {Change.SAME: "same", Change.CHANGED: "changed", Change.MOVED: "moved"}
    words |= {Change.REMOVED: "removed", Change.ADDED: "added"}
    assert reader.rows == [words[row.change] for _, rows in found.phases for row in rows]
    assert set(reader.rows) == set(words.values())
    assert "script" not in reader.tags
    assert "//" not in page


def _slot(entry: Entry) -> int:
    return entry.time_slot
