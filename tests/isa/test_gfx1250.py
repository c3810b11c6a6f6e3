"""Machine code of gfx1250 and gfx1201, as it is read: registers, pairs, halves, words that are spelled otherwise."""

from __future__ import annotations

from collections import Counter

import pytest

from rota.errors import IsaError
from rota.isa.binary.toolchain import read_object
from rota.isa.decoded import load_program
from rota.isa.disassembly import Instruction, check_descriptor, expand_pairs, read_listing
from rota.isa.opcodes import IsaFlow, IsaUnit, MemSpace, MemVerb, opcode_named, traffic_of, wait_counts
from rota.isa.registers import SCC_ROWS, row_name, rows_in
from rota.prove.kernel_proof import prove, prove_object
from rota.prove.verdict import Status
from rota.targets.architecture import Traffic
from rota.targets.cdna4 import CDNA4
from rota.targets.cdna5 import CDNA5, RDNA4
from rota.targets.registry import architecture_named, architecture_with, list_architectures
from tests.campaigns.machine_code.decode_gfx1250 import FOLDERS, found_in, tally
from tests.isa.gfx1250 import ARCH, OLDER, assembled, listed
from tests.isa.single import facts, listing, loaded
from tests.shared import shared

EVERY_BANK = "s_set_vgpr_msb 0xe4"  # 0, 1 and 2 for the sources, 3 for the target


def one(text: str, *before: str, arch: str = ARCH) -> Instruction:
    return listed(*before, text, arch=arch, vgprs=1024 if arch == ARCH else 256)[-1]


def rows(names: str) -> frozenset[int]:
    return rows_in(names.replace("scc", "")) | (SCC_ROWS if "scc" in names else frozenset())


# Architectures.


def test_the_reader_knows_both_by_name_and_by_the_flags_of_a_file() -> None:
    for each in (CDNA5, RDNA4):
        assert architecture_named(each.arch) == each
        assert architecture_with(each.elf_machine.value) == each
        assert each in list_architectures()


def test_each_counter_says_what_returns_in_order() -> None:
    assert {each: CDNA5.queue_of(each).counter for each in Traffic if each is not Traffic.TO_LDS} == {
        Traffic.LOAD: "loadcnt", Traffic.STORE: "storecnt", Traffic.LDS: "dscnt", Traffic.SCALAR: "kmcnt",
        Traffic.ASYNC_LOAD: "asynccnt", Traffic.ASYNC_STORE: "asynccnt", Traffic.TENSOR: "tensorcnt",
    }  # fmt: skip
    in_order = {each for each in Traffic if each is not Traffic.TO_LDS and CDNA5.queue_of(each).orders(each)}
    among = {each for each in Traffic if each in CDNA5.queue_of(Traffic.ASYNC_LOAD).in_order}
    assert among == {Traffic.ASYNC_LOAD, Traffic.ASYNC_STORE}  # each among its own
    assert in_order == {Traffic.LOAD, Traffic.STORE, Traffic.LDS, Traffic.TENSOR}
    assert CDNA5.queue_of(Traffic.SCALAR).most_tokens == 2
    assert {each.counter for each in CDNA5.queues} == {each.name for each in CDNA5.counters}


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("s_wait_loadcnt 0x3", {"loadcnt": 3}),
        ("s_wait_tensorcnt 0x0", {"tensorcnt": 0}),
        ("s_wait_kmcnt 0x1f", {}),
        ("s_wait_xcnt 0x0", {"xcnt": 0}),
    ],
)
def test_what_a_wait_leaves_in_flight(text: str, counts: dict[str, int]) -> None:
    assert wait_counts(opcode_named(text.split(maxsplit=1)[0]), text, CDNA5) == counts


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("s_wait_loadcnt_dscnt 0x1234", {"loadcnt": 0x12, "dscnt": 0x34}),
        ("s_wait_storecnt_dscnt 0x300", {"storecnt": 3, "dscnt": 0}),
        ("s_wait_storecnt_dscnt 0x3f3f", {}),
    ],
)
def test_a_joint_wait_has_a_field_for_each_counter(text: str, counts: dict[str, int]) -> None:
    assert wait_counts(opcode_named(text.split(maxsplit=1)[0]), text, CDNA5) == counts


# Descriptors.


@pytest.mark.parametrize("version", [5, 6])
def test_a_descriptor_is_read_by_its_architectures_layout(version: int) -> None:
    more = ".amdhsa_named_barrier_count 2\n.amdhsa_user_sgpr_count 32"
    kernel = assembled(vgprs=300, version=version, more=more, noted=", .cluster_dims: [2, 1, 1]").kernel()
    described = kernel.descriptor
    assert (described.vgprs, described.user_sgprs, described.named_barriers) == (304, 32, 2)
    assert (described.accum_offset, described.tg_split, kernel.cluster) == (304, False, (2, 1, 1))
    assert kernel.workgroup_ids == (False, False, False)  # they are in other registers than the first ones
    older = assembled(arch=OLDER, vgprs=40).kernel()
    assert (older.arch, older.descriptor.vgprs, older.descriptor.named_barriers) == (OLDER, 40, 0)


def test_arguments_in_registers_need_no_code_before_the_entry() -> None:
    plain = assembled()
    loaded = assembled(more=".amdhsa_user_sgpr_kernarg_preload_length 4\n.amdhsa_user_sgpr_kernarg_preload_offset 0")
    assert loaded.kernel().preload == 4
    assert loaded.kernel().entry == plain.kernel().entry


# Registers above v255.


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("v_fma_f32 v1, -v2, |v3|, v4", "v769 -v2 |v259| v516"),
        ("v_fmamk_f32 v1, v2, 0x42000001, v3", "v769 v2 0x42000001 v515"),
        ("v_fmaak_f32 v1, v2, v3, 0x42000001", "v769 v2 v259 0x42000001"),
        ("v_cmp_eq_u32_e64 s0, v1, v2", "s0 v1 v258"),
        ("v_cmpx_eq_u32_e32 v1, v2", "v1 v258"),
        ("v_add_co_ci_u32_e64 v4, s1, v3, v1, s2", "v772 s1 v3 v257 s2"),
        ("v_mad_co_u64_u32 v[34:35], null, s18, v44, v[2:3]", "v[802:803] null s18 v300 v[514:515]"),
        ("v_readlane_b32 s1, v3, 31", "s1 v3 31"),
        ("v_writelane_b32 v3, s1, 2", "v771 s1 2"),
        ("v_swap_b32 v1, v2", "v769 v2"),
        ("v_permlane16_swap_b32_e32 v8, v9", "v776 v9"),
        ("v_swmmac_f32_16x16x64_f16 v[2:9], v[10:17], v[20:35], v36", "v[770:777] v[10:17] v[276:291] v548"),
        (
            "v_wmma_scale_f32_16x16x128_f8f6f4 v[2:9], v[210:225], v[194:209], v[26:33], v246, v248",
            "v[770:777] v[210:225] v[450:465] v[538:545] v246 v248",
        ),
        ("global_load_b32 v3, v1, s[2:3]", "v771 v1 s[2:3]"),
        ("global_store_b32 v3, v1, s[2:3]", "v3 v257 s[2:3]"),
        ("global_atomic_add_u32 v3, v1, s[2:3]", "v3 v257 s[2:3]"),
        ("global_atomic_add_u32 v4, v3, v1, s[2:3] th:TH_ATOMIC_RETURN", "v772 v3 v257 s[2:3]"),
        ("global_load_async_to_lds_b32 v1, v2, s[0:1]", "v769 v2 s[0:1]"),
        ("global_store_async_from_lds_b32 v1, v2, s[0:1]", "v1 v258 s[0:1]"),
        ("global_prefetch_b8 v1, s[0:1]", "v1 s[0:1]"),
        ("buffer_load_b32 v1, v2, s[0:3], null offen", "v769 v2 s[0:3] null"),
        ("buffer_store_b32 v1, v2, s[0:3], null offen", "v769 v2 s[0:3] null"),
        ("scratch_store_b32 off, v2, s0", "off v258 s0"),
        ("ds_load_b32 v1, v2", "v769 v2"),
        ("ds_store_2addr_b32 v1, v2, v3", "v1 v258 v515"),
        ("ds_cmpstore_rtn_b32 v1, v2, v3, v4", "v769 v2 v259 v516"),
        ("ds_bpermute_b32 v1, v2, v3", "v769 v2 v259"),
        ("ds_atomic_barrier_arrive_rtn_b64 v[2:3], v5, v[6:7]", "v[770:771] v5 v[262:263]"),
    ],
)
def test_each_place_of_an_operand_has_its_bank(text: str, operands: str) -> None:
    """As LLVM's disassembler prints them in straight code."""
    found = one(text, EVERY_BANK)
    assert found.operands == tuple(operands.split())
    assert all(each in found.text for each in operands.split())


def test_a_pair_has_the_banks_of_its_places_in_both_halves() -> None:
    pair = "v_dual_fma_f32 v105, -v33, v102, v97 :: v_dual_fmac_f32 v42, v103, v43"
    assert one(pair, EVERY_BANK).operands == ("v873", "v810", "-v33", "v358", "v609", "v103", "v299")


def test_a_bank_is_carried_across_a_branch() -> None:
    """There llvm-objdump forgets it and prints v2."""
    use = "v_mov_b32_e32 v3, v2"
    loop = listed("s_set_vgpr_msb 1", "loop:", use, "s_cbranch_scc1 loop", use, vgprs=1024)
    assert [each.operands for each in loop if each.opcode == "v_mov_b32_e32"] == [("v3", "v258")] * 2
    both = listed("s_cbranch_scc1 other", "s_set_vgpr_msb 1", "s_branch meet", "other:", "s_set_vgpr_msb 0x101",
                  "meet:", use, vgprs=1024)  # fmt: skip
    assert both[-1].operands == ("v3", "v258")


def test_registers_above_v255_have_rows_of_their_own() -> None:
    assert [row_name(row, "v[254:257]") for row in sorted(rows_in("v[254:257]"))] == ["v254", "v255", "v256", "v257"]
    assert rows_in("v300") == rows_in("a44")  # of a machine with accumulators
    assert not rows_in("v300") & rows_in("s44")


def test_a_kernel_whose_store_takes_another_bank_is_told_apart() -> None:
    def stored(name: str) -> str:
        code = read_object(shared(f"kernels/gfx1250/hip/a_wide_registers_{name}.gfx1250.hsaco"))
        return next(each.text for each in code.instructions() if each.opcode == "global_store_b32")

    assert stored("ok") == "global_store_b32 v3, v1, s[2:3]"
    assert stored("bad") == "global_store_b32 v3, v257, s[2:3]"


# Words that assemblers spell otherwise.


@pytest.mark.parametrize(
    ("words", "opcode", "operands"),
    [
        ("0xd0310000, 0x00200000, 0x7c7c2420", "tensor_load_to_lds", ("s[32:35]", "s[36:43]")),
        ("0xd0314000, 0x00200000, 0x7c7c2420", "tensor_store_from_lds", ("s[32:35]", "s[36:43]")),
        ("0xcc350000, 0x0003f1f6, 0xcc330002, 0x046b85d2", "v_wmma_scale_f32_16x16x128_f8f6f4", None),
        ("0xcc3a0000, 0x0203f1f6, 0xcc330002, 0x046b85d2", "v_wmma_scale16_f32_16x16x128_f8f6f4", None),
        ("0xcc880074, 0x1a021108", "v_wmma_f32_32x16x128_f4", None),
    ],
)
def test_a_word_is_respelled_for_the_disassembler_and_kept_in_the_listing(
    words: str, opcode: str, operands: tuple[str, ...] | None
) -> None:
    found = listed(f".long {words}", "s_nop 3")
    assert [each.opcode for each in found] == [opcode, "s_nop"]
    assert found[0].encoding == tuple(int(word, 16) for word in words.split(", "))
    assert operands is None or found[0].operands == operands


def test_halves_of_registers_are_decoded() -> None:
    """v_mov_b16 with real halves stays .long without an option of the disassembler."""
    move = one(".long 0x7e6a39b1")
    assert (move.opcode, move.operands) == ("v_mov_b16_e32", ("v53.l", "v49.h"))
    assert (move.registers.reads, move.registers.writes) == (rows("v49 v53"), rows("v53"))


# Opcodes.


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("v_dual_mov_b32 v3, v4 :: v_dual_mov_b32 v8, v3", "v3 v4", "v3 v8"),
        ("v_dual_mov_b32 v3, v4 :: v_dual_fmac_f32 v8, v9, v10", "v3 v4 v8 v9 v10", "v3 v8"),
        ("v_dual_cndmask_b32 v8, v9, v14 :: v_dual_add_f32 v13, v11, v25", "v9 v14 v11 v25 vcc", "v8 v13"),
        ("v_cmpx_eq_u32_e32 v1, v2", "v1 v2", "exec"),
        ("v_cmpx_eq_u32_e64 v1, v2", "v1 v2", "exec"),
        ("v_cmp_eq_u32_e64 s0, v1, v2", "v1 v2", "s0"),
        ("v_add_co_ci_u32_e64 v4, s1, v3, v1, s2", "v3 v1 s2", "v4 s1"),
        ("v_mad_co_u64_u32 v[34:35], s4, s18, v44, v[2:3]", "s18 v44 v[2:3]", "v[34:35] s4"),
        ("v_wmma_f32_16x16x32_f16 v[2:9], v[10:17], v[18:25], v[26:33]", "v[10:33]", "v[2:9]"),
        ("v_swmmac_f32_16x16x64_f16 v[2:9], v[10:17], v[20:35], v36", "v[2:17] v[20:36]", "v[2:9]"),
        ("v_s_rcp_f32 s2, s3", "s3", "s2"),
        ("global_load_async_to_lds_b32 v1, v2, s[4:5]", "v1 v2 s[4:5]", ""),
        ("global_store_async_from_lds_b32 v1, v2, s[4:5]", "v1 v2 s[4:5]", ""),
        ("cluster_load_async_to_lds_b32 v1, v2, s[4:5]", "v1 v2 s[4:5] m0", ""),
        ("cluster_load_b64 v[2:3], v4, s[4:5]", "v4 s[4:5] m0", "v[2:3]"),
        ("tensor_load_to_lds s[12:15], s[4:11]", "s[4:15]", ""),
        ("ds_atomic_barrier_arrive_rtn_b64 v[2:3], v5, v[6:7]", "v5 v[6:7]", "v[2:3]"),
        ("ds_load_tr16_b128 v[0:3], v9", "v9", "v[0:3]"),
        ("s_add_co_i32 s4, s1, s2", "s1 s2", "s4 scc"),
        ("s_add_co_ci_u32 s4, s1, s2", "s1 s2 scc", "s4 scc"),
        ("s_add_nc_u64 s[4:5], s[2:3], s[6:7]", "s[2:3] s[6:7]", "s[4:5]"),
        ("s_mul_f32 s4, s1, s2", "s1 s2", "s4"),
        ("s_cvt_f32_u32 s4, s1", "s1", "s4"),
        ("s_and_not1_b32 s4, s1, s2", "s1 s2", "s4 scc"),
        ("s_barrier_signal_isfirst -1", "", "scc"),
        ("s_barrier_leave", "", "scc"),
        ("s_barrier_init m0", "m0", ""),
        ("s_sleep_var s4", "s4", ""),
    ],
)
def test_what_an_instruction_reads_and_writes(text: str, reads: str, writes: str) -> None:
    found = one(text)
    assert found.spec.known
    assert (found.registers.reads, found.registers.writes) == (rows(reads), rows(writes))


@pytest.mark.parametrize(
    ("text", "traffic", "address"),
    [
        ("global_load_async_to_lds_b32 v1, v2, s[4:5]", Traffic.ASYNC_LOAD, "v1"),
        ("global_store_async_from_lds_b32 v1, v2, s[4:5]", Traffic.ASYNC_STORE, "v2"),
        ("tensor_load_to_lds s[12:15], s[4:11]", Traffic.TENSOR, ""),
        ("ds_atomic_barrier_arrive_rtn_b64 v[2:3], v5, v[6:7]", Traffic.LDS, "v5"),
        ("s_load_b96 s[4:6], s[0:1], 0x0", Traffic.SCALAR, ""),
        ("ds_atomic_async_barrier_arrive_b64 v5", None, "v5"),
        ("global_inv scope:SCOPE_DEV", Traffic.LOAD, ""),
        ("global_wb scope:SCOPE_DEV", Traffic.STORE, ""),
        ("global_prefetch_b8 v1, s[4:5]", None, ""),
    ],
)
def test_who_counts_an_instruction(text: str, traffic: Traffic | None, address: str) -> None:
    found = one(text)
    assert found.traffic == traffic
    assert found.registers.address == rows(address)


@pytest.mark.parametrize(
    ("name", "old"),
    [
        ("v_add_nc_u32_e32", "v_add_u32"),
        ("s_add_co_u32", "s_add_u32"),
        ("s_ctz_i32_b32", "s_ff1_i32_b32"),
        ("s_get_pc_i64", "s_getpc_b64"),
        ("s_swap_pc_i64", "s_swappc_b64"),
    ],
)
def test_a_new_name_of_the_same_thing(name: str, old: str) -> None:
    assert opcode_named(name) == opcode_named(old)


@pytest.mark.parametrize("name", ["v_max_num_f32", "v_max3_num_f32", "s_add_nc_u64", "s_wait_loadcnt"])
def test_what_differs_keeps_its_name(name: str) -> None:
    assert opcode_named(name).name == name


@pytest.mark.parametrize("name", ["s_add_pc_i64", "s_rfe_i64", "s_wait_event", "s_alloc_vgpr", "v_dual_x_b32::v_nop",
                                  "global_load_tr_b128"])  # fmt: skip
def test_what_is_not_described_is_unknown(name: str) -> None:
    assert not opcode_named(name).known


def test_a_jump_by_a_distance_goes_anywhere() -> None:
    assert opcode_named("s_add_pc_i64").flow is IsaFlow.INDIRECT


@pytest.mark.parametrize("element", [4, 6, 8, 16])
def test_transposing_reads(element: int) -> None:
    size = {4: "b64", 6: "b96", 8: "b64", 16: "b128"}[element]
    spec = opcode_named(f"ds_load_tr{element}_{size}")
    assert spec.access is not None
    assert (spec.unit, spec.access.space, spec.access.verb) == (IsaUnit.LDS, MemSpace.LDS, MemVerb.LOAD)
    assert (spec.access.transposed, traffic_of(spec, ()), spec.obeys_exec) == (element, Traffic.LDS, False)


# Proof and interpreter refuse what they don't know of the machine, and say so.


@pytest.mark.parametrize(
    "line",
    [
        "cluster_load_b32 v1, v2, s[4:5]", "cluster_load_async_to_lds_b32 v1, v2, s[4:5]",
        "tensor_load_to_lds s[12:15], s[4:11], s[16:19], s[20:23]",
        "s_barrier_leave",
        "s_barrier_signal_isfirst -1", "s_barrier_signal -3", "s_barrier_wait -3",
        "v_wmma_f32_16x16x4_f32 v[2:9], v[10:11], v[18:19], v[26:33]", "flat_load_b32 v1, v[2:3]",
        "scratch_load_b32 v1, off, s4", "s_mov_b32 ttmp9, 0", "s_mov_b32 s4, ttmp8", "s_bfe_u32 s4, ttmp8, 0x5001a",
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 1",
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 2, 1), 1",
        "s_setreg_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), s4",
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 24, 1), 1",
    ],
)  # fmt: skip
def test_the_proof_refuses_an_instruction_by_name(line: str) -> None:
    (verdict,) = prove_object(assembled(line, vgprs=512))
    assert verdict.status is Status.INCONCLUSIVE
    (refused,) = verdict.findings
    assert refused.code == "I401"
    assert len(refused.concerns) == 1


def test_the_proof_refuses_a_machine_as_long_as_rules_of_it_are_missing() -> None:
    (verdict,) = prove_object(assembled(arch=OLDER))
    assert verdict.status is Status.INCONCLUSIVE
    assert [each.code for each in verdict.findings] == ["I401"] * len(RDNA4.unmodelled)
    for rule, finding in zip(RDNA4.unmodelled, verdict.findings, strict=True):
        assert rule in finding.message


def test_the_proof_refuses_clusters() -> None:
    (verdict,) = prove_object(assembled(noted=", .cluster_dims: [2, 1, 1]"))
    assert [each.code for each in verdict.findings] == ["I401"]
    assert "2 x 1 x 1" in verdict.findings[0].message


@pytest.mark.parametrize(
    "line",
    [
        "global_store_async_from_lds_b32 v0, v1, s[4:5]\ns_wait_asynccnt 0x0", "ds_load_tr16_b128 v[4:7], v1",
        "s_wait_idle",
        "global_inv scope:SCOPE_DEV", "v_s_rcp_f32 s2, s3", "v_exp_f32_e32 v1, v2", "ds_bpermute_b32 v1, v2, v3",
        "v_wmma_f32_16x16x32_f16 v[2:9], v[10:17], v[18:25], v[26:33]", ".long 0x7e6a39b1", "s_cmp_lt_f32 s2, s3",
        "s_cmp_eq_f16 s2, s3", "s_mul_f32 s4, s2, s3", "s_cvt_f32_u32 s4, s2", "s_bfe_u32 s4, ttmp8, 0x50019",
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2", "v_add_nc_u32_e32 v300, v2, v3",
    ],
)  # fmt: skip
def test_the_proof_follows_an_instruction(line: str) -> None:
    before = ("v_mov_b32_e32 v1, 0",) + (("s_set_vgpr_msb 64",) if "v300" in line else ())
    more = ".amdhsa_group_segment_fixed_size 256"
    (verdict,) = prove_object(assembled(*before, line.replace("v300", "v44"), vgprs=512, more=more, lds=256))
    assert (verdict.status, verdict.findings) == (Status.PROVED, ())


def test_a_verdict_says_what_it_takes_for_granted() -> None:
    (verdict,) = prove_object(assembled("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1", "s_mov_b32 s4, ttmp9"))
    assert verdict.status is Status.PROVED
    assert set(CDNA5.assumed) <= set(verdict.assumptions)


@pytest.mark.parametrize(
    "line", ["v_add_co_u32 v1, null, v2, v3", "v_add_co_ci_u32_e64 v1, null, v2, v3, s4",
             "v_mad_co_u64_u32 v[2:3], null, v4, v5, v[6:7]", "v_div_scale_f32 v1, null, v2, v3, v4"],
)  # fmt: skip
def test_a_carry_may_go_nowhere(line: str) -> None:
    (verdict,) = prove_object(assembled(line))
    assert verdict.status is Status.PROVED


def test_the_interpreter_refuses_a_machine_that_is_modelled_in_part() -> None:
    code = assembled(arch=OLDER)
    with pytest.raises(IsaError) as caught:
        load_program(code.kernel(), code.instructions())
    assert [each.code for each in caught.value.findings] == ["I111"]


def test_older_architectures_are_modelled_whole() -> None:
    assert (CDNA4.unmodelled, CDNA4.assumed, CDNA4.listing, CDNA4.has_banks) == ((), (), None, False)
    assert CDNA5.has_banks


def test_registers_of_trap_handlers_are_refused_where_no_launch_fills_them() -> None:
    with pytest.raises(IsaError) as caught:
        loaded("s_mov_b32 s4, ttmp9")
    assert [each.code for each in caught.value.findings] == ["I102"]
    verdict = prove(facts(), read_listing(listing("s_mov_b32 s4, ttmp9"), "k"))
    assert [each.code for each in verdict.findings] == ["I401"]


# Each work item hands its word to the one of the other wave, by way of LDS.
HANDOVER = (
    "s_load_b64 s[4:5], s[0:1], 0x0",
    "v_dual_lshlrev_b32 v1, 2, v0 :: v_dual_mov_b32 v4, 0",
    "v_xor_b32_e32 v2, 0x80, v1",
    "s_wait_kmcnt 0x0",
    "global_load_b32 v3, v1, s[4:5]",
    "s_wait_loadcnt 0x0",
    "ds_store_b32 v1, v3",
    "s_wait_dscnt 0x0",
    "s_barrier_signal -1",
    "s_barrier_wait -1",
    "ds_load_b32 v4, v2",
    "s_wait_dscnt 0x0",
    "global_store_b32 v1, v4, s[4:5]",
    "v_nop",
)


def without(*places: int) -> tuple[Status, set[str]]:
    lines = [line for place, line in enumerate(HANDOVER) if place not in places]
    (verdict,) = prove_object(assembled(*lines, more=".amdhsa_group_segment_fixed_size 256", lds=256))
    return verdict.status, {each.code for each in verdict.findings}


def test_a_handover_is_proved() -> None:
    assert without() == (Status.PROVED, set())


@pytest.mark.parametrize(
    ("places", "code"), [((3,), "I103"), ((5,), "I103"), ((7,), "I109"), ((8, 9), "I109"), ((11,), "I103")]
)
def test_each_wait_and_the_barrier_are_needed(places: tuple[int, ...], code: str) -> None:
    status, codes = without(*places)
    assert status is Status.ALARM
    assert codes == {code}


@pytest.mark.parametrize("wait", ["s_wait_storecnt 0x0", "s_wait_loadcnt 0x1", "s_wait_xcnt 0x0", "s_wait_alu 0xffff"])
def test_a_wait_for_something_else_covers_nothing(wait: str) -> None:
    lines = [wait if line == "s_wait_loadcnt 0x0" else line for line in HANDOVER]
    (verdict,) = prove_object(assembled(*lines, more=".amdhsa_group_segment_fixed_size 256", lds=256))
    assert {each.code for each in verdict.findings} == {"I103"}


# Pairs, one after the other.


@pytest.mark.parametrize(
    ("pair", "expanded"),
    [
        ("v_dual_mov_b32 v3, v4 :: v_dual_mov_b32 v8, v9", ["v_mov_b32 v3 v4", "v_mov_b32 v8 v9"]),
        ("v_dual_mov_b32 v3, v4 :: v_dual_mov_b32 v8, v3", ["v_mov_b32 v8 v3", "v_mov_b32 v3 v4"]),
        ("v_dual_mov_b32 v3, v8 :: v_dual_mov_b32 v8, v3", ["v_dual_mov_b32::v_dual_mov_b32 v3 v8 v8 v3"]),
        (
            "v_dual_cndmask_b32 v8, v9, v14 :: v_dual_add_f32 v13, v11, v25",
            ["v_cndmask_b32 v8 v9 v14 vcc_lo", "v_add_f32 v13 v11 v25"],
        ),
        (
            "v_dual_lshlrev_b32 v3, 4, v0 :: v_dual_bitop2_b32 v50, 16, v1 bitop3:0x40",
            ["v_lshlrev_b32 v3 4 v0", "v_bitop3_b32 v50 16 v1 0"],
        ),
    ],
)
def test_a_pair_reads_before_it_writes(pair: str, expanded: list[str]) -> None:
    found = expand_pairs(listed(pair))
    assert [" ".join((each.opcode, *each.operands)) for each in found] == expanded
    assert {each.text for each in found} == {found[0].text}


def test_jumps_go_where_they_went_before_pairs_were_expanded() -> None:
    pair = "v_dual_mov_b32 v3, v4 :: v_dual_mov_b32 v8, v9"
    found = expand_pairs(listed("loop:", pair, "s_cbranch_scc1 loop", "s_cbranch_scc0 end", pair, "end:", "s_nop 0"))
    assert [each.target for each in found if each.target is not None] == [0, 6]
    assert found[6].opcode == "s_nop"


# The corpus.


@pytest.mark.thorough  # it lists 114 objects
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_object_of_the_corpus_is_read(folder: str) -> None:
    found = tally(found_in(shared("kernels/gfx1250") / folder))
    assert found.objects == {"hip": 50, "gluon": 22, "triton": 30, "aiter": 12}[folder]
    assert found.refused == Counter()
    assert found.unknown == Counter()
    assert found.instructions > 2000
    assert found.unlike == 0  # where llvm-objdump follows the banks itself


@pytest.mark.thorough
def test_what_a_descriptor_says_fits_the_code() -> None:
    for path in found_in(shared("kernels/gfx1250") / "hip"):
        code = read_object(path)
        assert not [*check_descriptor(code.kernel(), code.instructions())]
