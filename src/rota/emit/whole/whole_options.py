"""What a whole kernel is asked to be: takes settings, gives a checked `WholeGemm` and the parameters of its kernels."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rota.check import check_ints, check_types
from rota.emit.gemm.gemm_factors import BLayout, BlockScales
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.whole.epilogue_steps import EpilogueStep, Steps, check_epilogue, parse_epilogue
from rota.errors import EmissionError, Finding

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
        """Size of one."""
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
    """One parameter of a kernel."""

    type: str
    name: str
    what: str


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
    leaves the order alone.  `group` is how many rows of tiles are taken together, so that the tiles under way share
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
    def _order(self) -> tuple[tuple[str, int, int], ...]:
        return ("xcds", self.xcds, _XCDS), ("group", self.group, _GROUP)

    @property
    def words(self) -> tuple[str, ...]:
        """What tells it from others of the same loop, in a name."""
        return (
            self.output.value,
            *(step.value for step in self.epilogue),
            *(["persistent"] if self.persistent else []),
            *(f"{name}{value}" for name, value, usual in self._order if value != usual),
        )


def parse_options(told: Mapping[str, str]) -> WholeGemm:
    """Settings as words."""
    known = {"output", "epilogue", "xcds", "group", "persistent", "layout", "scales"}
    for name in told:
        if name not in known:
            raise _unknown(f"a whole kernel has no setting {name!r}", ("settings", ", ".join(sorted(known))))
    layouts = {each.value: each for each in BLayout}
    if told.get("layout", "nk") not in layouts:
        raise _unknown(f"no loop reads B as {told['layout']!r}", ("layouts", ", ".join(layouts)))
    scales = {each.value: each for each in BlockScales}
    if told.get("scales", "none") not in scales:
        raise _unknown(
            f"no loop multiplies with scales of {told['scales']}",
            ("scales", ", ".join(scales)),
            fixes=("scales of rows and columns are steps of the epilogue: row_scale, column_scale",),
        )
    outputs = {each.value: each for each in Output}
    output = told.get("output", Output.F32.value)
    if output not in outputs:
        raise _unknown(f"no kernel gives {output!r}", ("output", ", ".join(outputs)))
    persistent = told.get("persistent", "false")
    if persistent not in ("true", "false"):
        raise _unknown(f"persistent is {persistent!r}", ("expected", "true or false"))
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
        raise _unknown(
            f"the loop reads B as {have.spoken}, and is asked to read it as {asked.layout.spoken}",
            ("of the loop", have.value),
            ("asked for", asked.layout.value),
            fixes=(f"--set shape.b_layout={asked.layout.value} schedules a loop that does",),
        )
    if have is BLayout.KN and asked.persistent and (asked.gate or tile.waves > tile.simds or tile.pairs):
        raise _unknown(
            "no persistent kernel of two waves on a SIMD, of two B, or in pairs of columns takes B as K x N: registers "
            "don't suffice",
            ("waves", f"{tile.waves} on {tile.simds} SIMDs"),
            ("products", str(asked.products)),
            fixes=("leave persistent=true out", "or take B as N x K"),
        )


def check_scales(asked: WholeGemm, tile: GemmTile) -> None:
    """Has the loop the scales that are asked for?"""
    has = tile.scales
    if asked.scales not in (None, has):
        raise _unknown(
            f"the loop multiplies with scales of blocks: {has.value}; asked for: {asked.scales.value}",
            ("loop", has.value),
            fixes=(
                "1x32 is decided by the matrix instruction: v_mfma_scale_f32_16x16x128_f8f6f4 takes them",
                "1x128 by the shape: block_scales=True",
            ),
        )
    if tile.block_sums and asked.persistent:
        raise _unknown(
            "no persistent kernel takes scales of blocks in fp32: scalar registers don't suffice",
            ("scales", has.value),
            fixes=("leave persistent=true out",),
        )


def _number(told: Mapping[str, str], name: str, default: int) -> int:
    text = told.get(name, str(default))
    if not text.isdecimal():
        raise _unknown(f"{name} is {text!r}", ("expected", "a number from 1 on"))
    return int(text)


def _unknown(message: str, *evidence: tuple[str, str], fixes: tuple[str, ...] = ()) -> EmissionError:
    return EmissionError(Finding(code="T209", message=message, evidence=evidence, fixes=fixes))
