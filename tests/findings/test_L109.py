from __future__ import annotations

from rota import Loop, compile_loop
from rota.declare.mfma import registers_named
from tests.findings.smallest import raised
from tests.findings.test_L106 import MFMA, gemm


def test_an_operand_with_too_few_registers_is_refused() -> None:
    finding = raised("L109", lambda: compile_loop(gemm(registers=2)))
    assert finding.evidence == (("registers", 2), ("of one instruction", 4))


def test_a_result_with_too_few_registers_is_refused() -> None:
    loop = Loop("small", waves=4)
    a = loop.fragment("a", loop.tile("A", size=4096), registers=4)
    loop.load("A", moved=4096)
    loop.mma(loop.accumulator("c", registers=3), a, a, instruction=MFMA["gfx950"])
    assert raised("L109", lambda: compile_loop(loop.build())).message.startswith("c has 3 registers")


def test_registers_follow_from_the_name() -> None:
    """The widths that LLVM's assembler accepts."""
    assert registers_named("v_mfma_f32_16x16x32_bf16") == (4, 4, 4)
    assert registers_named("v_mfma_f32_32x32x16_bf16") == (4, 4, 16)
    assert registers_named("v_mfma_f32_32x32x8_f16") == (2, 2, 16)
    assert registers_named("v_mfma_i32_16x16x32_i8") == (2, 2, 4)
    assert registers_named("v_mfma_f32_16x16x128_f8f6f4") == (4, 4, 4)  # of 4-bit elements
    assert registers_named("v_mfma_of_no_shape") is None
