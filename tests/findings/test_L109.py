from __future__ import annotations

from rota import Loop, compile_loop
from rota.targets.cdna import registers_named
from tests.findings.smallest import raised
from tests.findings.test_L106 import MFMA, gemm
from tests.wording.golden import mentions


def test_an_operand_with_too_few_registers_is_refused() -> None:
    finding = raised("L109", lambda: compile_loop(gemm(registers=2)))
    assert mentions(finding.message, "mma_c", "v_mfma_f32_16x16x32_bf16")
    assert finding.evidence == (("registers", 4), ("of one instruction", 8))


def test_several_values_may_make_a_factor() -> None:
    loop = Loop("halves", waves=4)
    loop.load(loop.tile("A", size=4096), moved=4096)
    lower, upper, b = (loop.fragment(name, "A", registers=size) for name, size in (("l", 2), ("u", 2), ("b", 4)))
    loop.mma(loop.accumulator("c", registers=4), lower, upper, b, instruction=MFMA["gfx950"])
    assert compile_loop(loop.build()).certificate is not None


def test_a_result_with_too_few_registers_is_refused() -> None:
    loop = Loop("small", waves=4)
    a = loop.fragment("a", loop.tile("A", size=4096), registers=4)
    loop.load("A", moved=4096)
    loop.mma(loop.accumulator("c", registers=3), a, a, instruction=MFMA["gfx950"])
    assert mentions(raised("L109", lambda: compile_loop(loop.build())).message, "mma_c", 3)


def test_registers_follow_from_the_name() -> None:
    """The widths that LLVM's assembler accepts."""
    assert registers_named("v_mfma_f32_16x16x32_bf16") == (4, 4, 4)
    assert registers_named("v_mfma_f32_32x32x16_bf16") == (4, 4, 16)
    assert registers_named("v_mfma_f32_32x32x8_f16") == (2, 2, 16)
    assert registers_named("v_mfma_i32_16x16x32_i8") == (2, 2, 4)
    assert registers_named("v_mfma_f32_16x16x128_f8f6f4") == (4, 4, 4)  # of 4-bit elements
    assert registers_named("v_mfma_of_no_shape") is None
