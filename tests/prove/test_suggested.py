"""Edits that make a kernel provable: they do, fewer don't, and counts are as weak as they may be."""

from __future__ import annotations

import pytest

from rota.isa.binary.toolchain import read_object
from rota.isa.disassembly import Instruction, read_listing
from rota.prove.advice import Suggestion, find_needed, suggest
from rota.prove.kernel_proof import prove
from rota.prove.verdict import BARRIER, apply_edits
from tests.isa.single import facts, listing
from tests.prove.test_rules import LOADS, MEET, READ, WAIT, WRITE, kernel
from tests.shared import shared

FACTS = facts(required_workgroup=(128, 1, 1), user_sgprs=(("kernarg_segment_ptr", 2),))


def suggested(text: str) -> tuple[Suggestion | None, tuple[Instruction, ...]]:
    instructions = read_listing(listing(text), "k")
    return suggest(FACTS, instructions, prove(FACTS, instructions), steps=800_000), instructions


def test_a_missing_wait_is_as_weak_as_it_may_be() -> None:
    found, instructions = suggested(f"v_lshlrev_b32_e32 v1, 2, v0\n{LOADS}\nv_mov_b32_e32 v6, v4\ns_waitcnt vmcnt(0)")
    assert found is not None
    assert found.describe(instructions).splitlines()[1:] == [
        "  at line 5 insert `s_waitcnt vmcnt(1)` before `v_mov_b32_e32 v6, v4`"
    ]
    assert found.smallest


def test_a_wait_that_is_one_too_many_is_strengthened() -> None:
    text = f"v_lshlrev_b32_e32 v1, 2, v0\n{LOADS}\ns_waitcnt vmcnt(2)\nv_mov_b32_e32 v6, v4\ns_waitcnt vmcnt(0)"
    found, instructions = suggested(text)
    assert found is not None
    assert found.describe(instructions).splitlines()[1:] == ["  at line 5 strengthen `s_waitcnt vmcnt(2)` to vmcnt(1)"]


def test_a_wait_and_a_barrier_are_two() -> None:
    found, instructions = suggested(kernel(WRITE, READ, WAIT))
    assert found is not None
    assert [(each.what, each.most) for each in found.edits] == [("lgkmcnt", 0), (BARRIER, None)]
    assert found.smallest
    assert prove(FACTS, apply_edits(instructions, found.edits)).proved
    for each in found.edits:
        assert not prove(FACTS, apply_edits(instructions, (each,))).proved


@pytest.mark.parametrize("lost", range(3))
def test_what_was_taken_away_is_given_back(lost: int) -> None:
    """Delete one of the needed ones: the suggestion has one edit, and makes the proof go through again."""
    instructions = read_listing(listing(kernel(WRITE, MEET, READ, WAIT, "v_mov_b32_e32 v4, v3")), "k")
    needed = find_needed(FACTS, instructions, prove(FACTS, instructions))
    assert needed is not None
    broken = apply_edits(instructions, ((*needed.waits, *needed.barriers)[lost],))
    found = suggest(FACTS, broken, prove(FACTS, broken), steps=800_000)
    assert found is not None
    assert found.smallest
    assert len(found.edits) == 1
    assert prove(FACTS, apply_edits(broken, found.edits)).proved


def test_what_no_wait_mends_is_said() -> None:
    found, instructions = suggested("v_mov_b32_e32 v1, 0x4000\nds_write_b32 v1, v0")
    assert found is not None
    assert found.describe(instructions) == "no suggestion: waits and barriers do not fix I105"


def test_nothing_to_mend() -> None:
    assert suggested(kernel(WRITE, MEET, READ, WAIT))[0] is None


def test_the_published_race_of_a_ping_pong_is_mended_by_one_wait() -> None:
    """Triton 3.8.0 came to a barrier with LDS reads in flight; 3.9.0 waits for them there."""
    code = read_object(shared("kernels/compiled/triton-3.8.0/pp_on.gfx942.hsaco"))
    kernel_facts, instructions = code.kernel(), code.instructions()
    found = suggest(kernel_facts, instructions, prove(kernel_facts, instructions), steps=2_400_000)
    assert found is not None
    assert found.smallest
    (only,) = found.edits
    assert (only.what, only.most, only.inserted) == ("lgkmcnt", 0, True)
    assert instructions[only.number].opcode == "s_barrier"
    assert prove(kernel_facts, apply_edits(instructions, found.edits)).proved
