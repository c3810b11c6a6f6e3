"""Opcodes that no second definition of registers can judge: gives the tests that show what each does.

They say where a wave goes on, what it waits for or which registers are meant, or do nothing that a program can see.
"""

from __future__ import annotations

_FILES = {
    "tests/isa/test_scalar.py": (
        "s_branch", "s_cbranch_execnz", "s_cbranch_execz", "s_cbranch_scc0", "s_cbranch_scc1", "s_cbranch_vccnz",
        "s_cbranch_vccz",
    ),
    "tests/isa/test_code_flow.py": ("s_call_b64", "s_endpgm", "s_getpc_b64", "s_setpc_b64", "s_swappc_b64"),
    "tests/isa/test_control.py": (
        "s_decperflevel", "s_getreg_b32", "s_icache_inv", "s_incperflevel", "s_nop", "s_sendmsg", "s_setprio",
        "s_setreg_b32", "s_setreg_imm32_b32", "s_setvskip", "s_sleep", "s_ttracedata", "s_waitcnt",
    ),
    "tests/isa/test_modes.py": (
        "s_set_gpr_idx_idx", "s_set_gpr_idx_mode", "s_set_gpr_idx_off", "s_set_gpr_idx_on",
    ),
    "tests/isa/test_memory_corners.py": ("ds_nop",),
    "tests/findings/test_I108.py": ("s_barrier",),
    "tests/findings/test_I131.py": ("s_trap",),
}  # fmt: skip

ELSEWHERE = {opcode: file for file, opcodes in _FILES.items() for opcode in opcodes}
"""By opcode, the file of the test."""

_GFX1250_FILES = {
    "tests/isa/test_plain_gfx1250.py": ("s_barrier_init", "s_barrier_join", "s_barrier_signal", "s_barrier_wait"),
    "tests/isa/test_code_flow.py": ("s_endpgm",),
    "tests/findings/test_I131.py": ("s_trap",),
}  # fmt: skip
ELSEWHERE_GFX1250 = {opcode: file for file, opcodes in _GFX1250_FILES.items() for opcode in opcodes}
"""The same for gfx1250."""
