from __future__ import annotations

from rota.isa.binary.toolchain import find_toolchain
from rota.prove.footprint.accesses import accesses_of
from rota.prove.footprint.bounds import judge_bounds, parse_contract, report_bounds
from tests.wording.golden import mentions, worded

SOURCE = """extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64)))
void k(float* x, unsigned n) {{
  unsigned i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i {below} n) x[i] = 0;
}}"""


def test_a_guard_that_is_off_by_one() -> None:
    kernel = accesses_of(find_toolchain().compile(SOURCE.format(below="<="), "gfx950"))
    (finding,) = report_bounds(judge_bounds(kernel, parse_contract(kernel, ["x=4*n"], ["n=1..65536"])))
    worded(finding)
    assert finding.code == "I502"
    assert mentions(finding.message, "write", "x", "end")
    assert dict(finding.evidence)["bytes"] == 4


def test_a_right_guard() -> None:
    kernel = accesses_of(find_toolchain().compile(SOURCE.format(below="<"), "gfx950"))
    assert report_bounds(judge_bounds(kernel, parse_contract(kernel, ["x=4*n"], ["n=1..65536"]))) == ()
