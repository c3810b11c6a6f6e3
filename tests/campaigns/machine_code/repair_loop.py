"""The loop of docs/howto/repair_a_kernel.md, on drawn kernels from which one wait or barrier was removed.

Each mutant is a right row kernel in assembly without one of its waits or barriers, which rota doesn't prove any more.
The page's own script, in a process, reads only `--json` and edits the file. What it calls proved is judged once more,
and executed in several orders of the waves. Where it stops, the file must be one that isn't proved.

    python -m benchmarks.repair_loop [--count 20] [--seed 0]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter

from rota.isa.binary.toolchain import find_toolchain
from rota.prove.kernel_proof import prove_object
from tests.campaigns.machine_code.row_kernels import ARCH, PRELUDE, RowKernel, draw, launch

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "repair_a_kernel.md"
_SYNC = re.compile(r"^\ts_(?:barrier|waitcnt (?:lgkmcnt|vmcnt)\(\d+\))\s*$")
_MOST_WAVES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """What became of a mutant: what was removed, what the script says, and whether others agree."""

    kernel: RowKernel
    removed: str
    said: str
    proved: bool
    executed: tuple[str, ...]

    @property
    def repaired(self) -> bool:
        return self.said.startswith("proved") and self.proved and not self.executed

    @property
    def honest(self) -> bool:
        return self.repaired or (self.said.startswith("stopped") and not self.proved)


def script() -> str:
    """The script as the page has it."""
    (text,) = re.findall(r"```python\n(# repair\.py\n.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return str(text)


def draw_mutants(random: Random) -> Iterator[tuple[RowKernel, str, str]]:
    """Kernels that aren't proved any more, with their assembly and what was removed from it."""
    toolchain, number = find_toolchain(), 0
    while True:
        kernel = draw(random, number, waves=random.choice((2, 3, _MOST_WAVES)))
        number += 1
        assembly = toolchain.compile(PRELUDE + kernel.source(wrong=False), ARCH).assembly
        lines = assembly.splitlines()
        places = [at for at, line in enumerate(lines) if _SYNC.match(line)]
        if not places:
            continue
        at = random.choice(places)
        mutant = "\n".join((*lines[:at], *lines[at + 1 :])) + "\n"
        if not _is_proved(mutant, kernel):
            yield kernel, mutant, lines[at].strip()


def _is_proved(assembly: str, kernel: RowKernel) -> bool:
    (verdict,) = prove_object(find_toolchain().assemble(assembly, ARCH), block=kernel.block)
    return verdict.proved


def repair(kernel: RowKernel, mutant: str, removed: str, folder: Path) -> Repaired:
    (folder / "repair.py").write_text(script())
    file = folder / "kernel.s"
    file.write_text(mutant)
    command = (sys.executable, "repair.py", file.name, "--block", str(kernel.block))
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assembly = file.read_text()
    return Repaired(
        kernel=kernel,
        removed=removed,
        said=(said.stdout or said.stderr).strip().splitlines()[-1],
        proved=_is_proved(assembly, kernel),
        executed=launch(find_toolchain().assemble(assembly, ARCH), kernel, wrong=False),
    )


def run(count: int, seed: int) -> Iterator[Repaired]:
    mutants = draw_mutants(Random(seed))
    for _ in range(count):
        with TemporaryDirectory(prefix="rota-") as folder:
            yield repair(*next(mutants), Path(folder))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    begun, outcomes = perf_counter(), []
    for each in run(given.count, given.seed):
        outcomes.append(each)
        findings = " ".join(each.executed)
        print(f"{each.kernel.family:10} {each.kernel.waves} waves, without {each.removed}: {each.said} {findings}")
    repaired, honest = sum(each.repaired for each in outcomes), sum(each.honest for each in outcomes)
    print(
        f"{repaired} of {len(outcomes)} mutants repaired, {honest - repaired} stopped honestly, "
        f"{len(outcomes) - honest} wrong; {perf_counter() - begun:.0f} s"
    )
    return 0 if honest == len(outcomes) else 1
