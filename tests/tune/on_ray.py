"""A tuning run on a Ray cluster of this machine: takes a folder, prints how its points ended.

    python -m tests.tune.on_ray FOLDER

A program of its own, since Ray leaves processes and warnings after in whatever process starts it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rota.tune.tune_library import tune_library
from rota.workers.ray_pool import RayPool
from tests.tune.spaces import SHAPES, makers, space

SPACE = space(tile="64x64x64", make=makers("fatal_to_a_node", "slow"), split_k=1)

if __name__ == "__main__":
    found = tune_library(SHAPES, SPACE, Path(sys.argv[1]), pool=RayPool(None, 2))
    print(
        *(f"{row.point.make.rpartition(':')[2]} {row.status.value} {row.code}".strip() for row in found.rows), sep="\n"
    )
    print(found.tally.done, "computed")
