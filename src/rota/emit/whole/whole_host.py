"""The host's side of a whole GEMM: a header that checks and launches, and a project around it.

Every precondition that the kernel rests on has a line in `NAME_check`, which says which one doesn't hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, NamedTuple

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_plan import GemmPlan, gemm_plan
from rota.emit.gemm.gemm_tile import BLayout, Element, Factor, GemmTile
from rota.emit.text import Template, identifier
from rota.emit.whole.whole_kernel import PARTIAL_UNIT, WholeKernel, print_whole, whole_name
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
        checks=(f'if (!({each.test})) return "{each.words}";' for each in conditions_of(name, tile, asked)),
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


class LaunchCheck(NamedTuple):
    """What a launcher checks: in C++, in words, and what the proof of the kernel's accesses takes from it.

    The facts are stated as `rota memory --where` takes them; `of_splits` are those of a launch with several splits.
    """

    test: str
    words: str
    facts: tuple[str, ...] = ()
    of_splits: tuple[str, ...] = ()


_LONGEST = (1 << 63) - 1  # of strides that aren't negative


def conditions_of(name: str, tile: GemmTile, asked: WholeGemm) -> Iterator[LaunchCheck]:
    """Conditions in the order in which later ones rest on earlier ones."""
    geometry, out = tile.geometry, asked.output.bytes
    threads = tile.waves * tile.lanes
    most_m, most_n = ((1 << 31) - 1 - each for each in (geometry.BM, geometry.BN))
    yield LaunchCheck("p.M >= 1 && p.N >= 1", "M and N are at least 1", ("M >= 1", "N >= 1"))
    yield LaunchCheck("p.K >= 0", "K is at least 0: a sum of nothing is zero", (f"K <= {(1 << 31) - 1}",))
    yield LaunchCheck(
        f"p.M <= INT_MAX - {geometry.BM} && p.N <= INT_MAX - {geometry.BN}",
        "M and N leave room for a tile",
        (f"M <= {most_m}", f"N <= {most_n}"),
    )
    yield LaunchCheck(f"p.K <= {_DEEPEST}", f"K is at most {_DEEPEST}", (f"K <= {_DEEPEST}",))
    if (packed := tile.element.packed) > 1:
        words = f"K is a multiple of {packed}, the elements of a byte"
        yield LaunchCheck(f"p.K % {packed} == 0", words, (f"K % {packed} == 0",))
    for count in ("batches", "splits"):
        test, facts = f"p.{count} >= 1 && p.{count} <= {_MOST_Y}", (f"{count} >= 1", f"{count} <= {_MOST_Y}")
        yield LaunchCheck(test, f"{count} are 1 to {_MOST_Y}", facts)
    tiles = _count_tiles(tile, asked)
    yield LaunchCheck(
        f"{name}_tiles(p) * {threads} <= UINT_MAX",
        "the grid has less than 2^32 threads",
        (f"{tiles} * {threads} <= {(1 << 32) - 1}",),
    )
    yield from _conditions_of_factors(tile, asked)
    yield from _conditions_of_scales(tile, asked)
    yield LaunchCheck("p.D != nullptr", "D is given")
    yield LaunchCheck(f"(std::uintptr_t)p.D % {out} == 0", "D is aligned to its elements")
    yield LaunchCheck("p.d_stride >= p.N", "rows of D are at least N elements apart", ("d_stride >= N",))
    rows = max(geometry.BM, REDUCTION_THREADS)
    most = (1 << 31) // (rows * out) - 1
    yield LaunchCheck(f"p.d_stride <= {most}", f"{rows} rows of D take less than 2 GiB", (f"d_stride <= {most}",))
    yield LaunchCheck(
        "p.d_batch >= 0 && p.d_batch < (1LL << 56)", "strides of D don't overflow", (f"d_batch <= {(1 << 56) - 1}",)
    )
    yield LaunchCheck("p.batches == 1 || p.d_batch >= (p.M - 1) * p.d_stride + p.N", "matrices of D don't overlap")
    yield from _conditions_of_end(asked)
    yield from _conditions_of_splits(tile, asked)
    if asked.persistent:
        words = "a persistent kernel needs at least one workgroup"
        yield LaunchCheck("p.workgroups >= 1", words, ("workgroups >= 1",))


def _conditions_of_factors(tile: GemmTile, asked: WholeGemm) -> Iterator[LaunchCheck]:
    geometry, size, packed = tile.geometry, tile.element.bytes, tile.element.packed
    for pointer, letter, (_, row) in _factors(tile, asked):
        stride, batch = f"{letter}_stride", f"{letter}_batch"
        yield LaunchCheck(f"p.{pointer} != nullptr", f"{pointer} is given")
        yield LaunchCheck(f"(std::uintptr_t)p.{pointer} % {size} == 0", f"{pointer} is aligned to its elements")
        words = f"rows of {pointer} are at least {row} elements apart"
        yield LaunchCheck(f"p.{stride} >= p.{row}", words, (f"{stride} >= {row}", f"{stride} <= {_LONGEST}"))
        if packed > 1:
            yield LaunchCheck(
                f"p.{stride} % {packed} == 0 && p.{batch} % {packed} == 0",
                f"rows and matrices of {pointer} begin at bytes, of {packed} elements each",
                (f"{stride} % {packed} == 0", f"{batch} % {packed} == 0"),
            )
        rows = geometry.BM if letter == "a" else geometry.BN // asked.products
        if tile.by_columns(Factor(letter)):
            # Elements of a K-tile's rows that a split may have.
            most = ((1 << 31) // size - geometry.BN - 1) // geometry.BK
            yield LaunchCheck(
                f"(p.K + {geometry.BK - 1}LL) / {geometry.BK} <= {most} / p.{stride} * p.splits",
                f"the rows of {pointer} that a split sums take less than 2 GiB",
                (f"(K + {geometry.BK - 1}) // {geometry.BK} * {stride} <= {most} * splits",),
            )
        else:
            most = (1 << 31) // (rows * size) * packed - 1
            words = f"{rows} rows of {pointer} take less than 2 GiB"
            yield LaunchCheck(f"p.{stride} <= {most}", words, (f"{stride} <= {most}",))
        yield LaunchCheck(f"p.{batch} >= 0", f"matrices of {pointer} follow one another", (f"{batch} <= {_LONGEST}",))


def _conditions_of_end(asked: WholeGemm) -> Iterator[LaunchCheck]:
    """Of what the epilogue reads."""
    out = asked.output.bytes
    if EpilogueStep.BETA in asked.epilogue:
        yield LaunchCheck("p.C != nullptr", "C is given")
        yield LaunchCheck(f"(std::uintptr_t)p.C % {out} == 0", "C is aligned to its elements")
        yield LaunchCheck(
            "p.c_stride >= p.N && p.c_stride < (1LL << 40)",
            "rows of C are at least N elements apart",
            ("c_stride >= N", f"c_stride <= {(1 << 40) - 1}"),
        )
        words = "matrices of C follow one another"
        yield LaunchCheck("p.c_batch >= 0 && p.c_batch < (1LL << 56)", words, (f"c_batch <= {(1 << 56) - 1}",))
    if {EpilogueStep.ROW_BIAS, EpilogueStep.COLUMN_BIAS} & set(asked.epilogue):
        test = f"p.bias != nullptr && (std::uintptr_t)p.bias % {out} == 0"
        yield LaunchCheck(test, "bias is given, and aligned to its elements")
    for step, pointer in ((EpilogueStep.ROW_SCALE, "row_scale"), (EpilogueStep.COLUMN_SCALE, "column_scale")):
        if step in asked.epilogue:
            test = f"p.{pointer} != nullptr && (std::uintptr_t)p.{pointer} % 4 == 0"
            yield LaunchCheck(test, f"{pointer} is given, and aligned to its elements")


def _conditions_of_splits(tile: GemmTile, asked: WholeGemm) -> Iterator[LaunchCheck]:
    rows, width = tile.geometry.BM, asked.output.width
    yield LaunchCheck(
        "p.splits == 1 || (p.partial != nullptr && (std::uintptr_t)p.partial % 16 == 0)",
        "splits have a workspace, aligned to 16 bytes",
    )
    most = (1 << 31) // (rows * 4 * asked.products) - PARTIAL_UNIT
    yield LaunchCheck(
        f"p.splits == 1 || p.N <= {most}",
        f"{rows} rows of a split's sums take less than 2 GiB",
        of_splits=(f"N <= {most}",),
    )
    yield LaunchCheck(
        f"p.splits == 1 || p.M * ((p.N + {width - 1}LL) / {width}) + {REDUCTION_THREADS} <= UINT_MAX",
        "the sums of splits have less than 2^32 runs of columns",
        of_splits=(f"M * ((N + {width - 1}) // {width}) + {REDUCTION_THREADS} <= {(1 << 32) - 1}",),
    )


def _conditions_of_scales(tile: GemmTile, asked: WholeGemm) -> Iterator[LaunchCheck]:
    if not tile.has_scales:
        return
    scales = tile.scales
    if tile.scaled:
        words = f"K is a multiple of {scales.block}, a block that has a scale"
        yield LaunchCheck(f"p.K % {scales.block} == 0", words, (f"K % {scales.block} == 0",))
    for pointer, letter, _ in _factors(tile, asked):
        operand = Factor(letter)
        rows = tile.scale_bytes(operand) // tile.geometry.scale_line  # which DMAs reach, if not get
        scale = f"{letter}_scale"
        yield LaunchCheck(f"p.{pointer}_scale != nullptr", f"{pointer}_scale is given")
        if scales.bytes > 1:
            yield LaunchCheck(
                f"(std::uintptr_t)p.{pointer}_scale % {scales.bytes} == 0",
                f"{pointer}_scale is aligned to its elements",
            )
        least, unit = scales.columns, "floats" if tile.block_sums else "bytes"
        most = (1 << 31) // (rows * scales.bytes) - 1
        yield LaunchCheck(
            f"p.{scale}_stride >= {scales.of_row('p.K')} && p.{scale}_stride <= {most}",
            f"rows of {pointer}_scale are at least {least} {unit} apart, {rows} of them less than 2 GiB",
            (f"{scale}_stride >= {_in_python(scales.of_row('K'))}", f"{scale}_stride <= {most}"),
        )
        words = f"matrices of {pointer}_scale follow one another"
        yield LaunchCheck(f"p.{scale}_batch >= 0", words, (f"{scale}_batch <= {_LONGEST}",))


# What is promised to the kernels, for the proof of their accesses of memory.


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPromises:
    """The bytes that each pointer leads to, and facts about arguments and the grid, each by what promises it.

    All are formulas as `rota memory` takes them.  `counts` are numbers that aren't arguments, with their ranges.
    """

    extents: tuple[str, ...]
    counts: tuple[str, ...]
    facts: tuple[tuple[str, tuple[str, ...]], ...]


THE_GRID = "the launcher starts the grid"
_SPLITS, _ONE_SPLIT = "the launch has several splits", "the launch has one split"


def promises_of(plan: GemmPlan, asked: WholeGemm, *, splits: bool, reduction: bool = False) -> KernelPromises:
    """What the launcher promises to a kernel, or to the one that adds splits; with several splits or with one."""
    tile = WholeKernel(plan, asked).tile
    facts = {
        each.words: (*each.facts, *(each.of_splits if splits else ()))
        for each in conditions_of("gemm", tile, asked)
    }  # fmt: skip
    tiles, width = _count_tiles(tile, asked), asked.output.width
    units = f"(M * ((N + {width - 1}) // {width}) + {REDUCTION_THREADS - 1}) // {REDUCTION_THREADS}"
    grid = ["group_z < batches"]
    if reduction:
        grid.append(f"group_x < {units}")
    elif asked.persistent:
        grid += ["group_y < splits", "group_x < workgroups", f"workgroups <= {tiles}"]
    else:
        grid += ["group_y < splits", f"group_x < {tiles}"]
    how_many = "splits >= 2" if splits else "splits == 1"
    facts |= {THE_GRID: tuple(grid), _SPLITS if splits else _ONE_SPLIT: (how_many,)}
    return KernelPromises(
        extents=tuple(f"{name}={size}" for name, size in _extents(tile, asked, splits=splits)),
        counts=("batches=1..4294967295",),
        facts=tuple((words, each) for words, each in facts.items() if each),
    )


def _count_tiles(tile: GemmTile, asked: WholeGemm) -> str:
    rows, columns = tile.geometry.BM, tile.geometry.BN // asked.products
    return f"((M + {rows - 1}) // {rows} * ((N + {columns - 1}) // {columns}))"


def _in_python(formula: str) -> str:
    return formula.replace(" / ", " // ")


def _extents(tile: GemmTile, asked: WholeGemm, *, splits: bool) -> Iterator[tuple[str, str]]:
    """The bytes of each array, of which the last row of the last matrix has no gap after it."""
    out, packed = asked.output.bytes, tile.element.packed
    for pointer, letter, (rows, row) in _factors(tile, asked):
        count = _count_elements(letter, rows, row)
        yield pointer, f"({count}) // {packed}" if packed > 1 else f"({count}) * {tile.element.bytes}"
    for pointer, letter, _ in _factors(tile, asked) if tile.has_scales else ():
        rows, row = "M" if letter == "a" else "N", f"({_in_python(tile.scales.of_row('K'))})"
        yield f"{pointer}_scale", f"({_count_elements(f'{letter}_scale', rows, row)}) * {tile.scales.bytes}"
    yield "D", f"({_count_elements('d', 'M', 'N')}) * {out}"
    yield "C", f"({_count_elements('c', 'M', 'N')}) * {out}"
    yield "bias", f"{'M' if EpilogueStep.ROW_BIAS in asked.epilogue else 'N'} * {out}"
    yield "row_scale", "batches * M * 4"
    yield "column_scale", "batches * N * 4"
    if splits:  # with one split there is no workspace, and nothing is said of it
        unit = PARTIAL_UNIT
        yield "partial", f"batches * splits * M * ((N + {unit - 1}) // {unit} * {unit * 4 * asked.products})"


def _count_elements(letter: str, rows: str, row: str) -> str:
    return f"(batches - 1) * {letter}_batch + ({rows} - 1) * {letter}_stride + {row}"


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
