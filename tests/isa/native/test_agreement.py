"""The native core computes what NumPy computes, opcode by opcode; `python -m benchmarks.agreement` draws more."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from rota.isa.native import records
from rota.isa.native.records import library, opcodes, pack
from tests.isa import matrix_checks, memory_oracles
from tests.isa.native.both import Tally, compared, watching
from tests.isa.plain.families import ARCHITECTURES, FAMILIES
from tests.isa.single import fresh, loaded

SHARE = 3  # of that many opcodes, one
WHOLE = frozenset({"functions", "comparisons", "scalar"})  # integer arithmetic: every opcode, since the core repeats it


def test_the_core_was_built() -> None:
    assert library() is not None
    assert len(opcodes()) > 500


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_single_instructions(family: object) -> None:
    tally, random = Tally(), Random(7)
    with watching(tally):
        for arch in ARCHITECTURES:
            share = 1 if family.name in WHOLE else SHARE  # type: ignore[attr-defined]
            chosen = random.sample(family.opcodes, len(family.opcodes) // share)  # type: ignore[attr-defined]
            for _ in family.judge(random, arch, chosen, 1):  # type: ignore[attr-defined]
                pass
    assert tally.different == []
    assert sum((tally.ran + tally.by_numpy).values()) >= len(chosen)


@pytest.mark.thorough  # runs for seconds
def test_memory_instructions() -> None:
    tally = Tally()
    with watching(tally):
        for seed, check in enumerate(list(memory_oracles.CHECKS.values())[::SHARE]):
            check(seed)
    assert tally.different == []
    assert len(tally.ran) > 60


def test_matrix_instructions() -> None:
    tally = Tally()
    with watching(tally):
        for seed, check in enumerate(list(matrix_checks.CHECKS.values())[::SHARE]):
            check(seed, places=0, most=1)
    assert tally.different == []
    assert len(tally.ran) > 20


@pytest.mark.parametrize(
    "text",
    [
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0\nv_add_f32_e32 v5, v1, v2",
        "v_cmp_lt_u32_e32 vcc, v1, v2\ns_and_saveexec_b64 s[4:5], vcc\nv_mov_b32_e32 v5, 1\ns_mov_b64 exec, s[4:5]",
    ],
)
def test_what_changes_the_mode_is_heeded(text: str) -> None:
    random = np.random.default_rng(3)
    tally = Tally()
    vectors = {row: random.integers(0, 1 << 20, 64, dtype=np.uint32) for row in range(12)}  # denormals, as floats
    compared(loaded(text), fresh(vectors, {0: 3, 124: 0}), tally)
    assert tally.different == []
    assert not tally.refused


def test_sums_that_depend_on_their_order_are_formed_in_one() -> None:
    """2^60 + 1 - 2^60 is 0 or 1."""
    random, tally = np.random.default_rng(5), Tally()
    large_and_small = np.array([0x5D80, 0xDD80, 0x3F80, 0xBF80, 0], np.uint32)  # bf16
    vectors = {row: random.choice(large_and_small, 64) | random.choice(large_and_small, 64) << 16 for row in range(8)}
    vectors |= {row: np.zeros(64, np.uint32) for row in range(16, 20)}
    compared(loaded("v_mfma_f32_16x16x32_bf16 v[16:19], v[0:3], v[4:7], v[16:19]"), fresh(vectors), tally)
    assert tally.ran.total() == 1
    assert tally.different == []


@pytest.mark.parametrize("text", ["s_set_gpr_idx_on s0, gpr_idx(SRC0)\nv_mov_b32_e32 v5, v1", "s_movrels_b32 s4, s5"])
def test_registers_by_index_are_left_to_numpy(text: str) -> None:
    assert pack(loaded(text)) is None


def test_a_difference_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    number = opcodes()["v_sub_u32"][0]
    changed = {**opcodes(), "v_add_u32": (number, opcodes()["v_add_u32"][1])}
    monkeypatch.setattr(records, "opcodes", lambda: changed)
    tally = Tally()
    rows = {row: np.arange(64, dtype=np.uint32) + 7 * row for row in range(3)}
    compared(loaded("v_add_u32_e32 v0, v1, v2"), fresh(rows), tally)
    assert [opcode for opcode, _ in tally.different] == ["v_add_u32"]


@pytest.mark.parametrize("first", [14, 18])
def test_c_may_be_read_from_registers_that_d_takes(first: int) -> None:
    """LLVM lets C and D overlap by half: of four registers all of C is read before any of D is written."""
    random, tally = np.random.default_rng(6), Tally()
    whole = np.array([0x3F80, 0xBF80, 0x4000, 0], np.uint32)  # bf16
    vectors = {row: random.choice(whole, 64) | random.choice(whole, 64) << 16 for row in range(8)}
    vectors |= {row: random.integers(-9, 9, 64).astype(np.float32).view(np.uint32) for row in range(14, 22)}
    text = f"v_mfma_f32_16x16x32_bf16 v[{first}:{first + 3}], v[0:3], v[4:7], v[16:19]"
    compared(loaded(text), fresh(vectors), tally)
    assert tally.ran.total() == 1
    assert tally.different == []
