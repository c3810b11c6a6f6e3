from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import pytest

from rota import DepEdge, OpDesc, OpRole, ProgramError, ResourceKind, compile_schedule
from tests.programs.ported import Plain


class Own(IntEnum):
    ADDRESS = 40


ADDRESS = OpDesc.op(Own.ADDRESS, resource=ResourceKind.VALU, latency=4, role=OpRole.VALU_COMPUTE)


class Gathering(Plain):
    """The first load of each partition takes its address from an op of its own; `late` puts that op after the load."""

    def __init__(self, *, late: bool, scheduling: str = "IDENTITY") -> None:
        super().__init__(scheduling=scheduling)
        self.late = late

    def build_body(self) -> Sequence[OpDesc]:
        plain = list(super().build_body())
        half = len(plain) // 2
        at = half - 1 if self.late else 0
        return [op for part in (plain[:half], plain[half:]) for op in (*part[:at], ADDRESS, *part[at:])]

    def derive_edges(self, body: Sequence[OpDesc]) -> Sequence[DepEdge]:
        addresses = [n for n, op in enumerate(body) if op.tag == Own.ADDRESS]
        loads = [n for n, op in enumerate(body) if op.role is OpRole.GLOBAL_LOAD]
        first = (loads[0], loads[len(loads) // 2])
        return [*super().derive_edges(body), *(DepEdge(*pair) for pair in zip(addresses, first, strict=True))]


def test_a_load_that_is_issued_before_its_address_is_an_error_though_the_proof_is_clean() -> None:
    with pytest.raises(ProgramError) as caught:
        compile_schedule(Gathering(late=True))
    first, *_ = caught.value.findings
    assert first.code == "P118"
    assert [end.label for end in first.concerns] == ["address[0,0]", "copy_a s0 t0 k0"]


def test_in_time_it_is_proved() -> None:
    assert compile_schedule(Gathering(late=False)).certificate is not None


@pytest.mark.parametrize("scheduling", ["GREEDY", "CSP"])
def test_a_scheduler_puts_it_right(scheduling: str) -> None:
    assert compile_schedule(Gathering(late=True, scheduling=scheduling)).certificate is not None
