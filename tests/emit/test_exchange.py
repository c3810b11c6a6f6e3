from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from rota import GFX950, CompiledSchedule, DoubleBufferTag, OpRole, SingleBufferSchedule, compile_schedule
from rota.emit.document.exchange import VERSION, from_json, to_json
from rota.emit.forms import emit_skeleton
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.planning import with_register_waits
from rota.errors import RotaError
from rota.kernels.attention import ATTENTION
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.values.compile_loop import compile_loop
from rota.values.compiled_loop import CompiledLoop
from tests.emit.kernels import SMALL, SMALL_MI300X, ZOO, by_values, four_wave, ping_pong
from tests.findings.smallest import Small, two_tiles

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


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_what_is_written_is_what_is_read(name: str) -> None:
    compiled = SCHEDULES[name]()
    text = to_json(compiled)
    read = from_json(text)
    assert read == compiled
    assert str(read) == str(compiled)  # labels and names of tags, which equality leaves out
    assert to_json(read) == text
    assert json.loads(text)["version"] == VERSION


def as_said(read: CompiledSchedule, compiled: CompiledSchedule) -> CompiledSchedule:
    """With what only a search has shown."""
    if isinstance(read, CompiledLoop):
        assert isinstance(compiled, CompiledLoop)
        return replace(read, modulo=compiled.modulo)
    assert isinstance(read, CompiledPipeline)
    assert isinstance(compiled, CompiledPipeline)
    return replace(read, ordering=compiled.ordering)


@pytest.mark.parametrize("name", ["small", "four waves", "planned"])
def test_ops_know_again_what_their_author_declared(name: str) -> None:
    compiled = SCHEDULES[name]()
    read = from_json(to_json(compiled))
    pairs = list(zip(read.lowered.entries, compiled.lowered.entries, strict=True))
    assert [one.op.declared for one, _ in pairs] == [other.op.declared for _, other in pairs]
    assert [one.op.work for one, _ in pairs] == [other.op.work for _, other in pairs]
    assert any(one.op.declared is not None for one, _ in pairs)
    for one, other in zip(read.repairs, compiled.repairs, strict=True):
        assert one.op.work == other.op.work


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_what_is_emitted_can_be_read_again(name: str) -> None:
    """All but what only a search has shown."""
    compiled, _ = ZOO[name]()
    read = from_json(to_json(compiled))
    assert as_said(read, compiled) == compiled
    assert read.certificate == compiled.certificate


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
    loads = OpRole.GLOBAL_LOAD
    compiled = compile_schedule(Small(ops=[op.but(tag=Mine.LOAD) if op.role is loads else op for op in two_tiles()]))
    read = from_json(to_json(compiled))
    assert read == compiled
    assert isinstance(read, CompiledPipeline)
    assert {type(op.tag) for op in read.body if op.role is loads} == {int}
    assert all(isinstance(op.tag, DoubleBufferTag) for op in read.body if op.role is not loads)


def test_a_machine_of_ones_own_is_looked_up_among_those_given() -> None:
    own = replace(GFX950, name="mine", lds_bytes=GFX950.lds_bytes._replace(value=200 * 1024))
    compiled = replace(compile_schedule(SingleBufferSchedule(2), sync="as_written"), machine=own)
    assert from_json(to_json(compiled), machines=(own,)) == compiled


def test_kernel_dependencies_may_be_left_out() -> None:
    compiled, _ = four_wave()
    assert isinstance(compiled, CompiledPipeline)
    assert compiled.kernel_deps
    document = json.loads(to_json(compiled))
    del document["schedule"]["kernel_deps"]
    assert from_json(json.dumps(document)) == compiled


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


@pytest.mark.thorough  # runs for seconds
@given(data=st.data())
@settings(max_examples=60, deadline=None)
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
    waits = [entry for entry in schedule["kernel"] if entry["op"]["name"].startswith("wait_vm")]
    schedule["kernel"].remove(waits[0])
    for slot, entry in enumerate(schedule["kernel"]):
        entry["time_slot"] = slot
    emitted = emit_gemm(from_json(json.dumps(document)), geometry)
    assert emitted.count("WAIT_VM(") == emit_gemm(compiled, geometry).count("WAIT_VM(")
