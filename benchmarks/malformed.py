"""Damaged code objects: takes how many, prints what became of them, and every defect.

Run `python -m benchmarks.malformed [--count N] [--seed S] [FOLDER ...]` from the repository's root; without a folder,
`kernels/compiled` and `kernels/aiter` of the folder `shared`.  Each is cut short, or has bits, bytes or numbers
changed, and is read to the steps of its kernels.  It must end in a finding or be read, within 5 seconds of processor
time and 2 GiB.  Small code objects are drawn more often.  The exit status is 1 if there is any defect.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.decoding import SHARED, code_objects
from tests.isa.malformed import Damage, campaign

COUNT = 20_000
SMALL = 12_000  # bytes
OFTEN = 40
SHOWN = 1000  # cases behind which the figures so far are printed


def drawn_from(folders: Sequence[Path]) -> list[Path]:
    """All code objects of the folders, small ones several times."""
    paths = [path for folder in folders for path in code_objects(folder)]
    return [path for path in paths for _ in range(OFTEN if path.stat().st_size <= SMALL else 1)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    options = parser.parse_args(arguments)
    paths = drawn_from(options.folders or (SHARED / "compiled", SHARED / "aiter"))
    started, result = perf_counter(), Damage()
    for first in range(options.seed, options.seed + options.count, SHOWN):
        result += campaign(paths, range(first, min(first + SHOWN, options.seed + options.count)))
        said = ", ".join(f"{count:,} {code}" for code, count in result.codes.most_common(8))
        print(
            f"{result.cases:,} damaged code objects from {len(set(paths))} files: {said}; "
            f"slowest {result.slowest:.2f} s, most memory {result.most_bytes / 2**20:.0f} MiB, "
            f"{len(result.defects)} defects, {(perf_counter() - started) / result.cases * 1000:.0f} ms a case",
            flush=True,
        )
    print("\n".join(result.defects))
    return int(bool(result.defects))


if __name__ == "__main__":
    sys.exit(main())
