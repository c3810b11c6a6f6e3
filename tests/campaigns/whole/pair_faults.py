"""Faults where B is read in pairs of columns, which vector instructions turn: takes nothing, gives edits of the source.

The first place of a text is the loop's where the loop has it, the last one the rest's.
"""

from __future__ import annotations

from tests.campaigns.whole.whole_faults import Fault, faults

IN_PAIRS = "small_mi300x_kn"
_LOOP_PACK = "ROTA_PACK(b[0][1][2][0], b_pairs[0][0][8], b_pairs[0][0][9], ROTA_ODD)"
_LAST_PACK = "ROTA_PACK(b[0][3][3][1], b_pairs[0][1][14], b_pairs[0][1][15], ROTA_ODD)"

PAIR_FAULTS: tuple[Fault, ...] = (
    *faults(
        "pairs",
        ("the even column is the odd one", "#define ROTA_EVEN 0x05040100u", "#define ROTA_EVEN 0x07060302u"),
        ("the lower k is the higher one", "#define ROTA_ODD 0x07060302u", "#define ROTA_ODD 0x03020706u"),
        ("all packs exchange their k", '"v"(high), "v"(low)', '"v"(low), "v"(high)'),
        ("a pack takes the other column", _LOOP_PACK, _LOOP_PACK.replace("ODD", "EVEN")),
        ("a pack takes another k", _LOOP_PACK, _LOOP_PACK.replace("[9]", "[10]")),
        ("a pack takes another pair", _LOOP_PACK, _LOOP_PACK.replace("b_pairs[0][0][9]", "b_pairs[0][1][9]")),
        ("a pack makes another register", _LOOP_PACK, _LOOP_PACK.replace("[2][0],", "[2][1],")),
        ("a pack is left out", _LOOP_PACK, ""),
        ("a read brings the k of another", "b_pairs[0][0][5], b_lane0, 2176)", "b_pairs[0][0][5], b_lane0, 2048)"),
        ("a read brings another pair's columns", "b_pairs[0][1][5], b_lane2,", "b_pairs[0][1][5], b_lane0,"),
        ("a read brings one column", "*(ROTA_LDS const u32*)", "*(ROTA_LDS const unsigned short*)"),
        ("lanes read the next columns", "lane % 8 * 4;", "(lane + 1) % 8 * 4;"),
        ("groups of lanes read k of others", "b_k = lane_group * 4", "b_k = lane_group * 8"),
        (
            "half of the lanes read what the others do",
            "b_part0 = wave_column * 2 + 0 + lane_row / 8",
            "b_part0 = wave_column * 2",
        ),
        ("waves share a pair", "b_part2 = wave_column * 2 + 4", "b_part2 = 0 * wave_column + 4"),
        ("a pair is read with another exchange", "(b_part0 % 4 ^ ((b_k >> 2", "(b_part0 % 4 ^ ((b_k >> 3"),
        ("a DMA exchanges chunks by another bit", "(b_chunk ^ ((b_line >> 2", "(b_chunk ^ ((b_line >> 1"),
        ("columns of a part lie side by side in D", "+ lane_row * 2;", "+ lane_row;"),
        ("parts of a pair lie side by side in D", "ROTA_KEEP(c[0][1], 1)", "ROTA_KEEP(c[0][1], 16)"),
        ("parts of a pair are exchanged in D", "ROTA_KEEP(c[1][2], 64)", "ROTA_KEEP(c[1][2], 65)"),
        ("DMAs fetch the end of the last row", "b_columns % 2 ? depth - 1 : depth", "depth"),
        loop=IN_PAIRS,
    ),
    *faults(
        "pairs",
        ("a pack of the rest takes the other column", _LAST_PACK, _LAST_PACK.replace("ODD", "EVEN")),
        ("a pack of the rest takes another k", _LAST_PACK, _LAST_PACK.replace("[14]", "[13]")),
        (
            "a read of the rest brings another k",
            "b_pairs[0][1][15], b_lane2, 6528)",
            "b_pairs[0][1][15], b_lane2, 6400)",
        ),
        last=True,
        loop=IN_PAIRS,
    ),
)
"""Each must be found by the audit, or by running the kernel on a few problems."""
