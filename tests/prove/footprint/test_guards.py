"""Comparisons on the way to an access: what they say of it, and what they only seem to say."""

from __future__ import annotations

import pytest

from rota.prove.footprint.accesses import KernelAccesses, read_accesses
from rota.prove.footprint.bounds import Reach, judge_bounds, parse_contract
from rota.targets.registry import architecture_named
from tests.isa.gfx1250 import listed
from tests.isa.single import facts
from tests.prove.footprint.test_overflow import ARGUMENTS, read

GUARDED = "v_mov_b32_e32 v4, s8\nv_cmp_gt_u32_e32 vcc, s9, v4\n"
FEW_LANES = "v_cmp_gt_u32_e32 vcc, s2, v0\ns_and_saveexec_b64 s[20:21], vcc\n"  # none in workgroup 0
SMALL = (  # a load at a stride below 64
    "v_cmp_lt_u32_e64 vcc, 63, s8\ns_cbranch_vccnz on\nv_mov_b32_e32 v4, s8\nv_lshlrev_b32_e32 v1, 2, v4\n"
    "global_load_dword v9, v1, s[4:5]\non:"
)
# A load at a number of 64 bits, stride - 1, from which 64 is taken, if it is at least 64. Where the stride is 0, the
# number is 2**64 - 1.
LESS_ONE = (
    "s_cmp_gt_u32 s8, 0x80\ns_cbranch_scc1 on\ns_sub_u32 s10, s8, {less}\ns_subb_u32 s11, 0, 0\n"
    "v_mov_b32_e32 v4, 64\nv_mov_b32_e32 v5, 0\n"
    "v_cmp_ge_u64_e32 vcc, s[10:11], v[4:5]\ns_cbranch_vccz on\n"
    "s_sub_u32 s12, s8, {less}\ns_sub_u32 s12, s12, 64\n"
    "s_subb_u32 s13, s11, 0\ns_add_u32 s12, s12, s4\ns_addc_u32 s13, s13, s5\ns_load_dword s14, s[12:13], 0x0\non:"
)
# A loop that loads at a count, which it leaves as it is: but for one way back, on which the count's register holds a
# mask.
MASK_COMES_BACK = (
    "s_mov_b32 s10, 0\ns_mov_b32 s12, 0\nloop:\ns_lshl_b32 s13, s10, 2\ns_load_dword s14, s[4:5], s13\n"
    "s_add_u32 s12, s12, 1\ns_cmp_lt_u32 s12, s9\ns_cbranch_scc0 on\ns_cmp_lt_u32 s12, 3\ns_cbranch_scc1 loop\n"
    "{change}\ns_branch loop\non:"
)
# A loop that lanes leave at a count, and the wave after many rounds: the scalar unit goes on without lanes.
COUNTED = (
    "s_mov_b32 s10, 0\nloop:\ns_lshl_b32 s13, s10, 2\nv_mov_b32_e32 v1, s13\n{load}\ns_add_u32 s10, s10, 1\n"
    "v_mov_b32_e32 v4, s10\nv_cmp_gt_u32_e32 vcc, s9, v4\ns_and_b64 exec, exec, vcc\ns_cmp_lt_u32 s10, 0x100000\n"
    "s_cbranch_scc1 loop"
)
UNGUARDED = {
    "the scalar unit doesn't ask for active lanes": GUARDED
    + "s_and_saveexec_b64 s[20:21], vcc\ns_lshl_b32 s10, s8, 2\ns_load_dword s11, s[4:5], s10",
    "without active lanes VCC is zero": FEW_LANES + SMALL.replace("on\n", "on\ns_mov_b64 exec, s[20:21]\n", 1),
    "64 bits wrap, too": LESS_ONE.format(less=1),
    "a mask comes back as the loop's number": MASK_COMES_BACK.format(
        change="v_cmp_gt_u32_e32 vcc, s9, v0\ns_mov_b64 s[10:11], vcc"
    ),
    "the scalar unit stays in a loop that lanes leave": COUNTED.format(load="s_load_dword s14, s[4:5], s13"),
    "both ways of a branch lead to the next instruction": "s_cmp_lt_u32 s8, 64\ns_cbranch_scc1 on\non:\n"
    "s_lshl_b32 s10, s8, 2\ns_load_dword s11, s[4:5], s10",
}  # fmt: skip
GUARDING = {
    "lanes": SMALL,
    "64 bits": LESS_ONE.format(less=0),
    "the same number comes back": MASK_COMES_BACK.format(change="s_nop 0"),
    "a loop that lanes leave": COUNTED.format(load="global_load_dword v9, v1, s[4:5]"),
    "one way of a branch": "s_cmp_lt_u32 s8, 64\ns_cbranch_scc0 on\ns_lshl_b32 s10, s8, 2\n"
    "s_load_dword s11, s[4:5], s10\non:",
}  # fmt: skip


def reaches(text: str) -> set[Reach]:
    kernel = read(text)
    assert not kernel.refused
    contract = parse_contract(kernel, ["data=4*count"], ["count=64..65536", "stride=0..1048576"])
    return {each.reach for each in judge_bounds(kernel, contract)}


@pytest.mark.parametrize("name", UNGUARDED)
def test_comparisons_that_guard_nothing(name: str) -> None:
    assert reaches(UNGUARDED[name]) == {Reach.UNDECIDED}


@pytest.mark.parametrize("name", GUARDING)
def test_comparisons_that_guard(name: str) -> None:
    assert reaches(GUARDING[name]) == {Reach.INSIDE}


def read_gfx1250(*body: str) -> KernelAccesses:
    told = facts(arch="gfx1250", arguments=ARGUMENTS, kernarg_bytes=24, user_sgprs=(("kernarg_segment_ptr", 2),))
    architecture = architecture_named("gfx1250")
    assert architecture is not None
    return read_accesses(told, listed("s_load_b64 s[4:5], s[0:1], 0x0", "s_wait_kmcnt 0x0", *body), architecture)


@pytest.mark.parametrize(
    "text", ["global_load_b32 v1, v0, s[4:5] scale_offset", "buffer_load_b32 v1, v0, s[8:11], null offen"]
)
def test_addresses_of_another_form_are_refused(text: str) -> None:
    ((instruction, reason),) = read_gfx1250(text).refused
    assert instruction.opcode == text.split(maxsplit=1)[0]
    assert reason


def test_an_offset_of_the_scalar_unit_has_a_sign() -> None:
    (access,) = [each for each in read("s_load_dword s11, s[4:5], -0x4").footprints if not each.is_argument]
    assert (access.base + access.offset).offset == -4


@pytest.mark.parametrize(("arch", "at"), [("gfx950", (1 << 32) - 16), ("gfx1250", -16)])
def test_the_offset_of_a_lane_has_a_sign_on_some_machines(arch: str, at: int) -> None:
    if arch == "gfx950":
        kernel = read("v_mov_b32_e32 v1, -16\nglobal_load_dword v9, v1, s[4:5]")
    else:
        kernel = read_gfx1250("v_mov_b32_e32 v1, -16", "global_load_b32 v9, v1, s[4:5]")
    (access,) = [each for each in kernel.footprints if not each.is_argument]
    assert access.offset.constant == at
