"""The native core computes what NumPy computes, opcode by opcode; `python -m benchmarks.agreement` draws more."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from rota.isa.native import records
from rota.isa.native.records import library, opcodes, pack
from rota.isa.wave.wave import Wave
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


SKIPS = """
v_mov_b32_e32 v1, 1
s_setvskip s2, s3
v_mov_b32_e32 v1, 2
s_cmp_eq_u32 s4, 5
s_cbranch_scc1 over
v_add_u32_e32 v1, 3, v1
s_add_u32 s4, s4, 1
over:
v_add_u32_e32 v1, 16, v1
s_setvskip s3, 0
v_add_u32_e32 v1, 32, v1
"""


@pytest.mark.parametrize("bits", [0, 1, 4, 0xFFFF_FFFB])
@pytest.mark.parametrize("place", [0, 2, 33, 34])
def test_skipped_instructions(bits: int, place: int) -> None:
    """The second s_setvskip leaves it on if `place` is odd."""
    tally = Tally()
    for taken in (4, 5):
        compared(loaded(SKIPS), fresh(scalars={2: bits, 3: place, 4: taken}), tally)
    assert (tally.different, sum(tally.refused.values()), sum(tally.ran.values())) == ([], 0, 2)


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


EDGES = np.array(
    [
        0, 0x8000_0000, 1, 0x8000_0001, 0x007F_FFFF, 0x0080_0000, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0xFFC0_0001,
        0x7F80_0001, 0x7F7F_FFFF, 0xFF7F_FFFF, 0x43E0_0000, 0x43E8_0000, 0x43F0_0000, 0x4370_0000, 0x4380_0000,
        0x4760_0000, 0x4770_0000, 0x3A80_0000, 0x3B00_0000, 0x3B40_0000, 0x437F_0000, 0x437F_8000, 0x3F00_0000,
        0x3FC0_0000, 0x4020_0000, 0xBF00_0000, 0x3F80_0000, 0xFFFF_FFFF, 0x8080_7F7F,
    ],
    np.uint32,
)  # fmt: skip
"""As float32: zeros, denormals, infinities, NaNs; ties and the ends of fp8 and bf8, of both kinds, and of u8."""
MASKS = (0xFFFF_FFFF_FFFF_FFFF, 0, 1, 1 << 63, 0x5555_5555_5555_5555, 0xFFFF_FFFF, 0xF0F0_1234_0000_8001)
PORTED = (
    "v_cvt_pk_fp8_f32 v5, v1, v2", "v_cvt_pk_fp8_f32 v5, -v1, |v2| op_sel:[0,0,1]", "v_cvt_pk_fp8_f32 v5, s4, 1.0",
    "v_cvt_pk_bf8_f32 v5, v1, -|v2|", "v_cvt_pk_bf8_f32 v5, v1, v2 op_sel:[0,0,1]", "v_cvt_pk_u8_f32 v5, v1, v2, v3",
    "v_cvt_pk_u8_f32 v5, -v1, 2, v5", "v_nop",
)  # fmt: skip
SCALED = tuple(
    f"v_cvt_scalef32_pk_{to}_{of} v5, v1, {scale}{half}"
    for to in ("bf16", "f16")
    for of in ("fp8", "bf8")
    for scale, half in (("v2", ""), ("v2", " op_sel:[1,0,0]"), ("s4", ""))
)


def drawn_wave(random: np.random.Generator, mask: int) -> Wave:
    """Edge cases of floats in some lanes, anything in the others."""
    rows = [random.integers(0, 1 << 32, 64, dtype=np.uint32) for _ in range(8)]
    for row in rows:
        row[:32] = random.permutation(EDGES)
    scalars = {4: int(random.choice(EDGES)), 126: mask & 0xFFFF_FFFF, 127: mask >> 32}
    return fresh(dict(enumerate(rows)), scalars)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_conversions_to_and_from_8_bits(arch: str) -> None:
    """Natively, in both kinds of 8-bit floats, for edge cases of numbers and of EXEC."""
    random, tally = np.random.default_rng(8), Tally()
    for text in PORTED + SCALED * (arch == "gfx950"):
        program = loaded(text, arch)
        for mask in MASKS:
            wave = drawn_wave(random, mask)
            wave.architecture = program.architecture
            compared(program, wave, tally)
    assert tally.different == []
    assert tally.ran.total() == len(MASKS) * len(PORTED + SCALED * (arch == "gfx950"))


@pytest.mark.parametrize("text", ["v0, s[4:7], 0 idxen offset:4", "v[0:1], s[4:7], s8 idxen offen"])
@pytest.mark.parametrize("opcode", ["buffer_load_dword v5,", "buffer_load_ubyte v5,", "buffer_store_dwordx2 v[2:3],"])
@pytest.mark.parametrize("stride", [0, 8, 16])
def test_buffers_by_index(opcode: str, text: str, stride: int) -> None:
    """Both bounds agree: an index in range reads and writes, one far outside reads zero."""
    tally, memory = Tally(), np.arange(512, dtype=np.uint32)
    index = np.arange(64, dtype=np.uint32) % 40
    index[50:] = 1 << 20
    for mask in MASKS:
        wave = fresh({0: index, 1: 4 * (index % 2), 2: index, 3: index}, {8: 0}, (memory,))
        at = wave.memory.address(0)
        wave.s[4:8] = [at & 0xFFFF_FFFF, at >> 32 | stride << 16, 40 * stride or 2048, 0x27000]
        wave.s[126:128] = mask & 0xFFFF_FFFF, mask >> 32
        if stride:
            wave.v[0][:50] %= 40 // stride if "offen" in text else 40
        wave.update_mask()
        compared(loaded(f"{opcode} {text}"), wave, tally)
    assert tally.different == []
    assert tally.ran.total() == len(MASKS)


@pytest.mark.parametrize(
    "text",
    [
        "s_store_dword s8, s[4:5], 0x10", "s_store_dwordx4 s[8:11], s[4:5], s12 glc",
        "s_atomic_inc s8, s[4:5], 0x8 glc",
        "s_atomic_dec s8, s[4:5], s12", "s_atomic_add_x2 s[8:9], s[4:5], 0x8 glc", "s_atomic_smax s8, s[4:5], 0x4",
        "s_bfm_b64 s[8:9], s12, s13",
    ],
)  # fmt: skip
def test_scalar_memory(text: str) -> None:
    random, tally = np.random.default_rng(9), Tally()
    for _ in range(6):
        values = random.choice(np.array([0, 1, 5, 7, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF], np.uint32), 8)
        wave = fresh({}, {8 + n: int(value) for n, value in enumerate(values)}, (np.arange(16, dtype=np.uint32),))
        at = wave.memory.address(0)
        wave.s[4:6], wave.s[12], wave.s[13] = [at & 0xFFFF_FFFF, at >> 32], 16, int(values[0])
        compared(loaded(f"{text}\ns_waitcnt lgkmcnt(0)"), wave, tally)
    assert tally.different == []
    assert tally.ran.total() == 6


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
