from __future__ import annotations

import pytest

from tests.findings.smallest import raised
from tests.isa.gfx1250 import assembled, listed


def test_a_word_that_no_assembler_writes() -> None:
    finding = raised("I112", lambda: listed("s_nop 0", ".long 0xd0310002", "s_nop 1"))
    assert finding.concerns[0].label == ".long 0xd0310002"
    assert dict(finding.evidence) == {"words": "d0310002", "places": 1}


def test_a_word_that_no_path_reaches_does_no_harm() -> None:
    instructions = assembled("s_branch over", ".long 0xd0310002", "over:").instructions()
    assert [each.opcode for each in instructions] == ["s_branch", "s_endpgm"]


@pytest.mark.parametrize("first", ["0xd0318000", "0xcc350000", "0xcc880074"])
def test_what_differs_from_the_words_that_were_seen_is_not_respelled(first: str) -> None:
    """A bit of a tensor copy that nobody has explained; a third source of scales with another value; no product."""
    second = {"0xcc350000": "0x0407f1f6", "0xcc880074": "0x1a021108"}.get(first, "0x00000000")
    if first == "0xcc880074":
        assert listed(f".long {first}, {second}")[0].opcode == "v_wmma_f32_32x16x128_f4"
    else:
        raised("I112", lambda: listed(f".long {first}, {second}, 0x7c7c0800"))
