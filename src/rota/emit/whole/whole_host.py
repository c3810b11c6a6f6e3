"""The host's side of a whole GEMM: a header that checks and launches, and a project around it.

Every precondition that the kernel rests on has a line in `NAME_check`, which says which one doesn't hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Literal

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_plan import GemmPlan, gemm_plan
from rota.emit.gemm.gemm_tile import BLayout, Element, Factor, GemmTile
from rota.emit.text import Template, identifier
from rota.emit.whole.whole_finish import PARTIAL_UNIT
from rota.emit.whole.whole_kernel import WholeKernel, print_whole, whole_name
from rota.emit.whole.whole_options import PARAMETERS, REDUCTION_THREADS, EpilogueStep, Output, WholeGemm, spoken
from rota.errors import EmissionError
from rota.pipeline.geometry import KernelGeometry
from rota.targets.architecture import Float8, architecture_of

_TEMPLATE = Template("rota.emit", "launcher.h.txt")
_MOST_Y = 65535  # workgroups in the grid's second and third dimension
_DEEPEST = 1 << 30


def emit_launcher(
    compiled: CompiledSchedule,
    geometry: KernelGeometry,
    asked: WholeGemm | None = None,
    *,
    element: Element | None = None,
    waves: int | None = None,
) -> str:
    return print_launcher(gemm_plan(compiled, geometry, element=element, waves=waves), asked or WholeGemm())


def print_launcher(plan: GemmPlan, asked: WholeGemm) -> str:
    tile = WholeKernel(plan, asked).tile  # what can't be written has no launcher either
    name = identifier(whole_name(plan.compiled, asked))
    geometry, columns = tile.geometry, tile.geometry.BN // asked.products
    workgroups = "if (p.workgroups > tiles) p.workgroups" if asked.persistent else "p.workgroups"
    lines = _TEMPLATE.lines(
        "launcher",
        name=name,
        tile=tile,
        asked=asked,
        product=plan.product,
        epilogue=spoken(asked.epilogue),
        parameters=", ".join(map(str, PARAMETERS)),
        fields=_fields(tile),
        strides=_strides(tile),
        last_row=geometry.BM - 1,
        columns=columns,
        last_column=columns - 1,
        unit=PARTIAL_UNIT,
        last_of_unit=PARTIAL_UNIT - 1,
        least_tiles=2 * plan.program.tiles_outside,
        checks=(f'if (!({condition})) return "{words}";' for condition, words in _conditions(name, tile, asked)),
        overlaps=_overlaps(tile, asked),
        opening=launch_opening(name),
        workgroups=f"{workgroups} = (int)tiles;",
        arguments=", ".join(f"(void*)&p.{each.name}" for each in PARAMETERS),
        threads=tile.waves * tile.lanes,
        last_of_run=asked.output.width - 1,
        reducers=REDUCTION_THREADS,
        last_thread=REDUCTION_THREADS - 1,
    )
    return "\n".join([*lines, ""])


def _fields(tile: GemmTile) -> Iterator[str]:
    for each in PARAMETERS:
        start = {"alpha": "1", "splits": "1", "beta": "0"}.get(each.name, "nullptr" if "*" in each.type else "0")
        what = each.what.replace(BLayout.NK.spoken, tile.b_layout.spoken)
        # After the stride of A, which is at least K, that of B is "the same".
        least = ", but at least N" if each.name == "b_stride" and tile.by_columns(Factor.B) else ""
        yield f"{each} = {start};  // {what}{least}"


def _strides(tile: GemmTile) -> Iterator[str]:
    rows_of_b, row_of_b = tile.b_layout.sizes
    for letter, row in (("a", "K"), ("b", row_of_b), ("c", "N"), ("d", "N")):
        yield f"if (p.{letter}_stride == 0) p.{letter}_stride = p.{row};"
    for letter, rows in (("a", "M"), ("b", rows_of_b), ("c", "M"), ("d", "M")):
        yield f"if (p.{letter}_batch == 0) p.{letter}_batch = p.{letter}_stride * p.{rows};"
    for letter, rows in (("a", "M"), ("b", "N")):
        yield f"if (p.{letter}_scale_stride == 0) p.{letter}_scale_stride = {tile.scales.of_row('p.K')};"
        yield f"if (p.{letter}_scale_batch == 0) p.{letter}_scale_batch = p.{letter}_scale_stride * p.{rows};"


def _overlaps(tile: GemmTile, asked: WholeGemm) -> Iterator[str]:
    half = f" / {tile.element.packed}" if tile.element.packed > 1 else ""
    for pointer, letter, (rows, row) in _factors(tile, asked):
        stride, length, batch = (f"p.{each}{half}" for each in (f"{letter}_stride", row, f"{letter}_batch"))
        places = {"pointer": pointer, "rows": rows, "stride": stride, "length": length, "batch": batch}
        yield from _TEMPLATE.lines("overlap", size=tile.element.bytes, **places)
    for pointer, letter, (rows, _) in _factors(tile, asked) if tile.has_scales else ():
        yield from _TEMPLATE.lines(
            "overlap",
            pointer=f"{pointer}_scale",
            rows=rows,
            stride=f"p.{letter}_scale_stride",
            length=tile.scales.of_row("p.K"),
            batch=f"p.{letter}_scale_batch",
            size=tile.scales.bytes,
        )
    if EpilogueStep.BETA in asked.epilogue:
        yield from _TEMPLATE.lines("overlap_c", size=asked.output.bytes)


def _factors(tile: GemmTile, asked: WholeGemm) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Each factor's pointer, the letter of its strides, and its rows and their length."""
    yield "A", "a", ("M", "K")
    yield "B", "b", tile.b_layout.sizes
    if asked.gate:
        yield "B_up", "b", tile.b_layout.sizes


def _conditions(name: str, tile: GemmTile, asked: WholeGemm) -> Iterator[tuple[str, str]]:
    """Conditions in the order in which later ones rest on earlier ones."""
    geometry, size, out = tile.geometry, tile.element.bytes, asked.output.bytes
    columns, threads, width = geometry.BN // asked.products, tile.waves * tile.lanes, asked.output.width
    yield "p.M >= 1 && p.N >= 1", "M and N are at least 1"
    yield "p.K >= 0", "K is at least 0: a sum of nothing is zero"
    yield f"p.M <= INT_MAX - {geometry.BM} && p.N <= INT_MAX - {geometry.BN}", "M and N leave room for a tile"
    yield f"p.K <= {_DEEPEST}", f"K is at most {_DEEPEST}"
    if (packed := tile.element.packed) > 1:
        yield f"p.K % {packed} == 0", f"K is a multiple of {packed}, the elements of a byte"
    yield f"p.batches >= 1 && p.batches <= {_MOST_Y}", f"batches are 1 to {_MOST_Y}"
    yield f"p.splits >= 1 && p.splits <= {_MOST_Y}", f"splits are 1 to {_MOST_Y}"
    yield f"{name}_tiles(p) * {threads} <= UINT_MAX", "the grid has less than 2^32 threads"
    for pointer, letter, (_, row) in _factors(tile, asked):
        yield f"p.{pointer} != nullptr", f"{pointer} is given"
        yield f"(std::uintptr_t)p.{pointer} % {size} == 0", f"{pointer} is aligned to its elements"
        yield f"p.{letter}_stride >= p.{row}", f"rows of {pointer} are at least {row} elements apart"
        if packed > 1:
            yield (
                f"p.{letter}_stride % {packed} == 0 && p.{letter}_batch % {packed} == 0",
                f"rows and matrices of {pointer} begin at bytes, of {packed} elements each",
            )
        rows = geometry.BM if letter == "a" else columns
        if tile.by_columns(Factor(letter)):
            most = (
                (1 << 31) // size - geometry.BN - 1
            ) // geometry.BK  # elements of a K-tile's rows that a split may have
            yield (
                f"(p.K + {geometry.BK - 1}LL) / {geometry.BK} <= {most} / p.{letter}_stride * p.splits",
                f"the rows of {pointer} that a split sums take less than 2 GiB",
            )
        else:
            yield (
                f"p.{letter}_stride <= {(1 << 31) // (rows * size) * packed - 1}",
                f"{rows} rows of {pointer} take less than 2 GiB",
            )
        yield f"p.{letter}_batch >= 0", f"matrices of {pointer} follow one another"
    yield from _scale_conditions(tile, asked)
    yield "p.D != nullptr", "D is given"
    yield f"(std::uintptr_t)p.D % {out} == 0", "D is aligned to its elements"
    yield "p.d_stride >= p.N", "rows of D are at least N elements apart"
    rows = max(geometry.BM, REDUCTION_THREADS)
    yield f"p.d_stride <= {(1 << 31) // (rows * out) - 1}", f"{rows} rows of D take less than 2 GiB"
    yield "p.d_batch < (1LL << 56)", "strides of D don't overflow"
    yield "p.batches == 1 || p.d_batch >= (p.M - 1) * p.d_stride + p.N", "matrices of D don't overlap"
    if EpilogueStep.BETA in asked.epilogue:
        yield "p.C != nullptr", "C is given"
        yield f"(std::uintptr_t)p.C % {out} == 0", "C is aligned to its elements"
        yield "p.c_stride >= p.N && p.c_stride < (1LL << 40)", "rows of C are at least N elements apart"
        yield "p.c_batch >= 0 && p.c_batch < (1LL << 56)", "matrices of C follow one another"
    if {EpilogueStep.ROW_BIAS, EpilogueStep.COLUMN_BIAS} & set(asked.epilogue):
        yield f"p.bias != nullptr && (std::uintptr_t)p.bias % {out} == 0", "bias is given, and aligned to its elements"
    for step, pointer in ((EpilogueStep.ROW_SCALE, "row_scale"), (EpilogueStep.COLUMN_SCALE, "column_scale")):
        if step in asked.epilogue:
            yield (
                f"p.{pointer} != nullptr && (std::uintptr_t)p.{pointer} % 4 == 0",
                f"{pointer} is given, and aligned to its elements",
            )
    yield (
        "p.splits == 1 || (p.partial != nullptr && (std::uintptr_t)p.partial % 16 == 0)",
        "splits have a workspace, aligned to 16 bytes",
    )
    yield (
        f"p.splits == 1 || p.N <= {(1 << 31) // (geometry.BM * 4 * asked.products) - PARTIAL_UNIT}",
        f"{geometry.BM} rows of a split's sums take less than 2 GiB",
    )
    yield (
        f"p.splits == 1 || p.M * ((p.N + {width - 1}LL) / {width}) + {REDUCTION_THREADS} <= UINT_MAX",
        "the sums of splits have less than 2^32 runs of columns",
    )
    if asked.persistent:
        yield "p.workgroups >= 1", "a persistent kernel is told how many workgroups to start"


def _scale_conditions(tile: GemmTile, asked: WholeGemm) -> Iterator[tuple[str, str]]:
    if not tile.has_scales:
        return
    scales = tile.scales
    if tile.scaled:
        yield f"p.K % {scales.block} == 0", f"K is a multiple of {scales.block}, a block that has a scale"
    for pointer, letter, _ in _factors(tile, asked):
        operand = Factor(letter)
        rows = tile.scale_bytes(operand) // tile.geometry.scale_line  # which DMAs reach, if not get
        scale = f"p.{letter}_scale"
        yield f"p.{pointer}_scale != nullptr", f"{pointer}_scale is given"
        if scales.bytes > 1:
            yield (
                f"(std::uintptr_t)p.{pointer}_scale % {scales.bytes} == 0",
                f"{pointer}_scale is aligned to its elements",
            )
        least, unit = scales.columns, "floats" if tile.block_sums else "bytes"
        yield (
            f"{scale}_stride >= {scales.of_row('p.K')} && {scale}_stride <= {(1 << 31) // (rows * scales.bytes) - 1}",
            f"rows of {pointer}_scale are at least {least} {unit} apart, {rows} of them less than 2 GiB",
        )
        yield f"{scale}_batch >= 0", f"matrices of {pointer}_scale follow one another"


def launch_opening(name: str) -> Iterator[str]:
    """A launcher, up to where its problem has been checked."""
    return _TEMPLATE.lines("opening", name=name)


# A project around a whole GEMM.
#
# Library, test and benchmark by CMake, and an extension of PyTorch with its test.

_BF16 = ("const std::uint32_t bits = bits_of(value) >> 16;", "to[0] = (unsigned char)bits;", "to[1] = bits >> 8 & 255;")
_F16 = ("const _Float16 half = (_Float16)value;", "std::memcpy(to, &half, sizeof half);")
_F32 = ("std::memcpy(to, &value, sizeof value);",)
_FP8 = (
    "// e4m3 of OCP, for the integers from -2 to 2.",
    "const unsigned char codes[] = {0x00, 0x38, 0x40};",
    "to[0] = codes[value < 0 ? (int)-value : (int)value] | (value < 0 ? 0x80 : 0);",
)
_PUT: Mapping[Output, tuple[str, ...]] = {Output.BF16: _BF16, Output.F16: _F16, Output.F32: _F32}
_GET: Mapping[Output, tuple[str, ...]] = {
    Output.BF16: ("return float_of((std::uint32_t)from[0] << 16 | (std::uint32_t)from[1] << 24);",),
    Output.F16: ("_Float16 half;", "std::memcpy(&half, from, sizeof half);", "return (float)half;"),
    Output.F32: ("float value;", "std::memcpy(&value, from, sizeof value);", "return value;"),
}
_FNUZ = (_FP8[0].replace("OCP", "FNUZ"), _FP8[1].replace("0x38, 0x40", "0x40, 0x48"), _FP8[2])
_PUT_ELEMENT: Mapping[Element, tuple[str, ...]] = {Element.BF16: _BF16, Element.FP16: _F16}
_PUT_FLOAT8: Mapping[Float8, tuple[str, ...]] = {Float8.OCP: _FP8, Float8.FNUZ: _FNUZ}
_TORCH: Mapping[object, str] = {
    Element.BF16: "bfloat16",
    Element.FP16: "float16",
    Float8.OCP: "float8_e4m3fn",
    Float8.FNUZ: "float8_e4m3fnuz",
    Output.BF16: "bfloat16",
    Output.F16: "float16",
    Output.F32: "float32",
}
_IN_C10 = {"bfloat16": "BFloat16"}  # others only begin with a capital there
_NEAR = {Output.BF16: "8e-3", Output.F16: "1e-3", Output.F32: "1e-5"}


def emit_project(
    compiled: CompiledSchedule,
    geometry: KernelGeometry,
    asked: WholeGemm | None = None,
    *,
    element: Element | None = None,
    waves: int | None = None,
) -> dict[str, str]:
    """The files by name: the kernel, its header, and what builds, tests and times it."""
    asked = asked or WholeGemm()
    plan = gemm_plan(compiled, geometry, element=element, waves=waves)
    tile = plan.tile
    if tile.element is Element.FP4 or tile.has_scales:
        raise EmissionError.of(
            "T209",
            "there is no project around a kernel of fp4, or with scales of blocks, yet: its test and its "
            "binding fill whole bytes and have no such scales",
            fixes=("`--form kernel` and `--form launcher` write the kernel and the header that launches it",),
        )
    name = whole_name(plan.compiled, asked)
    found = {f"{name}.hip": print_whole(plan, asked), f"{name}.h": print_launcher(plan, asked)}
    words = _words(name, plan, asked)
    for template in sorted(files("rota.emit.whole").joinpath("project_files").iterdir(), key=lambda each: each.name):
        text = template.read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        found[template.name.removesuffix(".txt")] = text
    return found


def _words(name: str, plan: GemmPlan, asked: WholeGemm) -> dict[str, str]:
    tile = plan.tile
    by_row = EpilogueStep.ROW_BIAS in asked.epilogue
    held: object = tile.element
    put = _PUT_ELEMENT.get(tile.element)
    if put is None:
        held = architecture_of(tile.machine).float8
        put = _PUT_FLOAT8[architecture_of(tile.machine).float8]
    given, out = _TORCH[held], _TORCH[asked.output]
    by_columns = tile.b_layout is BLayout.KN
    return {
        "PRODUCT": plan.product,
        "B_INDEX": "(std::size_t)k * p.N + column" if by_columns else "(std::size_t)column * p.K + k",
        "B_SIZES": "k, n" if by_columns else "n, k",
        "ONE_B": "(65, 33)" if by_columns else "(33, 65)",
        "ONE_BIAS": "17" if by_row else "33",
        "B_COLUMNS": "2" if by_columns else "1",
        "B_FACTOR": "" if by_columns else ".transpose(1, 2)",
        "NAME": name,
        "ARCH": tile.toolchain,
        "PUT_INPUT": _indent(put),
        "PUT_OUTPUT": _indent(_PUT[asked.output]),
        "GET_OUTPUT": _indent(_GET[asked.output]),
        "INPUT_BYTES": str(tile.element.bytes),
        "OUTPUT_BYTES": str(asked.output.bytes),
        "PRODUCTS": str(asked.products),
        "TOLERANCE": _NEAR[asked.output],
        "REFERENCE": _indent(_reference(asked, "cpp", "double other = product(given.b_up);", ";")),
        "TORCH_REFERENCE": _indent(_reference(asked, "torch", "", ""), 4),
        "TORCH_INPUT": f"k{_IN_C10.get(given, given.capitalize())}",
        "TORCH_OUTPUT": f"k{_IN_C10.get(out, out.capitalize())}",
        "TORCH_PYTHON_INPUT": given,
        "TORCH_PYTHON_OUTPUT": out,
        "BIAS_LENGTH": "m" if by_row else "n",
        "TORCH_BIAS_LENGTH": "m" if by_row else "n",
    }


def _reference(asked: WholeGemm, language: Literal["cpp", "torch"], opening: str, end: str) -> Iterator[str]:
    before = asked.gate is not None
    if before and opening:
        yield opening
    for step in asked.epilogue:
        text: str = getattr(step, language)
        yield text.format("value")
        if step.gates:
            before = False
            yield f"value = value * other{end}"
        elif before:
            yield text.format("other")


def _indent(lines: Iterator[str] | tuple[str, ...], by: int = 2) -> str:
    return "\n".join(f"{' ' * by}{line}" for line in lines)
