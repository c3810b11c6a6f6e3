"""Waits, hints, modes and skipped vector instructions, one at a time."""

from __future__ import annotations

from collections import deque

import pytest

from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.disassembly import find_endless
from rota.isa.launch.run import _run_wave, run_kernel
from rota.isa.wave.wave import Pending, Wave
from tests.findings.smallest import raised
from tests.isa.assembly import kernel
from tests.isa.single import execute, facts, fresh, listing, loaded


def under_way(vector: int, local: int) -> Wave:
    """A wave with so many memory ops in flight, scalar ones not among them."""
    wave = fresh()
    instruction = loaded("s_nop 0").steps[0].instruction
    wave.ordered["vmcnt"] = deque(Pending(instruction=instruction, rows=(), finish=lambda: None) for _ in range(vector))
    wave.ordered["lgkmcnt"] = deque(
        Pending(instruction=instruction, rows=(), finish=lambda: None) for _ in range(local)
    )
    return wave


def left(wave: Wave) -> tuple[int, int]:
    return len(wave.ordered["vmcnt"]), len(wave.ordered["lgkmcnt"])


def encoded(vm: int, exp: int, lgkm: int) -> int:
    """Bit by bit, as the ISA document has the fields: vmcnt 3:0 and 15:14, expcnt 6:4, lgkmcnt 11:8."""
    bits = [vm >> place & 1 for place in range(4)] + [exp >> place & 1 for place in range(3)] + [0]
    bits += [lgkm >> place & 1 for place in range(4)] + [0, 0] + [vm >> place & 1 for place in (4, 5)]
    return sum(bit << place for place, bit in enumerate(bits))


@pytest.mark.parametrize("vm", [0, 1, 15, 16, 40, 62, 63])
@pytest.mark.parametrize("lgkm", [0, 3, 15])
def test_a_wait_by_number_is_the_wait_by_name(vm: int, lgkm: int) -> None:
    by_name = execute(f"s_waitcnt vmcnt({vm}) expcnt(7) lgkmcnt({lgkm})", under_way(50, 12))
    by_number = execute(f"s_waitcnt {encoded(vm, 7, lgkm):#x}", under_way(50, 12))
    due = (min(50, vm), min(12, lgkm))
    assert left(by_name) == left(by_number) == due


@pytest.mark.parametrize("text", ["vmcnt(3) & lgkmcnt(2)", "vmcnt(3), lgkmcnt(2)", "vmcnt(3) lgkmcnt(2)"])
def test_counts_are_written_in_several_ways(text: str) -> None:
    wave = execute(f"s_waitcnt {text}", under_way(50, 12))
    assert left(wave) == (3, 2)


def test_a_count_for_exports_waits_for_no_memory() -> None:
    wave = execute("s_waitcnt expcnt(0)", under_way(5, 4))
    assert left(wave) == (5, 4)


@pytest.mark.parametrize(("operand", "states"), [("0", 1), ("7", 8), ("15", 16), ("16", 1), ("0xff", 16)])
def test_a_nop_counts_the_low_bits_of_its_number(operand: str, states: int) -> None:
    assert loaded(f"s_nop {operand}").steps[0].states == states


@pytest.mark.parametrize(
    "text",
    [
        "s_setprio 2",
        "s_sleep 10",
        "s_icache_inv",
        "s_ttracedata",
        "s_incperflevel 1",
        "s_decperflevel 1",
        "s_sendmsg sendmsg(MSG_INTERRUPT)",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 15",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0xff",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0xf0",
    ],
)
def test_what_changes_nothing(text: str) -> None:
    before, after = fresh(scalars={2: 7}), execute(text, fresh(scalars={2: 7}))
    assert after.s == before.s
    assert after.scc == before.scc
    assert (after.v == before.v).all()


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0", 0x3C0),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 12", 0x3C0),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0", 0x1F0),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 2), 0xfe", 0x2F0),
        ("s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), s2", 0x3C0),
    ],
)
def test_parts_of_the_mode_are_set_and_read(text: str, mode: int) -> None:
    wave = execute(f"{text}\ns_getreg_b32 s4, hwreg(HW_REG_MODE, 4, 6)", fresh(scalars={2: 0x1234_56C0}))
    assert (wave.mode, wave.s[4]) == (mode, mode >> 4)


def test_a_mode_from_a_register_that_nobody_computes_in() -> None:
    text = "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s2"
    assert execute(text, fresh(scalars={2: 0x30})).mode == 0x3F0
    finding = raised("I132", lambda: execute(text, fresh(scalars={2: 0x31})))
    assert dict(finding.evidence) == {"bits 7:0 of MODE": "0xf1"}


def test_denormals_are_flushed_while_the_mode_says_so() -> None:
    """As LLVM does around a division, the other way round."""
    product, off = "v_mul_f32_e32 v{to}, 1.0, v0", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), {bits}"
    text = "\n".join(
        (product.format(to=1), off.format(bits=0), product.format(to=2), off.format(bits=3), product.format(to=3))
    )
    wave = execute(text, fresh(vectors={0: 0x0000_1234}))
    assert [int(wave.v[row, 0]) for row in (1, 2, 3)] == [0x1234, 0, 0x1234]


SKIPS = """
s_mov_b32 s2, {bits}
v_mov_b32_e32 v1, 1
s_setvskip s2, {place}
v_mov_b32_e32 v1, 2
s_mov_b32 s3, 5
s_cmp_eq_u32 s3, 5
s_cbranch_scc1 over
v_mov_b32_e32 v1, 3
over:
v_add_u32_e32 v1, 16, v1
s_setvskip 0, 0
v_add_u32_e32 v1, 32, v1
"""


@pytest.mark.parametrize("bits", [0, 1, 4, 0xFFFF_FFFB])
@pytest.mark.parametrize("place", [0, 2, 34])
def test_vector_instructions_are_skipped_while_the_bit_is_set(bits: int, place: int) -> None:
    program = loaded(SKIPS.format(bits=bits, place=place))
    wave = fresh()
    while not wave.ended:
        _run_wave(program.steps, wave, None)
    skipped = bits >> (place % 32) & 1
    assert wave.v[1].tolist() == [1 + 32 if skipped else 2 + 16 + 32] * 64
    assert wave.s[3] == 5


def test_what_is_skipped_neither_counts_nor_waits() -> None:
    """A store that would leave its buffer, and a use of a register that a load still holds."""
    text = """
    s_mov_b32 s2, 1
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_setvskip s2, 0
    global_store_dword v0, v1, s[4:5]
    ds_read_b32 v2, v3
    v_add_u32_e32 v4, v2, v2
    s_setvskip 0, 0
    s_waitcnt lgkmcnt(0)
    """
    told = facts(user_sgprs=(("kernarg_segment_ptr", 2),), kernarg_bytes=8)
    outcome = run_kernel(load_program(told, listing(text)), args=[], block=(64, 1, 1))
    assert outcome.findings == ()


def test_the_skipping_of_a_code_object() -> None:
    """From the assembler, by address; a branch in the skipped half stays in it."""
    code = find_toolchain().assemble(kernel(SKIPS.format(bits=4, place=2)), "gfx942")
    program = load_program(code.kernel(), code.instructions())
    assert len(program.steps) == 2 * len(code.instructions())
    assert run_kernel(program, args=[], block=(64, 1, 1)).findings == ()


def test_code_without_a_way_to_an_end() -> None:
    text = "s_cbranch_scc1 .LBB0_2\n.LBB0_1:\ns_add_u32 s0, s0, 1\ns_cbranch_vccz .LBB0_1\ns_branch .LBB0_1\n.LBB0_2:"
    program = loaded(text)
    assert program.endless == {1, 2, 3}
    assert loaded(".LBB0_1:\ns_sub_u32 s0, s0, 1\ns_cbranch_scc0 .LBB0_1").endless == frozenset()
    called = find_toolchain().assemble(kernel("s_call_b64 s[2:3], k"), "gfx950").instructions()
    assert find_endless(called) == frozenset()
    assert called[0].target == 0
