from __future__ import annotations

from rota.audit.gemm_launch import load_emitted
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import find_toolchain
from tests.emit.kernels import SMALL, by_values


def test_a_matrix_instruction_left_out_makes_c_wrong() -> None:
    compiled, geometry = by_values(SMALL)
    source = emit_gemm(compiled, geometry)
    code = find_toolchain().compile(source.replace("  ROTA_MFMA(", "  // ROTA_MFMA(", 1), compiled.machine.arch)
    result = load_emitted(compiled, geometry, code).launch(1)
    assert not result.right
    (finding,) = result.findings
    assert finding.code == "I110"
    assert dict(finding.evidence)["trips"] == 1
