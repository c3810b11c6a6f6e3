from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from rota import RotaError
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.values.loop import Loop
from tests.findings.smallest import raised

MFMA = "v_mfma_f32_16x16x32_bf16"


def gemm() -> Loop:
    loop = Loop("gemm", waves=8)
    a = loop.fragment("a", loop.tile("A", size=4096), registers=4, instructions=2)
    loop.load("A", name="load_lower", moved=2048)
    loop.load("A", name="load_upper", moved=2048)
    loop.mma(loop.accumulator("c", registers=16), a, instruction=MFMA, instructions=3)
    loop.valu("top", [a, Read(value="top", distance=1)], registers=1, instructions=5)
    return loop


def test_a_loop_is_a_value_of_named_values_and_ops() -> None:
    spec = gemm().build()
    assert spec == gemm().build()
    assert hash(spec) == hash(gemm().build())
    assert {value.name: value.home for value in spec.values} == {
        "a": Home.REGISTERS,
        "A": Home.LDS,
        "c": Home.ACCUMULATOR,
        "top": Home.REGISTERS,
    }
    assert [op.name for op in spec.ops] == ["read_a", "load_lower", "load_upper", "mma_c", "make_top"]
    assert [op.name for op in spec.writers("A")] == ["load_lower", "load_upper"]


def test_a_fragment_moves_its_registers_for_every_lane_of_every_wave() -> None:
    read = gemm().build().ops[0]
    assert read.moved == 4 * 4 * 64 * 8


def test_an_op_remembers_its_line() -> None:
    source = gemm().build().ops[0].source
    assert source is not None
    assert source.file == __file__


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("D102", lambda: Value(name="not a name", home=Home.LDS, size=1)),
        ("D102", lambda: Value(name="A", home=Home.LDS, size=0)),
        ("D102", lambda: LoopOp(name="x", kind=OpKind.MMA, instructions=0)),
        ("D102", lambda: LoopOp(name="1x", kind=OpKind.MMA)),
        ("D102", lambda: Read(value="A", distance=-1)),
        ("D102", lambda: LoopSpec(name="x", waves=0, values=(), ops=())),
        ("D104", lambda: LoopOp(name="x", kind=OpKind.MMA, reads=("A",))),  # type: ignore[arg-type]
        (
            "D105",
            lambda: LoopSpec(name="x", waves=1, values=(), ops=(LoopOp(name="x", kind=OpKind.MMA, writes=("C",)),)),
        ),
    ],
)
def test_malformed_declarations_are_refused(code: str, call: Callable[[], object]) -> None:
    raised(code, call)


def test_a_misspelt_value_is_refused_with_the_nearest_name() -> None:
    loop = gemm()
    loop.mma("c", "aa", instruction=MFMA, name="more")
    raised("D105", loop.build)


def test_a_tile_says_whose_rows_it_holds() -> None:
    loop = Loop("l", waves=4)
    loop.load(loop.tile("weights", size=4096, operand="A"), moved=4096)
    spec = loop.build()
    assert spec.value("weights").operand == "A"
    assert spec.value("weights") != replace(spec.value("weights"), operand="B")


@pytest.mark.parametrize("operand", ["C", "a", "AB", " "])
def test_there_are_two_operands(operand: str) -> None:
    raised("D102", lambda: Loop("l", waves=4).tile("A", size=4096, operand=operand))


def test_only_a_tile_is_an_operands() -> None:
    raised("D102", lambda: Value(name="a", home=Home.REGISTERS, size=4, operand="A"))


JUNK: dict[str, object] = {
    "nothing": None,
    "a fraction": 1.5,
    "bytes": b"x",
    "a list": [1],
    "a dictionary": {"a": 1},
    "an object": object(),
    "less than none": -2,
    "a list in a tuple": (["x"],),
    "nothing in a list": [None],
}
METHODS = [name for name, _ in inspect.getmembers(Loop, inspect.isfunction) if not name.startswith("_")]


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("method", METHODS)
def test_whatever_a_call_is_given_it_ends_in_a_loop_or_a_finding(method: str, junk: str) -> None:
    good = {"name": "new", "tile": "A", "size": 64, "registers": 4, "moved": 64, "instruction": MFMA, "memory": "m"}
    parameters = list(inspect.signature(getattr(Loop, method)).parameters.values())[1:]
    for wrong in parameters:
        loop = gemm()
        loop.memory("m", size=64)
        given = {
            each.name: good.get(each.name, "a" if each.default is each.empty else each.default) for each in parameters
        }
        given[wrong.name] = JUNK[junk]
        plain = [given[each.name] for each in parameters if each.kind is not each.KEYWORD_ONLY]
        named = {each.name: given[each.name] for each in parameters if each.kind is each.KEYWORD_ONLY}
        with suppress(RotaError):
            getattr(loop, method)(*plain, **named)
            loop.build()
