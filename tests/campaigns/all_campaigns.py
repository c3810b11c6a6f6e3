"""Every campaign at its full count: `.ci/campaigns [--seed N] [--only NAME] [--list] [--jobs N] [--logs FOLDER]`.

The gate runs a fixed share of each campaign, always the same one.  This command runs them whole, with a seed that is
drawn for this run and printed first, so that `--seed N` repeats it.  A campaign that fails doesn't stop the others.
The last thing printed is one table: campaign, command, cases, wrong ones, seconds.  What each campaign printed is kept
in `--logs FOLDER`.  The exit status is 1 if a campaign failed, found something wrong, or counted no case at all.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.campaigns.schedules.races import table

_SEEDS = 1_000_000_000
_ALL = r"^\| all +\| +(\d+) \|"
_KINDS = r"^all +(\d+) +(\d+) +(\d+) +(\d+)$"
_PASSED, _FAILED = r"(\d+) passed", r"(\d+) (?:failed|error)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A command at its full count, and how its output says how much was tried and how much was wrong.

    Each expression is searched for in the output, line by line.  Its groups are numbers, which are added; without
    groups, its matches are counted.  An empty one says nothing: the exit status alone tells.
    """

    name: str
    command: str  # after `python -m`; `{seed}` stands for this run's seed
    cases: str
    wrong: str
    setting: str = ""  # of the environment, NAME=VALUE

    def line(self, seed: object) -> str:
        """What to type for it."""
        return f"{self.setting} python -m {self.command}".strip().format(seed=seed)


def _benchmark(name: str, options: str, cases: str, wrong: str, *, title: str = "") -> Campaign:
    command = f"benchmarks.{name} {options}".strip()
    return Campaign(name=title or name, command=command, cases=cases, wrong=wrong)


def _tests(name: str, options: str, setting: str = "") -> Campaign:
    command = f"pytest -q -p no:cacheprovider {options}"
    return Campaign(name=name, command=command, cases=_PASSED, wrong=_FAILED, setting=setting)


CAMPAIGNS = (
    # Proofs of lowered programs, beside independent judges.
    _benchmark(
        "oracle", "--programs 20000 --rotating 300 --seed {seed}", _ALL, r"^\| all +\|(?: +\d+ \|){3} +(\d+) \|"
    ),
    _benchmark(
        "role_oracle",
        "--count 10000 --exhaustive 1000 --seed {seed}",
        _ALL + r" +\|",
        r"^\| (?:PROVED BUT WRONG|bare exception) +\| +(\d+)|^\| no rule +\|[^|]*\| +(\d+)|^search differs: ()",
    ),
    _benchmark("mutants", "", r"^(\d+) mutants of", r"^\| all +\|(?: +\d+ \|){4} +(\d+) \| +(\d+) \|"),
    _benchmark(
        "races",
        "--execute",
        r"clean after repair: (\d+) right|still wrong: (\d+) wrong",
        r"clean after repair: \d+ right, (\d+) wrong|still wrong: \d+ wrong, (\d+) right",
    ),
    _benchmark(
        "origins", "--drawn 200 --seed {seed}", r"^\| \w[^|]*\| +(\d+) \|", r": (?:left as it was|names nothing)$"
    ),
    _benchmark("repairs", "--programs 2000 --first {seed}", r"([\d,]+) repairs compared", r"([\d,]+) wrong"),
    _benchmark("optimality", "--count 500 --first {seed}", r"^ +(\d+) (?!beaten)", r"^ +(\d+) beaten"),
    _benchmark("fuzz_json", "50000 {seed}", r"^\w.{27} *([\d,]+)(?: +[\d,]+){4} +[\d.]+ +[\d.]+ s ", r" s +([\d,]+)$"),
    # Machine code: what is executed, what is proved, and wait states.
    _benchmark("instructions", "--count 12 --kernels 2000 --seed {seed}", r"alone: (\d+) cases", r"^Wrong: (\d+)"),
    _benchmark(
        "instructions",
        "--arch gfx1250 --count 12 --kernels 1000 --seed {seed}",
        r"alone: (\d+) cases",
        r"^Wrong: (\d+)",
        title="instructions_gfx1250",
    ),
    _benchmark("matrix", "--seed {seed}", r"opcodes, (\d+) cases", r"cases, (\d+) wrong"),
    _benchmark("agreement", "--count 12 --seed {seed}", r"(\d+) cases; different", r"; different: (\d+)"),
    _benchmark("corpus", "--orders 6", r"^(\d+) kernels, \d+ executed", r" NOT AS DUE"),
    _benchmark("decoding", "", r"([\d,]+) code objects", r"^  not read: "),
    _benchmark(
        "malformed",
        "--seed {seed}",
        r"^([\d,]+) .* files: .*\n(?!.* files: )",  # its figures so far: the last line of either half
        r" (\d+) defects, .*\n(?!.* files: )",
    ),
    _benchmark("race_mutants", "--seed {seed}", r"^(\d+) mutants of", r"kernels, (\d+) missed, .*; (\d+) alarms"),
    _benchmark("hazards", "--pairs", r"(\d+) s_nop,|(\d+) pairs given", r"(\d+) missed; (\d+) alarms|, (\d+) differ$"),
    _tests("hazard_twins", "tests/isa/test_hazard_twins.py"),
    _benchmark("value_oracle", "--examples 400 --seed {seed}", r"^(\d+) kernels, ", r"kernels, (\d+) differ"),
    _benchmark("proof_mutants", "--count 2000 --seed {seed}", r"^(\d+) mutants of", r"families, (\d+) missed"),
    _benchmark(
        "row_kernels",
        "--count 200 --seed {seed}",
        r"^(\d+) row kernels, ",
        r"(\d+) wrong verdicts, .* (\d+) not confirmed",
    ),
    _benchmark("proof_agreement", "--orders 6", r"^(\d+) kernels: ", r"DISAGREE"),
    _benchmark("footprint_oracle", "--examples 1500 --seed {seed}", r"^(\d+) kernels, ", r"kernels, (\d+) differ"),
    _benchmark("memory_mutants", "--seed {seed}", _KINDS, r"^MISSED: "),
    _benchmark("hand_over_mutants", "--seed {seed}", _KINDS, r"^MISSED: "),
    _benchmark(
        "improved_kernels", "--problems 3", r"^(\d+) of \d+ kernels handed", r"executions, (\d+) differ| (\d+) more$"
    ),
    _benchmark("wrong_orders", "--seed {seed}", r"^(\d+) drawn", r"drawn, (\d+) missed"),
    _benchmark("bank_oracle", "", r"^(\d+) instructions by a rule", r"kernels: (\d+) differ"),
    _benchmark("verdict_table", "--compiled --twice", r"^again, .*: ([\d,]+) files", r"files, (\d+) differ$"),
    _benchmark("same_verdicts", "--slower 10 --without-core", r"^(\d+) objects, judged", r"(\d+) verdicts differ"),
    # Emitted kernels.
    _benchmark(
        "prove_own", "", r"of (\d+) kernels proved", r" (?:refuted|alarm|undecided|rule broken|inconclusive) +[\d.]+ s "
    ),
    _benchmark("execution", "", r"^\| \w[^|]*\| gfx\d+ \| +(\d+) \|", ""),
    _benchmark("sabotage", "", r"^(\d+) wrong ones", r"(\d+) of them missed"),
    _benchmark("whole_gemm", "--count 400 --seed {seed}", r"'problems': (\d+)", r"'wrong': (\d+)"),
    _benchmark("whole_gemm_sabotage", "--grains both", r"^(\d+) faults: ", r"'(?:missed|wrongly found)': (\d+)"),
    _benchmark(
        "whole_attention",
        "--count 60 --seed {seed}",
        r"'problems': (\d+)",
        r"'(?:wrong|not the schedule|not proved)': (\d+)",
    ),
    _benchmark("whole_attention_sabotage", "", r"^(\d+) faults: ", r"'(?:missed|wrongly found)': (\d+)"),
    _benchmark("languages", "", r"^\| \w+ \| \w+ [\d.]+", r"\| differs \|"),
    _benchmark(
        "languages",
        "--sabotage",
        r"^\| (?!language )\w+ \| [^|]* \| [^|]* \|$",
        r"\| nobody \|",
        title="languages_sabotage",
    ),
    # The rest.
    _benchmark(
        "tune_kills",
        "--seed {seed}",
        r"killed (\d+) workers and (\d+) drivers",
        r"rows lost (\d+), too many (\d+), changed (\d+)|identical: False()",
    ),
    _tests("conformance", "tests/conformance"),
    _tests("triton_without_core", "tests/triton", setting="ROTA_NATIVE=0"),
    _tests("slow", "-m slow"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a campaign ended."""

    campaign: Campaign
    command: str
    status: int
    cases: int
    wrong: int
    seconds: float

    @property
    def failed(self) -> bool:
        """True if it says so, found something wrong, or tried nothing."""
        return bool(self.status or self.wrong or not self.cases)

    @property
    def row(self) -> tuple[object, ...]:
        """Its line of the table."""
        wrong = self.wrong if self.wrong or not self.status else f"exit status {self.status}"
        return self.campaign.name, f"`{self.command}`", f"{self.cases:,}", wrong, f"{self.seconds:,.0f}"


def count(pattern: str, output: str) -> int:
    """Numbers that the pattern's groups matched, added; an empty group, or a match without groups, counts as one."""
    total = 0
    for match in re.finditer(pattern, output, re.MULTILINE) if pattern else ():
        groups = [group for group in match.groups() if group is not None] or [""]
        total += sum(int(group.replace(",", "")) if group else 1 for group in groups)
    return total


def run(campaign: Campaign, seed: int, logs: Path) -> Result:
    """Run its command to its end, whatever that is, and keep what it prints."""
    command = [sys.executable, "-m", *shlex.split(campaign.command.format(seed=seed))]
    environment = os.environ | dict([campaign.setting.split("=", 1)] if campaign.setting else [])
    log = logs / f"{campaign.name}.txt"
    started = time.monotonic()
    with log.open("w") as file:
        done = subprocess.run(command, env=environment, stdout=file, stderr=file, check=False)
    output = log.read_text(errors="replace")
    result = Result(
        campaign=campaign,
        command=campaign.line(seed),
        status=done.returncode,
        cases=count(campaign.cases, output),
        wrong=count(campaign.wrong, output),
        seconds=time.monotonic() - started,
    )
    said = "FAILED" if result.failed else "passed"
    print(
        f"{campaign.name}: {said}, {result.cases:,} cases, {result.seconds:,.0f} s, {log}", file=sys.stderr, flush=True
    )
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all, or those that are asked for; 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog=".ci/campaigns", description=__doc__)
    parser.add_argument("--seed", type=int, help="repeat the run with this seed")
    parser.add_argument("--only", action="append", choices=[each.name for each in CAMPAIGNS], metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the campaigns, and run none")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time")
    parser.add_argument("--logs", type=Path, help="keep what they print here; without it, in a new temporary folder")
    options = parser.parse_args(arguments)
    chosen = [each for each in CAMPAIGNS if not options.only or each.name in options.only]
    if options.list:
        print(table([("campaign", "command"), *((each.name, f"`{each.line('N')}`") for each in chosen)]))
        return 0
    seed = secrets.randbelow(_SEEDS) if options.seed is None else options.seed
    logs = options.logs or Path(tempfile.mkdtemp(prefix="rota-campaigns-"))
    logs.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}; the same run again: .ci/campaigns --seed {seed}", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(partial(run, seed=seed, logs=logs), chosen))
    print(table([("campaign", "command", "cases", "wrong", "seconds"), *(each.row for each in results)]))
    failed = [each.campaign.name for each in results if each.failed]
    print(f"seed {seed}: " + (f"failed: {', '.join(failed)}" if failed else f"all {len(results)} passed"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
