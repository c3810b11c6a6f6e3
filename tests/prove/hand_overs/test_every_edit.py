"""Every instruction of the protocol taken out, one at a time: what a launch finds, the proof finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rota.errors import Finding, IsaError
from rota.isa.disassembly import Instruction
from tests.prove.hand_overs.kernels import KERNELS, NOTHING_HANDED_OVER, ORDERS, PieceEdit, compiled, executed
from tests.prove.hand_overs.test_twins import report

pytestmark = pytest.mark.thorough  # runs hundreds of launches

TAKEN_OUT = ("buffer_wbl2", "buffer_inv", "s_waitcnt vmcnt(0)", "s_barrier")


def edits(instructions: tuple[Instruction, ...]) -> Iterator[PieceEdit]:
    for at, each in enumerate(instructions):
        which = sum(before.text.startswith(each.text) for before in instructions[:at])
        if each.text.startswith(TAKEN_OUT):
            yield PieceEdit(begins=each.text, which=which)
        if "sc1" in each.modifiers:
            yield PieceEdit(begins=each.text, which=which, flags=("sc1",))


def found_by_launches(name: str, edit: PieceEdit) -> tuple[Finding, ...]:
    instructions = edit.apply(compiled(name, "gfx950").instructions("k"))
    found: list[Finding] = []
    for order in ORDERS:
        try:
            found += executed(name, "gfx950", instructions, order)[1]
        except IsaError as error:
            found += error.findings
    return tuple(found)


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - NOTHING_HANDED_OVER))
def test_what_a_launch_finds_is_proved(name: str) -> None:
    """A flag that is used before its wait is an I103, and the I303 that follow from that are no news."""
    for edit in edits(compiled(name, "gfx950").instructions("k")):
        codes = {each.code for each in found_by_launches(name, edit)}
        if "I303" in codes and "I103" not in codes:
            assert report(name, "gfx950", edit).findings, edit
