"""The settings of a whole kernel, checked, and the steps of its epilogue."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

from rota.check import check_ints, check_types
from rota.emit.gemm.gemm_tile import BLayout, BlockScales, GemmTile
from rota.errors import EmissionError

# What is done to a sum before it is stored.
#
# A step is C++ over `values`, a run of `WIDTH` columns of one row as fp32; steps are applied in the order of the
# list.


_GELU_TANH = (
    "ROTA_LOGISTIC(values[e], 1.5957691216057308f * (values[e] + 0.044715f * values[e] * values[e] * values[e]))",
    "{0} *= 0.5 * (1 + std::tanh(0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})));",
    '{0} = torch.nn.functional.gelu({0}, approximate="tanh")',
)
_SILU = ("ROTA_LOGISTIC(values[e], values[e])", "{0} /= 1 + std::exp(-{0});", "{0} = torch.nn.functional.silu({0})")
_OTHER = "of the first product times the second"


class EpilogueStep(enum.Enum):
    """One step; the value is its word in an epilogue.

    The rest says what it does: in words, as the kernel writes it, and as the tests of a project do, in C++ and torch.
    """

    said: str
    kernel: str
    cpp: str
    torch: str

    def __new__(cls, word: str, said: str, kernel: str, cpp: str, torch: str) -> Self:
        step = object.__new__(cls)
        step._value_ = word
        step.said, step.kernel, step.cpp, step.torch = said, kernel, cpp, torch
        return step

    ALPHA = "alpha", "times alpha", "values[e] * alpha", "{0} *= p.alpha;", "{0} = {0} * alpha"
    BETA = (
        "beta",
        "plus beta times C",
        "values[e] + beta * read[e]",
        "{0} += p.beta * given.c[(std::size_t)row * p.N + column];",
        "{0} = {0} + beta * c",
    )
    ROW_SCALE = (
        "row_scale",
        "times the row's scale",
        "values[e] * row_factor",
        "{0} *= given.row_scale[row];",
        "{0} = {0} * row_scale[:, :, None]",
    )
    COLUMN_SCALE = (
        "column_scale",
        "times the column's scale",
        "values[e] * column_scale[batch * N + ROTA_COLUMN(e)]",
        "{0} *= given.column_scale[column];",
        "{0} = {0} * column_scale[:, None, :]",
    )
    ROW_BIAS = (
        "row_bias",
        "plus the row's bias",
        "values[e] + row_addend",
        "{0} += given.bias[row];",
        "{0} = {0} + bias[None, :, None]",
    )
    COLUMN_BIAS = (
        "column_bias",
        "plus the column's bias",
        "values[e] + (float)((const element*)bias)[ROTA_COLUMN(e)]",
        "{0} += given.bias[column];",
        "{0} = {0} + bias[None, None, :]",
    )
    RELU = "relu", "relu", "(values[e] < 0 ? 0 : values[e])", "if ({0} < 0) {0} = 0;", "{0} = torch.relu({0})"
    GELU = (
        "gelu",
        "gelu, with erf",
        "gelu(values[e])",
        "{0} *= 0.5 * (1 + std::erf({0} / std::sqrt(2.0)));",
        "{0} = torch.nn.functional.gelu({0})",
    )
    GELU_TANH = "gelu_tanh", "gelu, in its form with tanh", *_GELU_TANH
    SILU = "silu", "silu", *_SILU
    GATED_SILU = "gated_silu", f"silu {_OTHER} (SwiGLU)", *_SILU
    GATED_GELU_TANH = "gated_gelu_tanh", f"gelu, in its form with tanh, {_OTHER} (GeGLU)", *_GELU_TANH

    @property
    def gates(self) -> bool:
        """True if it makes one column of two, those of a second B."""
        return self in (EpilogueStep.GATED_SILU, EpilogueStep.GATED_GELU_TANH)


_BEFORE_A_GATE = (EpilogueStep.ALPHA, EpilogueStep.ROW_SCALE)
_BIASES = (EpilogueStep.ROW_BIAS, EpilogueStep.COLUMN_BIAS)

Steps = tuple[EpilogueStep, ...]


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
    return "; ".join(step.said for step in steps) or "the sum itself"


def step_lines(step: EpilogueStep) -> Iterator[str]:
    """A step as source: `values`, for a gate also `others`, at `row` and `column` of the batch's matrix."""
    yield f"// {step.said}"
    if step.gates:
        yield "ROTA_EACH {"
        yield f"  values[e] = {step.kernel} * others[e];"
        yield "}"
        return
    if step is EpilogueStep.ROW_SCALE:
        yield "const float row_factor = row_scale[batch * M + row];"
    if step is EpilogueStep.ROW_BIAS:
        yield "const float row_addend = (float)((const element*)bias)[row];"
    yield f"ROTA_EACH values[e] = {step.kernel};"


def also_before_a_gate(step: EpilogueStep) -> str:
    return f"ROTA_EACH others[e] = {step.kernel.replace('values[e]', 'others[e]')};"


def _refuse(message: str, *evidence: tuple[str, str], fixes: tuple[str, ...] = ()) -> EmissionError:
    return EmissionError.of("T209", message, evidence=evidence, fixes=fixes)


_VECTOR_BYTES = 16  # the widest store
_XCDS = 8  # of MI300X and MI355X
_GROUP = 4
_PLURALS = {"layout": "layouts"}
_Choice = TypeVar("_Choice", bound=enum.Enum)


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
    persistent = told.get("persistent", "false")
    if persistent not in ("true", "false"):
        raise _refuse(f"persistent is {persistent!r}", ("expected", "true or false"))
    return WholeGemm(
        output=_choose(told, "output", Output, "no kernel gives {!r}") or Output.F32,
        epilogue=parse_epilogue([word for word in told.get("epilogue", "").split(",") if word]),
        xcds=_number(told, "xcds", _XCDS),
        group=_number(told, "group", _GROUP),
        persistent=persistent == "true",
        layout=_choose(told, "layout", BLayout, "no loop reads B as {!r}"),
        scales=_choose(
            told,
            "scales",
            BlockScales,
            "no loop multiplies with scales of {}",
            "scales of rows and columns are steps of the epilogue: row_scale, column_scale",
        ),
    )


def _choose(told: Mapping[str, str], name: str, among: type[_Choice], refusal: str, *fixes: str) -> _Choice | None:
    known = {each.value: each for each in among}
    if name in told and told[name] not in known:
        raise _refuse(refusal.format(told[name]), (_PLURALS.get(name, name), ", ".join(known)), fixes=fixes)
    return known[told[name]] if name in told else None


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
