"""`rota check` of machine code that an execution shows to be wrong, and of a rule that none can show."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.isa.binary.toolchain import find_toolchain
from tests.cli.command import data, rota
from tests.shared import shared
from tests.wording.golden import worded

RACES = "kernels/compiled/races"
EARLY = """extern "C" __attribute__((global)) void k() {
  asm volatile("v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]\\n s_nop 5\\n v_accvgpr_read_b32 v8, a0"
               ::: "v0", "v1", "v2", "v3", "v8", "a0", "a1", "a2", "a3");
}"""


def test_a_kernel_is_refuted_with_its_launch_and_order() -> None:
    result = rota(f"check {shared(f'{RACES}/raw_nosync.gfx950.hsaco')}")
    assert result.exit_code == 1
    assert ": refuted; " in result.output
    assert "error[I109]" in result.output
    worded(result.output)
    assert "latest" in result.output


def test_verdicts_are_told_apart_in_the_data() -> None:
    for name, status in (("raw_nosync", "refuted"), ("same_value_war", "one source"), ("raw_sync_ok", "proved")):
        (kernel,) = data(f"check {shared(f'{RACES}/{name}.gfx950.hsaco')}", int(status == "refuted"))["kernels"]
        assert kernel["verdict"]["status"] == status
        assert kernel["verdict"]["dropped"] == 0
        severities = {finding["severity"] for finding in kernel["verdict"]["findings"]}
        assert severities == {"refuted": {"error"}, "one source": {"warning"}, "proved": set()}[status]


@pytest.mark.usefixtures("_toolchain")
def test_a_missing_wait_state_is_a_rule_broken_and_says_whose(tmp_path: Path) -> None:
    """An execution would look the rule up in the same table: it refutes nothing, and the run fails all the same."""
    code = find_toolchain().compile(EARLY, "gfx942")
    (tmp_path / "early.hsaco").write_bytes(code.hsaco)
    result = rota(f"check {tmp_path}/early.hsaco")
    assert result.exit_code == 1
    worded(result.output)
    assert "refuted" not in result.output
    (kernel,) = data(f"check {tmp_path}/early.hsaco", 1)["kernels"]
    assert kernel["verdict"]["status"] == "rule broken"
    (finding,) = kernel["verdict"]["findings"]
    told = dict(finding["evidence"])
    assert (finding["code"], finding["severity"]) == ("I104", "warning")
    assert (told["rule"], told["source"]) == ("result", "AMD's manual")
    assert "table 37" in told["row"]
