from __future__ import annotations

from rota.isa.binary.toolchain import find_toolchain
from rota.prove.footprint.accesses import accesses_of
from rota.prove.footprint.overflow import find_overflows, report_overflow
from tests.wording.golden import mentions, worded

SOURCE = """extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64)))
void k(float* rows, const unsigned* table, {type} stride) {{
  {type} page = table[__builtin_amdgcn_workgroup_id_x()];
  rows[page * stride + __builtin_amdgcn_workitem_id_x()] = 0;
}}"""


def test_a_product_of_32_bits_becomes_an_address() -> None:
    kernel = accesses_of(find_toolchain().compile(SOURCE.format(type="unsigned"), "gfx950"))
    (overflow,) = (each for each in find_overflows(kernel) if each.required)
    finding = worded(report_overflow(kernel, overflow))
    assert finding.code == "I501"
    assert mentions(finding.message, "rows", "32")
    assert dict(finding.evidence)["too large from"] == "stride*table[...] = 4,294,967,296"


def test_a_product_of_64_bits_does_not() -> None:
    kernel = accesses_of(find_toolchain().compile(SOURCE.format(type="unsigned long"), "gfx950"))
    assert [each for each in find_overflows(kernel) if each.required] == []
