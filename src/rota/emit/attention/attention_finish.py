"""What stands behind attention's loop: takes a shape, gives the source of masked tiles and of the end.

These are written in plain source, which the compiler schedules: it sees its own instructions, and their wait states.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.emit.attention.attention_shape import DEPTH, SIDE, ForwardShape

_UNROLL = '_Pragma("unroll")'
_ACROSS = (32, 16)  # lanes of one row are so many apart


def rest_tile_lines(shape: ForwardShape, v_start: int) -> Iterator[str]:
    """Tiles of which some rows don't see some keys, one at a time: loaded, awaited, masked and summed up."""
    yield "// What whole trips leave: tiles at the end of the keys or across the diagonal, loaded, awaited and masked."
    yield "ROTA_WAIT_VM(0) ROTA_WAIT_LGKM(0) ROTA_MEET"
    yield "#pragma clang loop unroll(disable)"
    yield "for (int tile = done; tile < tiles; ++tile) {"
    for name, start in (("k", 0), ("v", v_start)):
        for number in shape.loads:
            lds = start + number * shape.dma_rows * shape.row_bytes
            yield f"  ROTA_DMA({name}_global, {lds}, {name}_fetch, tile * {name}_tile + {number} * {name}_dma)"
    yield "  ROTA_WAIT_VM(0) ROTA_MEET"
    yield f"  {_UNROLL}"
    yield f"  for (int r = 0; r < {len(shape.row_blocks)}; ++r) {{"
    yield from (f"    {line}" for line in _row_lines(shape))
    yield "  }"
    yield "  ROTA_MEET"
    yield "}"


def _row_lines(shape: ForwardShape) -> Iterator[str]:
    keys, steps = len(shape.key_blocks), len(shape.head_steps)
    yield f"const long long own = (long long)wave_row + r * {SIDE} + lane_row;"
    yield "long long sees = causal ? own + shift + 1 : keys;"
    yield "sees = sees < keys ? sees : keys;"
    yield f"sees -= (long long)tile * {shape.keys} + lane_group * 4;"
    yield "// From this lane's first key on:"
    yield f"const int seen = sees < 0 ? 0 : sees < {shape.keys} ? (int)sees : {shape.keys};"
    yield f"part scores[{keys}];"
    yield "float most = best[r];"
    yield _UNROLL
    yield f"for (int c = 0; c < {keys}; ++c) {{"
    yield "  scores[c] = 0;"
    yield f"  {_UNROLL}"
    yield f"  for (int j = 0; j < {steps}; ++j) {{"
    yield f"    const factor k = *(ROTA_LDS const factor*)(k_lane[j] + c * {SIDE * shape.row_bytes});"
    yield (
        "    scores[c] = __builtin_amdgcn_mfma_f32_16x16x32_bf16(__builtin_bit_cast(elements, k), "
        "__builtin_bit_cast(elements, q[r][j]), scores[c], 0, 0, 0);"
    )
    yield "  }"
    yield f"  {_UNROLL}"
    yield "  for (int e = 0; e < 4; ++e) {"
    yield f"    scores[c][e] = c * {SIDE} + e < seen ? scores[c][e] : -__builtin_inff();"
    yield "    most = __builtin_fmaxf(most, scores[c][e]);"
    yield "  }"
    yield "  ROTA_FENCE"
    yield "}"
    yield from _across("most", "__builtin_fmaxf({0}, {1})")
    yield from _weight_lines(shape)


def _weight_lines(shape: ForwardShape) -> Iterator[str]:
    """From masked scores and the best of them, `most`, to the output."""
    keys = len(shape.key_blocks)
    yield "const float level = most == -__builtin_inff() ? 0 : most;  // a row that sees nothing yet"
    yield "const float alpha = __builtin_amdgcn_exp2f((best[r] - level) * base_two);"
    yield "best[r] = most;"
    yield "total[r] *= alpha;"
    yield _UNROLL
    yield f"for (int c = 0; c < {keys}; ++c) {{"
    yield f"  {_UNROLL}"
    yield "  for (int e = 0; e < 4; ++e) scores[c][e] = __builtin_amdgcn_exp2f((scores[c][e] - level) * base_two);"
    yield "  total[r] += scores[c];"
    yield "}"
    yield _UNROLL
    yield f"for (int h = 0; h < {len(shape.head_blocks)}; ++h) output[r][h] *= alpha;"
    yield _UNROLL
    yield f"for (int t = 0; t < {len(shape.key_steps)}; ++t) {{"
    yield "  elements weights;"
    yield f"  {_UNROLL}"
    yield "  for (int e = 0; e < 8; ++e) weights[e] = (__bf16)scores[2 * t + e / 4][e % 4];"
    yield f"  {_UNROLL}"
    yield f"  for (int h = 0; h < {len(shape.head_blocks)}; ++h) {{"
    first = f"t * {DEPTH * shape.row_bytes}"
    yield f"    const half low = ROTA_HALF(v_lane[h], {first});"
    yield f"    const half high = ROTA_HALF(v_lane[h], {first} + {SIDE * shape.row_bytes});"
    yield "    const factor v = __builtin_shufflevector(low, high, 0, 1, 2, 3);"
    yield (
        "    output[r][h] = __builtin_amdgcn_mfma_f32_16x16x32_bf16(__builtin_bit_cast(elements, v), weights, "
        "output[r][h], 0, 0, 0);"
    )
    yield "  }"
    yield "}"


def _across(name: str, joined: str) -> Iterator[str]:
    """One value for the four lanes of a row."""
    for lanes in _ACROSS:
        yield "{"
        yield f"  const u32 own_bits = __builtin_bit_cast(u32, {name});"
        yield f"  const auto both = __builtin_amdgcn_permlane{lanes}_swap(own_bits, own_bits, false, false);"
        values = [f"__builtin_bit_cast(float, (u32)both[{number}])" for number in (0, 1)]
        yield f"  {name} = {joined.format(*values)};"
        yield "}"


def end_lines(shape: ForwardShape) -> Iterator[str]:
    """O, and the log-sum-exp of each row."""
    yield _UNROLL
    yield f"for (int r = 0; r < {len(shape.row_blocks)}; ++r) {{"
    yield "  float sum = total[r][0] + total[r][1] + (total[r][2] + total[r][3]);"
    yield from (f"  {line}" for line in _across("sum", "{0} + {1}"))
    yield f"  const long long own = (long long)wave_row + r * {SIDE} + lane_row;"
    yield "  if (own < queries) {"
    yield "    const float factor_of_row = sum > 0 ? 1 / sum : 0;"
    yield "    __bf16* const to = (__bf16*)O + batch * o_batch + head * o_head + own * o_row + lane_group * 4;"
    yield f"    {_UNROLL}"
    yield f"    for (int h = 0; h < {len(shape.head_blocks)}; ++h) {{"
    yield "      stored values;"
    yield f"      {_UNROLL}"
    yield "      for (int e = 0; e < 4; ++e) values[e] = (__bf16)(output[r][h][e] * factor_of_row);"
    yield f"      *(stored*)(to + h * {SIDE}) = values;"
    yield "    }"
    yield "    if (L && lane_group == 0) {"
    yield (
        "      const float sum_bits = (best[r] * base_two + __builtin_amdgcn_logf(sum)) * 0.69314718055994531f;"
        "  // of two to natural"
    )
    yield "      L[(batch * heads + head) * queries + own] = sum > 0 ? sum_bits : -__builtin_inff();"
    yield "    }"
    yield "  }"
    yield "}"
