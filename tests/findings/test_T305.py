from __future__ import annotations

from rota.verify.prove import verify
from tests.findings.smallest import raised
from tests.lift.small_loop import BUFFERS, lifted, looped


def test_a_proof_of_values_needs_values() -> None:
    program = lifted(looped(*BUFFERS)).program
    raised("T305", lambda: verify(program))
