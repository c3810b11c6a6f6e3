"""What the oracles run is what the assembler knows: takes their lines, and asks clang for both machines."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from rota.errors import IsaError
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.disassembly import read_listing
from tests.isa import lds_oracle, memory_oracles, scalar_memory_oracle, vector_memory_oracle
from tests.isa.memory_oracles import CHECKS
from tests.isa.single import listing, loaded


class _RecordedError(Exception):
    pass


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """One line for each opcode, as its check would run it."""
    found = []

    def record(text: str, *_: object) -> None:
        found.append(text.split("\n", maxsplit=1)[0].strip())
        raise _RecordedError

    with pytest.MonkeyPatch.context() as patch:
        for module in (lds_oracle, memory_oracles, scalar_memory_oracle, vector_memory_oracle):
            patch.setattr(module, "execute", record)
        for check in CHECKS.values():
            with pytest.raises(_RecordedError):
                check(1)
    assert [line.split()[0] for line in found] == list(CHECKS)
    return found


def _assembled(lines: list[str], arch: str, folder: Path) -> tuple[set[int], Path]:
    """The numbers of the lines that the assembler refuses."""
    source, made = folder / f"{arch}.s", folder / f"{arch}.o"
    source.write_text("k:\n" + "\n".join(f"\t{line}" for line in (*lines, "s_endpgm")) + "\n")
    command = (*find_toolchain().compiler, "-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-c")
    done = subprocess.run(
        (*command, "-ferror-limit=0", str(source), "-o", str(made)), capture_output=True, text=True, check=False
    )
    return {int(number) - 2 for number in re.findall(r"\.s:(\d+):\d+: error", done.stderr)}, made


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_the_interpreter_knows_what_the_assembler_knows(lines: list[str], arch: str, tmp_path: Path) -> None:
    refused, _ = _assembled(lines, arch, tmp_path)
    unknown = set()
    for number, line in enumerate(lines):
        try:
            loaded(line, arch)
        except IsaError:
            unknown.add(number)
    assert {lines[number] for number in unknown} == {lines[number] for number in refused}
    assert bool(refused) == (arch == "gfx942")


def test_the_disassembler_writes_them_as_they_are_read(lines: list[str], tmp_path: Path) -> None:
    _, made = _assembled(lines, "gfx950", tmp_path)
    objdump = find_toolchain().objdump
    assert objdump is not None
    shown = subprocess.run((*objdump, "-d", str(made)), capture_output=True, text=True, check=True).stdout
    back = read_listing(shown.replace("<.text>", "<k>"), "k")
    assert [each.opcode for each in back] == [*CHECKS, "s_endpgm"]
    for mine, theirs in zip(read_listing(listing("\n".join(lines)), "k"), back, strict=True):
        assert mine.operands == theirs.operands, theirs.text
