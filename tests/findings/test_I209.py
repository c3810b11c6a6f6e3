"""The descriptor is what the hardware is told; each edit leaves notes and instructions as they are."""

from __future__ import annotations

from functools import cache

import pytest

from rota.audit.audit import Audit, audit_gemm
from rota.audit.gemm_launch import load_emitted
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from tests.audit import sabotage
from tests.emit.kernels import SMALL_MI300X, by_values
from tests.findings.smallest import raised
from tests.wording.golden import worded


@cache
def assembly() -> str:
    compiled, geometry = by_values(SMALL_MI300X)
    return find_toolchain().compile(sabotage.source_of(compiled, geometry), "gfx942").assembly


def told(**fields: int) -> CodeObject:
    text = assembly()
    for field, value in fields.items():
        text = sabotage.told(text, field, value)
    return find_toolchain().assemble(text, "gfx942")


def audited(code: CodeObject) -> Audit:
    return audit_gemm(*by_values(SMALL_MI300X), code)


EDITS: dict[str, tuple[dict[str, int], set[str]]] = {
    "less LDS": ({"group_segment_fixed_size": 32768}, {"I207", "I209"}),
    "no LDS": ({"group_segment_fixed_size": 0}, {"I207", "I209"}),
    "more LDS than there is": ({"group_segment_fixed_size": 98304}, {"I207", "I209"}),
    "private memory": ({"private_segment_fixed_size": 64}, {"I209"}),
    "fewer arguments": ({"kernarg_size": 16}, {"I209"}),
    "fewer registers": ({"next_free_vgpr": 100, "accum_offset": 100}, {"I209"}),
    "too many registers for the workgroup": ({"next_free_vgpr": 512}, set()),  # 4 waves may have them all
    "fewer scalar registers": ({"next_free_sgpr": 10}, {"I209"}),
    "AGPRs among the VGPRs": ({"accum_offset": 64}, {"I209"}),
    "waves on several compute units": ({"tg_split": 1}, {"I209"}),
}


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("edit", EDITS)
def test_a_descriptor_that_does_not_fit_is_found(edit: str) -> None:
    fields, codes = EDITS[edit]
    report = audited(told(**fields))
    assert {finding.code for finding in report.findings} == codes
    assert report.clean is (not codes)


def test_what_it_says() -> None:
    (split,) = audited(told(tg_split=1)).findings
    worded(split)
    assert split.concerns[0].label == "s_barrier"
    (fewer,) = audited(told(accum_offset=64)).findings
    worded(fewer)
    assert "64" in fewer.message
    (memory,) = (finding for finding in audited(told(group_segment_fixed_size=0)).findings if finding.code == "I209")
    worded(memory)
    assert "65536" in memory.message
    assert memory.evidence == (("descriptor", 0), ("notes", 65536))


def test_it_does_not_run_either() -> None:
    compiled, geometry = by_values(SMALL_MI300X)
    raised("I209", lambda: load_emitted(compiled, geometry, told(tg_split=1)))


def test_more_user_registers_than_are_enabled() -> None:
    """Workgroup ids follow the user SGPRs: with another count they are looked for in the wrong place."""
    report = audited(told(user_sgpr_count=4))
    (finding,) = report.findings
    assert finding.code == "I209"
    worded(finding)


def test_a_descriptor_that_says_nothing_about_arguments() -> None:
    """As in hand-written kernels: hardware doesn't ask for it."""
    assert audited(told(kernarg_size=0)).clean
