"""Which waits and barriers a proof needs: each that goes leaves a proof, each that stays doesn't."""

from __future__ import annotations

from rota.isa.disassembly import read_listing
from rota.prove.advice import Needed, find_needed
from rota.prove.kernel_proof import prove
from rota.prove.verdict import BARRIER, apply_edits
from tests.isa.single import facts, listing
from tests.prove.test_rules import MEET, READ, WAIT, WRITE, kernel

FACTS = facts(required_workgroup=(128, 1, 1), user_sgprs=(("kernarg_segment_ptr", 2),))


def needed(text: str) -> tuple[Needed | None, str]:
    instructions = read_listing(listing(text), "k")
    found = find_needed(FACTS, instructions, prove(FACTS, instructions))
    return found, "" if found is None else found.describe(instructions)


def test_what_can_go_and_what_cannot() -> None:
    found, told = needed(kernel(WRITE, MEET, READ, WAIT, "s_barrier", "v_mov_b32_e32 v4, v3"))
    assert found is not None
    assert [(each.number, each.what) for each in found.alone] == [(7, BARRIER)]
    assert told == (
        "2 of 2 waits and 1 of 2 barriers are needed: the proof fails without any one of them\n"
        "each of these can be removed alone:\n  at line 9 `s_barrier`"
    )


def test_each_of_two_can_go_and_not_both() -> None:
    found, told = needed(kernel(WRITE, MEET, "s_barrier", READ, WAIT, "v_mov_b32_e32 v4, v3"))
    assert found is not None
    assert [each.what for each in found.alone] == [BARRIER, BARRIER]
    assert found.together == found.alone[:1]
    assert "these can be removed together:" in told


def test_what_is_said_holds() -> None:
    text = kernel(WRITE, WAIT, MEET, READ, WAIT, WAIT, "v_mov_b32_e32 v4, v3")
    instructions = read_listing(listing(text), "k")
    found, _ = needed(text)
    assert found is not None
    every = {*found.waits, *found.barriers}
    for each in every:
        assert prove(FACTS, apply_edits(instructions, (each,))).proved == (each in found.alone)
    assert prove(FACTS, apply_edits(instructions, found.together)).proved
    for each in every - set(found.together):
        assert not prove(FACTS, apply_edits(instructions, (*found.together, each))).proved


def test_a_kernel_with_an_alarm_is_not_asked() -> None:
    assert needed(kernel(WRITE, READ))[0] is None
