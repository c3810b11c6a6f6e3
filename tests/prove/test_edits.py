"""Waits and barriers that are added, changed or taken away: branches follow, and nothing else changes."""

from __future__ import annotations

import pytest

from rota.isa.disassembly import Instruction, read_listing
from rota.isa.opcodes import written_counts
from rota.prove.verdict import BARRIER, Edit, apply_edits
from tests.isa.single import listing

TEXT = """
s_mov_b32 s4, 8
again:
s_waitcnt vmcnt(3) lgkmcnt(2)
s_barrier
s_sub_u32 s4, s4, 1
s_cmp_lg_u32 s4, 0
s_cbranch_scc1 again
"""


def instructions() -> tuple[Instruction, ...]:
    return read_listing(listing(TEXT), "k")


def texts(*edits: Edit) -> list[str]:
    return [each.text for each in apply_edits(instructions(), edits)]


def test_a_branch_comes_to_what_was_added_in_front_of_its_target() -> None:
    wait, barrier = Edit(number=1, what="vmcnt", most=0, inserted=True), Edit(number=1, what=BARRIER, inserted=True)
    found = apply_edits(instructions(), (barrier, wait))
    assert [each.text for each in found[:4]] == [
        "s_mov_b32 s4, 8", "s_waitcnt vmcnt(0)", "s_barrier", "s_waitcnt vmcnt(3) lgkmcnt(2)",
    ]  # fmt: skip
    assert [each.target for each in found if each.target is not None] == [1]


def test_a_branch_behind_what_was_added_still_finds_its_target() -> None:
    found = apply_edits(instructions(), (Edit(number=0, what=BARRIER, inserted=True),))
    assert [each.target for each in found if each.target is not None] == [2]


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (Edit(number=1, what="vmcnt"), "s_waitcnt lgkmcnt(2)"),
        (Edit(number=1, what="lgkmcnt", most=0), "s_waitcnt vmcnt(3) lgkmcnt(0)"),
        (Edit(number=2, what=BARRIER), "s_nop 0"),
    ],
)
def test_one_counter_of_a_wait_or_a_barrier_alone_is_changed(edit: Edit, text: str) -> None:
    before, after = texts(), texts(edit)
    assert after[edit.number] == text
    assert [each for number, each in enumerate(after) if number != edit.number] == [
        each for number, each in enumerate(before) if number != edit.number
    ]


def test_a_wait_without_counts_is_taken_away_whole() -> None:
    both = (Edit(number=1, what="vmcnt"), Edit(number=1, what="lgkmcnt"))
    assert texts(*both)[1] == "s_nop 0"


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("s_waitcnt vmcnt(12) lgkmcnt(0)", {"vmcnt": 12, "lgkmcnt": 0}),
        ("s_waitcnt 0xcf71", {"vmcnt": 49, "lgkmcnt": 15}),
        ("s_waitcnt expcnt(0)", {}),
    ],
)
def test_the_counts_of_a_wait(text: str, counts: dict[str, int]) -> None:
    (only,) = read_listing(f"k:\n\t{text}\n\ts_endpgm\n", "k")[:1]
    assert written_counts(only.spec, only.text) == counts
