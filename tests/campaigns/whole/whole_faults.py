"""Faults in what stands around the loop: takes nothing, gives edits of a whole kernel's source, part by part.

An edit replaces the first, or the last, place of a text; it must be there.
"""

from __future__ import annotations

from dataclasses import dataclass

from rota.emit.whole.whole_options import Output, WholeGemm, parse_epilogue

LOOP, BY_COLUMNS = "small", "small_kn"
LINEAR = WholeGemm(
    output=Output.BF16, epilogue=parse_epilogue(["alpha", "row_scale", "column_scale", "column_bias", "relu", "beta"])
)
GATED = WholeGemm(output=Output.F32, epilogue=parse_epilogue(["row_scale", "gated_silu"]))
CURVED = WholeGemm(output=Output.F16, epilogue=parse_epilogue(["row_bias", "gelu_tanh"]), xcds=1)
SUMS = WholeGemm()
ERF = WholeGemm(output=Output.F32, epilogue=parse_epilogue(["gelu"]), group=1)
_GROUPED = "__builtin_amdgcn_readfirstlane(group_first + turn_of_tile % of_group % height);"


SHIPPED = {
    ("small", "+ wave_column * 32 + lane_row;"): ("+ wave_column * 64 + lane_row;", "+ lane_row;"),
    ("small", "const int strip_row = strip /"): ("strip % 4 * 16;", "0 * strip % 4 * 16;"),
    ("small_kn", "b_part1 = wave_column * 2 + 1"): ("b_part1 = wave_column * 4 + 1", "b_part1 = wave_column * 4 + 0"),
    ("small_kn", "b_part2 = wave_column * 2 + 4"): ("b_part2 = wave_column * 4 + 2", "b_part2 = 0 * wave_column + 2"),
    ("small_mi300x_kn", "b_part0 = wave_column * 2 + 0 + lane_row / 8"): (
        "b_part0 = wave_column * 4 + 0 + lane_row / 8",
        "b_part0 = wave_column * 4",
    ),
    ("small_mi300x_kn", "b_part2 = wave_column * 2 + 4"): (
        "b_part2 = wave_column * 4 + 2",
        "b_part2 = 0 * wave_column + 2",
    ),
    ("small_mi300x_kn", "ROTA_KEEP(c[1][2], 64)"): ("ROTA_KEEP(c[1][2], 32)", "ROTA_KEEP(c[1][2], 33)"),
    ("block_fp8_low", "b_scale_lane, 256)"): ("b_scale_lane, 64)", "b_scale_lane, 0)"),
}
"""Edits of loops by instruction, by the loop and the text that is replaced in one by quadrants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An edit of the source, or of the assembly, of a kernel around a loop.

    `order` says that it lets waves go on earlier and changes nothing else; it shows in the rows `far` after a matrix's
    first.
    """

    part: str
    name: str
    old: str
    new: str
    asked: WholeGemm = LINEAR
    last: bool = False
    assembly: bool = False
    far: str = ""
    loop: str = LOOP
    order: bool = False

    def damage(self, text: str, *, shipped: bool = False) -> str:
        """The text with the fault; `shipped` is that of the loop by instruction, some of whose numbers are others."""
        old, new = SHIPPED.get((self.loop, self.old), (self.old, self.new)) if shipped else (self.old, self.new)
        place = text.rfind(old) if self.last else text.find(old)
        if place < 0:
            raise LookupError(f"{self.name}: {old!r} isn't there")
        return text[:place] + new + text[place + len(old) :]


def faults(
    part: str, *edits: tuple[str, str, str], asked: WholeGemm = LINEAR, last: bool = False, loop: str = LOOP
) -> list[Fault]:
    """Edits of the source of one part."""
    return [
        Fault(part=part, name=name, old=old, new=new, asked=asked, last=last, loop=loop) for name, old, new in edits
    ]


FAULTS: tuple[Fault, ...] = (
    *faults(
        "edges",
        ("rows beyond M are stored", "(a_rows - 1) * d_row_bytes + N * 2", "127 * d_row_bytes + N * 2"),
        ("the last row isn't stored", "(a_rows - 1) * d_row_bytes + N * 2", "(a_rows - 1) * d_row_bytes"),
        ("row M is stored", "(a_rows - 1) * d_row_bytes + N * 2", "a_rows * d_row_bytes + N * 2"),
        ("runs beyond N are stored", "column < N ? offset : 0x80000000u", "offset"),
        ("columns beyond N are stored", "column + e < N ? offset", "column < N ? offset"),
        ("the last column isn't stored", "column + e < N ? offset", "column + e < N - 1 ? offset"),
        ("a run is stored whole at the edge", "const bool whole = N % 8 == 0 ||", "const bool whole = true ||"),
        ("all of a run is stored in one place", "offset + e * 2 : 0x80000000u", "offset : 0x80000000u"),
        ("a row beyond M is read", "(line < a_rows ? line : a_rows - 1)", "line"),
        ("A has a whole tile of rows", "M - tile_row * 128 < 128 ? M - tile_row * 128 : 128", "128"),
        ("B has a whole tile of rows", "N - tile_column * 128 < 128 ? N - tile_column * 128 : 128", "128"),
        ("A's resource is a row too long", "(u32)(a_rows - 1) * a_row_bytes", "(u32)a_rows * a_row_bytes"),
        ("B's resource is a row too short", "(u32)(b_rows - 1) * b_row_bytes", "(u32)(b_rows - 2) * b_row_bytes"),
        ("A's resource ends before its K", "* a_row_bytes + depth * 2;", "* a_row_bytes + depth;"),
    ),
    *faults(
        "remainders",
        ("a part of a K-tile is dropped", "at < end; at += 128", "at + 127 < end; at += 128"),
        ("a part of a K-tile counts as a whole one", "aligned ? depth / 64 : 0", "aligned ? (depth + 63) / 64 : 0"),
        ("the loop runs a trip more", "* trips) * 128;", "* trips) * 128; ++trips;"),
        ("a K-tile is taken for summed", "int summed = 0;", "int summed = 128;"),
        ("all K-tiles are summed again", "int at = summed; at < end", "int at = 0; at < end"),
        ("beyond K isn't zero", "from < end ?", "from < end + 64 ?"),
        ("the last element of K is zero", "from < end ?", "from < end - 2 ?"),
        ("a part of a K-tile comes by DMA", "if (aligned && at + 128 <= end)", "if (aligned)"),
        ("elements of a word are exchanged", "<< (16 * e)", "<< (16 * (1 - e))"),
        ("rows of the rest are those of the first DMA", "(number * 32 + row) * a_row_bytes", "row * a_row_bytes"),
        ("the exchange of chunks is left out of the rest", "at + (chunk ^ (", "at + (chunk ^ 0 * ("),
        ("the rest doesn't wait for its DMAs", "      ROTA_WAIT_VM(0)\n", "\n"),
        ("the rest doesn't meet before it reads", "}\n      ROTA_MEET\n", "}\n"),
        (
            "every row of the rest is summed once only",
            "ROTA_WAIT_LGKM(0)\n      ROTA_MFMA(c[0][0]",
            "ROTA_WAIT_LGKM(0)\n      ROTA_PIN(c[0][0]) //",
        ),
    ),
    *faults(
        "order",
        ("dies get no more than their share", " + more + turn / 8", " + turn / 8"),
        ("dies take tiles in turn", " + more + turn / 8", " + more + turn % 8"),
        ("dies' runs overlap", "die * (tiles / 8)", "die * (tiles / 8 - (tiles > 8))"),
        ("dies' runs leave gaps", "die * (tiles / 8)", "die * (tiles / 8 + 1)"),
        ("the last group is as high as the others", "tile_rows - group_first < 4 ? tile_rows - group_first : 4", "4"),
        ("columns go by the group's height", "turn_of_tile % of_group / height", "turn_of_tile % of_group / 4"),
        ("all groups are the first", "readfirstlane(group_first + turn_of_tile", "readfirstlane(turn_of_tile"),
        ("rows of tiles are rounded down", "((u32)M + 127) / 128", "((u32)M + 0) / 128 + ((u32)M < 128)"),
        ("columns of tiles are too many", "((u32)N + 127) / 128", "((u32)N + 128) / 128 + 1"),
        (
            "the second id is taken for the first",
            "turn = __builtin_amdgcn_workgroup_id_x()",
            "turn = __builtin_amdgcn_workgroup_id_y()",
        ),
        (
            "split and matrix are exchanged",
            "batch = __builtin_amdgcn_workgroup_id_z();\n  const int split = __builtin_amdgcn_workgroup_id_y()",
            "batch = __builtin_amdgcn_workgroup_id_y();\n  const int split = __builtin_amdgcn_workgroup_id_z()",
        ),
        (
            "rows and columns are exchanged",
            f"const int tile_row = {_GROUPED}\n  const int tile_column =",
            f"const int tile_column = {_GROUPED}\n  const int tile_row =",
        ),
    ),
    *faults(
        "order",
        ("rows go by columns", "readfirstlane(turn_of_tile / tile_columns)", "readfirstlane(turn_of_tile / tile_rows)"),
        asked=ERF,
    ),
    *faults(
        "splits",
        ("shares are rounded down", " + splits - 1) / (u32)splits)", ") / (u32)splits)"),
        ("the last share goes beyond K", "K - k_first < k_each ? K - k_first : k_each", "k_each"),
        ("all shares begin at 0", " + k_first) * 2);", ") * 2);"),
        ("all shares are one place", "(batch * splits + split) ", "(batch * splits + 0) "),
        ("matrices share a place", "(batch * splits + split) ", "(0 * splits + split) "),
        ("two splits are stored as one", "if (splits > 1) {", "if (splits > 2) {"),
        ("a place is N wide", "(int)((N + 7LL) / 8 * 8);", "N;"),
        ("sums beyond M are stored", "a_rows * sums_row_bytes", "128 * sums_row_bytes"),
        ("the last row of sums isn't stored", "a_rows * sums_row_bytes", "(a_rows - 1) * sums_row_bytes"),
        ("sums beyond N are stored", "const int at = column < N ?", "const int at = column < N + 8 ?"),
    ),
    *faults(
        "splits",
        ("the first share isn't added", "for (int split = 0; split < splits", "for (int split = 1; split < splits"),
        ("the last share isn't added", "split < splits; ++split", "split < splits - 1; ++split"),
        ("shares lie a row apart", "place + split * (long long)M * across", "place + split * across"),
        (
            "threads overlap",
            "id = __builtin_amdgcn_workgroup_id_x() * 256u",
            "id = __builtin_amdgcn_workgroup_id_x() * 255u",
        ),
        ("rows beyond M are added", "if (row >= M) return;", ""),
        ("a row of D behind a workgroup's first is the first", "(int)(row - first) * d_row_bytes", "0 * d_row_bytes"),
        ("the last row of a workgroup isn't stored", "(rows - 1) * d_row_bytes", "(rows - 2) * d_row_bytes"),
        ("a run is stored whole at the edge", "const bool whole = N % 8 == 0;", "const bool whole = true;"),
        ("a workgroup's rows of D begin a row late", "* 256u / units;", "* 256u / units + 1;"),
        ("rows of D have no first", "d_matrix + (long long)first * d_stride", "d_matrix"),
        (
            "a run of columns is forgotten",
            "const u32 units = ((u32)N + 7) / 8;",
            "const u32 units = ((u32)N + 0) / 8 + (N < 8);",
        ),
        last=True,
    ),
    *faults(
        "epilogue",
        ("no alpha", "values[e] * alpha", "values[e]"),
        ("alpha for beta", "beta * read[e]", "alpha * read[e]"),
        ("C has D's rows", "row * c_stride;", "row * d_stride;"),
        ("C is the first matrix's", "(const element*)C + batch * c_batch", "(const element*)C"),
        ("bias by row", "((const element*)bias)[ROTA_COLUMN(e)]", "((const element*)bias)[row % N]"),
        ("bias of a run's first column", "((const element*)bias)[ROTA_COLUMN(e)]", "((const element*)bias)[column]"),
        ("bias beyond N", "((const element*)bias)[ROTA_COLUMN(e)]", "((const element*)bias)[column + e]"),
        ("C beyond N", "old[ROTA_COLUMN(e)]", "old[column + e]"),
        ("row scales are the first matrix's", "row_scale[batch * M + row]", "row_scale[row]"),
        (
            "column scales are the first matrix's",
            "column_scale[batch * N + ROTA_COLUMN(e)",
            "column_scale[ROTA_COLUMN(e)",
        ),
        ("relu keeps what is below 0", "values[e] < 0 ? 0", "values[e] > 0 ? 0"),
        ("D is the first matrix", "(element*)D + batch * d_batch", "(element*)D"),
        ("D has no gaps", "line * d_row_bytes", "line * N * 2"),
        (
            "sums of the second row of waves lie on the first's",
            "sums + (wave_row * 16 + lane_group",
            "sums + (0 * 16 + lane_group",
        ),
        ("sums of all columns of waves lie on the first's", "+ wave_column * 32 + lane_row;", "+ lane_row;"),
        ("registers are taken for other rows", "lane_group * 4) *", "lane_group * 3) *"),
        ("all strips are the first", "const int strip_row = strip /", "const int strip_row = 0 * strip /"),
        (
            "sums are read before they are kept",
            "    }\n    ROTA_MEET\n    const int strip_row",
            "    }\n    const int strip_row",
        ),
    ),
    *faults(
        "epilogue",
        ("the gate is the other product", "* others[e];", "* values[e];"),
        ("silu with the wrong sign", "(y) * -1.4426950408889634f", "(y) * 1.4426950408889634f"),
        ("the second product is read a column on", "others[e] = from[64 + e]", "others[e] = from[63 + e]"),
        ("the second product isn't scaled", "others[e] = others[e] * row_factor", "others[e] = others[e]"),
        ("the second B is the first", "(u64)B_up +", "(u64)B +"),
        (
            "the second product's shares are the first's",
            "floats{others[0], others[1], others[2], others[3]}",
            "floats{values[0], values[1], values[2], values[3]}",
        ),
        asked=GATED,
    ),
    *faults(
        "epilogue",
        ("gelu with another constant", "0.044715f", "0.44715f"),
        ("gelu with another factor", "1.5957691216057308f", "0.7978845608028654f"),
        ("bias by column", "((const element*)bias)[row]", "((const element*)bias)[column % M]"),
        asked=CURVED,
    ),
    *faults(
        "epilogue",
        ("erf with another constant", "0.254829592f", "0.253829592f"),
        ("erf is odd", "(x < 0 ? rest : 2 - rest)", "(2 - rest)"),
        asked=ERF,
    ),
    *faults(
        "fp4",
        ("factors of another format", "cbsz:4 blgp:4", "cbsz:4 blgp:2"),
        ("A's resource is as long as K has elements", "* a_row_bytes + depth / 2;", "* a_row_bytes + depth;"),
        ("a row of B is as many bytes as elements", "(int)(b_stride / 2)", "(int)b_stride"),
        ("tiles of A are as many bytes apart as elements", "* 64 * a_stride / 2)", "* 64 * a_stride)"),
        ("a share begins at as many bytes as elements", " + k_first) / 2);", " + k_first));"),
        ("K ends after as many bytes as elements", "const int end = depth / 2;", "const int end = depth;"),
        ("bytes of a word are exchanged", "<< (8 * e)", "<< (8 * (e ^ 1))"),
        asked=SUMS,
        loop="fp4_low",
    ),
    *faults(
        "scales",
        ("A's scale of another step", "op_sel:[1,1,0]", "op_sel:[0,1,0]"),
        ("scales of A and B are exchanged", "%0, %3, %4 op_sel_hi", "%0, %4, %3 op_sel_hi"),
        ("A's scales of the neighbouring block", "* 8 + lane_group * 2;", "* 8 + (lane_group ^ 1) * 2;"),
        ("a row's blocks aren't dealt out as their scales are", " % 4 / 1 * 2 +", " % 4 / 1 * 2 + 1 -"),
        ("B's scales are A's", "(u64)B_scale +", "(u64)A_scale +"),
        ("scales of the next row", "a_row * 8 + lane_group", "(a_row ^ 1) * 8 + lane_group"),
        ("all shares have the first one's scales", "a_scale_batch + k_first / 32)", "a_scale_batch)"),
        ("all matrices have the first one's scales", "batch * b_scale_batch", "0 * b_scale_batch"),
        ("all tiles have the first one's scales", "(long long)tile_row * 64 * a_scale_stride", "0 * a_scale_stride"),
        ("A's scales end too soon", "* a_scale_row + scale_end;", "* a_scale_row + scale_end - 1;"),
        ("B's scales end a row too late", "(u32)(b_rows - 1) * b_scale_row", "(u32)b_rows * b_scale_row"),
        ("a trip has the scales of one before", "b_scale_fetch, (k >> 4)", "b_scale_fetch, (k >> 5)"),
        ("the rest's scales go beyond K", "first + e < scale_end ?", "first + e <= scale_end ?"),
        ("the rest begins with the first scales", "first = (at >> 4) +", "first = (at >> 9) +"),
        asked=SUMS,
        loop="mxfp4_low",
    ),
    *faults(
        "scales",
        ("bytes of the rest's scales are exchanged", "<< (8 * e)", "<< (8 * (3 - e))"),
        ("the rest has another part's scales", "b_scale_lane, 128)", "b_scale_lane, 0)"),
        asked=SUMS,
        loop="mxfp4_low",
        last=True,
    ),
    *faults(
        "scales",
        ("all waves have the first B's scales", "scales_up = wave >= 2;", "scales_up = wave >= 4;"),
        ("the second B's scales begin a half too late", "scales_before = scales_up ? 64 : 0", "scales_before = 0"),
        (
            "tiles of scales are as far apart as those of one B",
            "tile_column * 64 * b_scale",
            "tile_column * 128 * b_scale",
        ),
        asked=GATED,
        loop="mxfp4_low",
    ),
    Fault(
        part="remainders",
        name="the rest doesn't wait for the trips",
        old="ROTA_WAIT_VM(0) ROTA_WAIT_LGKM(0) ROTA_MEET",
        new="ROTA_FENCE",
        order=True,
    ),
    Fault(
        part="epilogue",
        name="sums are kept before the loop's last reads",
        old="ROTA_MEET\n  #pragma clang loop unroll(disable)\n  for (int strip",
        new="#pragma clang loop unroll(disable)\n  for (int strip",
        loop="wide",
        order=True,
    ),
    Fault(
        part="overflow",
        name="a tile of A is at most 2 GiB behind the first",
        old="(u64)((long long)tile_row * 128 * a_stride * 2)",
        new="(u64)(long long)(int)((long long)tile_row * 128 * a_stride * 2)",
        asked=SUMS,
        far="A",
    ),
    Fault(
        part="overflow",
        name="a tile of B is at most 4 GiB behind the first, in elements of 32 bits",
        old="(u64)((long long)tile_column * 128 * b_stride * 2)",
        new="(u64)(long long)(tile_column * 128 * (int)b_stride * 2)",
        asked=SUMS,
        far="B",
    ),
    Fault(
        part="overflow",
        name="a row of D is at most 2 GiB behind the first",
        old="d_matrix + (long long)tile_row * 128 * d_stride",
        new="(element*)((char*)d_matrix + (int)((long long)tile_row * 128 * d_stride * 4))",
        asked=SUMS,
        far="D",
    ),
    Fault(
        part="descriptor",
        name="less LDS than the kernel uses",
        old=".amdhsa_group_segment_fixed_size 131072",
        new=".amdhsa_group_segment_fixed_size 65536",
        assembly=True,
    ),
    Fault(
        part="descriptor",
        name="another accum_offset",
        old=".amdhsa_accum_offset ",
        new=".amdhsa_accum_offset 4 ;",
        assembly=True,
    ),
    Fault(
        part="descriptor",
        name="no id of the second dimension",
        old=".amdhsa_system_sgpr_workgroup_id_y 1",
        new=".amdhsa_system_sgpr_workgroup_id_y 0",
        assembly=True,
    ),
    Fault(
        part="descriptor",
        name="no id of the third dimension",
        old=".amdhsa_system_sgpr_workgroup_id_z 1",
        new=".amdhsa_system_sgpr_workgroup_id_z 0",
        assembly=True,
    ),
    *faults(
        "columns",
        ("B has a whole tile of columns", "N - tile_column * 128 < 128 ? N - tile_column * 128 : 128", "128"),
        ("B's resource is a row too short", "(u32)(depth - 1) * b_row_bytes", "(u32)(depth - 2) * b_row_bytes"),
        ("DMAs fetch the end of the last row", "b_columns % 8 ? depth - 1 : depth", "depth"),
        ("the last column is zero", "from < b_columns ?", "from < b_columns - 1 ?"),
        ("the last row is zero", "from_row < depth &&", "from_row < depth - 1 &&"),
        ("rows of the rest are those of the first DMA", "number % 2 * 32 + b_line,", "b_line,"),
        ("columns of the rest are those of the first panel", "number / 2 * 64 + (b_chunk", "(b_chunk"),
        ("the exchange of chunks is left out of the rest", "(b_chunk ^ ((k_row", "(b_chunk ^ 0 * ((k_row"),
        ("the next K-tile of B is a row too near", "b_tile = 64 * b_row_bytes", "b_tile = 63 * b_row_bytes"),
        ("all trips take the same rows of B", "b_at += 4 * b_tile", "b_at += 0 * b_tile"),
        ("shares begin in B's first row", "k_first * b_stride", "0 * b_stride"),
        ("shares begin so many columns on", "k_first * b_stride", "k_first"),
        ("the second panel is the first", "b_fetch0, 128)", "b_fetch0, 0)"),
        ("tiles of B are rows apart", "tile_column * 128 * 2", "tile_column * 128 * b_stride * 2"),
        ("a DMA exchanges chunks by another bit", "(b_chunk ^ ((b_line >> 1", "(b_chunk ^ ((b_line >> 0"),
        ("a part is read with another exchange", "(b_part0 % 4 ^ ((b_k >> 1", "(b_part0 % 4 ^ ((b_k >> 0"),
        ("lanes read the next columns", "lane % 4 * 8", "(lane + 1) % 4 * 8"),
        ("lanes read another k", "lane % 16 / 4", "lane % 16 / 8"),
        ("groups of lanes read k of others", "lane_group * 8 + lane", "lane_group * 4 + lane"),
        ("a part is read for its neighbour", "b_part1 = wave_column * 2 + 1", "b_part1 = wave_column * 2 + 0"),
        ("waves share a part", "b_part2 = wave_column * 2 + 4", "b_part2 = 0 * wave_column + 4"),
        ("a piece is another's", "b_lane0, 512)", "b_lane0, 1024)"),
        ("the halves of a step are exchanged", "ROTA_JOIN(b, b_next)", "ROTA_JOIN(b_next, b)"),
        loop=BY_COLUMNS,
    ),
)
"""Each must be found by the audit, or by running the kernel on a few problems."""
