"""The comparison of values refuses wrong changes, and each of its parts is needed for that."""

from __future__ import annotations

import re
from random import Random

import pytest

from rota.improve import same_kernel
from rota.improve.same_kernel import find_difference, uses_of
from rota.isa.disassembly import Instruction, read_listing
from rota.isa.registers import ACC, NAMED, SCALAR
from rota.prove.operation import SCC_BIT, UnknownOperationError, read_operation, rows_of
from rota.targets.registry import architecture_named
from tests.campaigns.machine_code.improved_kernels import list_files
from tests.campaigns.machine_code.wrong_orders import DRAWN, Subject, judge, read_subject
from tests.isa.single import listing

NAMES = ("t_matmul_bf16_s2.gfx942", "t_matmul_bf16_s2.gfx950", "t_flash_s1.gfx950", "h_warpreduce.gfx942")


def subject(name: str) -> Subject:
    (file,) = list_files("kernels/compiled", f"{name}.hsaco")
    found = read_subject(file)
    assert found is not None
    return found


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("name", NAMES)
def test_wrong_changes_are_refused(name: str, kind: str) -> None:
    one, random = subject(name), Random(name)
    found = [judge(one, kind, random) for _ in range(8)]
    assert set(found) <= {"refused", None}


def listed(*lines: str) -> list[Instruction]:
    """Instructions with made-up words: each text has its own."""
    text = listing("\n".join(lines))
    return [
        Instruction(
            opcode=each.opcode, operands=each.operands, modifiers=each.modifiers, text=each.text, line=each.line,
            address=4 * place, target=each.target, encoding=(hash(each.text) & 0xFFFFFFFF,),
        )
        for place, each in enumerate(read_listing(text, "k"))
    ]  # fmt: skip


STAYS = {
    "a result and its use": ("v_add_u32_e32 v1, v2, v3", "v_mov_b32_e32 v4, v1"),
    "a use and what overwrites it": ("v_mov_b32_e32 v4, v1", "v_add_u32_e32 v1, v2, v3"),
    "two that write one register": ("v_mov_b32_e32 v4, v1", "v_mov_b32_e32 v4, v2"),
    "a part of a range": ("ds_read_b128 v[4:7], v1", "v_mov_b32_e32 v9, v6"),
    "a part that stays": ("v_fmac_f32_e32 v4, v1, v2", "v_fmac_f32_e32 v4, v5, v6"),
    "a carry": ("v_add_co_u32_e32 v1, vcc, v2, v3", "v_addc_co_u32_e32 v4, vcc, v5, v6, vcc"),
    "a second target": ("v_mad_u64_u32 v[0:1], s[2:3], v4, v5, 0", "s_mov_b64 s[6:7], s[2:3]"),
    "two targets of an exchange": ("v_permlane32_swap_b32_e32 v1, v2", "v_mov_b32_e32 v3, v2"),
    "SCC": ("s_cmp_lt_u32 s1, s2", "s_cselect_b32 s3, s4, s5"),
    "SCC of an addition": ("s_add_u32 s1, s2, s3", "s_addc_u32 s4, s5, s6"),
    "SCC of a conditional move": ("s_cmp_lt_u32 s1, s2", "s_cmov_b32 s3, s4"),
    "EXEC": ("s_mov_b64 exec, s[2:3]", "v_mov_b32_e32 v4, v1"),
    "EXEC by the way": ("s_and_saveexec_b64 s[2:3], vcc", "v_mov_b32_e32 v4, v1"),
    "EXEC by a comparison": ("v_cmpx_gt_u32_e32 v1, v2", "v_mov_b32_e32 v4, v3"),
    "VCC of a division": ("v_cmp_gt_u32_e32 vcc, v1, v2", "v_div_fmas_f32 v3, v4, v5, v6"),
    "M0": ("s_mov_b32 m0, s1", "buffer_load_dword v1, s[4:7], 0 offen lds"),
    "LDS": ("ds_write_b32 v1, v2", "ds_read_b32 v3, v4"),
    "LDS by a copy": ("ds_read_b32 v3, v4", "buffer_load_dword v1, s[4:7], 0 offen lds"),
    "memory": ("global_store_dword v1, v2, s[4:5]", "global_load_dword v3, v4, s[6:7]"),
    "memory that scalars read": ("global_store_dword v1, v2, s[4:5]", "s_load_dword s9, s[6:7], 0x0"),
    "an atomic's result": ("global_atomic_add v1, v2, v3, s[4:5] sc0", "v_mov_b32_e32 v5, v1"),
    "a barrier": ("s_barrier", "ds_read_b32 v3, v4"),
    "a barrier before memory": ("buffer_load_dword v1, v2, s[4:7], 0 offen", "s_barrier"),
    "a mode": ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3", "v_add_f32_e32 v1, v2, v3"),
    "a cache": ("buffer_inv sc1", "global_load_dword v3, v4, s[6:7]"),
    "what nobody knows": ("x_new_thing v1, v2", "v_mov_b32_e32 v7, v8"),
}


@pytest.mark.parametrize("name", STAYS)
def test_two_that_depend_on_each_other_stay(name: str) -> None:
    one, other = STAYS[name]
    around = ("v_mov_b32_e32 v90, v91", "v_mov_b32_e32 v92, v93")
    old, new = listed(around[0], one, other, around[1]), listed(around[0], other, one, around[1])
    assert find_difference(old, new) is not None


GOES = {
    "two reads of one register": ("v_mov_b32_e32 v4, v1", "v_mov_b32_e32 v5, v1"),
    "two reads of LDS": ("ds_read_b32 v3, v4", "ds_read_b32 v5, v6"),
    "two loads": ("global_load_dword v3, v4, s[6:7]", "buffer_load_dword v1, v2, s[8:11], 0 offen"),
    "matrix and LDS": ("v_mfma_f32_32x32x8_bf16 v[16:31], v[0:1], v[2:3], v[16:31]", "ds_read_b64 v[4:5], v6"),
    "a computation and a barrier": ("s_barrier", "v_mov_b32_e32 v4, v1"),
    "scalars without SCC": ("s_mov_b32 s1, s2", "s_add_u32 s3, s4, s5"),
    "LDS and memory": ("ds_write_b32 v1, v2", "global_load_dword v3, v4, s[6:7]"),
}


@pytest.mark.parametrize("name", GOES)
def test_two_without_a_dependence_change_places(name: str) -> None:
    one, other = GOES[name]
    around = ("v_mov_b32_e32 v90, v91", "v_mov_b32_e32 v92, v93")
    assert find_difference(listed(around[0], one, other, around[1]), listed(around[0], other, one, around[1])) is None


STORED = ("global_store_dword v1, v2, s[4:5]", "global_load_dword v8, v4, s[6:7]")


@pytest.mark.parametrize(("old", "new", "same"), [
    (("s_waitcnt vmcnt(1)", "s_barrier"), ("s_waitcnt vmcnt(2)", "s_barrier"), False),
    (("s_waitcnt vmcnt(1)", "s_barrier"), ("s_nop 0", "s_barrier"), False),
    (("s_waitcnt vmcnt(1)", "s_barrier"), ("s_waitcnt vmcnt(0)", "s_barrier"), True),
    (("s_waitcnt lgkmcnt(1)", "s_barrier"), ("s_nop 0", "s_barrier"), True),
    (("s_waitcnt vmcnt(1)", "buffer_wbl2 sc1"), ("s_nop 0", "buffer_wbl2 sc1"), False),
])  # fmt: skip
def test_what_others_may_see_stays_covered(old: tuple[str, ...], new: tuple[str, ...], *, same: bool) -> None:
    """The proof of LDS says nothing of it; without a store before, a wait is left to that proof."""
    assert (find_difference(listed(*STORED, *old), listed(*STORED, *new)) is None) is same
    if "buffer_wbl2 sc1" not in old:
        assert find_difference(listed(STORED[1], *old), listed(STORED[1], *new)) is None
    moved = (STORED[0], "s_waitcnt vmcnt(0)", STORED[1], "s_barrier")
    assert find_difference(listed(*STORED, "s_waitcnt vmcnt(1)", "s_barrier"), listed(*moved)) is None


FIRST, THEN = "buffer_load_dwordx4 v[4:7], v8, s[4:7], 0 offen", "buffer_load_dwordx4 v[8:11], v9, s[4:7], 0 offen"
STORE, SCALARS = "global_store_dword v1, v2, s[4:5]", ("s_load_dword s6, s[4:5], 0x0", "s_load_dword s4, s[8:9], 0x0")


OWN = tuple(f"buffer_load_dwordx4 v[{at}:{at + 3}], v{at}, s[4:7], 0 offen" for at in (4, 8))  # over its address


@pytest.mark.parametrize(("one", "other"), [(FIRST, THEN), (FIRST, STORE), SCALARS, OWN])
def test_memory_instructions_that_may_be_executed_again_together(one: str, other: str) -> None:
    """With XNACK: an s_nop between them stays, or something else comes there."""
    rest = ("v_mov_b32_e32 v21, v22", "s_waitcnt vmcnt(0)")
    old = listed(one, "s_nop 0", other, *rest)
    assert find_difference(old, listed(one, other, *rest, "s_nop 0")) is not None
    assert find_difference(old, listed(one, rest[0], other, "s_nop 0", rest[1])) is None


def test_waits_on_both_sides_of_a_branch() -> None:
    """Nothing moves: only the waits differ, which the proof judges, unless others may see a store before."""
    lines = ("s_waitcnt vmcnt(0)", "on:", "v_mov_b32_e32 v1, v2", "s_cbranch_scc1 on", "s_waitcnt lgkmcnt(0)")
    weaker = ("s_waitcnt vmcnt(1)", *lines[1:-1], "s_nop 0")
    assert find_difference(listed(*lines), listed(*weaker)) is None
    assert find_difference(listed(STORED[0], *lines), listed(STORED[0], *weaker)) is not None
    assert find_difference(listed(*lines), listed(*weaker[:2], "v_mov_b32_e32 v1, v3", *weaker[3:])) is not None


def test_a_jump_that_may_go_anywhere() -> None:
    lines = ("v_mov_b32_e32 v1, v2", "v_mov_b32_e32 v3, v4", "s_setpc_b64 s[4:5]")
    assert find_difference(listed(*lines), listed(lines[1], lines[0], lines[2])) is not None


def test_a_missing_instruction_and_a_branch_into_the_middle() -> None:
    lines = ("v_mov_b32_e32 v1, v2", "v_mov_b32_e32 v3, v4", "v_mov_b32_e32 v5, v6")
    assert find_difference(listed(*lines), listed(lines[0], lines[0], lines[2])) is not None
    assert find_difference(listed(*lines), listed(*lines)) is None
    assert find_difference(listed(*lines, "s_nop 0"), listed(*lines, "s_nop 1")) is None
    inside = ("v_mov_b32_e32 v7, v8", "on:", "v_mov_b32_e32 v9, v10", "s_cbranch_scc1 on")
    changed = (inside[2], "on:", inside[0], inside[3])
    assert find_difference(listed(*inside), listed(*changed)) is not None


# Each change of the comparison itself gives a wrong answer.
DAMAGES = {
    "no SCC": ("_WITHOUT_SCC", re.compile("s_")),
    "no stores": ("_STORES", re.compile("never")),
    "one target": ("_TWO_TARGETS", re.compile("never")),
    "nothing fixed": ("_FIXED", re.compile("never")),
    "no LDS": ("_LDS", re.compile("never")),
    "no memory": ("_MEMORY", re.compile("never")),
    "no scalar loads": ("_SCALAR_LOADS", "never"),
    "nothing implied": ("_find_implied", lambda _: (set(), set())),
    "no copies to LDS": ("_goes_to_lds", lambda _: False),
    "no results of atomics": ("_returns", lambda _: False),
    "no registers": ("_names", lambda _: ()),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_comparison_answers_wrongly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, instead = DAMAGES[name]
    monkeypatch.setattr(same_kernel, attribute, instead)
    let_through = any(find_difference(listed(*pair), listed(*pair[::-1])) is None for pair in STAYS.values())
    refused = any(find_difference(listed(*pair), listed(*pair[::-1])) is not None for pair in GOES.values())
    assert let_through or refused


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_it_knows_each_register_that_the_proof_knows(arch: str) -> None:
    """Two readings of all instructions of the compiled kernels: text by text, and by the tables of opcodes."""
    architecture = architecture_named(arch)
    assert architecture is not None
    texts: dict[str, Instruction] = {}
    for file in list_files("kernels/compiled", f".{arch}.hsaco"):
        found = read_subject(file)
        texts |= {each.text: each for each in (() if found is None else found.instructions)}
    missing = []
    for text, each in texts.items():
        uses = uses_of(each)
        if uses.fixed or each.opcode.startswith(("s_waitcnt", "s_nop", "s_barrier")):
            continue
        try:
            operation = read_operation(each, 0, architecture)
        except UnknownOperationError:
            continue
        for mask, names, what in ((operation.reads, uses.reads, "reads"), (operation.writes, uses.writes, "writes")):
            lost = set(rows_of(mask)) - {row for name in names for row in _rows(name)}
            if lost:
                missing.append((text, what, sorted(lost)))
    assert len(texts) > 2000
    assert missing == [], missing[:40]


def _rows(name: str) -> set[int]:
    files = {"v": 0, "a": ACC, "s": SCALAR}
    if name[1:].isdigit() and name[0] in files:
        return {files[name[0]] + int(name[1:])}
    if name == "scc":
        return set(rows_of(SCC_BIT))
    named = [range(first, first + count) for each, (first, count) in NAMED.items() if each.startswith(name)]
    return {SCALAR + row for rows in named for row in rows}
