"""What is done to a sum before it is stored: takes the words of an epilogue, gives its steps as source.

A step is C++ over `values`, a run of `WIDTH` columns of one row as fp32; steps are applied in the order of the list.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

from rota.errors import EmissionError, Finding


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
        """Does it make one column of two, those of a second B?"""
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
    """The steps behind the words, if they can stand in that order."""
    known = {step.value: step for step in EpilogueStep}
    for word in words:
        if word not in known:
            raise _refused(f"an epilogue has no step {word!r}", evidence=(("steps", ", ".join(known)),))
    steps = tuple(known[word] for word in words)
    check_epilogue(steps)
    return steps


def check_epilogue(steps: Steps) -> None:
    """Each step at most once, one gate, one bias, and before a gate only what both products share."""
    for step in steps:
        if steps.count(step) > 1:
            raise _refused(f"the epilogue has the step {step.value} twice")
    if len([step for step in steps if step in _BIASES]) > 1:
        raise _refused("the epilogue adds two biases; the kernel has one pointer for a bias")
    gates = [number for number, step in enumerate(steps) if step.gates]
    if len(gates) > 1:
        raise _refused("the epilogue has two gates; there are only two products")
    for step in steps[: gates[0]] if gates else ():
        if step not in _BEFORE_A_GATE:
            raise _refused(
                f"{step.value} stands before a gate: what is done to both products there is "
                f"{' and '.join(each.value for each in _BEFORE_A_GATE)} alone",
                fixes=(f"put {step.value} behind the gate, or leave it to the caller",),
            )


def spoken(steps: Steps) -> str:
    """The steps in words."""
    return "; ".join(_SAID[step] for step in steps) or "the sum itself"


def step_lines(step: EpilogueStep) -> Iterator[str]:
    """A step as source: `values`, for a gate also `others`, at `row` and `column` of the batch's matrix."""
    yield f"// {_SAID[step]}"
    if step.gates:
        yield "ROTA_EACH {"
        yield f"  values[e] = {_activated(_GATES[step])} * others[e];"
        yield "}"
        return
    if step is EpilogueStep.ROW_SCALE:
        yield "const float row_factor = row_scale[batch * M + row];"
    if step is EpilogueStep.ROW_BIAS:
        yield "const float row_addend = (float)((const element*)bias)[row];"
    yield f"ROTA_EACH values[e] = {_value(step)};"


def also_before_a_gate(step: EpilogueStep) -> str:
    """The same step for the second product."""
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
    return plain[step] if step in plain else _activated(step)


def _activated(step: EpilogueStep) -> str:
    return {
        EpilogueStep.RELU: "(values[e] < 0 ? 0 : values[e])",
        EpilogueStep.SILU: "ROTA_LOGISTIC(values[e], values[e])",
        EpilogueStep.GELU_TANH: (
            "ROTA_LOGISTIC(values[e], "
            "1.5957691216057308f * (values[e] + 0.044715f * values[e] * values[e] * values[e]))"
        ),
        EpilogueStep.GELU: "gelu(values[e])",
    }[step]


def _refused(message: str, *, evidence: tuple[tuple[str, str], ...] = (), fixes: tuple[str, ...] = ()) -> EmissionError:
    return EmissionError(Finding(code="T209", message=message, evidence=evidence, fixes=fixes))
