"""The machine that an author names stands until a setting says otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from rota import GFX942, DeclarationError, LoopSpec, Machine
from rota.cli.arguments import with_settings
from rota.kernels.gemm import MI300X_GEMM_SHAPES
from rota.kernels.kernel import Kernel
from tests.wording.golden import mentions, worded

LOOP = MI300X_GEMM_SHAPES[2].loop(instructions=False)  # its matrix instruction is MI300X's alone


@dataclass(frozen=True)
class Field:
    machine: Machine = GFX942

    def loop(self) -> LoopSpec:
        return LOOP


@dataclass(frozen=True)
class OpenField(Field):
    machine: Machine | None = None  # type: ignore[assignment]


class Method:
    def machine(self) -> object:
        return GFX942

    def loop(self) -> LoopSpec:
        return LOOP


class Attribute(Method):
    machine: Any = GFX942


class Nothing(Method):
    def machine(self) -> object:
        return None


class Word(Method):
    machine: Any = "gfx942"


def parameter(machine: Machine = GFX942) -> LoopSpec:
    assert machine is GFX942
    return LOOP


def without() -> LoopSpec:
    return LOOP


def _id(source: object) -> str:
    return getattr(source, "__name__", f"a {type(source).__name__}")


NAMED = [Field, Field(), Method, Method(), Attribute, Attribute(), parameter]


@pytest.mark.parametrize("source", NAMED, ids=_id)
def test_the_authors_machine_stands(source: object) -> None:
    assert Kernel(name="k", source=source).compile().machine is GFX942


@pytest.mark.parametrize("source", [*NAMED[:-1], OpenField, OpenField(), without], ids=_id)
def test_a_setting_says_otherwise(source: object) -> None:
    kernel = with_settings(Kernel(name="k", source=source), ["machine=gfx950"])
    with pytest.raises(DeclarationError) as caught:
        kernel.compile()
    worded(caught.value)
    assert mentions(caught.value, "gfx950", "v_mfma_f32_16x16x16_bf16")
    assert with_settings(kernel, ["machine=mi300x"]).compile().machine is GFX942


@pytest.mark.parametrize("source", [OpenField, without])
def test_where_none_is_named_the_error_says_how_to(source: object) -> None:
    with pytest.raises(DeclarationError) as raised:
        Kernel(name="k", source=source).compile()
    (finding,) = raised.value.findings
    assert finding.code == "D105"
    assert ("compiled for", "MI355X") in finding.evidence
    assert finding.fixes[0] == "--set machine=mi300x"


def test_an_instruction_that_no_machine_has_is_no_question_of_machines() -> None:
    unknown = replace(LOOP, ops=tuple(replace(op, instruction=op.instruction and "v_mfma_new") for op in LOOP.ops))
    with pytest.raises(DeclarationError) as raised:
        Kernel(name="k", source=unknown).compile()
    worded(raised.value)
    assert mentions(raised.value, "gfx950", "v_mfma_new")
    assert not any("machine=" in fix for fix in raised.value.findings[0].fixes)


@pytest.mark.parametrize("source", [Nothing(), Word()], ids=_id)
def test_what_is_no_machine_is_refused(source: object) -> None:
    with pytest.raises(DeclarationError) as caught:
        Kernel(name="k", source=source).compile()
    assert [each.code for each in worded(caught.value).findings] == ["D102"]


def test_a_loop_that_gives_no_loop_is_refused() -> None:
    class Empty:
        def loop(self) -> None:
            return None

    with pytest.raises(DeclarationError) as caught:
        Kernel(name="k", source=Empty()).compile()
    assert [each.code for each in worded(caught.value).findings] == ["D104"]


@dataclass(frozen=True)
class Wide:
    depth: int
    width: int = 1

    def loop(self) -> LoopSpec:
        return LOOP


def wide(depth: int = 64) -> Wide:
    return Wide(depth)


def test_settings_of_a_shape_outlast_a_parameter_that_makes_it_anew() -> None:
    for texts in (["shape.width=2", "depth=128"], ["depth=128", "shape.width=2"]):
        kernel = with_settings(Kernel(name="k", source=wide, machine=GFX942), texts)
        assert kernel.settings()["shape"].value == Wide(128, 2)


def test_a_parameter_of_the_authors_is_not_hidden_by_a_setting_of_that_name() -> None:
    def made(remainder: int = 1) -> LoopSpec:
        return LOOP

    assert Kernel(name="k", source=made).settings()["remainder"].value == 1
