from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import find_toolchain
from rota.lint.kernel_report import LintOptions, lint_kernel
from rota.lint.lane_addresses import BankClocks, Certainty, LdsSite, bound_clocks, count_conflicts
from rota.targets.registry import architecture_named
from tests.campaigns.machine_code import bank_oracle
from tests.campaigns.machine_code.bank_oracle import BANKS, GROUPS, compare, load, lose, serve
from tests.emit.kernels import ZOO
from tests.isa.corpus.cases import FOLDER, Case
from tests.lint.linted import assembled, linted
from tests.shared import shared

GFX942, GFX950 = (architecture_named(name) for name in ("gfx942", "gfx950"))
ALL = (1 << 64) - 1


@pytest.mark.parametrize(("arch", "size", "writes", "named"), [
    ("gfx942", 4, False, "ds_read_b32"), ("gfx942", 8, False, "ds_read_b64"), ("gfx942", 16, False, "ds_read_b128"),
    ("gfx950", 8, False, "ds_read_b64"), ("gfx950", 12, False, "ds_read_b96"), ("gfx950", 16, False, "ds_read_b128"),
    ("gfx950", 8, True, "ds_write_b64"),
])  # fmt: skip
@pytest.mark.parametrize("stride", [0, 4, 8, 16, 20, 32, 64, 68, 128, 132, 256, 260])
def test_the_banks_served_clock_by_clock_take_as_long(
    arch: str, size: int, writes: bool, named: str, stride: int
) -> None:
    architecture = architecture_named(arch)
    assert architecture is not None
    rule = architecture.find_bank_rule(size, writes=writes)
    assert rule is not None
    places = [lane * stride ^ (lane >> 4) * 16 for lane in range(64)]
    for active in (ALL, 0x0F0F_00FF_1234_5678, 1, 0):
        wanted = [
            {(place + more) // 4 for more in range(0, size, 4)} if active >> lane & 1 else set()
            for lane, place in enumerate(places)
        ]
        assert count_conflicts(rule, 4, places, active).extra == lose(wanted, *GROUPS[arch, named])
        bound = bound_clocks(BANKS[arch], 4, ((0, size),), places, active)
        assert bound.clocks == serve(wanted, BANKS[arch])
        assert bound.even == -(-len(set().union(*wanted)) // BANKS[arch])


# Triton's pull 11365: groups of lanes that read 16 bytes aren't consecutive. Its layouts were free for lanes in a row,
# and are free since for the lanes that are served together. Bits of a lane's number say which chunk of a row it reads.

BEFORE = "item & 15 ^ (item >> 4 & 1) << 2"
AFTER = {"gfx942": "item & 7", "gfx950": "item & 3 | (item >> 3 & 3) << 2"}
CHUNKS = """void k(float4* x) {{
  __shared__ float4 tile[1024];
  unsigned item = __builtin_amdgcn_workitem_id_x();
  for (unsigned row = 0; row < 1024; row += 64) tile[row + item] = x[row + item];
  __syncthreads();
  x[item] = tile[item * {row} + (({chunk}) & {row} - 1)];
}}"""


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_layouts_before_and_after_tritons_pull_11365(arch: str) -> None:
    row = {"gfx942": 8, "gfx950": 16}[arch]
    before, after = (
        next(each for each in linted(CHUNKS.format(row=row, chunk=chunk), arch=arch).sites if each.verb == "read")
        for chunk in (BEFORE, AFTER[arch])
    )
    assert before.certainty is after.certainty is Certainty.EXACT
    assert before.worst.extra > after.worst.extra == 0
    consecutive = [[*range(start, start + row)] for start in range(0, 64, row)]
    taken = [{4 * (lane * row + (_chunk(lane) & row - 1)) + word for word in range(4)} for lane in range(64)]
    assert lose(taken, BANKS[arch], consecutive) == 0  # which is what Triton believed


def _chunk(lane: int) -> int:
    return lane & 15 ^ (lane >> 4 & 1) << 2


# What the proof knows of addresses.


def sites(text: str) -> tuple[LdsSite, ...]:
    return assembled(text, device=None).sites


READ = "ds_read_b128 v[4:7], v1\ns_waitcnt lgkmcnt(0)"
LANES = "v_lshlrev_b32_e32 v1, 7, v0\nv_and_b32_e32 v1, 0xfff, v1"
UNIFORM = "s_load_dword s4, s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_lshl_b32 s4, s4, {by}\ns_and_b32 s4, s4, 0x7f0"


def test_what_all_lanes_add_changes_no_conflict() -> None:
    plain, moved = (sites(f"{text}\nds_read_b128 v[4:7], v1\ns_waitcnt lgkmcnt(0)")[0] for text in (
        LANES, f"{UNIFORM.format(by=2)}\n{LANES}\nv_add_u32_e32 v1, s4, v1",
    ))  # fmt: skip
    assert plain.certainty is moved.certainty is Certainty.EXACT
    assert plain.worst == moved.worst
    assert plain.worst.extra


def test_an_unknown_number_of_bytes_is_not_taken_for_words() -> None:
    text = f"{UNIFORM.format(by=0).replace('0x7f0', '0x7ff')}\n{LANES}\nv_add_u32_e32 v1, s4, v1"
    (site,) = sites(f"{text}\nds_read_b128 v[4:7], v1\ns_waitcnt lgkmcnt(0)")
    assert site.certainty is Certainty.BY_DATA
    assert not site.conflicts


def test_an_address_from_memory_is_not_known() -> None:
    text = "v_lshlrev_b32_e32 v1, 2, v0\nglobal_load_dword v1, v1, s[4:5]\ns_waitcnt vmcnt(0)\n"
    (site,) = sites(f"{text}v_and_b32_e32 v1, 0xff0, v1\nds_read_b128 v[4:7], v1\ns_waitcnt lgkmcnt(0)")
    assert site.certainty is Certainty.BY_DATA


def test_an_odd_address_has_no_rule() -> None:
    (site,) = sites(f"{LANES}\nds_read_b128 v[4:7], v1 offset:2\ns_waitcnt lgkmcnt(0)")
    assert site.certainty is Certainty.UNALIGNED


def test_lanes_that_may_take_part_give_a_bound() -> None:
    text = "v_lshlrev_b32_e32 v3, 2, v0\nglobal_load_dword v3, v3, s[4:5]\ns_waitcnt vmcnt(0)\n"
    masked = "v_cmp_gt_u32_e32 vcc, 7, v3\ns_and_saveexec_b64 s[8:9], vcc"
    (site,) = sites(f"{text}{LANES}\n{masked}\nds_read_b128 v[4:7], v1\ns_waitcnt lgkmcnt(0)")
    assert site.certainty is Certainty.AT_MOST
    assert site.worst.extra == sites(f"{LANES}\nds_read_b128 v[4:7], v1\ns_waitcnt lgkmcnt(0)")[0].worst.extra


def test_code_that_no_wave_reaches_is_not_called_free() -> None:
    (site,) = sites(f"{LANES}\ns_mov_b32 s4, 0\ns_cmp_lg_u32 s4, 0\ns_cbranch_scc0 end\n{READ}\nend:\ns_nop 0")
    assert site.certainty is Certainty.UNREACHED


def test_a_width_without_a_rule_has_only_its_banks() -> None:
    (site,) = sites(f"{LANES}\nds_write_b32 v1, v0")
    assert site.certainty is Certainty.NO_RULE
    assert site.worst == BankClocks(0, 1)
    assert (site.bound.clocks, site.bound.even) == (16, 1)  # two of 64 banks, 32 places 128 bytes apart
    assert site.conflicts


# A share of the campaign.


@pytest.mark.parametrize("name", ["h_scan.gfx942", "t_matmul_bf16_s2.gfx950", "t_matmul_fp32.gfx942", "t_sort.gfx950"])
def test_a_model_of_the_banks_agrees(name: str) -> None:
    found = compare(*load(Case(path=shared(f"{FOLDER}/{name}.hsaco"), name=name)))
    assert found.differ == ()
    assert found.by_rule > 10


def test_a_wrong_model_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(path=shared(f"{FOLDER}/t_sort.gfx950.hsaco"), name="t_sort.gfx950")
    monkeypatch.setitem(bank_oracle.GROUPS, ("gfx950", "ds_read_b128"), (16, [[*range(64)]]))
    monkeypatch.setitem(bank_oracle.GROUPS, ("gfx950", "ds_read_b64"), (16, [[*range(64)]]))
    assert compare(*load(case)).differ


@pytest.mark.thorough  # compiles, and predicts the loop
def test_a_share_of_rotas_own_kernels_has_none() -> None:
    check_own_kernels([*ZOO][::5])


@pytest.mark.slow  # a minute
def test_rotas_own_kernels_have_none() -> None:
    check_own_kernels([*ZOO])


def check_own_kernels(names: Sequence[str]) -> None:
    assert len(names) > 2
    for name in names:
        compiled, geometry = ZOO[name]()
        code = find_toolchain().compile(emit_gemm(compiled, geometry), compiled.machine.arch)
        report = lint_kernel(code, None, LintOptions(device=compiled.machine))  # type: ignore[arg-type]
        assert {each.certainty for each in report.sites} == {Certainty.EXACT}
        assert "I601" not in {each.code for each in report.findings}
        assert report.clocks is not None
        assert report.clocks.cost == 0


def test_files_that_only_a_guess_launches(tmp_path: Path) -> None:
    names = [name for name, _ in bank_oracle.subjects(shared("kernels"), "gfx950__pa__")]
    assert names
    assert not [*bank_oracle.subjects(tmp_path, "")]
