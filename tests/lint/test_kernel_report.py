from __future__ import annotations

from typing import Any

import pytest

from rota.errors import IsaError, Severity
from rota.lint.kernel_report import LintOptions, LintReport, find_occupancy, lint_kernel
from rota.targets.registry import device_named
from tests.isa.single import facts
from tests.lift.small_loop import BUFFERS, looped
from tests.lint.linted import assembled, codes, compiled, linted, only

MI355X, MI300X = device_named("mi355x"), device_named("mi300x")


# Loops.

NESTED = """void k(float* x, int n) {
  for (int i = 0; i < n; i++) {
    x[i] = 1;
#pragma unroll 1
    for (int j = 0; j < i; j++) x[j * 2] += 2;
  }
}"""


def test_what_is_in_an_inner_loop_is_not_counted_twice() -> None:
    loops = linted(NESTED).loops
    assert {each.depth for each in loops} == {1, 2}
    numbers = [each.number for loop in loops for each in loop.operations]
    assert len(numbers) == len(set(numbers))


# Occupancy: LLVM 22 prints these for a kernel with so many registers (facts of gfx942 and gfx950).


@pytest.mark.parametrize(
    ("vgprs", "waves"),
    [(64, 8), (65, 7), (72, 7), (73, 6), (80, 6), (81, 5), (96, 5), (97, 4), (128, 4), (129, 3), (168, 3), (169, 2),
     (256, 2), (257, 1), (512, 1)],
)  # fmt: skip
def test_waves_on_a_simd_are_those_that_llvm_prints(vgprs: int, waves: int) -> None:
    found = find_occupancy(facts(vgprs=vgprs, lds_bytes=0), 4, MI355X)
    assert found is not None
    assert found.workgroups == waves
    assert found.is_alone is (waves == 1)


def test_lds_limits_workgroups_and_only_a_launch_knows_its_own() -> None:
    half = facts(vgprs=64, lds_bytes=40_000)
    for device, most in ((MI300X, 1), (MI355X, 4)):
        found = find_occupancy(half, 4, device)
        assert found is not None
        assert found.workgroups == most
    by_launch = find_occupancy(facts(vgprs=64, lds_bytes=0), 4, MI355X, uses_lds=True)
    assert by_launch is not None
    assert by_launch.by_lds is None
    told = find_occupancy(facts(vgprs=64, lds_bytes=0), 4, MI355X, 80_000, uses_lds=True)
    assert told is not None
    assert told.workgroups == 2


def test_without_a_device_nothing_is_said_of_occupancy_and_clocks() -> None:
    assert find_occupancy(facts(), 4, None) is None
    report = assembled(looped(*BUFFERS), device=None, waves=2)
    assert (report.occupancy, report.clocks) == (None, None)
    assert report.not_lifted
    assert report.sites


# The cost of conflicts.


def pipelined(lanes: str, *more: str, reads: int = 1) -> LintReport:
    """A loop whose lanes read LDS so far apart."""
    read = [f"ds_read_b128 v[{4 * number + 4}:{4 * number + 7}], v2" for number in range(reads)]
    before = ("s_load_dword s4, s[0:1], 0x0", f"v_lshlrev_b32_e32 v2, {lanes}, v0", "v_and_b32_e32 v2, 0xff0, v2",
              "s_waitcnt lgkmcnt(0)")  # fmt: skip
    return assembled(looped(*read, *more, "s_waitcnt lgkmcnt(0)", before=before), waves=1)


PRODUCTS = tuple(
    f"v_mfma_f32_32x32x16_bf16 {sums}, v[100:103], v[104:107], {sums}"
    for sums in (f"a[{first}:{first + 15}]" for first in range(0, 128, 16))
)


def test_conflicts_that_nothing_hides_have_a_cost() -> None:
    free, slow = pipelined("4", reads=8), pipelined("8", reads=8)
    assert free.clocks is not None
    assert slow.clocks is not None
    assert free.clocks.cost == 0
    assert slow.clocks.cost > 0
    assert slow.clocks.clean == free.clocks.clocks
    finding = only(slow, "I601")
    assert finding.severity is Severity.WARNING
    assert "predicted" in str(dict(finding.evidence)["cost"])
    (loop,) = slow.loops
    assert loop.extra_clocks == 8 * 4 * 15  # eight reads, four phases, sixteen ways


def test_conflicts_behind_matrix_instructions_are_notes() -> None:
    """One read and eight products of 32 clocks each."""
    hidden = pipelined("5", *PRODUCTS)
    assert hidden.clocks is not None
    assert hidden.loops[0].extra_clocks > 0
    assert not hidden.clocks.matters
    assert only(hidden, "I601").severity is Severity.NOTE


def test_a_loop_that_is_not_lifted_has_no_known_cost() -> None:
    branch = ("s_cmp_eq_u32 s4, 7", "s_cbranch_scc1 other", "ds_read_b128 v[8:11], v2", "other:")
    report = pipelined("8", *branch)
    assert report.clocks is None
    findings = [each for each in report.findings if each.code == "I601"]
    assert findings
    assert {each.severity for each in findings} == {Severity.WARNING}
    assert all("not known" in str(dict(each.evidence)["cost"]) for each in findings)


def test_bounds_are_below_the_clocks_and_named() -> None:
    found = pipelined("5", *PRODUCTS).clocks
    assert found is not None
    units = dict(found.bounds)
    assert max(units.values()) <= found.clocks
    assert units["MMA unit"] == 8 * 32
    assert found.assumed


# What can't be judged.


def test_an_unknown_kernel_or_machine_is_refused() -> None:
    with pytest.raises(IsaError) as raised:
        assembled("s_unheard_of 1")
    assert raised.value.findings[0].code == "I401"
    with pytest.raises(IsaError) as raised:
        assembled("s_nop 0", arch="gfx803")
    assert raised.value.findings[0].code == "I111"


def test_a_kernel_without_lds_and_loops_has_nothing_to_say() -> None:
    report = linted("void k(float* x) { x[0] = 1; }")
    assert (report.sites, report.loops, codes(report)) == ((), (), [])
    assert [*report.count_others()] == []


@pytest.mark.parametrize("level", [0, 1])
def test_a_priority_on_two_ways_is_not_known(level: int) -> None:
    text = ("s_load_dword s4, s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "s_cmp_eq_u32 s4, 7", "s_cbranch_scc1 again",
            f"s_setprio {level}")  # fmt: skip
    report = assembled(looped("s_setprio 0", "s_nop 0", before=text))
    assert ("I607" in codes(report)) is (level == 0)


def options(**named: Any) -> LintOptions:
    return LintOptions(device=MI355X, **named)


def test_waits_are_tried_only_of_a_proved_kernel() -> None:
    racy = """void k(float* x) {
      __shared__ float tile[128];
      unsigned item = __builtin_amdgcn_workitem_id_x();
      tile[item] = x[item];
      asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");
      x[item] = tile[127 - item];
    }"""
    report = lint_kernel(compiled(racy, 128), None, options(needed=True))
    assert not report.verdict.proved
    assert {"I605", "I606"}.isdisjoint(codes(report))


def test_code_before_a_loop_with_two_ways_in_is_not_in_it() -> None:
    """The second way in doesn't pass the head; what is before both is executed once."""
    load = ("s_load_dword s4, s[0:1], 0x0", "s_waitcnt lgkmcnt(0)")
    text = (*load, "scratch_load_dword v5, off, off", "s_cmp_eq_u32 s4, 7", "s_cbranch_scc1 inside")
    report = assembled(looped("v_mov_b32_e32 v3, 1", "inside:", "scratch_store_dword off, v3, off", before=text))
    (loop,) = report.loops
    assert [each.name for each in loop.private] == ["scratch_store_dword"]
    assert not any(each.name == "s_load_dword" for each in loop.operations)
