"""A front end that brings its own machine: what the user withdraws is applied or refused, never dropped."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rota import GFX942, RotaError
from rota.kernels.kernel import Kernel
from rota.program.lowered import LoweredProgram
from rota.program.machine import Machine
from rota.verify.report import in_order_assumption
from tests.programs.producer_consumer import producer_consumer
from tests.programs.two_sums import right_kernel, two_sums


@dataclass(frozen=True)
class Stubborn:
    """Lowers for the machine that it likes; a wait that leaves some loads in flight needs the order of vmcnt."""

    counted: bool = True

    def compile_for(self, _machine: Machine) -> LoweredProgram:
        return producer_consumer() if self.counted else two_sums(right_kernel())


def test_without_a_wish_the_machine_is_the_authors() -> None:
    compiled = Kernel(name="own", source=Stubborn()).compile()
    assert compiled.certificate is not None
    assert in_order_assumption("vmcnt") in compiled.certificate.assumptions


def test_the_order_of_vmcnt_is_withdrawn_from_the_authors_machine() -> None:
    doubted = Kernel(name="own", source=Stubborn()).but("vmcnt_in_order", value=False).but("sync", "strict")
    with pytest.raises(RotaError) as caught:
        doubted.compile()
    assert "R102" in {finding.code for finding in caught.value.findings}


def test_what_holds_in_any_order_doesnt_assume_one() -> None:
    doubted = Kernel(name="own", source=Stubborn(counted=False)).but("vmcnt_in_order", value=False)
    certificate = doubted.compile().certificate
    assert certificate is not None
    assert in_order_assumption("vmcnt") not in certificate.assumptions
    assert in_order_assumption("lgkmcnt") in certificate.assumptions


def test_another_machine_is_refused() -> None:
    with pytest.raises(RotaError) as caught:
        Kernel(name="own", source=Stubborn()).but("machine", GFX942).compile()
    (finding,) = caught.value.findings
    assert finding.code == "D105"
    assert dict(finding.evidence)["set"] == f"{GFX942.name} (gfx942)"
