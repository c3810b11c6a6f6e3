from __future__ import annotations

from tests.findings.proofs import found, fragment, loop, mma


def test_a_fragment_of_a_tile_that_nothing_filled_is_reported() -> None:
    (finding,) = found("V104", loop(prologue=[fragment(0)]))
    assert finding.message == "mma_load_a s0 t0 reads LDS A[0][0], which nothing has written"


def test_a_compute_on_registers_that_nothing_loaded_is_reported() -> None:
    found("V104", loop(prologue=[mma()]), times=None)
