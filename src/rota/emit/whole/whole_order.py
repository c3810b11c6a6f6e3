"""In which order workgroups take tiles: takes a geometry and settings, gives the source that finds a workgroup's tile.

The machine deals workgroups to its dies (XCDs) in turn.  Each die has an L2 of its own, so that neighbouring tiles,
which share rows of A or B, should be on one die: each gets a run of tiles.  Within it tiles go down `group` rows
before the next column, so that a run is a block of tiles rather than a line.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.emit.whole.whole_options import WholeGemm
from rota.pipeline.geometry import KernelGeometry


def count_lines(geometry: KernelGeometry, asked: WholeGemm) -> Iterator[str]:
    """How many tiles there are."""
    columns = geometry.BN // asked.products
    yield f"const u32 tile_rows = ((u32)M + {geometry.BM - 1}) / {geometry.BM};"
    yield f"const u32 tile_columns = ((u32)N + {columns - 1}) / {columns};"
    yield "const u32 tiles = tile_rows * tile_columns;"


def order_lines(asked: WholeGemm) -> Iterator[str]:
    """`tile_row` and `tile_column` of the workgroup's `turn`."""
    yield "u32 turn_of_tile = turn;"
    if asked.xcds > 1:
        yield f"// {asked.xcds} dies take workgroups in turn; each gets a run of tiles."
        yield f"const u32 die = turn % {asked.xcds};"
        yield f"const u32 more = tiles % {asked.xcds} < die ? tiles % {asked.xcds} : die;"
        yield f"turn_of_tile = die * (tiles / {asked.xcds}) + more + turn / {asked.xcds};"
    if asked.group > 1:
        yield f"// {asked.group} rows of tiles are taken together, a column of them after the other."
        yield f"const u32 of_group = {asked.group} * tile_columns;"
        yield f"const u32 group_first = turn_of_tile / of_group * {asked.group};"
        yield (f"const u32 height = tile_rows - group_first < {asked.group} ? tile_rows - group_first : {asked.group};")
        yield ("const int tile_row = __builtin_amdgcn_readfirstlane(group_first + turn_of_tile % of_group % height);")
        yield "const int tile_column = __builtin_amdgcn_readfirstlane(turn_of_tile % of_group / height);"
    else:
        yield "const int tile_row = __builtin_amdgcn_readfirstlane(turn_of_tile / tile_columns);"
        yield "const int tile_column = __builtin_amdgcn_readfirstlane(turn_of_tile % tile_columns);"
    yield ""
