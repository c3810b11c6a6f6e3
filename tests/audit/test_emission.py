"""Rows of `python -m benchmarks.emission` that stand for the rest: every compiler's machine code is the schedule."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.isa.binary.toolchain import find_toolchains
from tests.campaigns.pages.emission import HEAD, main
from tests.docs.blocks import ROOT
from tests.emit.kernels import ZOO

pytestmark = pytest.mark.no_cover  # many cases: what they run is covered where it is tested by itself

PAGE = ROOT / "docs" / "emission.md"
CONFLICTS = {
    "gfx950, 16x16, bf16, fp16 and fp8": ("ping-pong", "four-wave", "gemm_bf16_256", "gemm_fp8"),
    "gfx942, 16x16, bf16 and fp16": ("gemm_bf16_128x128x64_4wave_mi300x",),
}
"""Rows of the page's table about banks, with the kernels that they are about."""
SHOWN = ("ping-pong", "four-wave")
"""Whose rows of the page are compared; the page says that those of loops by values are older."""
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
    status = main(["--only", name, *(("--page", str(PAGE)) if name in SHOWN else ())])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    _, _, *lines = printed.out.splitlines()
    rows = [dict(zip(HEAD, (cell.strip() for cell in line.strip("|").split("|")), strict=True)) for line in lines]
    assert [row["compiler"] for row in rows] == [toolchain.name for toolchain in find_toolchains()]
    for row in rows:
        registers, _, _, limit = row["registers (AGPRs) of at most"].split()
        equal, stronger, weaker, added, _ = (
            row["waits equal / stronger / weaker / added (fused)"].replace("/", "").split()
        )
        assert int(registers) <= int(limit)
        assert (int(equal) > 0, stronger, weaker, added) == (True, "0", "0", "0")
        assert (row["order and operands"], row["spills"], row["proved on the machine code"]) == ("exact", "0", "yes")
        (kind,) = (kind for kind, names in CONFLICTS.items() if name.startswith(names))
        plain = row["bank conflicts (plain)"].removeprefix("0 (").removesuffix(")")
        assert f"| {kind} | 0 | {plain} |\n" in PAGE.read_text("utf-8")


def test_a_page_that_shows_something_else_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text("utf-8").replace("| ping-pong | gfx950 | 138 |", "| ping-pong | gfx950 | 139 |"))
    assert main(["--only", "ping-pong", "--compiler", "ziglang", "--page", str(page)]) == 1
    assert f"{page} should show\n| ping-pong | gfx950 | 138 | " in capsys.readouterr().err


def test_both_compilers_are_there() -> None:
    """Of clang and the wheel neither stands in for the other: the rows above must be about both."""
    assert {"ziglang"} < {toolchain.name for toolchain in find_toolchains()}
