"""Which waves come where follows from their numbers, or is said not to be known."""

from __future__ import annotations

import pytest

from rota.isa.decoded import waves_at
from rota.isa.disassembly import read_listing
from rota.isa.opcodes import opcode_named
from rota.isa.registers import SCC_ROWS
from rota.isa.wave import scalar
from rota.targets.cdna4 import CDNA4
from tests.isa.single import listing

WAVE = "v_readfirstlane_b32 s8, v0\ns_lshr_b32 s8, s8, 6"
MASKED = "s_and_saveexec_b64 s[4:5], vcc"
SKIP, HERE = "s_cbranch_scc1 .LBB0_9", "s_barrier\n.LBB0_9:"


def reached(text: str, waves: int = 4) -> frozenset[int] | None:
    """The waves at the only barrier."""
    instructions = read_listing(listing(text), "k")
    (number,) = (number for number, each in enumerate(instructions) if each.opcode == "s_barrier")
    return waves_at(instructions, CDNA4, waves, [number])[number]


KNOWN = {
    "no branch": ("s_barrier", {0, 1, 2, 3}),
    "by its number": (f"{WAVE}\ns_cmp_lg_u32 s8, 2\n{SKIP}\n{HERE}", {2}),
    "behind the end of some": (
        f"{WAVE}\ns_cmp_lt_u32 s8, 2\n{SKIP}\ns_endpgm\n{HERE.split(chr(10))[1]}\ns_barrier",
        {0, 1},
    ),
    "by a vector": (
        f"v_lshrrev_b32_e32 v1, 7, v0\nv_cmp_eq_u32_e32 vcc, 0, v1\n{MASKED}\ns_cbranch_execz .LBB0_9\n{HERE}",
        {0, 1},
    ),
    "a selection of two constants": (
        f"{WAVE}\ns_cmp_eq_u32 s8, 1\ns_cselect_b32 s9, 7, 5\ns_mul_i32 s9, s9, 3\ns_cmp_lg_u32 s9, 21\n{SKIP}\n{HERE}",
        {1},
    ),
    "a load between, of another register": (
        f"{WAVE}\ns_cmp_lg_u32 s8, 3\ns_load_dword s9, s[0:1], 0x0\ns_mov_b32 s10, s9\n{SKIP}\n{HERE}",
        {3},
    ),
    "a register that a loop leaves alone": (
        f"{WAVE}\n.LBB0_1:\ns_add_u32 s9, s9, 1\ns_cbranch_vccnz .LBB0_1\ns_cmp_lg_u32 s8, 0\n{SKIP}\n{HERE}",
        {0},
    ),
}
UNKNOWN = {
    "an argument": f"s_load_dword s9, s[0:1], 0x0\ns_cmp_lg_u32 s9, 0\n{SKIP}\n{HERE}",
    "a sum with an argument": f"{WAVE}\ns_add_u32 s8, s8, s2\ns_cmp_lg_u32 s8, 0\n{SKIP}\n{HERE}",
    "an unknown carry": f"{WAVE}\ns_add_u32 s9, s2, 1\ns_addc_u32 s8, s8, 0\ns_cmp_lg_u32 s8, 0\n{SKIP}\n{HERE}",
    "a register that a loop changes": (
        f"{WAVE}\n.LBB0_1:\ns_add_u32 s8, s8, 1\ns_cmp_lt_u32 s9, s3\ns_cbranch_scc1 .LBB0_1\n"
        f"s_cmp_lg_u32 s8, 0\n{SKIP}\n{HERE}"
    ),
    "a register that a loop changes before it is entered": (
        f"{WAVE}\ns_branch .LBB0_2\n.LBB0_1:\ns_add_u32 s8, s8, 1\n.LBB0_2:\ns_cmp_lt_u32 s9, s3\n"
        f"s_cbranch_scc1 .LBB0_1\ns_cmp_lg_u32 s8, 0\n{SKIP}\n{HERE}"
    ),
    "a register that may have been changed": (
        f"{WAVE}\ns_cmp_lg_u32 s2, 0\ns_cbranch_scc0 .LBB0_1\ns_mov_b32 s8, 0\n.LBB0_1:\n"
        f"s_cmp_lg_u32 s8, 0\n{SKIP}\n{HERE}"
    ),
    "lanes that EXEC leaves out": (
        "v_cmp_eq_u32_e32 vcc, 0, v0\ns_and_saveexec_b64 s[4:5], vcc\nv_mov_b32_e32 v1, 5\ns_mov_b64 exec, s[4:5]\n"
        f"v_readlane_b32 s8, v1, 9\ns_cmp_lg_u32 s8, 5\n{SKIP}\n{HERE}"
    ),
    "one lane": f"v_writelane_b32 v1, 5, 3\nv_readfirstlane_b32 s8, v1\ns_cmp_eq_u32 s8, 0\n{SKIP}\n{HERE}",
    "an instruction that is not known": f"{WAVE}\ns_memtime s[8:9]\ns_cmp_eq_u32 s8, 0\n{SKIP}\n{HERE}",
    "inside a stretch that may be skipped": (
        f"{WAVE}\ns_cmp_lg_u32 s2, 0\ns_cbranch_scc1 .LBB0_8\ns_cmp_lg_u32 s8, 1\n{SKIP}\n{HERE}\n.LBB0_8:"
    ),
    "inside a loop": f"{WAVE}\n.LBB0_1:\ns_cmp_lg_u32 s8, 1\n{SKIP}\n{HERE}\ns_cbranch_vccnz .LBB0_1",
}


@pytest.mark.parametrize("case", KNOWN)
def test_a_number_decides(case: str) -> None:
    text, waves = KNOWN[case]
    assert reached(text) == frozenset(waves)


@pytest.mark.parametrize("case", UNKNOWN)
def test_more_than_a_number_decides(case: str) -> None:
    assert reached(UNKNOWN[case]) is None


@pytest.mark.parametrize("opcode", sorted({**scalar._TWO, **scalar._ONE, **scalar._ON_ITSELF}))
def test_which_scalar_instructions_take_scc(opcode: str) -> None:
    """Those whose result depends on it, for some of these numbers."""
    function = {**scalar._TWO, **scalar._ONE, **scalar._ON_ITSELF}[opcode]
    numbers = (0, 1, 5, 0xFFFF_FFFF)
    depends = any(function(a, b, 0) != function(a, b, 1) for a in numbers for b in numbers)
    assert depends == (opcode_named(opcode).reads == SCC_ROWS)
    (keeps,) = {function(a, b, 0)[1] is None for a in numbers for b in numbers}
    assert keeps == (opcode_named(opcode).writes != SCC_ROWS)
