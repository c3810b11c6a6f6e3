"""`rota check` of machine code: formats, baselines, policies and exit statuses, on kernels that are small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rota.fleet.kernel_job import ProofOptions
from rota.prove.verdict import Budget
from tests.cli.command import data, rota
from tests.shared import shared
from tests.wording.golden import worded

RACES = "kernels/compiled/races"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A right kernel and a wrong one."""
    for name in ("raw_sync_ok", "raw_nosync"):
        (tmp_path / f"{name}.hsaco").write_bytes(shared(f"{RACES}/{name}.gfx950.hsaco").read_bytes())
    return tmp_path


def test_a_proved_kernel_ends_in_status_0(folder: Path) -> None:
    result = rota(f"check {folder}/raw_sync_ok.hsaco")
    assert result.exit_code == 0
    assert ": proved; " in result.stdout
    worded(result.stdout)


def test_a_folder_ends_in_a_table_and_status_1(folder: Path) -> None:
    result = rota(f"check {folder}")
    assert result.exit_code == 1
    worded(str(result.stdout.splitlines()[-1]))
    told = data(f"check {folder}", status=1)
    assert (told["ok"], told["proved"], len(told["kernels"])) == (False, False, 2)
    assert [each["code"] for each in told["new"]] == ["I109"]


def test_a_pattern_names_files(folder: Path) -> None:
    assert rota(f"check {folder}/*_ok.hsaco").exit_code == 0


def test_sarif_is_a_log_of_every_finding(folder: Path) -> None:
    result = rota(f"check {folder} --format sarif")
    assert result.exit_code == 1
    (run,) = json.loads(result.stdout)["runs"]
    (found,) = run["results"]
    assert found["ruleId"] == "I109"
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("raw_nosync.hsaco")


def test_annotations_name_the_kernel_where_there_is_no_line(folder: Path) -> None:
    lines = rota(f"check {folder} --format github").stdout.splitlines()
    (told,) = [line for line in lines if line.startswith("::")]
    assert "title=rota I109" in told
    assert "raw_nosync.hsaco%3A" in told


def test_a_baseline_lets_known_findings_pass_and_no_others(folder: Path) -> None:
    known = folder / "known.json"
    assert rota(f"check {folder}/raw_nosync.hsaco --write-baseline {known}").exit_code == 0
    again = rota(f"check {folder} --baseline {known}")
    assert again.exit_code == 0
    worded(again.stdout)
    assert json.loads(rota(f"check {folder} --baseline {known} --format sarif").stdout)["runs"][0]["results"] == []
    (folder / "waw.hsaco").write_bytes(shared(f"{RACES}/waw.gfx950.hsaco").read_bytes())
    later = rota(f"check {folder} --baseline {known}")
    assert later.exit_code == 1
    worded(later.stdout)


def test_a_damaged_baseline_is_a_usage_error(folder: Path) -> None:
    (folder / "known.json").write_text("[]")
    assert rota(f"check {folder} --baseline {folder}/known.json").exit_code == 2


def test_a_policy_can_be_more_lenient(folder: Path) -> None:
    (folder / "war.hsaco").write_bytes(shared(f"{RACES}/same_value_war.gfx950.hsaco").read_bytes())
    assert rota(f"check {folder}/war.hsaco --fail-on one-source").exit_code == 1
    result = rota(f"check {folder}/war.hsaco --lds-reads lenient --vmcnt any-order --fail-on one-source")
    assert result.exit_code == 0
    worded(result.stdout)
    assert "vmcnt(0)" in result.stdout


def test_the_level_of_a_finding_decides_the_status(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "war.hsaco").write_bytes(shared(f"{RACES}/same_value_war.gfx950.hsaco").read_bytes())
    least = {"raw_nosync": "shown", "war": "one-source", "raw_sync_ok": None}
    levels = ["shown", "required", "one-source", "undecided"]
    for name, fails in least.items():
        for level in levels:
            wanted = fails is not None and levels.index(fails) <= levels.index(level)
            assert rota(f"check {folder}/{name}.hsaco --fail-on {level}").exit_code == int(wanted), (name, level)
    monkeypatch.setattr(ProofOptions, "budget", lambda _: Budget(states=0))
    told = data(f"check {folder}/raw_sync_ok.hsaco")
    assert (told["ok"], told["proved"]) == (True, False)
    assert rota(f"check {folder}/raw_sync_ok.hsaco --fail-on undecided").exit_code == 1


def test_what_is_less_sure_is_counted_and_printed_on_request(folder: Path) -> None:
    (folder / "war.hsaco").write_bytes(shared(f"{RACES}/same_value_war.gfx950.hsaco").read_bytes())
    told = rota(f"check {folder}/war.hsaco").stdout
    assert "warning[I109]" not in told
    worded(told.splitlines()[-1])
    assert "warning[I109]" in rota(f"check {folder}/war.hsaco --all").stdout
    (kernel,) = data(f"check {folder}/war.hsaco")["kernels"]
    assert [dict(each["evidence"])["level"] for each in kernel["verdict"]["findings"]] == ["one source"]


def test_a_file_that_is_no_code_object_fails_whatever_is_known(folder: Path) -> None:
    (folder / "bad.co").write_bytes(b"no code object")
    known = folder / "known.json"
    assert rota(f"check {folder} --write-baseline {known}").exit_code == 1
    result = rota(f"check {folder} --baseline {known}")
    assert result.exit_code == 1
    worded(str(result.stdout.splitlines()[-2]))


def test_options_of_machine_code_are_not_for_schedules() -> None:
    assert rota("check ping_pong --lds-reads lenient").exit_code == 2


RIGHT = 'extern "C" __attribute__((global)) void k(int* x) { x[0] = 1; }'


def test_a_folder_has_sources_too(folder: Path) -> None:
    (folder / "raw_nosync.hsaco").unlink()
    (folder / "k.hip").write_text(RIGHT, encoding="utf-8")
    assert len(data(f"check {folder} --device mi355x")["kernels"]) == 2
    told = data(f"check {folder}", status=1)  # for which device, nobody said: it wasn't judged
    assert [Path(each["file"]).name for each in told["unread"]] == ["k.hip"]


def test_source_that_does_not_compile_is_not_passed_over(folder: Path) -> None:
    (folder / "raw_nosync.hsaco").unlink()
    (folder / "k.hip").write_text("this is no HIP", encoding="utf-8")
    (folder / "l.hip").write_bytes(b"\xff\xfe")
    told = data(f"check {folder} --device mi355x", status=1)
    assert [Path(each["file"]).name for each in told["unread"]] == ["k.hip", "l.hip"]
    assert len(told["kernels"]) == 1


def test_a_pattern_without_an_ending_is_of_machine_code(folder: Path) -> None:
    (folder / "notes.json").write_text("{}", encoding="utf-8")
    below = folder / "below"
    below.mkdir()
    (folder / "raw_nosync.hsaco").rename(below / "raw_nosync.hsaco")
    told = data(f"check '{folder}/*'", status=1)
    assert sorted(Path(each["file"]).name for each in told["kernels"]) == ["raw_nosync.hsaco", "raw_sync_ok.hsaco"]
    nothing = rota(f"check '{folder}/*.json'")
    assert nothing.exit_code == 2
    worded(nothing.output)
