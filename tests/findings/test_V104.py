from __future__ import annotations

from tests.findings.proofs import found, fragment, loop, mma
from tests.wording.golden import mentions


def test_a_fragment_of_a_tile_that_nothing_filled_is_reported() -> None:
    (finding,) = found("V104", loop(prologue=[fragment(0)]))
    assert mentions(finding.message, "mma_load_a", "s0", "t0", "A[0][0]")


def test_a_compute_on_registers_that_nothing_loaded_is_reported() -> None:
    found("V104", loop(prologue=[mma()]), times=None)
