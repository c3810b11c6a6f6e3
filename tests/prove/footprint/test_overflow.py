"""Addresses that lose bits: small kernels, each with a twin that keeps them, and both executed at the boundary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from rota.isa.binary.kernel_facts import Argument
from rota.isa.decoded import load_program
from rota.isa.disassembly import read_listing
from rota.prove.footprint.accesses import KernelAccesses, read_accesses
from rota.prove.footprint.overflow import Doubt, Loss, Overflow, find_overflows, report_overflow
from rota.targets.registry import architecture_named
from tests.campaigns.machine_code.footprint_oracle import Meaning
from tests.campaigns.machine_code.value_record import Launch, recorded
from tests.isa.single import facts, listing

ARGUMENTS = (
    Argument(name="data", offset=0, size=8, kind="global_buffer"),
    Argument(name="table", offset=8, size=8, kind="global_buffer"),
    Argument(name="stride", offset=16, size=4, kind="by_value"),
    Argument(name="count", offset=20, size=4, kind="by_value"),
)
# s[4:5] is data, s[6:7] a table, s8 a stride, s9 a count, s2 the workgroup's number, v1 four times the work item's.
OPENING = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
s_load_dwordx2 s[8:9], s[0:1], 0x10
v_lshlrev_b32_e32 v1, 2, v0
s_waitcnt lgkmcnt(0)
"""
BY_VECTOR = "global_load_dword v9, v[2:3], off"
BY_SCALAR = "global_load_dword v9, v1, s[10:11]"
BUFFER = "s_mov_b32 s15, 0x20000\ns_mov_b32 s14, -1\ns_and_b32 s13, s11, 0xffff\ns_mov_b32 s12, s10\n"
BY_BUFFER = BUFFER + "buffer_load_dword v9, v1, s[12:15], 0 offen"
PRODUCT = "s_mul_i32 s16, s2, s8\n"
HIGH = "s_mul_hi_u32 s17, s2, s8\n"
ADD, ADD_HIGH, ADD_ZERO = "s_add_u32 s10, s4, s16\n", "s_addc_u32 s11, s5, s17\n", "s_addc_u32 s11, s5, 0\n"
FIRST = "s_mul_i32 s18, s8, s9\ns_mul_hi_u32 s17, s8, s9\n"  # another product
MASK, LATE_MASK = "s_and_b32 s17, s17, 0xffff\n", "s_and_b32 s19, s19, 0xffff\n"
CARRIED = "s_add_u32 s16, s18, s16\ns_addc_u32 s17, s17, 0\n"
LATE_HIGH, LATE_ADD = "s_mul_hi_u32 s19, s2, s8\n", "s_add_u32 s17, s17, s19\n"
ROWS = "v_mov_b32_e32 v4, s2\n"


def read(text: str) -> KernelAccesses:
    told = facts(
        arguments=ARGUMENTS, kernarg_bytes=24, required_workgroup=(64, 1, 1), workgroup_ids=(True, False, False),
        user_sgprs=(("kernarg_segment_ptr", 2),),
    )  # fmt: skip
    architecture = architecture_named("gfx950")
    assert architecture is not None
    return read_accesses(told, read_listing(listing(OPENING + text), "k"), architecture)


def found(text: str) -> tuple[Overflow, ...]:
    return find_overflows(read(text))


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """A kernel that loses bits, and what is to be said of it: the bits, the product and its boundary."""

    text: str
    bits: int
    product: str
    least: int
    right: str
    signed: bool = False
    loss: Loss = Loss.BITS
    required: bool = True


TWINS = {
    "a product without its high word": Wrong(
        text=PRODUCT + ADD + ADD_ZERO + BY_SCALAR, right=PRODUCT + HIGH + ADD + ADD_HIGH + BY_SCALAR,
        bits=32, product="group_x*stride", least=1 << 32,
    ),
    "a product in a resource's base": Wrong(
        text=PRODUCT + ADD + ADD_ZERO + BY_BUFFER, right=PRODUCT + HIGH + ADD + ADD_HIGH + BY_BUFFER,
        bits=32, product="group_x*stride", least=1 << 32,
    ),
    "a multiple": Wrong(
        text=PRODUCT + "s_lshl_b32 s16, s16, 3\n" + ADD + ADD_ZERO + BY_SCALAR,
        right=PRODUCT + HIGH + "s_lshl_b64 s[16:17], s[16:17], 3\n" + ADD + ADD_HIGH + BY_SCALAR,
        bits=32, product="group_x*stride", least=1 << 29,
    ),
    "a product with a sign": Wrong(
        text=PRODUCT + "s_ashr_i32 s17, s16, 31\n" + ADD + ADD_HIGH + BY_SCALAR,
        right=PRODUCT + HIGH + ADD + ADD_HIGH + BY_SCALAR,
        bits=32, product="group_x*stride", least=1 << 31, signed=True,
    ),
    "a product of lanes": Wrong(
        text=ROWS + "v_mul_lo_u32 v5, v4, s8\nv_add_co_u32_e32 v2, vcc, s4, v5\nv_mov_b32_e32 v6, s5\n"
        "v_addc_co_u32_e32 v3, vcc, 0, v6, vcc\n" + BY_VECTOR,
        right=ROWS + "v_mul_lo_u32 v5, v4, s8\nv_mul_hi_u32 v7, v4, s8\nv_add_co_u32_e32 v2, vcc, s4, v5\n"
        "v_mov_b32_e32 v6, s5\nv_addc_co_u32_e32 v3, vcc, v7, v6, vcc\n" + BY_VECTOR,
        bits=32, product="group_x*stride", least=1 << 32,
    ),
    "factors of 24 bits": Wrong(
        text="s_lshl_b32 s18, s2, 2\ns_mov_b32 s19, 0\ns_add_u32 s20, s6, s18\ns_addc_u32 s21, s7, s19\n"
        "s_load_dword s22, s[20:21], 0x0\ns_waitcnt lgkmcnt(0)\nv_mov_b32_e32 v4, s22\n"
        "v_mul_u32_u24_e32 v5, 64, v4\nv_mul_hi_u32 v7, v4, 64\nv_add_co_u32_e32 v2, vcc, s4, v5\n"
        "v_mov_b32_e32 v6, s5\nv_addc_co_u32_e32 v3, vcc, v7, v6, vcc\n" + BY_VECTOR,
        right="s_lshl_b64 s[18:19], s[2:3], 0\ns_mov_b32 s19, 0\ns_lshl_b64 s[18:19], s[18:19], 2\n"
        "s_add_u32 s20, s6, s18\ns_addc_u32 s21, s7, s19\n"
        "s_load_dword s22, s[20:21], 0x0\ns_waitcnt lgkmcnt(0)\nv_mov_b32_e32 v4, s22\n"
        "v_mul_lo_u32 v5, v4, 64\nv_mul_hi_u32 v7, v4, 64\nv_add_co_u32_e32 v2, vcc, s4, v5\n"
        "v_mov_b32_e32 v6, s5\nv_addc_co_u32_e32 v3, vcc, v7, v6, vcc\n" + BY_VECTOR,
        bits=24, product="table[...]", least=1 << 24,
    ),
    "low words added without their carry": Wrong(
        text=PRODUCT + HIGH + "s_mul_i32 s18, s9, s8\ns_add_u32 s16, s16, s18\n" + ADD + ADD_HIGH + BY_SCALAR,
        right=PRODUCT + HIGH + "s_mul_i32 s18, s9, s8\ns_mul_hi_u32 s19, s9, s8\ns_add_u32 s16, s16, s18\n"
        "s_addc_u32 s17, s17, s19\n" + ADD + ADD_HIGH + BY_SCALAR,
        bits=32, product="group_x*stride", least=1 << 32, loss=Loss.CARRY,
    ),
    "an offset of 32 bits": Wrong(
        text="s_mov_b64 s[10:11], s[4:5]\n" + ROWS + "v_mul_lo_u32 v1, v4, s8\n" + BY_BUFFER,
        right=PRODUCT + HIGH + ADD + ADD_HIGH + BY_BUFFER,
        bits=32, product="group_x*stride", least=1 << 32, required=False,
    ),
    "one way of two": Wrong(
        text="s_cmp_lt_u32 s2, 7\ns_cbranch_scc1 on\ns_mov_b32 s16, s9\ns_branch to\non:\n" + PRODUCT + "to:\n"
        + ADD + ADD_ZERO + BY_SCALAR,
        right="s_cmp_lt_u32 s2, 7\ns_cbranch_scc1 on\ns_mov_b32 s16, s9\ns_mov_b32 s17, 0\ns_branch to\non:\n" + PRODUCT
        + HIGH + "to:\n" + ADD + ADD_HIGH + BY_SCALAR,
        bits=32, product="group_x*stride", least=1 << 32,
    ),
    "what a loop begins with": Wrong(
        text=PRODUCT + "s_mov_b32 s20, 0\non:\ns_add_u32 s10, s4, s16\ns_addc_u32 s11, s5, 0\n" + BY_SCALAR
        + "\ns_add_u32 s16, s16, 64\ns_add_u32 s20, s20, 1\ns_cmp_lt_u32 s20, s9\ns_cbranch_scc1 on",
        right=PRODUCT + HIGH + "s_mov_b32 s20, 0\non:\ns_add_u32 s10, s4, s16\ns_addc_u32 s11, s5, s17\n" + BY_SCALAR
        + "\ns_add_u32 s16, s16, 64\ns_addc_u32 s17, s17, 0\ns_add_u32 s20, s20, 1\ns_cmp_lt_u32 s20, s9\n"
        "s_cbranch_scc1 on",
        bits=32, product="group_x*stride", least=1 << 32,
    ),
    "the lanes of a branch": Wrong(
        text=ROWS + "v_mov_b32_e32 v5, 0\nv_cmp_gt_u32_e32 vcc, 32, v0\ns_and_saveexec_b64 s[20:21], vcc\n"
        "s_cbranch_execz on\nv_mul_lo_u32 v5, v4, s8\non:\ns_or_b64 exec, exec, s[20:21]\n"
        "v_add_co_u32_e32 v2, vcc, s4, v5\nv_mov_b32_e32 v6, s5\nv_addc_co_u32_e32 v3, vcc, 0, v6, vcc\n" + BY_VECTOR,
        right=ROWS + "v_mov_b32_e32 v5, 0\nv_mov_b32_e32 v7, 0\nv_cmp_gt_u32_e32 vcc, 32, v0\n"
        "s_and_saveexec_b64 s[20:21], vcc\n"
        "s_cbranch_execz on\nv_mul_lo_u32 v5, v4, s8\nv_mul_hi_u32 v7, v4, s8\non:\ns_or_b64 exec, exec, s[20:21]\n"
        "v_add_co_u32_e32 v2, vcc, s4, v5\nv_mov_b32_e32 v6, s5\nv_addc_co_u32_e32 v3, vcc, v7, v6, vcc\n" + BY_VECTOR,
        bits=32, product="group_x*stride", least=1 << 32,
    ),
    "a high word that is masked and added after the carry": Wrong(
        text=FIRST + MASK + PRODUCT + CARRIED + ADD + ADD_HIGH + BY_SCALAR,
        right=FIRST + MASK + PRODUCT + CARRIED + LATE_HIGH + LATE_MASK + LATE_ADD + ADD + ADD_HIGH + BY_SCALAR,
        bits=32, product="group_x*stride", least=1 << 32,
    ),
    "a high word that is added after the carry": Wrong(
        text=FIRST + PRODUCT + CARRIED + ADD + ADD_HIGH + BY_SCALAR,
        right=FIRST + PRODUCT + CARRIED + LATE_HIGH + LATE_ADD + ADD + ADD_HIGH + BY_SCALAR,
        bits=32, product="group_x*stride", least=1 << 32,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TWINS)
def test_bits_that_are_lost_are_found_and_the_right_twin_has_none(name: str) -> None:
    wrong = TWINS[name]
    (overflow,) = (
        each for each in found(wrong.text) if any(item.formula == wrong.product for item in each.boundaries)
    )  # fmt: skip
    (boundary,) = (each for each in overflow.boundaries if each.formula == wrong.product)
    assert (overflow.bits, overflow.signed, overflow.loss) == (wrong.bits, wrong.signed, wrong.loss)
    assert (boundary.least, overflow.required) == (wrong.least, wrong.required)
    product = 1
    for _, value in boundary.example:
        product *= value
    assert product >= wrong.least
    right = [each for each in found(wrong.right) if any(wrong.product in item.formula for item in each.boundaries)]
    assert right == []


EXECUTED = ("a product without its high word", "a multiple", "a product with a sign", "a product of lanes",
            "low words added without their carry", "one way of two", "the lanes of a branch",
            "a high word that is masked and added after the carry",
            "a high word that is added after the carry")  # fmt: skip


@pytest.mark.parametrize("name", EXECUTED)
def test_from_its_boundary_on_the_wrong_twin_forms_another_address(name: str) -> None:
    """Just below it both twins form the same address, as the interpreter computes them."""
    wrong = TWINS[name]
    scale = wrong.least // (1 << 16)  # the stride at which workgroup 65,536 is the first one too many
    for group, differs in ((1 << 16, True), ((1 << 16) - 1, False)):
        first, second = (_address(text, group, scale) for text in (wrong.text, wrong.right))
        lanes = slice(0, 32)
        changed = bool((first[lanes] != second[lanes]).any())
        assert changed is (differs or wrong.loss is Loss.CARRY), group  # what is added reaches 2**32 by itself
        if name == "one way of two":
            break  # a workgroup below 7 alone takes the product's way


def _address(text: str, group: int, stride: int) -> np.ndarray:
    """The address of the last access, from what its registers hold before it."""
    told = facts(
        arguments=ARGUMENTS, kernarg_bytes=24, required_workgroup=(64, 1, 1), workgroup_ids=(True, False, False),
        user_sgprs=(("kernarg_segment_ptr", 2),),
    )  # fmt: skip
    if "s_cmp_lt_u32 s2, 7" in text:
        text = text.replace("s_cmp_lt_u32 s2, 7", "s_cmp_lt_u32 s2, -1")
    program = load_program(told, listing(OPENING + text))
    words = np.zeros(64, np.uint32)
    args = [words, words.copy(), np.uint32(stride), np.uint32(stride)]
    (record,) = recorded(program, Launch(args=args, block=(64, 1, 1), grid=(group + 1, 1, 1), group=(group, 0, 0)))
    numbers = [step.instruction for step in program.steps]
    held: dict[int, object] = dict(record.start)
    for place, number in enumerate(record.pcs):
        if numbers[number].opcode.startswith("global_load"):
            break
        held.update(record.after[place])
    vector = "v[2:3]" in text.splitlines()[-1]
    rows = (2, 3) if vector else (1024 + 10, 1024 + 11)
    low, high = (np.broadcast_to(np.asarray(held[row], np.uint64), (64,)) for row in rows)
    return low + (high << np.uint64(32))


def test_a_finding_names_both_places_the_number_and_an_example() -> None:
    kernel = read(TWINS["a product without its high word"].text)
    (overflow,) = find_overflows(kernel)
    finding = report_overflow(kernel, overflow)
    evidence = dict(finding.evidence)
    assert finding.code == "I501"
    assert [each.label.split()[0] for each in finding.concerns] == ["global_load_dword", "s_addc_u32"]
    assert evidence["number"] == "group_x*stride"
    assert evidence["used in"] == "32 bits"


def test_numbers_that_fit_are_no_findings() -> None:
    assert found("s_mov_b64 s[10:11], s[4:5]\n" + BY_SCALAR) == ()
    small = "s_and_b32 s16, s2, 0xffff\ns_and_b32 s18, s8, 0xffff\ns_mul_i32 s16, s16, s18\n"
    assert found(small + ADD + ADD_ZERO + BY_SCALAR) == ()


# s7 is s2 divided by s9, as LLVM computes it.
DIVISION = """
s_sub_i32 s20, 0, s9
v_cvt_f32_u32_e32 v5, s9
v_rcp_iflag_f32_e32 v5, v5
v_mul_f32_e32 v5, 0x4f7ffffe, v5
v_cvt_u32_f32_e32 v5, v5
v_readfirstlane_b32 s21, v5
s_mul_i32 s20, s20, s21
s_mul_hi_u32 s20, s21, s20
s_add_i32 s21, s21, s20
s_mul_hi_u32 s7, s2, s21
s_mul_i32 s22, s7, s9
s_sub_i32 s22, s2, s22
s_add_i32 s23, s7, 1
s_sub_i32 s24, s22, s9
s_cmp_ge_u32 s22, s9
s_cselect_b32 s7, s23, s7
s_cselect_b32 s22, s24, s22
s_add_i32 s23, s7, 1
s_sub_i32 s24, s22, s9
s_cmp_ge_u32 s22, s9
s_cselect_b32 s7, s23, s7
"""


@pytest.mark.parametrize(("text", "doubt"), [
    ("s_and_b32 s2, s2, 0xffff\n" + DIVISION + "s_lshl_b32 s16, s7, 12\n", Doubt.DIVISION_BY_ZERO),
    (DIVISION + "s_lshl_b32 s16, s7, 12\n", Doubt.LAUNCH),
    ("s_mul_hi_u32 s16, s8, s9\ns_lshl_b32 s16, s16, 2\n", Doubt.HIGH_WORD),
])  # fmt: skip
def test_what_no_caller_is_known_to_reach_is_undecided(text: str, doubt: Doubt) -> None:
    """A quotient is at most what is divided; and a product that needs more than 64 bits has no wider form."""
    (overflow,) = found(text + ADD + ADD_ZERO + BY_SCALAR)
    assert overflow.doubt is doubt


def test_a_quotient_times_an_argument_is_required() -> None:
    (overflow,) = found(DIVISION + "s_mul_i32 s16, s7, s8\n" + ADD + ADD_ZERO + BY_SCALAR)
    assert overflow.required
    assert overflow.boundaries[0].formula == "stride*(group_x)/(count)"


def test_formulas_are_what_the_interpreter_computes() -> None:
    """The meaning of a formula itself: a product whose high word is kept."""
    (access,) = [each for each in read(TWINS["a multiple"].right).footprints if not each.is_argument]
    meaning = Meaning(arguments={"stride": 1 << 20, "count": 3, "data": 5}, group=(1 << 19, 0, 0), wave=0)
    address = meaning.number(access.base + access.offset)
    assert address[2] == 5 + 8 * (1 << 39) + 8
