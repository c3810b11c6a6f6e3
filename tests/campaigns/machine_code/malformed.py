"""Damaged code objects: takes how many, prints what became of them, and every defect.

Run `python -m benchmarks.malformed [--count N] [--seed S] [FOLDER ...]` from the repository's root; without a folder,
`kernels/compiled` and `kernels/aiter` of the folder `shared`.  Each is cut short, has bits, bytes or numbers changed,
bytes put in or left out, or a part of another one spliced in: headers, notes, symbols, line tables, descriptors or
code.  It is read to the steps of its kernels and must end in a finding or be read, within 5 seconds of processor time
and 2 GiB.  Small code objects are drawn more often.  `tests/isa/malformed.py` says what is not done twice.

Then kernels of `kernels/compiled` run with instructions changed (`tests/isa/mutated_streams.py`): each must end, right,
wrong or in a finding, within the same bounds, whatever loop it is caught in.  The exit status is 1 if there is any
defect.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from tests.campaigns.machine_code.decoding import SHARED, code_objects
from tests.isa.malformed import Damage, campaign

COUNT, EXECUTED = 20_000, 2_000
SMALL = 12_000  # bytes
OFTEN = 200
SHOWN = 5000  # cases after which the figures so far are printed


def drawn_from(folders: Sequence[Path]) -> list[Path]:
    """All code objects of the folders, small ones several times."""
    paths = [path for folder in folders for path in code_objects(folder)]
    return [path for path in paths for _ in range(OFTEN if path.stat().st_size <= SMALL else 1)]


def launched_from(folder: Path) -> list[Path]:
    """Small kernels whose launch is known."""
    return [path for path in code_objects(folder) if path.stat().st_size <= SMALL]


def report(what: str, paths: Sequence[Path], seeds: range, module: str) -> bool:
    """Prints the figures so far, now and then; were there defects?"""
    started, result = perf_counter(), Damage()
    for first in range(seeds.start, seeds.stop, SHOWN):
        result += campaign(paths, range(first, min(first + SHOWN, seeds.stop)), batch=SHOWN, module=module)
        said = ", ".join(f"{count:,} {code}" for code, count in result.codes.most_common(12))
        print(
            f"{result.cases:,} {what} from {len(set(paths))} files: {said}; "
            f"slowest {result.slowest:.2f} s, most memory {result.most_bytes / 2**20:.0f} MiB, "
            f"{len(result.defects)} defects, {(perf_counter() - started) / result.cases * 1000:.0f} ms a case",
            flush=True,
        )
    print(", ".join(f"{count:,} {part}" for part, count in sorted(result.parts.items())))
    print("\n".join(result.defects), flush=True)
    return bool(result.defects)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=COUNT, help="damaged code objects that are read")
    parser.add_argument("--executed", type=int, default=EXECUTED, help="kernels with changed instructions that run")
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    options = parser.parse_args(arguments)
    first = options.seed
    paths = drawn_from(options.folders or (SHARED / "compiled", SHARED / "aiter"))
    seeds = range(first, first + options.count)
    failed = report("damaged code objects", paths, seeds, "tests.isa.malformed")
    paths, seeds = launched_from(SHARED / "compiled"), range(first, first + options.executed)
    failed |= report("kernels with changed instructions, executed", paths, seeds, "tests.isa.mutated_streams")
    return int(failed)
