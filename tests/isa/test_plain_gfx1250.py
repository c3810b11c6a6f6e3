"""A share of the campaign of gfx1250 (`benchmarks.instructions --arch gfx1250`), and that it notices what is wrong."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.run import run_kernel
from tests.campaigns.machine_code.instructions import executed_opcodes, without_oracle
from tests.isa.plain.c_campaign import judged_functions
from tests.isa.plain.families import Family
from tests.isa.plain_gfx12 import lds, memory
from tests.isa.plain_gfx12.banks import accessed_differently, drawn_texts, executed_differently, named_differently
from tests.isa.plain_gfx12.cases import WAITS, run_case
from tests.isa.plain_gfx12.draw import OPCODES
from tests.isa.plain_gfx12.families import FAMILIES
from tests.isa.plain_gfx12.judge import ARCH, assembled, fresh_state, judged
from tests.isa.plain_gfx12.scalar import run_scalar
from tests.isa.plain_gfx12.vector import run_vector
from tests.isa.shown_elsewhere import ELSEWHERE_GFX1250
from tests.isa.wmma_oracle import compare, drawn_product

pytestmark = pytest.mark.thorough  # starts commands

SHARES = {"pairs": 8, "memory": 2, "control": 3, "vector": 2}  # of so many opcodes one
MASKS = "row_mask:0xf bank_mask:0xf"
# s_barrier_init, s_barrier_join, s_barrier_signal and s_barrier_wait: the first wave hands over what it wrote to LDS.
NAMED = """
static __attribute__((shared)) __amdgpu_named_workgroup_barrier_t bar;
extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(64, 64)))
void k(const int *x, int *y) {
  static __attribute__((shared)) int s[32];
  int item = __builtin_amdgcn_workitem_id_x(), lane = item & 31, wave = __builtin_amdgcn_readfirstlane(item >> 5);
  if (wave == 0) __builtin_amdgcn_s_barrier_init(&bar, MEMBERS);
  __builtin_amdgcn_s_barrier_signal(-1);
  __builtin_amdgcn_s_barrier_wait(-1);
  __builtin_amdgcn_s_barrier_join(&bar);
  if (wave == 0) { s[lane] = x[lane] * 2; asm volatile("s_wait_dscnt 0x0" ::: "memory"); }
  __builtin_amdgcn_s_barrier_signal_var(&bar, 0);
  __builtin_amdgcn_s_barrier_wait(1);
  if (wave == 1) y[lane] = s[31 - lane];
}
"""
FEWEST = 900  # opcodes that are executed


def test_every_opcode_that_is_executed_has_an_oracle() -> None:
    executed = executed_opcodes(ARCH)
    assert len(executed) > FEWEST
    assert without_oracle(executed, ARCH) == []
    assert without_oracle({"v_made_up_b32"}, ARCH) == ["v_made_up_b32"]


@pytest.mark.parametrize(("opcode", "file"), sorted(ELSEWHERE_GFX1250.items()))
def test_tests_that_are_named_have_the_opcode(opcode: str, file: str) -> None:
    assert opcode in (Path(__file__).parents[2] / file).read_text()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.name)
def test_single_instructions_do_what_plain_python_does(family: Family) -> None:
    opcodes = family.opcodes[:: SHARES.get(family.name, 1)]
    verdicts = [verdict for _, verdict in family.judge(Random(family.name), ARCH, opcodes, 1)]
    assert [verdict for verdict in verdicts if verdict.outcome not in {"right", "refused"}] == []
    assert sum(verdict.outcome == "right" for verdict in verdicts) > len(opcodes) * 0.4


def test_c_functions_give_what_they_give_here() -> None:
    verdicts = list(judged_functions(7, 20, ARCH))
    assert [(each.function.body, each.outcome) for each in verdicts if each.outcome != "right"] == []


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("v_add_nc_u32_e32 v8, v0, v2", "v_sub_nc_u32_e32 v8, v0, v2"),
        ("v_mov_b16_e32 v8.h, v0.l", "v_mov_b16_e32 v8.l, v0.l"),
        ("v_max_num_f32_e32 v8, v0, v2", "v_min_num_f32_e32 v8, v0, v2"),
        ("v_cmp_lt_u32_e64 s6, v0, v2", "v_cmp_lt_i32_e64 s6, v0, v2"),
        (f"v_mov_b32_dpp v8, v0 row_xmask:1 {MASKS}", f"v_mov_b32_dpp v8, v0 row_xmask:2 {MASKS}"),
        ("v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v3, v0", "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v3, v2"),
        ("v_permlanex16_b32 v8, v0, s2, s3", "v_permlane16_b32 v8, v0, s2, s3"),
    ],
)  # fmt: skip
def test_another_instruction_is_noticed(text: str, other: str) -> None:
    (instruction,) = assembled([other])
    assert instruction is not None
    assert judged(text, instruction, fresh_state(Random(1)), run_vector).outcome not in {"right", "refused"}


def test_another_scalar_instruction_is_noticed() -> None:
    (instruction,) = assembled(["s_and_not0_saveexec_b32 s8, s2"])
    assert instruction is not None
    verdict = judged("s_and_not1_saveexec_b32 s8, s2", instruction, fresh_state(Random(4)), run_scalar)
    assert verdict.outcome not in {"right", "refused"}


def test_another_access_is_noticed() -> None:
    case = lds.DRAWS["ds_cmpstore_b32"](Random(3))
    other, *waits = assembled([case.text.replace("v16, v18", "v18, v16"), *WAITS])
    assert other is not None
    assert run_case(case, other, [each for each in waits if each is not None]).startswith("LDS at")


def test_a_product_that_is_off_is_noticed() -> None:
    product = drawn_product(Random(5), "v_wmma_f32_16x16x32_f16")
    assert compare(product, [[0x7FC0_0000] * 32] * 8, [(0, 0)]).startswith("(0, 0) is")


def test_registers_above_255_are_those_that_llvm_names() -> None:
    texts = drawn_texts(Random(8))
    assert len(texts) > FEWEST
    assert list(named_differently(Random(9), texts)) == []


def test_registers_above_255_are_used_like_others() -> None:
    assert list(executed_differently(Random(3), OPCODES[::14])) == []
    assert list(accessed_differently(Random(4), [*lds.DRAWS.values(), *memory.DRAWS.values()][::3])) == []


@pytest.mark.parametrize(("members", "codes"), [(2, []), (1, ["I109"])])
def test_a_named_barrier_orders_its_members(members: int, codes: list[str]) -> None:
    """With one member the second wave waits for nobody."""
    code = find_toolchain().compile(NAMED.replace("MEMBERS", str(members)), ARCH)
    program = load_program(code.kernel("k"), code.instructions("k"))
    assert "s_barrier_join" in {step.instruction.opcode for step in program.steps}
    given = np.arange(32, dtype=np.int32)
    outcome = run_kernel(program, args=[given, np.zeros(32, np.int32)], block=(64, 1, 1))
    assert [finding.code for finding in outcome.findings] == codes
    if not codes:
        assert outcome.buffers[1].tolist() == [2 * (31 - lane) for lane in range(32)]
