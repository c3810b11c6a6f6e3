"""The end of a whole kernel: from sums to D."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rota.emit.emission import unfit
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import Factor, GemmTile
from rota.emit.gemm.gemm_words import NOWHERE, RAW, lane_column
from rota.emit.whole.whole_options import (
    PARAMETERS,
    REDUCTION_THREADS,
    EpilogueStep,
    Output,
    WholeGemm,
    also_before_a_gate,
    step_lines,
)

_PAD = 4  # floats after a row of sums in LDS, so that rows begin in different banks
_LATE = frozenset(
    "C bias row_scale column_scale D partial c_stride d_stride c_batch d_batch alpha beta".split()  # noqa: SIM905  # brief
)
PARTIAL_UNIT = 8
"""Columns of which the sums of a split are whole multiples: what any output stores at once."""


def pitch(tile: GemmTile) -> int:
    """Floats from a row of sums in LDS to the next."""
    return tile.geometry.BN + _PAD


def block_rows(tile: GemmTile) -> int:
    """Rows that lie in LDS together: one row of parts of every wave."""
    return tile.across(Factor.A) * tile.side


def check_room(tile: GemmTile, lds_bytes: int) -> None:
    """Check that they fit into the loop's LDS."""
    needed = block_rows(tile) * pitch(tile) * 4
    if needed > lds_bytes:
        raise unfit(
            f"{block_rows(tile)} rows of sums take {needed} bytes of LDS on their way to D, and the loop leaves "
            f"{lds_bytes}",
            evidence=(("needed", needed), ("there", lds_bytes)),
        )


def finish_words(tile: GemmTile, asked: WholeGemm) -> Iterator[str]:
    """Macros of the end."""
    stores = " ".join(
        f"keep[{(register // 4 * 4 * tile.lane_groups + register % 4) * pitch(tile)} + (column)] = value[{register}];"
        for register in range(tile.part_registers)
    )
    yield (
        '#define ROTA_MEET __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); '
        '__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); ROTA_FENCE'
    )
    yield f"#define ROTA_KEEP(value, column) {stores}"
    yield f'#define ROTA_EACH _Pragma("unroll") for (int e = 0; e < {asked.output.width}; ++e)'
    yield "#define ROTA_COLUMN(e) (column + (e) < N ? column + (e) : N - 1)  // what is read beyond N isn't stored"
    yield (
        "#define ROTA_LOGISTIC(x, y) "
        "((x) * __builtin_amdgcn_rcpf(1 + __builtin_amdgcn_exp2f((y) * -1.4426950408889634f)))"
        "  // x / (1 + exp(-y))"
    )


def finish_types(asked: WholeGemm) -> Iterator[str]:
    """Types of the end, local to a kernel."""
    yield f"typedef {asked.output.type} element;"
    yield f"typedef element elements __attribute__((ext_vector_type({asked.output.width})));"
    yield "typedef u32 quad __attribute__((ext_vector_type(4)));"
    if EpilogueStep.GELU in asked.epilogue:
        # Abramowitz and Stegun 7.1.26: erf within 1.5e-7.
        yield "const auto gelu = [](float x) {"
        yield "  const float y = __builtin_fabsf(x) * 0.70710678118654752f;"
        yield "  const float t = __builtin_amdgcn_rcpf(1 + 0.3275911f * y);"
        yield (
            "  const float rest = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + "
            "0.254829592f) * t * __builtin_amdgcn_exp2f(y * y * -1.4426950408889634f);"
        )
        yield "  return 0.5f * x * (x < 0 ? rest : 2 - rest);"
        yield "};"


def finish_lines(asked: WholeGemm) -> Iterator[str]:
    """`values` (and `others`) at `row` and `column` become D's, at `offset` bytes of `out`.

    Nothing here branches lane by lane: every lane stores, those beyond N beyond `out`, where stores have no effect.
    So the number of stores in flight is the same on every path, which a proof of the machine code rests on.
    """
    width, bits = asked.output.width, 8 * asked.output.bytes
    word = "u32" if asked.output is Output.F32 else "unsigned short"
    if EpilogueStep.BETA in asked.epilogue:
        yield f"float read[{width}];"
        yield "const element* const old = c_matrix + row * c_stride;"
        yield "if (whole && wide_c) {"
        yield "  const elements all = *(const elements*)(old + (column < N ? column : 0));"
        yield "  ROTA_EACH read[e] = (float)all[e];"
        yield "} else {"
        yield "  ROTA_EACH read[e] = (float)old[ROTA_COLUMN(e)];"
        yield "}"
    before = asked.gate is not None
    for step in asked.epilogue:
        before = before and not step.gates
        yield from step_lines(step)
        if before:
            yield also_before_a_gate(step)
    yield "if (whole && wide) {"
    yield "  elements all;"
    yield "  ROTA_EACH all[e] = (element)values[e];"
    yield (
        "  __builtin_amdgcn_raw_buffer_store_b128(__builtin_bit_cast(quad, all), out, "
        f"column < N ? offset : {NOWHERE}, 0, 0);"
    )
    yield "} else {"
    yield (
        f"  ROTA_EACH __builtin_amdgcn_raw_buffer_store_b{bits}(__builtin_bit_cast({word}, (element)values[e]), out, "
        f"column + e < N ? offset + e * {asked.output.bytes} : {NOWHERE}, 0, 0);"
    )
    yield "}"


def matrix_lines(asked: WholeGemm) -> Iterator[str]:
    """The batch's D, and C, and whether their rows begin where 16 bytes may be moved at once."""
    size = asked.output.bytes
    yield "element* const d_matrix = (element*)D + batch * d_batch;"
    yield f"const int d_row_bytes = (int)(d_stride * {size});"
    yield "const bool wide = (((u64)d_matrix | (u64)d_row_bytes) & 15) == 0;"
    if EpilogueStep.BETA in asked.epilogue:
        yield "const element* const c_matrix = (const element*)C + batch * c_batch;"
        yield f"const bool wide_c = (((u64)c_matrix | (u64)(c_stride * {size})) & 15) == 0;"


def _rows_of_d(asked: WholeGemm, first: str, rows: str) -> Iterator[str]:
    """Some rows of D as a buffer resource: what is stored after the last one is dropped."""
    yield (
        f"const __amdgpu_buffer_rsrc_t out = __builtin_amdgcn_make_buffer_rsrc(d_matrix + {first} * d_stride, 0, "
        f"({rows} - 1) * d_row_bytes + N * {asked.output.bytes}, {RAW});"
    )


def late_lines(names: Collection[str] = _LATE) -> Iterator[str]:
    """What only the end of a tile needs, read from the arguments' memory: kept through the loop it would be spilled.

    A pointer that is read is cast from global memory's, as those of parameters are.
    """
    constant, at = "__attribute__((address_space(4)))", 0
    yield f"const {constant} char* late = (const {constant} char*)__builtin_amdgcn_kernarg_segment_ptr();"
    yield 'asm volatile("" : "+s"(late));'
    for each in PARAMETERS:
        size = 4 if each.type in ("int", "float") else 8
        if each.name in names:
            read = each.type.replace("*", " __attribute__((address_space(1)))*")
            yield f"{each.type} const {each.name} = ({each.type})*({read} const {constant}*)(late + {at});"
        at += size
    yield " ".join(f"(void){name};" for name in sorted(names))


def closing_lines(binding: GemmBinding, asked: WholeGemm) -> Iterator[str]:
    """From the accumulators through LDS to D: a row of parts of all waves at a time, so that lanes store along rows."""
    tile, width, size = binding.tile, asked.output.width, asked.output.bytes
    m, n = binding.parts(Factor.A), binding.parts(Factor.B)
    own_parts = m // binding.buffers[Factor.A].slices
    slice_rows = tile.rows(Factor.A) // binding.buffers[Factor.A].slices
    columns = tile.geometry.BN // asked.products
    units, threads = columns // width, tile.waves * tile.lanes
    yield "// Sums go through LDS, a row of parts of all waves at a time, so that lanes store along rows of D."
    yield "ROTA_LDS float* const sums = (ROTA_LDS float*)memory;"
    yield from _rows_of_d(asked, f"(long long)tile_row * {tile.geometry.BM}", "a_rows")
    yield f"const bool whole = N % {width} == 0 || (tile_column + 1) * {columns} <= N;  // runs are D's or not at all"
    yield from _sums_of_a_split(asked, tile)
    yield (
        f"ROTA_LDS float* const keep = sums + (wave_row * {tile.side} + lane_group * 4) * {pitch(tile)} "
        f"+ wave_column * {binding.wave_rows(Factor.B)} + {lane_column(binding)};"
    )
    yield "ROTA_MEET"
    yield "#pragma clang loop unroll(disable)"
    yield f"for (int strip = 0; strip < {m}; ++strip) {{"
    yield "  switch (strip) {"
    for row in range(m):
        label = f"case {row}:" if row < m - 1 else "default:"
        kept = " ".join(f"ROTA_KEEP(c[{row}][{part}], {binding.column(part)})" for part in range(n))
        yield f"    {label} {kept} break;"
    yield "  }"
    yield "  ROTA_MEET"
    yield f"  const int strip_row = strip / {own_parts} * {slice_rows} + strip % {own_parts} * {tile.side};"
    yield "  #pragma clang loop unroll(disable)"
    runs = block_rows(tile) * units
    spare = runs % threads != 0  # in the last turn some lanes have nothing to store
    yield f"  for (int first = 0; first < {runs}; first += {threads}) {{"
    yield f"    const int unit = {f'first + thread < {runs} ? first + thread : 0' if spare else 'first + thread'};"
    yield f"    const int at_row = unit / {units}, at_column = unit % {units} * {width};"
    yield (
        f"    const int line = strip_row + at_row / {tile.side} * {binding.wave_rows(Factor.A)} + at_row % {tile.side};"
    )
    at = f"tile_column * {columns} + at_column"
    yield f"    const int column = {f'first + thread < {runs} ? {at} : N' if spare else at};"
    yield f"    ROTA_LDS const float* const from = sums + at_row * {pitch(tile)} + at_column;"
    yield f"    float values[{width}];"
    yield "    ROTA_EACH values[e] = from[e];"
    if asked.gate:
        yield f"    float others[{width}];"
        yield f"    ROTA_EACH others[e] = from[{columns} + e];"
    yield "    if (splits > 1) {"
    yield from (f"      {line}" for line in _partial_lines(asked))
    yield "      continue;"
    yield "    }"
    yield (
        f"    [[maybe_unused]] const long long row = (long long)tile_row * {tile.geometry.BM} "
        "+ (line < a_rows ? line : a_rows - 1);"
    )
    yield f"    const int offset = line * d_row_bytes + column * {size};"
    yield from (f"    {line}" for line in finish_lines(asked))
    yield "  }"
    yield "  ROTA_MEET"
    yield "}"


def _sums_of_a_split(asked: WholeGemm, tile: GemmTile) -> Iterator[str]:
    """The rows of a tile where a split leaves its sums, each of whole units."""
    unit = PARTIAL_UNIT
    yield f"const int across = (int)((N + {unit - 1}LL) / {unit} * {unit});"
    yield f"const int sums_row_bytes = across * {4 * asked.products};"
    yield (
        "const __amdgpu_buffer_rsrc_t place = __builtin_amdgcn_make_buffer_rsrc(partial + ((batch * splits + split) "
        f"* (long long)M + (long long)tile_row * {tile.geometry.BM}) * across * {asked.products}, 0, "
        f"a_rows * sums_row_bytes, {RAW});"
    )


def _partial_lines(asked: WholeGemm) -> Iterator[str]:
    """The sums of one split, as they are."""
    yield "typedef float floats __attribute__((ext_vector_type(4)));"
    yield f"const int at = column < N ? line * sums_row_bytes + column * 4 : (int){NOWHERE};"
    for first in range(0, asked.output.width, 4):
        for name, beyond in (("values", ""), ("others", "across * 4 + "))[: asked.products]:
            listed = ", ".join(f"{name}[{first + each}]" for each in range(4))
            yield (
                f"__builtin_amdgcn_raw_buffer_store_b128(__builtin_bit_cast(quad, floats{{{listed}}}), place, "
                f"at + {beyond}{4 * first}, 0, 0);"
            )


def reduction_lines(asked: WholeGemm) -> Iterator[str]:
    """The kernel that adds the splits in their order, always the same, and ends as the other does."""
    width = asked.output.width
    yield f"const u32 id = __builtin_amdgcn_workgroup_id_x() * {REDUCTION_THREADS}u + __builtin_amdgcn_workitem_id_x();"
    yield "const long long batch = __builtin_amdgcn_workgroup_id_z();"
    yield from matrix_lines(asked)
    yield f"const u32 units = ((u32)N + {width - 1}) / {width};"
    yield f"const long long row = id / units; const int column = (int)(id % units) * {width};"
    yield f"const u32 first = __builtin_amdgcn_workgroup_id_x() * {REDUCTION_THREADS}u / units;"
    yield (f"const int rows = M - (int)first < {REDUCTION_THREADS} ? M - (int)first : {REDUCTION_THREADS};  // at most")
    yield from _rows_of_d(asked, "(long long)first", "rows")
    yield f"const bool whole = N % {width} == 0;"
    yield "if (row >= M) return;"
    unit = PARTIAL_UNIT
    yield f"const long long across = (N + {unit - 1}LL) / {unit} * {unit};"
    yield (
        f"const float* const place = partial + (batch * splits * (long long)M + row) * across * {asked.products} "
        "+ column;"
    )
    yield f"float values[{width}];"
    yield "ROTA_EACH values[e] = 0;"
    if asked.gate:
        yield f"float others[{width}];"
        yield "ROTA_EACH others[e] = 0;"
    yield "for (int split = 0; split < splits; ++split) {"
    yield f"  const float* const from = place + split * (long long)M * across * {asked.products};"
    yield "  ROTA_EACH values[e] += from[e];"
    if asked.gate:
        yield "  ROTA_EACH others[e] += from[across + e];"
    yield "}"
    yield f"const int offset = (int)(row - first) * d_row_bytes + column * {asked.output.bytes};"
    yield from finish_lines(asked)
