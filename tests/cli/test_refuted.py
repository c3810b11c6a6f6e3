"""`rota check` of machine code that an execution shows to be wrong."""

from __future__ import annotations

from tests.cli.command import data, rota
from tests.shared import shared

RACES = "kernels/compiled/races"


def test_a_kernel_is_refuted_with_its_launch_and_order() -> None:
    result = rota(f"check {shared(f'{RACES}/raw_nosync.gfx950.hsaco')}")
    assert result.exit_code == 1
    assert ": refuted; " in result.output
    assert "error[I109]" in result.output
    assert "launch: workgroup (0, 0, 0) of (1, 1, 1); all else 0" in result.output
    assert "replayed: order 'latest'" in result.output


def test_verdicts_are_told_apart_in_the_data() -> None:
    for name, status in (("raw_nosync", "refuted"), ("same_value_war", "alarm"), ("raw_sync_ok", "proved")):
        (kernel,) = data(f"check {shared(f'{RACES}/{name}.gfx950.hsaco')}", int(status != "proved"))["kernels"]
        assert kernel["verdict"]["status"] == status
        assert kernel["verdict"]["dropped"] == 0
        severities = {finding["severity"] for finding in kernel["verdict"]["findings"]}
        assert severities == {"refuted": {"error"}, "alarm": {"warning"}, "proved": set()}[status]
