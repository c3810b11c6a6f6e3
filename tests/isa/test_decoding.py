"""Code objects of others: all are read, and how much of their code is known; `benchmarks/decoding.py` has all of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from random import Random

import pytest

from rota.isa.binary.code_object import read_kernels
from rota.isa.binary.toolchain import find_objdump, read_code_object
from rota.isa.disassembly import check_descriptor
from tests.campaigns.machine_code.decoding import code_objects, found_in, main, tally
from tests.campaigns.machine_code.malformed import launched_from
from tests.isa.malformed import campaign
from tests.shared import shared

pytestmark = pytest.mark.no_cover  # hundreds of thousands of instructions through a few lines

LEAST = {"compiled": 99.9, "aiter": 99.0}  # percent
DRAWN = {"compiled": 8, "aiter": 3}
SMALL = 12_000  # bytes
DAMAGED = 80
EXECUTED = 12


@pytest.mark.parametrize(("folder", "count"), [("compiled", 106), ("aiter", 75)])
def test_every_code_object_is_read(folder: str, count: int) -> None:
    paths = code_objects(shared(f"kernels/{folder}"))
    assert len(paths) == count
    for path in paths:
        for facts in read_kernels(path.read_bytes()):
            assert facts.arch in path.name
            assert facts.entry is not None
            assert facts.unnoted == ()


@pytest.mark.parametrize("folder", LEAST)
def test_what_is_known_of_some(folder: str) -> None:
    paths = [path for path in code_objects(shared(f"kernels/{folder}")) if path.stat().st_size < 10 * SMALL]
    result = tally(sorted(Random(13).sample(paths, DRAWN[folder])))
    assert result.unread == []
    assert result.instructions > 1000
    assert result.share >= LEAST[folder], result.unknown.most_common(5)


def test_what_is_not_known_is_counted_by_name() -> None:
    result = tally([shared("kernels/aiter/gfx942__topk_per_row_decode__asm_top_k_per_row_decode.co")])
    assert result.unread == []
    assert result.instructions == sum(result.mnemonics.values())
    assert result.instructions - result.known == sum(result.unknown.values())


def test_a_git_directory_is_looked_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a folder is; what is drawn is the same every time."""
    whole = shared("kernels/compiled/t_vadd.gfx950.hsaco").read_bytes()
    for name in ("a.hsaco", "b.co", "c.txt"):
        (tmp_path / name).write_bytes(whole)
    (tmp_path / "elsewhere.co").write_bytes(whole[:48] + (0x4C).to_bytes(1, "little") + whole[49:])
    git = ("git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "m")):
        subprocess.run((*git, *command), check=True)
    assert [name for name, _ in found_in(tmp_path / ".git")] == ["a.hsaco", "b.co", "elsewhere.co"]
    assert main([str(tmp_path / ".git"), "--draw", "2", "--least", "99"]) == 0
    assert "2 code objects, 2 kernels, 2 known as a whole" in capsys.readouterr().out


def test_hand_written_descriptors_agree_with_notes_and_instructions() -> None:
    paths = [path for path in code_objects(shared("kernels/aiter")) if path.stat().st_size < SMALL]
    for path in Random(5).sample(paths, 4):
        code = read_code_object(path.read_bytes(), find_objdump())
        for facts in code.kernels:
            assert check_descriptor(facts, code.instructions(facts.name)) == [], path.name


def test_damaged_code_objects_end_in_a_finding_or_are_read() -> None:
    paths = [path for path in code_objects(shared("kernels")) if path.stat().st_size < SMALL]
    result = campaign(paths, range(DAMAGED))
    assert (result.cases, result.defects) == (DAMAGED, [])
    assert result.codes["T103"] > DAMAGED // 8
    assert result.codes.keys() <= {"T103", "I101", "I102", "I111", "I131", "I132", "read"}
    assert {part.rsplit(maxsplit=1)[-1] for part in result.parts} >= {
        "header",
        "notes",
        "symbols",
        "descriptors",
        "code",
    }


def test_kernels_with_changed_instructions_end() -> None:
    result = campaign(launched_from(shared("kernels/compiled")), range(EXECUTED), module="tests.isa.mutated_streams")
    assert (result.cases, result.defects) == (EXECUTED, [])
    assert result.codes["right"] < EXECUTED
    assert len(result.codes) > 3


@pytest.mark.parametrize(
    "fault", ["raise ValueError", "while True: pass", "b'' * 0 + bytes(2**33)", "os.kill(os.getpid(), 11)"]
)
def test_a_defect_of_the_reader_is_noticed(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that raises, hangs, takes too much memory or crashes."""
    lines = ("import os", "from tests.isa import malformed", "malformed._HANGS = 0.2", "def told(): ", f"    {fault}",
             "malformed.bounded(lambda *_: ('nothing', told))")  # fmt: skip
    (tmp_path / "broken_child.py").write_text("\n".join(lines))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    result = campaign([], range(1), module="broken_child")
    assert (result.cases, len(result.defects)) == (1, 1)
