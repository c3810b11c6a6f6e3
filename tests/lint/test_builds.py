"""Regressions that others reported, rebuilt with the same flags, and found in the two binaries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rota.errors import Severity
from rota.isa.binary.hip_source import HipFlags, compile_hip
from rota.isa.binary.toolchain import read_object
from rota.lint.kernel_report import BuildComparison, LintOptions, LintReport, compare_reports, lint_kernel
from rota.targets.registry import device_named

PRODUCT = """typedef float sums __attribute__((ext_vector_type(16)));
typedef _Float16 halves __attribute__((ext_vector_type(8)));
extern "C" __attribute__((global SIZES)) void k(halves* a, halves* b, float* c, int n) {
  unsigned item = __builtin_amdgcn_workitem_id_x();
  sums total[SIDE][SIDE] = {};
  for (int i = 0; i < n; i++) {
    halves left[SIDE], right[SIDE];
    for (int t = 0; t < SIDE; t++) left[t] = a[(i * SIDE + t) * 64 + item];
    for (int t = 0; t < SIDE; t++) right[t] = b[(i * SIDE + t) * 64 + item];
    for (int s = 0; s < SIDE; s++)
      for (int t = 0; t < SIDE; t++)
        total[s][t] = __builtin_amdgcn_mfma_f32_32x32x16_f16(left[s], right[t], total[s][t], 0, 0, 0);
  }
  for (int s = 0; s < SIDE; s++)
    for (int t = 0; t < SIDE; t++)
      for (int e = 0; e < 16; e++) c[((s * SIDE + t) * 16 + e) * 64 + item] = total[s][t][e];
}"""
BOUNDED = ", amdgpu_flat_work_group_size(256, 256)"
TRACKERS = ("-mllvm", "-amdgpu-use-amdgpu-trackers")


def built(folder: Path, sizes: str, side: int, *flags: str) -> LintReport:
    file = folder / "product.hip"
    file.write_text(PRODUCT, encoding="utf-8")
    made = compile_hip(file, "gfx950", flags=HipFlags(define=(f"SIZES={sizes}", f"SIDE={side}"), clang=flags))
    return lint_kernel(read_object(made.hsaco), None, LintOptions(device=device_named("mi355x")))


def worse(compared: BuildComparison) -> dict[str, tuple[str, str]]:
    facts = (dict(each.evidence) for each in compared.findings if each.severity is Severity.WARNING)
    return {str(each["what"]): (str(each["before"]), str(each["now"])) for each in facts}


def test_a_kernel_without_launch_bounds_spills(tmp_path: Path) -> None:
    """llvm/llvm-project issue 52907 and ROCm/aomp issue 281: without a workgroup's size, too few registers are used."""
    bounded, unbounded = built(tmp_path, BOUNDED, 3), built(tmp_path, "", 3)
    compared = compare_reports(bounded, unbounded)
    found = worse(compared)
    assert compared.is_worse
    assert found["spilled VGPRs by the notes"][0] == "0" < found["spilled VGPRs by the notes"][1]
    assert {"accesses of private memory, of all waves,", "private bytes a lane"} <= found.keys()
    assert any("predicted clocks" in what for what in found)
    assert "I602" in {each.code for each in unbounded.findings}
    assert "I602" not in {each.code for each in bounded.findings}
    other_way = compare_reports(unbounded, bounded)
    assert not other_way.is_worse
    assert [each.code for each in other_way.findings] == ["I609", "I609"]  # notes: registers, and fewer waves


def test_fewer_workgroups_are_worse_unless_the_loop_is_faster(tmp_path: Path) -> None:
    known = built(tmp_path, BOUNDED, 2)
    assert known.clocks is not None
    assert known.occupancy is not None
    fewer = replace(known, occupancy=replace(known.occupancy, by_registers=known.occupancy.workgroups - 1))
    assert worse(compare_reports(known, fewer)).keys() == {"workgroups on a compute unit, at most"}
    faster = replace(fewer, clocks=replace(known.clocks, clocks=0.9 * known.clocks.clocks))
    assert not compare_reports(known, faster).is_worse


def test_a_kernel_that_eight_waves_are_asked_of_spills_without_trackers(tmp_path: Path) -> None:
    """triton-lang/triton pull 11663: by the flag, kernels that ask for several waves spill less."""
    asked = f"{BOUNDED}, amdgpu_waves_per_eu(8)"
    with_flag, without = built(tmp_path, asked, 2, *TRACKERS), built(tmp_path, asked, 2)
    found = worse(compare_reports(with_flag, without))
    before, now = map(int, found["spilled VGPRs by the notes"])
    assert 0 < before < now
    assert "accesses of private memory" in found
    assert not worse(compare_reports(without, with_flag))


def test_what_is_not_known_of_one_build_is_named(tmp_path: Path) -> None:
    known = built(tmp_path, BOUNDED, 2)
    unnoted = replace(known, facts=replace(known.facts, vgpr_spills=None), clocks=None, not_lifted="it has no loop")
    compared = compare_reports(known, replace(unnoted, occupancy=None))
    assert not compared.is_worse
    assert len(compared.not_compared) == 3
    assert any("it has no loop" in each for each in compared.not_compared)
    assert compare_reports(known, known).not_compared == ()


@pytest.mark.parametrize(("change", "is_worse"), [(1.005, False), (1.02, True), (0.5, False)])
def test_a_loop_that_is_predicted_to_be_slower(change: float, is_worse: bool, tmp_path: Path) -> None:
    known = built(tmp_path, BOUNDED, 2)
    assert known.clocks is not None
    other = replace(known, clocks=replace(known.clocks, clocks=known.clocks.clocks * change))
    assert compare_reports(known, other).is_worse is is_worse


def test_clocks_of_loops_that_do_different_work_are_compared_for_the_same_work(tmp_path: Path) -> None:
    known = built(tmp_path, BOUNDED, 2)
    clocks = known.clocks
    assert clocks is not None
    twice = replace(clocks, clocks=2 * clocks.clocks, flops=2 * clocks.flops)
    assert not compare_reports(known, replace(known, clocks=twice)).is_worse
    copies = replace(known, clocks=replace(clocks, flops=0.0))
    assert compare_reports(copies, copies).not_compared == ()  # by bytes
    nothing = replace(known, clocks=replace(clocks, flops=0.0, moved=0.0))
    assert len(compare_reports(known, nothing).not_compared) == 1


def test_loops_that_are_more_than_before_are_compared_together(tmp_path: Path) -> None:
    bounded, unbounded = built(tmp_path, BOUNDED, 3), built(tmp_path, "", 3)
    doubled = replace(unbounded, loops=(*unbounded.loops, *unbounded.loops))
    findings = compare_reports(bounded, doubled).findings
    assert "in all loops" in {dict(each.evidence)["where"] for each in findings}
