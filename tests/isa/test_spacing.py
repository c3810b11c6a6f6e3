"""Wait states, on all paths and while running: one table, judged by what LLVM inserts and by sequences drawn."""

from __future__ import annotations

import random
import shutil
from time import process_time

import pytest

from rota.isa.disassembly import read_listing
from rota.isa.hazards.spacing import spacing_of
from rota.isa.hazards.wait_states import SpacingWalk, check_spacing
from rota.isa.opcodes import IsaUnit, Trait
from rota.targets.architecture import Architecture
from rota.targets.cdna3 import CDNA3
from rota.targets.cdna4 import CDNA4
from tests.campaigns.hazards import hazard_pairs
from tests.campaigns.hazards.hazard_sources import sources
from tests.campaigns.hazards.hazards import _in_assembly, _objects, judged, pairs_agree
from tests.isa.single import execute, fresh, listing, loaded
from tests.isa.sources import compiled
from tests.shared import shared
from tests.wording.golden import mentions, worded

pytestmark = pytest.mark.thorough  # runs for seconds

MFMA = "v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], v[0:3]"
LONG = "v_mfma_f32_32x32x8_f16 v[0:15], v[32:33], v[34:35], v[0:15]"  # 8 passes on gfx950
OTHER = "v_mfma_f32_32x32x8_f16 v[16:31], v[32:33], v[34:35], v[16:31]"
WIDE = "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[16:23], v[24:31], v[0:3]"  # 8 passes, and 4 of fp4
NARROW = "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:11], v[12:15], v[0:3] cbsz:4 blgp:4"
DOUBLED = "v_mfma_f32_16x16x32_f16 v[0:3], v[8:11], v[12:15], v[0:3]"
MACHINES = {"gfx942": CDNA3, "gfx950": CDNA4}


def walked(text: str, architecture: Architecture = CDNA4) -> list[tuple[str, int]]:
    """What comes too early, and by how many wait states."""
    instructions = read_listing(listing(text), "k")
    return [(instructions[each.then].opcode, each.short) for each in SpacingWalk(instructions, architecture).early()]


@pytest.mark.skipif(not (shutil.which("llc-22") or shutil.which("llc")), reason="llc is not installed")
@pytest.mark.parametrize("architecture", [CDNA3, CDNA4], ids=lambda each: each.name)
def test_as_many_wait_states_are_due_as_llvm_inserts(architecture: Architecture) -> None:
    everything = list(hazard_pairs.pairs(architecture))
    chosen = random.Random(13).sample(everything, 500)
    count, inserted, differing = pairs_agree(architecture, chosen)
    assert (count, differing) == (500, [])
    assert inserted > 200


@pytest.mark.parametrize("name", ["t_flash_s2c.gfx942.hsaco", "g_mxfp4.gfx950.hsaco", "t_softmax.gfx950.hsaco"])
def test_every_wait_state_of_a_compiled_kernel_is_needed(name: str) -> None:
    seen = 0
    for label, architecture, instructions in _objects(shared("kernels") / "compiled", name):
        tally = judged(instructions, architecture, name=label)
        assert (tally.missed, tally.alarms) == ([], [])
        seen += tally.noticed
    assert seen


@pytest.mark.parametrize("key", [key for number, key in enumerate(sources()) if number % 9 == 4], ids=" ".join)
def test_every_wait_state_around_a_hazard_is_needed(key: tuple[str, str]) -> None:
    arch, _ = key
    code = compiled(sources()[key], arch)
    instructions, by_hand = _in_assembly(code.assembly, "k")
    tally = judged(instructions, MACHINES[arch], by_hand)
    assert (tally.missed, tally.alarms) == ([], [])


@pytest.mark.parametrize(
    ("text", "early"),
    [
        # A path that is one state shorter than the other.
        (f"{MFMA}\ns_nop 6\ns_cbranch_scc1 .LBB0_1\ns_nop 0\n.LBB0_1:\nv_mov_b32_e32 v4, v0", []),
        (f"{MFMA}\ns_nop 5\ns_cbranch_scc1 .LBB0_1\ns_nop 0\n.LBB0_1:\nv_mov_b32_e32 v4, v0", [("v_mov_b32_e32", 1)]),
        # The end of a loop and its beginning.
        (f".LBB0_1:\nv_mov_b32_e32 v4, v0\n{MFMA}\ns_nop 6\ns_cbranch_scc1 .LBB0_1", []),
        (f".LBB0_1:\nv_mov_b32_e32 v4, v0\n{MFMA}\ns_nop 5\ns_cbranch_scc1 .LBB0_1", [("v_mov_b32_e32", 1)]),
        # Nothing follows from what a branch leaves behind.
        (f"{MFMA}\ns_branch .LBB0_2\nv_mov_b32_e32 v4, v0\n.LBB0_2:\ns_nop 0", []),
        # The later of two MFMAs that write a register counts; a register that only the first one wrote has its own.
        (f"{MFMA}\nv_mfma_f32_4x4x4_16b_f16 v[0:3], v[8:9], v[10:11], v[4:7]\ns_nop 4\nv_mov_b32_e32 v20, v0", []),
        ("v_mov_b32_e32 v1, v2\nv_mov_b32_dpp v3, v1 row_shr:1 row_mask:0xf bank_mask:0xf", [("v_mov_b32_dpp", 2)]),
        ("v_cmp_eq_u32_e32 vcc, v0, v1\ns_nop 0\nv_cndmask_b32_e32 v2, v0, v1, vcc", [("v_cndmask_b32_e32", 1)]),
        ("v_readfirstlane_b32 m0, v0\ns_nop 3\nbuffer_load_dword v2, s[4:7], 0 offen lds", [("buffer_load_dword", 1)]),
        ("s_mov_b32 m0, 0\nbuffer_load_dword v2, s[4:7], 0 offen lds", [("buffer_load_dword", 1)]),
        ("s_cmp_eq_u32 m0, 0\nbuffer_load_dword v2, s[4:7], 0 offen lds", []),
        ("s_set_gpr_idx_idx s2\nbuffer_load_dword v2, s[4:7], 0 offen lds", [("buffer_load_dword", 1)]),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3\ns_getreg_b32 s0, hwreg(HW_REG_MODE)", [("s_getreg_b32", 2)]),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3\ns_getreg_b32 s0, hwreg(HW_REG_TRAPSTS)", []),
        ("global_store_dwordx4 v[0:1], v[4:7], off\nv_mov_b32_e32 v7, 0", [("v_mov_b32_e32", 2)]),
        ("global_store_dwordx2 v[0:1], v[4:5], off\nv_mov_b32_e32 v5, 0", []),
        # With a register for its offset one wait state is enough (measured); a load into the data needs one, or none.
        ("buffer_store_dwordx4 v[4:7], v0, s[4:7], s9 offen\nv_mov_b32_e32 v7, 0", [("v_mov_b32_e32", 1)]),
        ("buffer_store_dwordx4 v[4:7], v0, s[4:7], s9 offen\ns_nop 0\nv_mov_b32_e32 v7, 0", []),
        ("buffer_store_dwordx4 v[4:7], v0, s[4:7], s9 offen\nds_read_b32 v7, v0", []),
        ("buffer_store_dwordx4 v[4:7], v0, s[4:7], 0 offen\nds_read_b32 v7, v0", [("ds_read_b32", 1)]),
        # A scalar register that was written again holds something else.
        ("v_readfirstlane_b32 s8, v0\ns_mov_b32 s8, 0\nv_mov_b32_e32 v1, s8", []),
        ("v_readfirstlane_b32 s8, v0\ns_mov_b32 s9, 0\nv_mov_b32_e32 v1, s8", [("v_mov_b32_e32", 1)]),
        ("v_readfirstlane_b32 s8, v0\ns_cmov_b32 s8, 0\nv_mov_b32_e32 v1, s8", [("v_mov_b32_e32", 1)]),
        ("v_readfirstlane_b32 s8, v0\ns_movreld_b32 s8, 0\nv_mov_b32_e32 v1, s8", [("v_mov_b32_e32", 1)]),
        ("v_readfirstlane_b32 s8, v0\ns_load_dword s8, s[0:1], 0x0\nglobal_load_dword v1, v2, s[8:9]", []),
        ("v_cmp_eq_u32_e64 s[8:9], v0, v1\ns_mov_b32 s8, 0\nv_cndmask_b32_e64 v2, v0, v1, s[8:9]",
         [("v_cndmask_b32_e64", 1)]),
        ("v_cmp_eq_u32_e64 s[8:9], v0, v1\ns_mov_b64 s[8:9], 0\nv_cndmask_b32_e64 v2, v0, v1, s[8:9]", []),
        ("v_cmpx_eq_u32_e32 vcc, v0, v1\ns_mov_b64 exec, -1\nv_readlane_b32 s8, v2, 0", []),
        ("v_cmpx_eq_u32_e32 vcc, v0, v1\ns_or_saveexec_b64 s[8:9], s[10:11]\nv_readlane_b32 s8, v2, 0", []),
        ("v_readfirstlane_b32 s8, v0\ns_cbranch_scc1 .LBB0_1\ns_mov_b32 s8, 0\n.LBB0_1:\nv_mov_b32_e32 v1, s8",
         [("v_mov_b32_e32", 1)]),
        # An MFMA waits for the one before: what follows both may read the first one's result.
        ("{long}\n{other}\ns_nop 3\nv_mov_b32_e32 v100, v0", []),
        ("{long}\n{other}\ns_nop 2\nv_mov_b32_e32 v100, v0", [("v_mov_b32_e32", 1)]),
        ("{long}\nv_mfma_f32_4x4x1_16b_f32 v[44:47], v40, v41, v[44:47]\ns_nop 9\nv_mov_b32_e32 v100, v0",
         [("v_mov_b32_e32", 1)]),  # of another kind
        # MFMAs that add to the same registers: at once, if they have as many passes.
        ("{narrow}\ns_nop 4\n{wide}", [("v_mfma_f32_16x16x128_f8f6f4", 1)]),
        ("{narrow}\ns_nop 5\n{wide}", []),
        ("{doubled}\ns_nop 3\n{same}", [("v_mfma_f32_16x16x16_f16", 1)]),
        ("{doubled}\ns_nop 4\n{same}", []),
        ("{same}\n{same}", []),
        # DPP: what is exchanged, other operands, and what a target had, where lanes keep it.
        ("v_mov_b32_e32 v1, v2\nv_mov_b32_dpp v1, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", []),
        ("v_mov_b32_e32 v1, v2\nv_mov_b32_dpp v1, v3 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1", []),
        ("v_mov_b32_e32 v1, v2\nv_mov_b32_dpp v1, v3 quad_perm:[1,0,3,2] row_mask:0xa bank_mask:0xf",
         [("v_mov_b32_dpp", 2)]),
        ("v_mov_b32_e32 v1, v2\nv_mov_b32_dpp v1, v3 row_shr:1 row_mask:0xf bank_mask:0xf", [("v_mov_b32_dpp", 2)]),
        ("v_mov_b32_e32 v1, v2\nv_add_f32_dpp v4, v3, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1",
         [("v_add_f32_dpp", 2)]),
        # Modes and zero flags.
        ("s_setvskip s2, 0\ns_nop 0\ns_getreg_b32 s3, hwreg(HW_REG_MODE)", [("s_getreg_b32", 1)]),
        ("s_setvskip s2, 0\ns_nop 1\ns_getreg_b32 s3, hwreg(HW_REG_MODE)", []),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 0\ns_nop 0\nv_mov_b32_e32 v1, v0", [("v_mov_b32_e32", 1)]),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0\ns_nop 0\nds_read_b32 v1, v0", [("ds_read_b32", 1)]),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0\nv_mov_b32_e32 v1, v0", []),
        ("v_cmp_eq_u32_e32 vcc, v0, v1\ns_nop 3\nv_mov_b32_e32 v2, src_vccz", [("v_mov_b32_e32", 1)]),
        ("v_cmp_eq_u32_e32 vcc, v0, v1\ns_nop 4\nv_mov_b32_e32 v2, src_vccz", []),
        ("v_cmp_eq_u32_e32 vcc, v0, v1\nv_mov_b32_e32 v2, src_execz", []),
        ("v_cmpx_eq_u32_e32 vcc, v0, v1\ns_nop 3\nv_mov_b32_e32 v2, src_execz", [("v_mov_b32_e32", 1)]),
        ("v_permlane32_swap_b32_e32 v0, v1\nv_permlane32_swap_b32_e32 v1, v2", [("v_permlane32_swap_b32_e32", 2)]),
    ],
)  # fmt: skip
def test_paths_and_pairs(text: str, early: list[tuple[str, int]]) -> None:
    meanings = {"same": MFMA, "long": LONG, "other": OTHER, "narrow": NARROW, "wide": WIDE, "doubled": DOUBLED}
    for name, meant in meanings.items():
        text = text.replace(f"{{{name}}}", meant)
    assert walked(text) == early


def test_a_finding_names_both_ends() -> None:
    (finding,) = check_spacing(read_listing(listing(f"{MFMA}\nv_mov_b32_e32 v4, v0"), "k"), CDNA3)
    assert finding.code == "I104"
    worded(finding)
    assert mentions(finding.message, "v_mov_b32_e32", "v0", 7)
    assert [concern.label for concern in finding.concerns] == ["v_mov_b32_e32 v4, v0", MFMA]
    shown = dict(finding.evidence)
    assert (shown["rule"], shown["source"]) == ("result", "AMD's manual")
    assert "CDNA3 ISA manual, table 37" in str(shown["row"])


@pytest.mark.parametrize(
    ("text", "unit", "traits"),
    [
        ("v_exp_f32_e32 v0, v1", IsaUnit.VALU, Trait.TRANSCENDENTAL),
        ("v_frexp_mant_f32_e32 v0, v1", IsaUnit.VALU, Trait.NONE),
        ("v_and_b32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD", IsaUnit.VALU,
         Trait.PARTIAL),
        ("v_and_b32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:DWORD", IsaUnit.VALU,
         Trait.NONE),
        ("v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", IsaUnit.VALU, Trait.PARTIAL),
        ("v_cvt_sr_fp8_f32 v0, v1, v2 op_sel:[0,0,1,0]", IsaUnit.VALU, Trait.PARTIAL),
        ("v_pk_add_f32 v[0:1], v[2:3], v[4:5] op_sel_hi:[0,1]", IsaUnit.VALU, Trait.NONE),
        ("v_pk_add_f32 v[0:1], v[2:3], v[4:5]", IsaUnit.VALU, Trait.PACKED),
        ("global_load_lds_dword v[0:1], off", IsaUnit.VMEM, Trait.TO_LDS | Trait.USES_M0),
        ("s_mov_b32 m0, s1", IsaUnit.SALU, Trait.NONE),
    ],
)  # fmt: skip
def test_what_an_instruction_is(text: str, unit: IsaUnit, traits: Trait) -> None:
    (instruction, _) = read_listing(listing(text), "k")
    spacing = spacing_of(instruction, CDNA4)
    assert (spacing.unit, spacing.traits) == (unit, traits)


DRAWN = (
    "v_mov_b32_e32 v{a}, v{b}", "v_add_u32_e32 v{a}, v{b}, v{c}", "v_exp_f32_e32 v{a}, v{b}", "s_nop {n}",
    "v_cmp_eq_u32_e32 vcc, v{a}, v{b}", "v_cndmask_b32_e32 v{a}, v{b}, v{c}, vcc", "v_readfirstlane_b32 s8, v{a}",
    "v_mfma_f32_16x16x16_f16 v[{m}:{m3}], v[{p}:{p1}], v[{q}:{q1}], v[{m}:{m3}]", "s_mov_b32 s9, 0",
    "v_mfma_f32_16x16x16_f16 v[{m}:{m3}], v[{p}:{p1}], v[{q}:{q1}], v[{o}:{o3}]", "v_readlane_b32 s8, v{a}, s8",
    "v_mfma_f32_4x4x1_16b_f32 v[{m}:{m3}], v{a}, v{b}, v[{o}:{o3}]", "v_mov_b32_e32 v{a}, s8",
    "s_mov_b32 s8, 0", "s_cmov_b32 s8, 0", "v_mfma_f32_32x32x8_f16 v[32:47], v[{p}:{p1}], v[{q}:{q1}], v[32:47]",
    "v_mfma_f32_32x32x8_f16 v[48:63], v[{p}:{p1}], v[{q}:{q1}], v[48:63]", "v_mov_b32_e32 v{a}, v40",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_a_run_and_the_walk_agree(seed: int) -> None:
    """Straight lines of instructions: what is noticed while running is what the walk finds, line by line."""
    rng = random.Random(seed)
    lines = []
    for _ in range(40):
        m, o = rng.sample((0, 2, 4, 8), 2)
        p, q = rng.choice((0, 2, 8, 10)), rng.choice((4, 6, 12))
        lines.append(
            rng.choice(DRAWN).format(
                a=rng.randrange(12), b=rng.randrange(12), c=rng.randrange(12), n=rng.randrange(8), m=m, m3=m + 3, o=o,
                o3=o + 3, p=p, p1=p + 1, q=q, q1=q + 1,
            )
        )  # fmt: skip
    arch = rng.choice(("gfx942", "gfx950"))
    text = "\n".join(lines)
    wave = execute(text, fresh(dict.fromkeys(range(64), 0)), arch)
    instructions = read_listing(listing(text), "k")
    expected = {instructions[each.then].line for each in SpacingWalk(instructions, MACHINES[arch]).early()}
    found = {finding.concerns[0].index for finding in wave.faults.findings() if finding.code == "I104"}
    assert found == expected
    fixes = {
        tuple(concern.index for concern in each.concerns): dict(each.evidence)["fix"]
        for each in check_spacing(instructions, MACHINES[arch])
    }
    for each in wave.faults.findings():
        ends = tuple(concern.index for concern in each.concerns)
        assert fixes.get(ends, dict(each.evidence)["fix"]) == dict(each.evidence)["fix"]


def test_what_an_mfma_waits_for_its_unit_passes_together_with_nops() -> None:
    """Five are due; the second one waits for three by itself, which an s_nop before it doesn't add to."""
    assert walked(f"{DOUBLED}\n{MFMA}") == [("v_mfma_f32_16x16x16_f16", 5)]
    assert walked(f"v_mov_b32_e32 v34, v50\n{OTHER.replace('v[34:35]', 'v[40:41]')}\n{LONG}") == []


def test_code_with_too_many_ways_is_judged_place_by_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """No fewer instructions are found too early than by going through every way."""
    blocks = []
    for number in range(8):
        jumps = [f"s_cbranch_scc0 .L{(5 * number + way) % 8}" for way in range(3)]
        row = 8 + 4 * (number % 3)
        blocks += [
            f".L{number}:",
            f"v_mfma_f32_4x4x4_16b_f16 v[{row}:{row + 3}], v[0:1], v[{row}:{row + 1}], 0",
            *jumps,
        ]
    instructions = [step.instruction for step in loaded("\n".join([*blocks, "v_mov_b32_e32 v1, v9"])).steps]
    ways = {(each.first, each.then): each.short for each in SpacingWalk(instructions, CDNA4).early()}
    monkeypatch.setattr("rota.isa.hazards.wait_states._FREE_PLACES", 0)
    monkeypatch.setattr("rota.isa.hazards.wait_states._MOST_PLACES", 0)
    places = {(each.first, each.then): each.short for each in SpacingWalk(instructions, CDNA4).early()}
    assert ways
    assert all(places[pair] >= short for pair, short in ways.items())


def test_ways_that_multiply_end_within_seconds() -> None:
    blocks = []
    for number in range(30):
        jumps = [f"s_cbranch_scc0 .L{(7 * number + 11 * way) % 30}" for way in range(4)]
        blocks += [f".L{number}:", "v_mfma_f32_4x4x4_16b_f16 v[8:11], v[0:1], v[2:3], 0", *jumps]
    instructions = [step.instruction for step in loaded("\n".join(blocks)).steps]
    started = process_time()
    SpacingWalk(instructions, CDNA4).early()
    assert process_time() - started < 5


def test_a_store_of_a_scalar_register_ends_nothing() -> None:
    """It reads the register, so that what was due for its value still is."""
    chosen = "v_readlane_b32 s9, v1, s8"
    for between in ("s_buffer_store_dword s8, s[16:19], 0x40", "s_scratch_store_dword s8, s[16:17], 0x40", "s_nop 0"):
        assert walked(f"v_readfirstlane_b32 s8, v0\n{between}\n{chosen}", CDNA3) == [("v_readlane_b32", 3)]
    assert walked(f"v_readfirstlane_b32 s8, v0\ns_mov_b32 s8, 0\n{chosen}", CDNA3) == []
