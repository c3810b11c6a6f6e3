"""A project around a whole GEMM: takes a schedule, a geometry and settings, gives the files of one that can be built.

Library, test and benchmark by CMake, and an extension of PyTorch with its test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_factors import BLayout, Element
from rota.emit.gemm.gemm_tile import GemmTile, gemm_tile
from rota.emit.gemm.hip_gemm import product_of
from rota.emit.register_waits import with_register_waits
from rota.emit.whole.epilogue_steps import EpilogueStep
from rota.emit.whole.whole_host import emit_launcher
from rota.emit.whole.whole_kernel import emit_whole, whole_name
from rota.emit.whole.whole_options import Output, WholeGemm
from rota.errors import EmissionError, Finding
from rota.pipeline.geometry import KernelGeometry
from rota.targets.architecture import Float8, architecture_of

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
_IN_CPP: Mapping[EpilogueStep, str] = {
    EpilogueStep.ALPHA: "{0} *= p.alpha;",
    EpilogueStep.BETA: "{0} += p.beta * given.c[(std::size_t)row * p.N + column];",
    EpilogueStep.ROW_SCALE: "{0} *= given.row_scale[row];",
    EpilogueStep.COLUMN_SCALE: "{0} *= given.column_scale[column];",
    EpilogueStep.ROW_BIAS: "{0} += given.bias[row];",
    EpilogueStep.COLUMN_BIAS: "{0} += given.bias[column];",
    EpilogueStep.RELU: "if ({0} < 0) {0} = 0;",
    EpilogueStep.GELU: "{0} *= 0.5 * (1 + std::erf({0} / std::sqrt(2.0)));",
    EpilogueStep.GELU_TANH: "{0} *= 0.5 * (1 + std::tanh(0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})));",
    EpilogueStep.SILU: "{0} /= 1 + std::exp(-{0});",
}
_IN_TORCH: Mapping[EpilogueStep, str] = {
    EpilogueStep.ALPHA: "{0} = {0} * alpha",
    EpilogueStep.BETA: "{0} = {0} + beta * c",
    EpilogueStep.ROW_SCALE: "{0} = {0} * row_scale[:, :, None]",
    EpilogueStep.COLUMN_SCALE: "{0} = {0} * column_scale[:, None, :]",
    EpilogueStep.ROW_BIAS: "{0} = {0} + bias[None, :, None]",
    EpilogueStep.COLUMN_BIAS: "{0} = {0} + bias[None, None, :]",
    EpilogueStep.RELU: "{0} = torch.relu({0})",
    EpilogueStep.GELU: "{0} = torch.nn.functional.gelu({0})",
    EpilogueStep.GELU_TANH: '{0} = torch.nn.functional.gelu({0}, approximate="tanh")',
    EpilogueStep.SILU: "{0} = torch.nn.functional.silu({0})",
}
_ACTS = {EpilogueStep.GATED_SILU: EpilogueStep.SILU, EpilogueStep.GATED_GELU_TANH: EpilogueStep.GELU_TANH}
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
    planned = with_register_waits(compiled)
    tile = gemm_tile(planned, geometry, element=element, waves=waves)
    if tile.element is Element.FP4 or tile.has_scales:
        raise EmissionError(
            Finding(
                code="T209",
                message="there is no project around a kernel of fp4, or with scales of blocks, yet: its test and its "
                "binding fill whole bytes and have no such scales",
                fixes=("`--form kernel` and `--form launcher` write the kernel and the header that launches it",),
            )
        )
    name = whole_name(planned, asked)
    found = {
        f"{name}.hip": emit_whole(compiled, geometry, asked, element=element, waves=waves),
        f"{name}.h": emit_launcher(compiled, geometry, asked, element=element, waves=waves),
    }
    words = _words(name, tile, asked)
    for template in sorted(files("rota.emit.whole").joinpath("project_files").iterdir(), key=lambda each: each.name):
        text = template.read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        found[template.name.removesuffix(".txt")] = text
    return found


def _words(name: str, tile: GemmTile, asked: WholeGemm) -> dict[str, str]:
    by_row = EpilogueStep.ROW_BIAS in asked.epilogue
    held: object = tile.element
    put = _PUT_ELEMENT.get(tile.element)
    if put is None:
        held = architecture_of(tile.machine).float8
        put = _PUT_FLOAT8[architecture_of(tile.machine).float8]
    given, out = _TORCH[held], _TORCH[asked.output]
    by_columns = tile.b_layout is BLayout.KN
    return {
        "PRODUCT": product_of(tile),
        "B_INDEX": "(std::size_t)k * p.N + column" if by_columns else "(std::size_t)column * p.K + k",
        "B_SIZES": "k, n" if by_columns else "n, k",
        "B_COLUMNS": "2" if by_columns else "1",
        "B_FACTOR": "" if by_columns else ".transpose(1, 2)",
        "NAME": name,
        "ARCH": tile.toolchain,
        "PUT_INPUT": _indented(put),
        "PUT_OUTPUT": _indented(_PUT[asked.output]),
        "GET_OUTPUT": _indented(_GET[asked.output]),
        "INPUT_BYTES": str(tile.element.bytes),
        "OUTPUT_BYTES": str(asked.output.bytes),
        "PRODUCTS": str(asked.products),
        "TOLERANCE": _NEAR[asked.output],
        "REFERENCE": _indented(_reference(asked, _IN_CPP, "double other = product(given.b_up);", ";")),
        "TORCH_REFERENCE": _indented(_reference(asked, _IN_TORCH, "", ""), 4),
        "TORCH_INPUT": _scalar_type(given),
        "TORCH_OUTPUT": _scalar_type(out),
        "TORCH_PYTHON_INPUT": given,
        "TORCH_PYTHON_OUTPUT": out,
        "BIAS_LENGTH": "m" if by_row else "n",
        "TORCH_BIAS_LENGTH": "m" if by_row else "n",
    }


def _scalar_type(name: str) -> str:
    known = {"bfloat16": "kBFloat16", "float16": "kFloat16", "float32": "kFloat32", "float8_e4m3fn": "kFloat8_e4m3fn"}
    known["float8_e4m3fnuz"] = "kFloat8_e4m3fnuz"
    return known[name]


def _reference(asked: WholeGemm, steps: Mapping[EpilogueStep, str], opening: str, end: str) -> Iterator[str]:
    """The epilogue in another language, step by step."""
    before = asked.gate is not None
    if before and opening:
        yield opening
    for step in asked.epilogue:
        if step.gates:
            before = False
            yield steps[_ACTS[step]].format("value")
            yield f"value = value * other{end}"
            continue
        yield steps[step].format("value")
        if before:
            yield steps[step].format("other")


def _indented(lines: Iterator[str] | tuple[str, ...], by: int = 2) -> str:
    return "\n".join(f"{' ' * by}{line}" for line in lines)
