"""The command that runs all campaigns: commands exist, a failure doesn't stop the others, one table says all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.campaigns import all_campaigns as campaigns
from tests.campaigns.all_campaigns import CAMPAIGNS, Campaign, count, main
from tests.campaigns.command_source import source_of

ROOT = Path(__file__).parents[2]
SAID = {
    "oracle": (
        "| all               |     5000 |        2000 |        2996 |                3 |                 1 |",
        5000,
        3,
    ),
    "role_oracle": (
        (
            "| PROVED BUT WRONG | 2 | I | right 2 |\n| bare exception | 0 | - | - |\n| all | 100 | | |\n\n"
            "| no rule | V110 | 3 |\n\n| all | 60 |\nsearch differs: 7, 1"
        ),
        100,
        6,
    ),
    "mutants": ("| all | 500 | 400 | 90 | 6 | 3 | 1 |\n\n500 mutants of 31 programs in 9 s", 500, 4),
    "repairs": (
        "2,100 programs drawn; 2,000 repairs compared with brute force, 3 too large for it; 1 wrong; 9 s",
        2000,
        1,
    ),
    "malformed": (
        (
            "500 damaged code objects from 9 files: 3 T103; slowest 1 s, most memory 9 MiB, 0 defects, 3 ms a case\n"
            "1,000 damaged code objects from 9 files: 6 T103; slowest 1 s, most memory 9 MiB, 2 defects, 3 ms a case\n"
            "990 header, 10 code\n\n"
            "40 kernels with changed instructions, executed from 9 files: 6 right; slowest 1 s, most memory 9 MiB, "
            "1 defects, 3 ms a case\n40 code\n"
        ),
        1040,
        3,
    ),
    "race_mutants": (
        "421 mutants of 22 kernels, 1 missed, unexplained or doubtful; 2 alarms on unmodified kernels under 6 orders",
        421,
        3,
    ),
    "row_kernels": ("400 row kernels, 1 wrong verdicts, 7 open, 2 not confirmed by the interpreter; 900 s", 400, 3),
    "hazards": (
        (
            "HIP: 90 s_nop, 80 noticed, 9 left out, 1 missed; 2 alarms on unmodified kernels\n"
            "gfx942: 100 pairs given to llc, 50 with wait states, 4 differ"
        ),
        190,
        7,
    ),
    "fuzz_json": (
        (
            f"{'by values, a remainder':28}{6_250:8,}{6_000:9,}{200:8,}{40:10,}{10:6,}{1.5:9.1f}{0.25:7.2f} s{2:9,}\n"
            f"{'two stages':28}{6_250:8,}{6_000:9,}{200:8,}{40:10,}{10:6,}{1.5:9.1f}{0.25:7.2f} s{0:9,}"
        ),
        12_500,
        2,
    ),
    "origins": (
        (
            "| schedule | entries | removed or changed | refused without it | left as it was | names nothing |\n"
            "| drawn    |     300 |                290 |                  8 |              1 |             1 |\n"
            "drawn: kernel[3]: body: left as it was\ndrawn: kernel[4]: None: names nothing"
        ),
        300,
        2,
    ),
    "optimality": ("   480 optimal by search\n    20 refused: S101\n     3 beaten", 500, 3),
    "execution": ("| four_wave | gfx950 | 27 | 27, 27, 27, 27 | 0.12 |", 27, 0),
    "languages_sabotage": (
        "| language | fault | noticed by |\n| --- | --- | --- |\n| mojo | a wait | audit (I1) |\n| mojo | b | nobody |",
        2,
        1,
    ),
    "whole_gemm_sabotage": ("90 faults: {'audit': 80, 'missed': 2, 'wrongly found': 1}", 90, 3),
    "tune_kills": (
        "killed 20 workers and 5 drivers; 9 runs\nrows lost 1, too many 0, changed 0\nfinal table identical: False; x",
        25,
        2,
    ),
    "conformance": ("1 failed, 22 passed, 2 errors in 3 s", 22, 3),
}
"""Lines of a campaign's output, how many cases they speak of, and how many of them are wrong."""


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda each: each.name)
def test_a_campaign_is_a_command_with_such_options(campaign: Campaign) -> None:
    module, *rest = campaign.command.split()
    for option in re.findall(r"--[\w-]+", " ".join(rest)) if module != "pytest" else ():
        assert f'"{option}"' in source_of(ROOT, module)
    for path in (each for each in rest if each.startswith("tests/")):
        assert (ROOT / path).exists()


def test_names_are_not_repeated() -> None:
    assert len({each.name for each in CAMPAIGNS}) == len(CAMPAIGNS)


@pytest.mark.parametrize("name", SAID)
def test_its_output_says_how_many_and_how_many_wrong(name: str) -> None:
    (campaign,) = (each for each in CAMPAIGNS if each.name == name)
    output, cases, wrong = SAID[name]
    assert (count(campaign.cases, output), count(campaign.wrong, output)) == (cases, wrong)


def test_a_failure_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fine.py").write_text("import sys; print(sys.argv[1], 'cases')")
    (tmp_path / "fails.py").write_text("import sys; print('9 cases'); sys.exit(3)")
    (tmp_path / "wrong.py").write_text("print('5 cases, 2 wrong')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = {
        name: Campaign(name=name, command=command, cases=r"(\d+) cases", wrong=r"(\d+) wrong")
        for name, command in {"fails": "fails", "wrong": "wrong", "empty": "fine 0", "fine": "fine {seed}"}.items()
    }
    monkeypatch.setattr(campaigns, "CAMPAIGNS", tuple(made.values()))
    assert main(["--seed", "41", "--logs", str(tmp_path / "logs")]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("seed 41; ")
    rows = [[cell.strip() for cell in line.strip("|").split("|")][:4] for line in said[3:7]]
    assert rows == [
        ["fails", "`python -m fails`", "9", "exit status 3"],
        ["wrong", "`python -m wrong`", "5", "2"],
        ["empty", "`python -m fine 0`", "0", "0"],
        ["fine", "`python -m fine 41`", "41", "0"],
    ]
    assert said[-1] == "seed 41: failed: fails, wrong, empty"
    assert main(["--only", "fine", "--seed", "7", "--logs", str(tmp_path / "logs")]) == 0
    assert "all 1 passed" in capsys.readouterr().out


def test_without_a_seed_every_run_has_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(campaigns, "CAMPAIGNS", ())
    main([])
    first = capsys.readouterr().out
    main([])
    assert first.splitlines()[0] != capsys.readouterr().out.splitlines()[0]
