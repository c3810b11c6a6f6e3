"""Files that hold code, or source that is made into it."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from rota.cli.code_file import find_code, read_code
from tests.wording.golden import mentions, worded

KERNEL = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
.text
.globl k
.type k,@function
k:
  s_endpgm
.size k, .-k
.rodata
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 8
  .amdhsa_accum_offset 8
.end_amdhsa_kernel
"""


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [("nowhere.s", None, ("nowhere.s",)), ("k.hip", "int x;", ("--device",)), ("k.s", "s_endpgm", ("--device",))],
)
def test_source_that_is_not_there_or_for_no_device(
    name: str, text: str | None, names: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / name
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(click.UsageError) as caught:
        read_code(file)
    worded(str(caught.value))
    assert mentions(caught.value, *names)


@pytest.mark.parametrize("device", [None, "mi355x"])
def test_assembly_says_its_device_or_is_told(device: str | None, tmp_path: Path) -> None:
    (tmp_path / "k.s").write_text(KERNEL, encoding="utf-8")
    code, name = find_code(str(tmp_path / "k.s"), device=device)
    assert (code.arch, name) == ("gfx950", None)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError) as caught:
        find_code(str(tmp_path))
    worded(str(caught.value))
