"""The schedule of a whole kernel stands between two marks; what stands around them is none of its events."""

from __future__ import annotations

import pytest

from rota.audit.machine_loop import MachineLoop, read_machine_loop
from rota.emit.text import FIRST_MARK, LAST_MARK
from rota.isa.decoded import waves_at
from rota.isa.disassembly import read_listing
from rota.program.kinds import OpKind
from rota.targets.devices import GFX950
from tests.findings.smallest import raised

FIRST, LAST = (f"s_mov_b32 m0, {mark:#x}" for mark in (FIRST_MARK, LAST_MARK))
SCHEDULE = (FIRST, "ds_read_b128 v[4:7], v2", ".LBB0_1:", "s_barrier", "s_cbranch_scc1 .LBB0_1", "s_setprio 1", LAST)
BEHIND = (".LBB0_2:", "ds_write_b128 v2, v[4:7]", "s_barrier", "s_cbranch_scc0 .LBB0_2")


def read(*lines: str) -> MachineLoop:
    text = "\n".join(("k:", *(line if line.endswith(":") else f"\t{line}" for line in lines), "\ts_endpgm", ""))
    return read_machine_loop(read_listing(text, "k"))


def test_only_what_stands_between_them_is_the_schedule() -> None:
    loop = read("s_cbranch_vccz .LBB0_2", "s_barrier", *SCHEDULE, *BEHIND)
    assert [event.kind for event in loop.prologue] == [OpKind.LDS_READ]
    assert [event.kind for event in loop.kernel] == [OpKind.BARRIER]
    assert [event.kind for event in loop.epilogue] == [OpKind.PRIORITY]
    assert not any(event.conditional for event in (*loop.prologue, *loop.kernel, *loop.epilogue))
    assert [loop.marked.start, loop.marked.stop] == [2, 8]


def test_without_marks_all_of_it_is() -> None:
    loop = read("s_barrier", ".LBB0_1:", "s_barrier", "s_cbranch_scc1 .LBB0_1")
    assert len(loop.prologue) == 1
    assert not loop.marked


@pytest.mark.parametrize(
    "lines",
    [
        tuple(line for line in SCHEDULE if line != LAST),
        tuple(line for line in SCHEDULE if line != FIRST),
        (*SCHEDULE, FIRST),
        (*SCHEDULE, *(line.replace("LBB0_1", "LBB0_3") for line in SCHEDULE)),
        (LAST, *SCHEDULE[1:-1], FIRST),
        ("s_cbranch_vccz .LBB0_1", *SCHEDULE),
        (*SCHEDULE[:-1], "s_cbranch_vccz .LBB0_2", LAST, *BEHIND),
        (*SCHEDULE, *BEHIND, "s_cbranch_vccz .LBB0_1"),
    ],
    ids=["no last", "no first", "two first", "twice", "exchanged", "entered", "left", "entered from behind"],
)
def test_marks_that_enclose_nothing_are_refused(lines: tuple[str, ...]) -> None:
    raised("I201", lambda: read(*lines))


def test_waves_are_known_if_what_is_reached_is() -> None:
    lines = ("s_load_dword s4, s[0:1], 0x0", "s_cmp_eq_u32 s4, 0", "s_cbranch_scc1 .LBB0_2",
             "v_readfirstlane_b32 s5, v0", "s_cmp_gt_u32 s5, 100", "s_cbranch_scc1 .LBB0_1", "s_barrier", ".LBB0_1:",
             "s_nop 0", ".LBB0_2:")  # fmt: skip
    text = "\n".join(("k:", *(line if line.endswith(":") else f"\t{line}" for line in lines), "\ts_endpgm", ""))
    listing = read_listing(text, "k")
    assert waves_at(listing, GFX950, 4, [6]) == {6: None}
    assert waves_at(listing, GFX950, 4, [6], reached=range(3, 8)) == {6: frozenset({0, 1})}
