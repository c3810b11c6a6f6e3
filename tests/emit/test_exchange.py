from __future__ import annotations

import enum
import json

import pytest

from rota import DoubleBufferTag, OpDesc, OpRole, ResourceKind, SingleBufferSchedule, compile_schedule
from rota.compiler.loop import compile_loop
from rota.emit.exchange import VERSION, from_json, to_json
from rota.emit.hip_gemm import emit_gemm
from rota.emit.register_waits import with_register_waits
from rota.kernels.attention import ATTENTION
from tests.emit.kernels import SMALL, SMALL_MI300X, by_values, four_wave, ping_pong


@pytest.mark.parametrize(
    "name", ["ping-pong", "four waves", "small", "mi300x", "attention", "single buffer", "planned"]
)
def test_what_is_written_is_what_is_read(name: str) -> None:
    compiled = {
        "ping-pong": lambda: ping_pong()[0],
        "four waves": lambda: four_wave()[0],
        "small": lambda: by_values(SMALL)[0],
        "mi300x": lambda: by_values(SMALL_MI300X)[0],
        "attention": lambda: compile_loop(ATTENTION.loop()),
        "single buffer": lambda: compile_schedule(SingleBufferSchedule(2)),
        "planned": lambda: with_register_waits(four_wave()[0]),
    }[name]()
    text = to_json(compiled)
    read = from_json(text)
    assert read == compiled
    assert str(read) == str(compiled)  # labels and names of tags, which equality leaves out
    assert to_json(read) == text
    assert json.loads(text)["version"] == VERSION


def test_a_read_schedule_emits_the_same_source() -> None:
    compiled, geometry = ping_pong()
    assert emit_gemm(from_json(to_json(compiled)), geometry) == emit_gemm(compiled, geometry)


def test_no_file_of_the_author_is_told() -> None:
    compiled, _ = by_values(SMALL)
    assert any(entry.op.source is not None for entry in compiled.kernel)
    assert ".py" not in to_json(compiled)


class Mine(enum.IntEnum):
    LOAD = 7


def test_an_authors_tag_is_read_as_its_number() -> None:
    compiled, _ = ping_pong()
    op = OpDesc(tag=Mine.LOAD, resource=ResourceKind.GLOBAL_MEM, role=OpRole.GLOBAL_LOAD)
    from dataclasses import replace

    marked = replace(compiled, body=(op, *compiled.body))
    read = from_json(to_json(marked))
    assert read == marked
    assert type(read.body[0].tag) is int
    assert isinstance(read.body[1].tag, DoubleBufferTag)
