"""A space as a user writes it: takes nothing, gives a file of TOML with every dimension."""

from __future__ import annotations

from rota.targets.registry import STANDS_FOR

_DEVICES = ", ".join(f'"{name}"' for name in STANDS_FOR.values())

EXAMPLE = f"""\
# Every list is a dimension; all values are combined.  A single value needs no brackets.
device = [{_DEVICES}]
type = "bf16"                               # bf16, fp16 or fp8
tile = ["256x256x64", "256x128x64", "128x128x64", "64x64x64"]
waves = [4, 8]
mma = [16, 32]                              # the side of the matrix instruction
depth = "auto"                              # most copies of a tile in LDS, or auto
stagger = false                             # two groups of waves that take turns
barriers = "slack"                          # slack for loads, or the fewest
slack = "auto"                              # slots that a load may be late, or auto
grain = "instructions"                      # every instruction is placed; tiles is coarser and quicker
split_k = [1, 2, 4, 8]
swizzle = ["8x4", "8x8"]                    # dies that get runs of tiles, and rows of tiles taken together
seed = 0
effort = 60.0                               # of one search, in seconds of work
"""
"""What `rota tune --example` prints; a test reads it."""
