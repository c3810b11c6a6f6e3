from __future__ import annotations

from rota.isa.disassembly import read_listing
from tests.findings.smallest import raised
from tests.wording.golden import mentions


def test_a_kernel_that_the_listing_does_not_show() -> None:
    raised("I101", lambda: read_listing("f:\n\ts_endpgm\n", "g"))


def test_a_branch_out_of_the_listing() -> None:
    finding = raised("I101", lambda: read_listing("f:\n\ts_branch .LBB9_9\n\ts_endpgm\n", "f"))
    assert mentions(finding.message, "s_branch", "LBB9_9")
