from __future__ import annotations

from rota.isa.binary.toolchain import find_toolchain
from rota.prove.footprint.accesses import accesses_of
from rota.prove.footprint.apart import find_overlaps, report_overlap
from rota.prove.footprint.bounds import parse_contract
from tests.wording.golden import mentions, worded

SOURCE = """extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64)))
void shift_left({to}, float* x, unsigned n) {{
  unsigned i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i + 1 < n) {name}[i] = x[i + 1];
}}"""
RANGES = ["n=1..1048576", "group_x=0..65535"]


def test_a_shift_in_place() -> None:
    kernel = accesses_of(find_toolchain().compile(SOURCE.format(to="float* y", name="x"), "gfx950"))
    (overlap,) = find_overlaps(kernel, parse_contract(kernel, [], RANGES))
    finding = worded(report_overlap(overlap))
    assert finding.code == "I503"
    assert mentions(finding.message, "x", "workgroups")
    assert [each.label.split()[0] for each in finding.concerns] == ["global_load_dword", "global_store_dword"]


def test_a_shift_to_another_array() -> None:
    kernel = accesses_of(find_toolchain().compile(SOURCE.format(to="float* y", name="y"), "gfx950"))
    assert find_overlaps(kernel, parse_contract(kernel, [], RANGES)) == ()
