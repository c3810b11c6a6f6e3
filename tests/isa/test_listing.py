"""Reading listings: the disassembly and the assembly of one code object say the same."""

from __future__ import annotations

import pytest

from rota.isa.disassembly import Instruction, read_listing
from tests.isa.sources import PREAMBLE, compiled, gemm_source
from tests.isa.test_scalar import CASES as SCALARS
from tests.isa.test_vector import all_texts

from rota.isa.binary.toolchain import find_toolchain  # isort: skip
from rota.isa.decoded import load_program  # isort: skip

TWO = """
0000000000001900 <first>:
\ts_mov_b32 s0, 5                                            // 000000001900: BE800085
\ts_cbranch_scc1 1                                           // 000000001904: BF850001 <first+0xc>
\ts_nop 0                                                    // 000000001908: BF800000
\ts_branch 65533                                             // 00000000190C: BF82FFFD <first+0x4>
\ts_branch 65532                                             // 000000001910: BF82FFFC <first>
\ts_nop 0                                                    // 000000001914: BF800000

0000000000001a00 <k>:
\tbuffer_load_dwordx4 v[0:3], v4, s[4:7], 0 offen offset:16  // 000000001A00: E05C1010 80010004
\ts_endpgm                                                   // 000000001A08: BF810000
"""


def test_a_disassembly_is_read_function_by_function() -> None:
    first = read_listing(TWO, "first")  # without the last two, which nothing leads to
    assert [each.opcode for each in first] == ["s_mov_b32", "s_cbranch_scc1", "s_nop", "s_branch"]
    assert [each.target for each in first] == [None, 3, None, 1]
    assert [each.address for each in first][:2] == [0x1900, 0x1904]
    (load, end) = read_listing(TWO, "k")
    assert load.operands == ("v[0:3]", "v4", "s[4:7]", "0")
    assert load.modifiers == ("offen", "offset:16")
    assert (end.opcode, end.operands) == ("s_endpgm", ())


def shown(instruction: Instruction) -> tuple[str, tuple[str, ...], tuple[str, ...], int | None]:
    operands = () if instruction.target is not None else instruction.operands
    return instruction.opcode, operands, instruction.modifiers, instruction.target


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_assembly_and_disassembly_of_a_kernel_agree(arch: str) -> None:
    opcode = "v_mfma_f32_16x16x16_f16" if arch == "gfx942" else "v_mfma_f32_16x16x32_f16"
    code = compiled(gemm_source(arch, opcode), arch)
    assert code.disassembly != code.assembly
    disassembled, assembled = (read_listing(text, "k") for text in (code.disassembly, code.assembly))
    assert [shown(each) for each in disassembled] == [shown(each) for each in assembled]
    assert any(each.target is not None for each in assembled)


def test_the_assembler_knows_every_instruction_that_the_tests_spell() -> None:
    """Otherwise the tests would be about instructions that don't exist; what comes back is decoded again."""
    toolchain = find_toolchain()
    plain = toolchain.compile(PREAMBLE + "KERNEL() {}", "gfx950")
    texts = [*all_texts(), *(case.text for case in SCALARS)]
    assembly = plain.assembly.replace("\ts_endpgm", "\n".join(f"\t{text}" for text in texts) + "\n\ts_endpgm", 1)
    code = toolchain.assemble(assembly, "gfx950")
    assert len(load_program(code.kernel(), code.instructions()).steps) == len(texts) + 1
