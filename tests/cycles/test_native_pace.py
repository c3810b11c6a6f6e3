"""The compiled pace against the one in Python, which shares no code with it."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from rota.cycles import pace
from rota.cycles.pace import GLOBAL, LDS, MATH, TURNS, WAIT, PacedLoop, PaceStep
from tests.sanitized import sanitised

REGISTERS, COUNTERS = 4, 3
CLOCKS = st.integers(0, 40)
NEEDS = st.lists(st.tuples(st.integers(0, REGISTERS - 1), st.integers(-12, 12)), max_size=2).map(tuple)
MAKES = st.lists(st.integers(0, REGISTERS - 1), max_size=2).map(tuple)
MATHS = st.builds(PaceStep, st.just(MATH), CLOCKS, CLOCKS, NEEDS, MAKES, st.integers(0, 1), st.integers(1, 6))
ONE = st.just(1)
MEMORIES = st.builds(
    PaceStep, st.sampled_from([LDS, GLOBAL]), CLOCKS, CLOCKS, NEEDS, MAKES, st.integers(0, COUNTERS - 1), ONE
)
NONE: st.SearchStrategy[tuple[()]] = st.just(())
WAITS = st.builds(PaceStep, st.just(WAIT), st.integers(0, 3), st.just(0), NONE, NONE, st.integers(0, COUNTERS - 2), ONE)
RESTS = st.builds(lambda clocks: PaceStep(TURNS, clocks), CLOCKS)
ENTRIES = st.lists(st.one_of(MATHS, MEMORIES, WAITS, RESTS), max_size=5).map(tuple)
LOOPS = st.builds(
    PacedLoop,
    turn=st.just(4),
    latency=st.integers(0, 400),
    edge=st.sampled_from([0, 4, 12]),
    fused_waits=st.booleans(),
    turns_are_scarce=st.booleans(),
    registers=st.just(REGISTERS),
    holds=st.tuples(st.integers(1, 5), st.integers(1, 5), st.just(1 << 62)),
    pending=st.tuples(*[st.integers(0, 3)] * COUNTERS),
    entries=st.lists(ENTRIES, min_size=1, max_size=8).map(tuple),
    least=st.just(0),
)


def in_python(loop: PacedLoop) -> PacedLoop:
    other = replace(loop)
    object.__setattr__(other, "_native", None)
    return other


@pytest.mark.thorough  # compiles, or starts commands
@settings(max_examples=400, deadline=None)
@given(loop=LOOPS, data=st.data())
def test_both_take_as_long_with_the_same_entries_late(loop: PacedLoop, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(loop.entries))))
    ahead = data.draw(st.none() | st.lists(st.sampled_from(range(len(loop.entries))), max_size=20))
    compiled, python = loop, in_python(loop)
    assert compiled._native is not None
    try:
        expected = python.trip(order, ahead)
    except IndexError:  # a wait for more than was ever issued
        with pytest.raises(IndexError):
            compiled.trip(order, ahead)
        return
    assert compiled.trip(order, ahead) == expected
    assert compiled.clocks(order, ahead) == python.clocks(order, ahead) == expected.clocks


def small() -> PacedLoop:
    step = PaceStep(LDS, held=8, after=64, makes=(0,), place=0)
    return PacedLoop(
        turn=4, latency=100, edge=4, fused_waits=False, turns_are_scarce=False, registers=1, holds=(1, 1 << 62),
        pending=(0, 0), entries=((step,), (PaceStep(MATH, held=16, after=16, needs=((0, 0),)),)), least=0,
    )  # fmt: skip


def test_a_read_and_its_use() -> None:
    """The port is held for 8 clocks, the data is there 64 later; then the MFMA takes a turn, and the edge another."""
    assert small().clocks((0, 1), ahead=()) == 72 + 4 + 4


@pytest.mark.parametrize("entry", [2, -2, 1 << 40])
def test_an_entry_that_is_not_there_is_refused(entry: int) -> None:
    with pytest.raises(IndexError):
        small().clocks((0, entry))


def test_what_is_not_built_leaves_it_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.cycles.pace.library", lambda: None)
    python = small()
    assert python._native is None
    monkeypatch.undo()
    assert python.clocks((0, 1)) == small().clocks((0, 1))


@pytest.mark.thorough  # compiles, or starts commands
def test_nothing_leaves_its_memory(tmp_path: Path) -> None:
    """The drawn loops once more, with a core that has AddressSanitizer and UndefinedBehaviorSanitizer built in."""
    environment = sanitised(tmp_path / "librota_pace.so", [Path(pace.__file__).parent / "native" / "pace.c"])
    drawn = f"{__file__}::{test_both_take_as_long_with_the_same_entries_late.__name__}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-cov", drawn],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert "1 passed" in done.stdout
