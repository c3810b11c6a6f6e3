"""The end of a whole kernel: from sums to D."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rota.emit.emission import unfit
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import Factor, GemmTile
from rota.emit.gemm.gemm_words import NOWHERE, RAW, lane_column
from rota.emit.text import WORDS, Template
from rota.emit.whole.whole_options import (
    PARAMETERS,
    REDUCTION_THREADS,
    EpilogueStep,
    Output,
    WholeGemm,
    also_before_a_gate,
    step_lines,
)

TEMPLATE = Template("rota.emit", "whole.hip.txt")
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
    needed = block_rows(tile) * pitch(tile) * 4
    if needed > lds_bytes:
        raise unfit(
            f"{block_rows(tile)} rows of sums take {needed} bytes of LDS on their way to D, and the loop leaves "
            f"{lds_bytes}",
            evidence=(("needed", needed), ("there", lds_bytes)),
        )


def finish_words(tile: GemmTile, asked: WholeGemm) -> Iterator[str]:
    stores = " ".join(
        f"keep[{(register // 4 * 4 * tile.lane_groups + register % 4) * pitch(tile)} + (column)] = value[{register}];"
        for register in range(tile.part_registers)
    )
    return TEMPLATE.lines("words", meet=WORDS.lines("meet"), stores=stores, width=asked.output.width)


def finish_types(asked: WholeGemm) -> Iterator[str]:
    gelu = TEMPLATE.lines("gelu") if EpilogueStep.GELU in asked.epilogue else ()
    return TEMPLATE.lines("types", type=asked.output.type, width=asked.output.width, gelu=gelu)


def finish_lines(asked: WholeGemm) -> Iterator[str]:
    """`values` (and `others`) at `row` and `column` become D's, at `offset` bytes of `out`.

    Nothing here branches lane by lane: every lane stores, those beyond N beyond `out`, where stores have no effect.
    So the number of stores in flight is the same on every path, which a proof of the machine code rests on.
    """
    steps: list[str] = []
    before = asked.gate is not None
    for step in asked.epilogue:
        before = before and not step.gates
        steps += step_lines(step)
        if before:
            steps.append(also_before_a_gate(step))
    beta = EpilogueStep.BETA in asked.epilogue
    return TEMPLATE.lines(
        "finish",
        asked=asked,
        read=TEMPLATE.lines("read_c", width=asked.output.width) if beta else (),
        steps=steps,
        nowhere=NOWHERE,
        bits=8 * asked.output.bytes,
        word="u32" if asked.output is Output.F32 else "unsigned short",
    )


def matrix_lines(asked: WholeGemm) -> Iterator[str]:
    """The batch's D, and C, and whether their rows begin where 16 bytes may be moved at once."""
    size = asked.output.bytes
    yield from TEMPLATE.lines("matrix", size=size)
    if EpilogueStep.BETA in asked.epilogue:
        yield from TEMPLATE.lines("matrix_c", size=size)


def _rows_of_d(asked: WholeGemm, first: str, rows: str) -> Iterator[str]:
    """Some rows of D as a buffer resource: what is stored after the last one is dropped."""
    return TEMPLATE.lines("rows_of_d", first=first, rows=rows, size=asked.output.bytes, raw=RAW)


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
    tile, width = binding.tile, asked.output.width
    m, n = binding.tile.parts(Factor.A), binding.tile.parts(Factor.B)
    slices = binding.buffers[Factor.A].slices
    columns = tile.geometry.BN // asked.products
    units, threads = columns // width, tile.waves * tile.lanes
    runs = block_rows(tile) * units
    unit, column = "first + thread", f"tile_column * {columns} + at_column"
    if runs % threads:  # in the last turn some lanes have nothing to store
        unit, column = (f"first + thread < {runs} ? {each}" for each in ("first + thread : 0", f"{column} : N"))
    cases = (
        (
            f"case {row}:" if row < m - 1 else "default:",
            *(f"ROTA_KEEP(c[{row}][{part}], {binding.column(part)})" for part in range(n)),
            "break;",
        )
        for row in range(m)
    )
    others = [f"float others[{width}];", f"ROTA_EACH others[e] = from[{columns} + e];"]
    return TEMPLATE.lines(
        "closing",
        tile=tile,
        asked=asked,
        rows_of_d=_rows_of_d(asked, f"(long long)tile_row * {tile.geometry.BM}", "a_rows"),
        columns=columns,
        sums=_sums_of_a_split(asked, tile),
        pitch=pitch(tile),
        a_rows=binding.wave_rows(Factor.A),
        b_rows=binding.wave_rows(Factor.B),
        lane_column=lane_column(binding),
        strips=m,
        cases=map(" ".join, cases),
        own_parts=m // slices,
        slice_rows=tile.rows(Factor.A) // slices,
        runs=runs,
        threads=threads,
        unit=unit,
        units=units,
        column=column,
        others=others if asked.gate else (),
        partial=_partial_lines(asked),
        finish=finish_lines(asked),
    )


def _sums_of_a_split(asked: WholeGemm, tile: GemmTile) -> Iterator[str]:
    """The rows of a tile where a split leaves its sums, each of whole units."""
    return TEMPLATE.lines(
        "sums_of_a_split",
        tile=tile,
        asked=asked,
        unit=PARTIAL_UNIT,
        last=PARTIAL_UNIT - 1,
        row_bytes=4 * asked.products,
        raw=RAW,
    )


def _partial_lines(asked: WholeGemm) -> Iterator[str]:
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
    return TEMPLATE.lines(
        "reduce",
        asked=asked,
        threads=REDUCTION_THREADS,
        matrices=matrix_lines(asked),
        last=width - 1,
        rows_of_d=_rows_of_d(asked, "(long long)first", "rows"),
        unit=PARTIAL_UNIT,
        last_of_unit=PARTIAL_UNIT - 1,
        others=[f"float others[{width}];", "ROTA_EACH others[e] = 0;"] if asked.gate else (),
        more=["ROTA_EACH others[e] += from[across + e];"] if asked.gate else (),
        finish=finish_lines(asked),
    )
