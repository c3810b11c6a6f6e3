"""Rows of `python -m benchmarks.emission` that stand for the rest: every compiler's machine code is the schedule."""

from __future__ import annotations

import pytest

from benchmarks.emission import HEAD, main
from rota.isa.binary.toolchain import found_toolchains
from tests.emit.kernels import ZOO

ROWS = (
    "ping-pong",
    "four-wave",
    "gemm_bf16_256x256x64_8wave, by instruction",
    "gemm_bf16_256x256x64_4wave, by instruction",
    "gemm_fp8_256x256x128_8wave, by tile",
    "gemm_bf16_128x128x64_4wave_mi300x, by tile",
)


@pytest.mark.parametrize("name", ROWS)
def test_machine_code_is_the_schedule(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert name in ZOO
    status = main(["--only", name])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    _, _, *lines = printed.out.splitlines()
    rows = [dict(zip(HEAD, (cell.strip() for cell in line.strip("|").split("|")), strict=True)) for line in lines]
    assert [row["compiler"] for row in rows] == [toolchain.name for toolchain in found_toolchains()]
    for row in rows:
        registers, _, _, limit = row["registers (AGPRs) of at most"].split()
        equal, stronger, weaker, added, _ = (
            row["waits equal / stronger / weaker / added (fused)"].replace("/", "").split()
        )
        assert int(registers) <= int(limit)
        assert (int(equal) > 0, stronger, weaker, added) == (True, "0", "0", "0")
        assert (row["order and operands"], row["spills"], row["proved on the machine code"]) == ("exact", "0", "yes")
        assert row["bank conflicts (plain)"].startswith("0 (")


def test_both_compilers_are_there() -> None:
    """Of clang and the wheel neither stands in for the other: the rows above must be about both."""
    assert {"ziglang"} < {toolchain.name for toolchain in found_toolchains()}
