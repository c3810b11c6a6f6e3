from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota import CompiledSchedule, DoubleBufferTag, OpDesc, OpRole, ResourceKind, SingleBufferSchedule, compile_schedule
from rota.compiler.loop import compile_loop
from rota.emit.exchange import VERSION, from_json, to_json
from rota.emit.hip_gemm import emit_gemm
from rota.emit.register_waits import with_register_waits
from rota.emit.skeleton import emit_skeleton
from rota.errors import RotaError
from rota.kernels.attention import ATTENTION
from tests.emit.kernels import SMALL, SMALL_MI300X, by_values, four_wave, ping_pong

SCHEDULES: dict[str, Callable[[], CompiledSchedule]] = {
    "ping-pong": lambda: ping_pong()[0],
    "four waves": lambda: four_wave()[0],
    "small": lambda: by_values(SMALL)[0],
    "mi300x": lambda: by_values(SMALL_MI300X)[0],
    "remainder": lambda: by_values(SMALL_MI300X, remainder=1)[0],
    "attention": lambda: compile_loop(ATTENTION.loop(instructions=False)),
    "single buffer": lambda: compile_schedule(SingleBufferSchedule(2)),
    "planned": lambda: with_register_waits(four_wave()[0]),
    "as written": lambda: compile_schedule(SingleBufferSchedule(2), sync="as_written"),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_what_is_written_is_what_is_read(name: str) -> None:
    compiled = SCHEDULES[name]()
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


@cache
def text_of(name: str) -> str:
    return to_json(SCHEDULES[name]())


def paths(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*path, key))


OTHER = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_changed_document_is_refused_or_still_a_schedule(data: st.DataObject) -> None:
    """Whatever stands in a field: a finding, or a schedule that every emitter takes or refuses."""
    document = json.loads(text_of(data.draw(st.sampled_from(["mi300x", "attention", "single buffer", "ping-pong"]))))
    path = data.draw(st.sampled_from(list(paths(document))))
    at = document
    for step in path[:-1]:
        at = at[step]
    if data.draw(st.booleans()):
        at[path[-1]] = data.draw(OTHER)
    else:
        del at[path[-1]]
    with suppress(RotaError):
        schedule = from_json(json.dumps(document))
        with suppress(RotaError):
            emit_skeleton(schedule)
        emit_gemm(schedule, by_values(SMALL_MI300X)[1])


def test_without_its_certificate_a_changed_schedule_is_planned_again() -> None:
    compiled, geometry = by_values(SMALL_MI300X)
    document = json.loads(to_json(compiled))
    schedule = document["schedule"]
    del schedule["certificate"], schedule["repairs"]
    waits = [entry for entry in schedule["kernel"] if entry["op"]["tag"] == "FrameworkTag.WAIT_VM"]
    schedule["kernel"].remove(waits[0])
    for slot, entry in enumerate(schedule["kernel"]):
        entry["time_slot"] = slot
    emitted = emit_gemm(from_json(json.dumps(document)), geometry)
    assert emitted.count("WAIT_VM(") == emit_gemm(compiled, geometry).count("WAIT_VM(")
