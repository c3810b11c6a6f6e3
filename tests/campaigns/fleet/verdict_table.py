"""The public table of verdicts: takes a repository's history, writes pages of all its code objects, prints counts.

    python -m benchmarks.verdict_table [-o SITE] [--history DIR] [--commit C] [--compiled] [--own] [--every N] [--twice]

The objects of one commit of ROCm/aiter (`--history` names a git directory), those of ../shared/kernels/compiled, and
rota's own kernels are laid into one folder; `rota check` judges it with its defaults, and `rota report` writes the
pages, beside what is known of causes (`known.toml`). `--store` keeps verdicts, so that a run that was ended goes on.
With `--twice` the same is done again with an empty store, and the digests of both must be equal.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rota.fleet.verdict_pages import SUMS
from tests.campaigns.history import list_objects, read_version
from tests.campaigns.shared_folder import shared_folder
from tests.campaigns.whole.own_kernels import own_kernels

KNOWN = Path(__file__).with_name("known.toml")
COMMIT = "e4048607"
"""Of ROCm/aiter, whose objects the pages speak of."""


def lay_out(folder: Path, asked: argparse.Namespace) -> None:
    """Write the objects that are asked for, each source in a folder of its own."""
    if asked.history is not None:
        for name in list_objects(asked.history, "hsa", asked.commit)[:: asked.every]:
            _write(folder / "aiter" / Path(name).relative_to("hsa"), read_version(asked.history, asked.commit, name))
    if asked.compiled:
        compiled = shared_folder("kernels") / "compiled"
        for file in sorted(compiled.rglob("*.hsaco"))[:: asked.every]:
            _write(folder / "compiled" / file.relative_to(compiled), file.read_bytes())
    if asked.own:
        for name, contents in _own_kernels(asked.every):
            _write(folder / "own" / f"{name}.hsaco", contents)


def _own_kernels(every: int) -> Iterator[tuple[str, bytes]]:
    for number, (name, compiled) in enumerate(own_kernels()):
        if number % every == 0:
            yield "_".join(name.split()).replace("/", "_"), compiled().hsaco


def _write(file: Path, contents: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(contents)


def judge(folder: Path, store: Path, site: Path, jobs: int) -> str:
    """Judge all, write the pages; the digests of what depends on the verdicts alone."""
    command = ["rota", "check", ".", "--store", str(store), "--jobs", str(jobs), "--timeout", "86400"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    assert done.returncode in {0, 1}, done.returncode
    subprocess.run(["rota", "report", str(store), "-o", str(site), "--known", str(KNOWN)], check=True)
    return (site / SUMS).read_text("utf-8")


def print_counts(site: Path) -> None:
    """Kernels by source, verdict and level, and the seconds that they took."""
    with (site / "verdicts.csv").open(newline="") as file:
        table = [*csv.DictReader(file)]
    for column in ("status", "level"):
        sources = sorted({_source(row) for row in table})
        print(f"\n{column:24}" + "".join(f"{source:>16}" for source in sources))
        counts = Counter((row[column] or "nothing", _source(row)) for row in table)
        for name, _ in Counter(row[column] or "nothing" for row in table).most_common():
            print(f"{name:24}" + "".join(f"{counts[name, source]:16,}" for source in sources))
    print()
    for name, value in json.loads((site / "run.json").read_text("utf-8")).items():
        print(f"{name}: {value}")


def _swap(line: str) -> tuple[str, str]:
    """A file's name, and its digest."""
    digest, name = line.split(maxsplit=1)
    return name, digest


def _source(row: dict[str, str]) -> str:
    """The first folder, and of AITER the device's, too."""
    parts = Path(row["file"]).parts
    return "/".join(parts[: 2 if parts[0] == "aiter" else 1])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="the folder of the pages, if they are to stay")
    parser.add_argument("--history", type=Path)
    parser.add_argument("--commit", default=COMMIT)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="only each so many-th object")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--store", type=Path, help="keep verdicts there, and go on from them")
    parser.add_argument("--twice", action="store_true", help="again with an empty store; the digests must be equal")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="rota-table-") as scratch:
        place = Path(scratch)
        lay_out(place / "objects", asked)
        site, store = (asked.output or place / "pages").resolve(), (asked.store or place / "store").resolve()
        sums = judge(place / "objects", store, site, asked.jobs)
        print_counts(site)
        if asked.twice:
            again = judge(place / "objects", place / "again", place / "site", asked.jobs)
            before, after = (dict(map(_swap, each.splitlines())) for each in (sums, again))
            differ = sum(before.get(name) != after.get(name) for name in before.keys() | after.keys())
            print(f"again, with an empty store: {len(before):,} files, {differ} differ")
            return int(differ > 0)
    return 0
