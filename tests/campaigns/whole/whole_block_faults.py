"""Faults in sums of blocks with scales in fp32: takes nothing, gives edits of a whole kernel's source."""

from __future__ import annotations

from tests.campaigns.whole.whole_faults import GATED, SUMS, Fault, faults

BLOCK_FAULTS: tuple[Fault, ...] = (
    *faults(
        "block sums",
        ("a block's sum goes on from the one before", '%0, %1, %2, 0" : "=&v"(c)', '%0, %1, %2, %0" : "=&v"(c)'),
        ("sums have no scale of B", "v_pk_mul_f32 %0, %1, %2", "v_pk_mul_f32 %0, %1, 1.0"),
        ("the second register has another scale of B", "%2 op_sel_hi:[1,0]", "%2"),
        ("sums are added without A's scale", "v_pk_fma_f32 %0, %1, %2, %0", "v_pk_fma_f32 %0, %1, %1, %0"),
        ("sums take the place of C", 'v_pk_fma_f32 %0, %1, %2, %0" : "+v"', 'v_pk_mul_f32 %0, %1, %2" : "=v"'),
        ("a half of a sum is the other", "scaled[0], sum[0][0][0], xy", "scaled[0], sum[0][0][0], zw"),
        ("a block has its neighbour's sum", "scaled[0], sum[0][0][0], xy", "scaled[0], sum[0][0][1], xy"),
        ("a block has its neighbour's scales of A", "xy, scaled[0], a_scale[0][0])", "xy, scaled[0], a_scale[0][1])"),
        ("A's scales of a lane are in another order", "scaled[0], a_scale[0][0])", "scaled[0], a_scale[0][0].yxwz)"),
        ("A's scales of other rows", "wave_row * 16 + lane_group * 4)", "wave_row * 16 + (lane_group ^ 1) * 4)"),
        ("all waves have the first one's scales", "(wave_row * 16 + lane_group * 4)", "(lane_group * 4)"),
        ("B's scales of the next column", "+ b_row * 4;", "+ (b_row ^ 1) * 4;"),
        ("B's scales are A's", "(u64)B_scale +", "(u64)A_scale +"),
        ("all shares have the first one's scales", "a_scale_batch + k_first / 128)", "a_scale_batch)"),
        ("shares begin so many blocks on as elements", "b_scale_batch + k_first / 128)", "b_scale_batch + k_first)"),
        ("all matrices have the first one's scales", "batch * b_scale_batch", "0 * b_scale_batch"),
        ("rows of scales are as many bytes apart as floats", "(int)(a_scale_stride * 4)", "(int)a_scale_stride"),
        ("all tiles have the first one's scales", "(long long)tile_row * 64 * a_scale_stride", "0 * a_scale_stride"),
        ("a part of a block has no scale", "scale_end = (depth + 127) / 128", "scale_end = depth / 128"),
        ("B's scales end a row too late", "(u32)(b_rows - 1) * b_scale_row", "(u32)b_rows * b_scale_row"),
        ("a trip has the scales of one before", "b_scale_fetch, (k >> 5)", "b_scale_fetch, (k >> 6)"),
        ("a K-tile has the scales of the next", "a_scale_fetch, 4)", "a_scale_fetch, 8)"),
        ("the rest by DMA has the first scales", "102400, b_scale_fetch, (at >> 5))", "102400, b_scale_fetch, 0)"),
        asked=SUMS,
        loop="block_fp8_low",
    ),
    # Eight products follow the first sum, so by the matrix unit's own time it is there without these states.
    Fault(
        part="block sums",
        name="the rest scales its sums at once",
        old="      ROTA_APART(12)\n",
        new="\n",
        asked=SUMS,
        loop="block_fp8_low",
        order=True,
    ),
    *faults(
        "block sums",
        ("the rest begins with the first scales", "98304, a_scale_fetch, (at >> 5))", "98304, a_scale_fetch, 0)"),
        ("the rest doesn't wait for its scales", "        ROTA_WAIT_VM(0)\n", "\n"),
        ("the rest has another part's scales", "b_scale_lane, 256)", "b_scale_lane, 0)"),
        ("the rest adds a block's sum to another", "ROTA_BLOCK_ADD(c[1][2], zw", "ROTA_BLOCK_ADD(c[1][1], zw"),
        asked=SUMS,
        loop="block_fp8_low",
        last=True,
    ),
    *faults(
        "block sums",
        ("all waves have the first B's scales", "scales_up = wave >= 1;", "scales_up = wave >= 4;"),
        ("the second B's scales begin a half too late", "scales_before = scales_up ? 64 : 0", "scales_before = 0"),
        asked=GATED,
        loop="block_fp8_low",
    ),
)
"""Each must be found by the audit, or by running the kernel on a few problems."""
