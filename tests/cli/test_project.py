"""What a project says once: settings by file and kernel, over which the command line wins."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from rota.cli.code_file import NO_PROJECT, find_project
from tests.cli.command import data, rota
from tests.shared import shared
from tests.wording.golden import mentions, worded

SAID = """
device = "mi355x"
block = 64
baseline = "known.json"

[[kernels]]
name = "gemm_*"
block = "16x16"

[[kernels]]
file = "attention/*.hip"
block = [8, 8, 4]
fail-on = "shown"
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [("rota.toml", SAID), ("pyproject.toml", "[tool.rota]" + SAID.replace("[[kernels]]", "[[tool.rota.kernels]]"))],
)
def test_settings_are_found_above_the_folder(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    project = find_project(below)
    assert project.settings["baseline"] == tmp_path / "known.json"
    assert project.settings_for(str(tmp_path / "k.hip"), "other")["block"] == 64
    assert project.settings_for(str(tmp_path / "k.hip"), "gemm_8")["block"] == (16, 16, 1)
    own = project.settings_for(str(tmp_path / "attention" / "f.hip"), "fwd")
    assert (own["block"], own["fail-on"], own["device"]) == ((8, 8, 4), "shown", "mi355x")


def test_no_file_no_settings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert find_project(tmp_path) == NO_PROJECT


@pytest.mark.parametrize(
    "text",
    [
        'devise = "mi355x"',
        "device = 3",
        'fail-on = "maybe"',
        'block = "16x"',
        "block = [2048, 2048]",
        "kernels = [3]",
        '[[kernels]]\nbaseline = "x"',
        "jobs = true",
        'assume = ["lds-in-bond"]',
        "assume = [[]]",
        "flags = [3]",
        "device =",
    ],
)
def test_a_mistake_is_a_usage_error_that_names_the_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "rota.toml").write_text(text)
    with pytest.raises(click.UsageError) as caught:
        find_project(tmp_path)
    worded(str(caught.value.message).replace(str(tmp_path), ""))
    assert mentions(caught.value, "rota.toml")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.hsaco").write_bytes(shared("kernels/compiled/races/raw_nosync.gfx950.hsaco").read_bytes())
    return tmp_path


def blocks(command: str, status: int) -> list[str]:
    (kernel,) = data(command, status=status)["kernels"]
    return [each for each in kernel["verdict"]["assumptions"] if "work items" in each]


def test_the_block_of_the_project_is_used_and_the_command_line_wins(project: Path) -> None:
    (project / "rota.toml").write_text("[[kernels]]\nblock = 64\n")
    (said,) = blocks("check k.hsaco", 0)  # one wave doesn't race
    assert "64 x 1 x 1" in said
    (typed,) = blocks("check k.hsaco --block 256", 1)
    assert "256 x 1 x 1" in typed


@pytest.mark.parametrize(("level", "status"), [("shown", 1), ("undecided", 1)])
def test_a_level_of_the_project_decides_the_status(project: Path, level: str, status: int) -> None:
    (project / "rota.toml").write_text(f'block = 256\n[[kernels]]\nname = "k*"\nfail-on = "{level}"\n')
    assert rota("check k.hsaco").exit_code == status


def test_a_baseline_of_the_project_is_used(project: Path) -> None:
    assert rota("check k.hsaco --block 256 --write-baseline known.json").exit_code == 0
    (project / "rota.toml").write_text('block = 256\nbaseline = "known.json"\n')
    assert rota("check k.hsaco").exit_code == 0


def test_a_file_that_cant_be_read_or_compiled_fails_the_run(project: Path) -> None:
    (project / "rota.toml").write_text("block = 64\n")
    (project / "broken.hip").write_text("int broken(")
    (project / "junk.co").write_text("junk")
    told = data("check .", status=1)
    assert sorted(each["file"] for each in told["unread"]) == ["broken.hip", "junk.co"]
    assert [each["file"] for each in told["kernels"]] == ["k.hsaco"]
    assert told["new"]


def test_a_source_without_a_kernel_is_a_row_and_fails_only_a_run_that_judges_nothing(project: Path) -> None:
    (project / "rota.toml").write_text('block = 256\nfail-on = "shown"\n')
    right = shared("kernels/compiled/races/raw_sync_ok.gfx950.hsaco").read_bytes()
    (project / "k.hsaco").write_bytes(right)
    (project / "host.hip").write_text("int host() { return 1; }\n")
    told = data("check . --device mi355x --fail-on undecided", status=0)
    assert [(each["file"], each["findings"][0]["code"]) for each in told["unread"]] == [("host.hip", "T104")]
    assert (told["proved"], told["new"]) == (True, [])
    alone = data("check host.hip --device mi355x", status=1)
    assert (alone["ok"], alone["proved"], alone["kernels"]) == (False, False, [])


def test_what_changed_since_a_run_of_a_store(project: Path) -> None:
    right = shared("kernels/compiled/races/raw_sync_ok.gfx950.hsaco").read_bytes()
    wrong = (project / "k.hsaco").read_bytes()
    (project / "k.hsaco").write_bytes(right)
    (project / "other.hsaco").write_bytes(right)
    assert rota("check . --store kept --block 256").exit_code == 0
    (project / "k.hsaco").write_bytes(wrong)
    told = data("check . --store now --since kept --block 256", status=1)
    assert [(each["subject"], each["before"], each["after"]) for each in told["changes"]] == [
        ("k.hsaco:k", "proved", "refuted")
    ]
    assert [each["code"] for each in told["changes"][0]["came"]] == ["I109"]
    assert rota("check . --store now --since now --block 256").exit_code == 0  # nothing came
    assert rota("check . --since nowhere").exit_code == 1
