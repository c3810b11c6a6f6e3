"""The settings of a whole kernel, checked, and the steps of its epilogue."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.check import check_ints, check_types
from rota.emit.gemm.gemm_tile import BLayout, BlockScales, GemmTile
from rota.errors import EmissionError

# What is done to a sum before it is stored.
#
# A step is C++ over `values`, a run of `WIDTH` columns of one row as fp32; steps are applied in the order of the
# list.


class EpilogueStep(enum.Enum):
    """One step; the value is its word in an epilogue."""

    ALPHA = "alpha"
    BETA = "beta"
    ROW_SCALE = "row_scale"
    COLUMN_SCALE = "column_scale"
    ROW_BIAS = "row_bias"
    COLUMN_BIAS = "column_bias"
    RELU = "relu"
    GELU = "gelu"
    GELU_TANH = "gelu_tanh"
    SILU = "silu"
    GATED_SILU = "gated_silu"
    GATED_GELU_TANH = "gated_gelu_tanh"

    @property
    def gates(self) -> bool:
        """True if it makes one column of two, those of a second B."""
        return self in _GATES


_GATES = {EpilogueStep.GATED_SILU: EpilogueStep.SILU, EpilogueStep.GATED_GELU_TANH: EpilogueStep.GELU_TANH}
_BEFORE_A_GATE = (EpilogueStep.ALPHA, EpilogueStep.ROW_SCALE)
_BIASES = (EpilogueStep.ROW_BIAS, EpilogueStep.COLUMN_BIAS)

Steps = tuple[EpilogueStep, ...]

_SAID = {
    EpilogueStep.ALPHA: "times alpha",
    EpilogueStep.BETA: "plus beta times C",
    EpilogueStep.ROW_SCALE: "times the row's scale",
    EpilogueStep.COLUMN_SCALE: "times the column's scale",
    EpilogueStep.ROW_BIAS: "plus the row's bias",
    EpilogueStep.COLUMN_BIAS: "plus the column's bias",
    EpilogueStep.RELU: "relu",
    EpilogueStep.GELU: "gelu, with erf",
    EpilogueStep.GELU_TANH: "gelu, in its form with tanh",
    EpilogueStep.SILU: "silu",
    EpilogueStep.GATED_SILU: "silu of the first product times the second (SwiGLU)",
    EpilogueStep.GATED_GELU_TANH: "gelu, in its form with tanh, of the first product times the second (GeGLU)",
}


def parse_epilogue(words: Sequence[str]) -> Steps:
    """The steps that the words name, if they can have that order."""
    known = {step.value: step for step in EpilogueStep}
    for word in words:
        if word not in known:
            raise _refuse(f"an epilogue has no step {word!r}", ("steps", ", ".join(known)))
    steps = tuple(known[word] for word in words)
    check_epilogue(steps)
    return steps


def check_epilogue(steps: Steps) -> None:
    """Each step at most once, one gate, one bias, and before a gate only what both products share."""
    for step in steps:
        if steps.count(step) > 1:
            raise _refuse(f"the epilogue has the step {step.value} twice")
    if len([step for step in steps if step in _BIASES]) > 1:
        raise _refuse("the epilogue adds two biases; the kernel has one pointer for a bias")
    gates = [number for number, step in enumerate(steps) if step.gates]
    if len(gates) > 1:
        raise _refuse("the epilogue has two gates; there are only two products")
    for step in steps[: gates[0]] if gates else ():
        if step not in _BEFORE_A_GATE:
            raise _refuse(
                f"{step.value} is before a gate: what is done to both products there is "
                f"{' and '.join(each.value for each in _BEFORE_A_GATE)} alone",
                fixes=(f"put {step.value} after the gate, or leave it to the caller",),
            )


def spoken(steps: Steps) -> str:
    return "; ".join(_SAID[step] for step in steps) or "the sum itself"


def step_lines(step: EpilogueStep) -> Iterator[str]:
    """A step as source: `values`, for a gate also `others`, at `row` and `column` of the batch's matrix."""
    yield f"// {_SAID[step]}"
    if step.gates:
        yield "ROTA_EACH {"
        yield f"  values[e] = {_activate(_GATES[step])} * others[e];"
        yield "}"
        return
    if step is EpilogueStep.ROW_SCALE:
        yield "const float row_factor = row_scale[batch * M + row];"
    if step is EpilogueStep.ROW_BIAS:
        yield "const float row_addend = (float)((const element*)bias)[row];"
    yield f"ROTA_EACH values[e] = {_value(step)};"


def also_before_a_gate(step: EpilogueStep) -> str:
    return f"ROTA_EACH others[e] = {_value(step).replace('values[e]', 'others[e]')};"


def _value(step: EpilogueStep) -> str:
    plain = {
        EpilogueStep.ALPHA: "values[e] * alpha",
        EpilogueStep.BETA: "values[e] + beta * read[e]",
        EpilogueStep.ROW_SCALE: "values[e] * row_factor",
        EpilogueStep.COLUMN_SCALE: "values[e] * column_scale[batch * N + ROTA_COLUMN(e)]",
        EpilogueStep.ROW_BIAS: "values[e] + row_addend",
        EpilogueStep.COLUMN_BIAS: "values[e] + (float)((const element*)bias)[ROTA_COLUMN(e)]",
    }
    return plain[step] if step in plain else _activate(step)


def _activate(step: EpilogueStep) -> str:
    return {
        EpilogueStep.RELU: "(values[e] < 0 ? 0 : values[e])",
        EpilogueStep.SILU: "ROTA_LOGISTIC(values[e], values[e])",
        EpilogueStep.GELU_TANH: (
            "ROTA_LOGISTIC(values[e], "
            "1.5957691216057308f * (values[e] + 0.044715f * values[e] * values[e] * values[e]))"
        ),
        EpilogueStep.GELU: "gelu(values[e])",
    }[step]


def _refuse(message: str, *evidence: tuple[str, str], fixes: tuple[str, ...] = ()) -> EmissionError:
    return EmissionError.of("T209", message, evidence=evidence, fixes=fixes)


_VECTOR_BYTES = 16  # the widest store
_XCDS = 8  # of MI300X and MI355X
_GROUP = 4


class Output(enum.Enum):
    """What D, C and a bias hold; the value is its word."""

    BF16 = "bf16"
    F16 = "f16"
    F32 = "fp32"

    @property
    def bytes(self) -> int:
        return 4 if self is Output.F32 else 2

    @property
    def width(self) -> int:
        """How many one lane stores at once."""
        return _VECTOR_BYTES // self.bytes

    @property
    def type(self) -> str:
        """How clang spells it, without a header."""
        return {Output.BF16: "__bf16", Output.F16: "_Float16", Output.F32: "float"}[self]


class Parameter(NamedTuple):
    type: str
    name: str
    what: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


PARAMETERS: tuple[Parameter, ...] = (
    Parameter("const void*", "A", "M x K"),
    Parameter("const void*", "B", "N x K"),
    Parameter("const void*", "B_up", "N x K, the second B of a gated epilogue"),
    Parameter("const void*", "C", "M x N, as D, for beta"),
    Parameter("const void*", "bias", "M or N values, as D"),
    Parameter("const float*", "row_scale", "M values for each matrix of a batch"),
    Parameter("const float*", "column_scale", "N values for each matrix of a batch"),
    Parameter("void*", "D", "M x N"),
    Parameter("float*", "partial", "the sums of each split, if there are several"),
    Parameter("const void*", "A_scale", "of A's blocks, M rows of K / 32 bytes (E8M0), or of ceil(K / 128) floats"),
    Parameter("const void*", "B_scale", "of B's, N rows"),
    Parameter("const void*", "B_up_scale", "of the second B's, N rows"),
    Parameter("long long", "a_stride", "elements from a row of A to the next, at least K"),
    Parameter("long long", "b_stride", "the same of B"),
    Parameter("long long", "c_stride", "of C"),
    Parameter("long long", "d_stride", "of D, at least N"),
    Parameter("long long", "a_batch", "elements from a matrix of a batch to the next, of A"),
    Parameter("long long", "b_batch", "of B"),
    Parameter("long long", "c_batch", "of C"),
    Parameter("long long", "d_batch", "of D"),
    Parameter("long long", "a_scale_stride", "bytes, or floats, from a row of A's scales to the next"),
    Parameter("long long", "b_scale_stride", "the same of B's"),
    Parameter("long long", "a_scale_batch", "the same from the scales of a matrix of a batch to the next, of A"),
    Parameter("long long", "b_scale_batch", "of B"),
    Parameter("int", "M", "rows"),
    Parameter("int", "N", "columns"),
    Parameter("int", "K", "depth"),
    Parameter("int", "splits", "workgroups that share the K of one tile"),
    Parameter("int", "workgroups", "of the grid's first dimension, for a persistent kernel"),
    Parameter("float", "alpha", "factor of the sum"),
    Parameter("float", "beta", "factor of C"),
)
"""Of every kernel, whatever its epilogue uses of them."""

REDUCTION_THREADS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeGemm:
    """The settings of a whole kernel.

    `xcds` are the dies among which the machine deals workgroups in turn: each gets a run of neighbouring tiles; 1
    leaves the order alone.  `group` is how many rows of tiles are taken together, so that the tiles in flight share
    rows of A and of B in a die's L2.  `layout` is how B must lie, and `scales` are those of blocks: both are the loop's
    to say; None takes what it says.
    """

    output: Output = Output.F32
    epilogue: Steps = ()
    xcds: int = _XCDS
    group: int = _GROUP
    persistent: bool = False
    layout: BLayout | None = None
    scales: BlockScales | None = None

    def __post_init__(self) -> None:
        check_types(self, {"output": Output, "epilogue": tuple, "persistent": bool})
        check_ints(self, ("xcds", "group"), least=1)
        check_epilogue(self.epilogue)

    @property
    def gate(self) -> EpilogueStep | None:
        """The step that takes a second product."""
        return next((step for step in self.epilogue if step.gates), None)

    @property
    def products(self) -> int:
        """Products of A that one column of D is made of."""
        return 2 if self.gate else 1

    @property
    def words(self) -> tuple[str, ...]:
        """What tells it from others of the same loop, in a name."""
        return (
            self.output.value,
            *(step.value for step in self.epilogue),
            *(["persistent"] if self.persistent else []),
            *([f"xcds{self.xcds}"] if self.xcds != _XCDS else []),
            *([f"group{self.group}"] if self.group != _GROUP else []),
        )


def parse_options(told: Mapping[str, str]) -> WholeGemm:
    known = {"output", "epilogue", "xcds", "group", "persistent", "layout", "scales"}
    for name in told:
        if name not in known:
            raise _refuse(f"a whole kernel has no setting {name!r}", ("settings", ", ".join(sorted(known))))
    layouts = {each.value: each for each in BLayout}
    if told.get("layout", "nk") not in layouts:
        raise _refuse(f"no loop reads B as {told['layout']!r}", ("layouts", ", ".join(layouts)))
    scales = {each.value: each for each in BlockScales}
    if told.get("scales", "none") not in scales:
        raise _refuse(
            f"no loop multiplies with scales of {told['scales']}",
            ("scales", ", ".join(scales)),
            fixes=("scales of rows and columns are steps of the epilogue: row_scale, column_scale",),
        )
    outputs = {each.value: each for each in Output}
    output = told.get("output", Output.F32.value)
    if output not in outputs:
        raise _refuse(f"no kernel gives {output!r}", ("output", ", ".join(outputs)))
    persistent = told.get("persistent", "false")
    if persistent not in ("true", "false"):
        raise _refuse(f"persistent is {persistent!r}", ("expected", "true or false"))
    return WholeGemm(
        output=outputs[output],
        epilogue=parse_epilogue([word for word in told.get("epilogue", "").split(",") if word]),
        xcds=_number(told, "xcds", _XCDS),
        group=_number(told, "group", _GROUP),
        persistent=persistent == "true",
        layout=layouts[told["layout"]] if "layout" in told else None,
        scales=scales[told["scales"]] if "scales" in told else None,
    )


def check_layout(asked: WholeGemm, tile: GemmTile) -> None:
    """A loop reads B as it was declared to, whatever is asked for around it."""
    have = tile.b_layout
    if asked.layout not in (None, have):
        raise _refuse(
            f"the loop reads B as {have.spoken}, and is asked to read it as {asked.layout.spoken}",
            ("of the loop", have.value),
            ("asked for", asked.layout.value),
            fixes=(f"--set shape.b_layout={asked.layout.value} schedules a loop that does",),
        )
    if have is BLayout.KN and asked.persistent and (asked.gate or tile.waves > tile.simds or tile.pairs):
        raise _refuse(
            "no persistent kernel of two waves on a SIMD, of two B, or in pairs of columns takes B as K x N: registers "
            "don't suffice",
            ("waves", f"{tile.waves} on {tile.simds} SIMDs"),
            ("products", str(asked.products)),
            fixes=("leave persistent=true out", "or take B as N x K"),
        )


def check_scales(asked: WholeGemm, tile: GemmTile) -> None:
    has = tile.scales
    if asked.scales not in (None, has):
        raise _refuse(
            f"the loop multiplies with scales of blocks: {has.value}; asked for: {asked.scales.value}",
            ("loop", has.value),
            fixes=(
                "1x32 is decided by the matrix instruction: v_mfma_scale_f32_16x16x128_f8f6f4 takes them",
                "1x128 by the shape: block_scales=True",
            ),
        )
    if tile.block_sums and asked.persistent:
        raise _refuse(
            "no persistent kernel takes scales of blocks in fp32: scalar registers don't suffice",
            ("scales", has.value),
            fixes=("leave persistent=true out",),
        )


def _number(told: Mapping[str, str], name: str, default: int) -> int:
    text = told.get(name, str(default))
    if not text.isdecimal():
        raise _refuse(f"{name} is {text!r}", ("expected", "a number from 1 on"))
    return int(text)
