from __future__ import annotations

from rota.errors import Finding
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.run import run_kernel
from tests.findings.smallest import raised
from tests.isa.assembly import kernel
from tests.wording.golden import mentions


def ran(body: str) -> Finding:
    code = find_toolchain().assemble(kernel(body), "gfx950")
    program = load_program(code.kernel(), code.instructions())
    return raised("I131", lambda: run_kernel(program, args=[], block=(64, 1, 1)))


def test_a_trap_that_is_reached() -> None:
    finding = ran("s_trap 2")
    assert "s_trap" in finding.message
    assert finding.concerns[0].label == "s_trap 2"


def test_a_trap_that_is_not_reached_does_no_harm() -> None:
    code = find_toolchain().assemble(kernel("s_branch over\ns_cbranch_scc0 trap\ntrap:\ns_trap 2\nover:"), "gfx950")
    outcome = run_kernel(load_program(code.kernel(), code.instructions()), args=[], block=(64, 1, 1))
    assert outcome.findings == ()


def test_a_jump_to_where_nothing_stands() -> None:
    finding = ran("s_mov_b32 s2, 0x1000\ns_lshl_b32 s2, s2, 4\ns_mov_b32 s3, 0\ns_setpc_b64 s[2:3]")
    assert mentions(finding.message, "s_setpc_b64", "0x10000")


def test_a_jump_between_two_instructions() -> None:
    """Into the literal of s_mov_b32: what stands there is decoded, but no part of the kernel leads to it."""
    jump = "s_lshr_b32 s4, s2, 0\ns_add_u32 s2, s4, 20\ns_setpc_b64 s[2:3]\ns_mov_b32 s5, 0x12345678"
    ran(f"s_getpc_b64 s[2:3]\n{jump}")
