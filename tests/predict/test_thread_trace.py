"""Traces of rocprofv3, made by us: clocks go to the entries that they belong to."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.cycles.instructions import program_of, work_of
from rota.predict.thread_trace import compare_trace, read_trace
from rota.program.kinds import OpKind
from tests.cli.command import rota
from tests.cycles.timed_loops import timed
from tests.predict.traces import made_csv, made_json
from tests.wording.golden import worded

TEXT = {
    OpKind.MMA: "v_mfma_f32_16x16x32_bf16 a[0:3], v[0:3], v[4:7], a[0:3]",
    OpKind.DMA: "buffer_load_dwordx4 v0, s[0:3], 0 offen lds",
    OpKind.LDS_READ: "ds_read_b128 v[0:3], v4",
    OpKind.WAIT: "s_waitcnt vmcnt(4)",
    OpKind.BARRIER: "s_barrier",
}


def listing(name: str) -> tuple[list[str], list[int | None]]:
    """The loop as a compiler would write it, with scalar instructions between, and the entry of each instruction."""
    compiled, shape = timed(name)
    texts: list[str] = []
    slots: list[int | None] = []
    last_wait = False
    for entry in program_of(compiled, shape).kernel:
        kind = entry.op.kind
        if kind is OpKind.DMA:
            texts.append("s_mov_b32 m0, s4")
            slots.append(None)
        if kind in TEXT and not (kind is OpKind.WAIT and last_wait):
            count = work_of(entry).instructions
            texts += [TEXT[kind]] * count
            slots += [entry.time_slot] * count
        last_wait = kind is OpKind.WAIT or (last_wait and kind not in TEXT)
    return [*texts, "s_cbranch_scc1 -100"], [*slots, None]


@pytest.mark.parametrize("name", ["four_wave", "ping_pong"])
def test_planted_clocks_are_found_at_their_entries(name: str, tmp_path: Path) -> None:
    texts, slots = listing(name)
    clocks = [5 + number % 7 for number in range(len(texts))]
    slow = slots.index(next(slot for slot, text in zip(slots, texts, strict=True) if text == "s_barrier"))
    clocks[slow] = 900
    want: dict[int, int] = {}
    for slot, each in zip(slots, clocks, strict=True):
        if slot is not None:
            want[slot] = want.get(slot, 0) + each
    compiled, shape = timed(name)
    for path in (made_csv(tmp_path / "s.csv", texts, clocks), made_json(tmp_path / "code.json", texts, clocks)):
        found = compare_trace(compiled, read_trace(path), shape)
        assert {each.slot: each.measured for each in found.entries if each.measured} == pytest.approx(want)
        assert found.measured == pytest.approx(sum(clocks))
        assert found.other == pytest.approx(sum(c for c, slot in zip(clocks, slots, strict=True) if slot is None))
        assert found.largest[0].slot == slots[slow]
        assert f"kernel[{slots[slow]}] " in found.table(1)


def test_predicted_clocks_of_all_entries_make_the_trip(tmp_path: Path) -> None:
    """Every clock of a wave is an issue turn or charged to an entry, but for set-up of DMAs and the loop's edge."""
    texts, _ = listing("four_wave")
    compiled, shape = timed("four_wave")
    found = compare_trace(compiled, read_trace(made_csv(tmp_path / "s.csv", texts)), shape)
    charged = sum(each.predicted for each in found.entries)
    assert 0.9 * found.predicted < charged <= found.predicted * 1.001


def test_a_picture_tells_what_was_measured(tmp_path: Path) -> None:
    texts, _ = listing("four_wave")
    trace, html = made_csv(tmp_path / "s.csv", texts), tmp_path / "p.html"
    ran = rota(f"show four_wave --att {trace} --html {html}")
    assert ran.exit_code == 0, ran.output
    worded(ran.stdout)
    assert "four_wave" in ran.stdout
    assert "measured 4 clk a trip, predicted " in html.read_text()
    assert rota(f"show four_wave --att {trace} --listing").exit_code == 2
