"""Bad input ends in a finding; NumPy is loaded when a loop is executed and not before."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rota import RotaError
from rota.execute.clock import Latest, Random, Scripted, Together
from rota.execute.executor import execute, replay
from rota.execute.wave_trace import trace_of
from tests.execute.loops import FULL, SLOTS, Witnessed, ping_pong, with_syncs
from tests.wording.golden import mentions, worded

LOOP = with_syncs([FULL] * SLOTS)
BAD: dict[str, tuple[str, Callable[[], Any]]] = {
    "no loop": ("D104", lambda: execute(None, 1)),  # type: ignore[arg-type]
    "entries": ("D104", lambda: execute(replace(LOOP.lowered, kernel=(1,)), 1)),  # type: ignore[arg-type]
    "trip count": ("D102", lambda: execute(LOOP, -1)),
    "trip count's type": ("D102", lambda: execute(LOOP, True)),
    "waves": ("D102", lambda: execute(LOOP, 1, waves_per_role=0)),
    "one wave": ("D102", lambda: execute(LOOP, 1, waves_per_role=1)),
    "compiler waits": ("D102", lambda: execute(LOOP, 1, compiler_waits=1)),  # type: ignore[arg-type]
    "policy": ("D104", lambda: execute(LOOP, 1, policy="latest")),  # type: ignore[arg-type]
    "policy's class": ("D104", lambda: execute(LOOP, 1, policy=Latest)),  # type: ignore[arg-type]
    "policies": ("D104", lambda: execute(LOOP, 1, policy=(Latest(), 5))),  # type: ignore[arg-type]
    "no policies": ("D102", lambda: execute(LOOP, 1, policy=())),
    "policies together": ("D104", lambda: Together(policies=(None,))),  # type: ignore[arg-type]
    "seeds": ("D102", lambda: Random(seeds=0)),
    "first seed": ("D102", lambda: Random(first_seed=-1)),
    "no witness": ("D102", lambda: replay(LOOP, None)),  # type: ignore[arg-type]
    "witness's trip count": ("D102", lambda: replay(LOOP, Witnessed(trip_count=-1))),
    "no such group": ("D102", lambda: replay(LOOP, Witnessed(trip_count=1, behind=1))),
    "no other wave": (
        "D102",
        lambda: execute(ping_pong("GREEDY", 1), 1, policy=Scripted(witness=Witnessed(trip_count=1)), waves_per_role=1),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_in_a_finding(name: str) -> None:
    code, call = BAD[name]
    with pytest.raises(RotaError) as caught:
        call()
    (finding,) = caught.value.findings
    assert finding.code == code


def test_two_groups_of_one_wave_can_be_scripted() -> None:
    witness = Witnessed(trip_count=1, ahead=0, behind=1)
    assert execute(ping_pong("GREEDY", 1), 1, policy=Scripted(witness=witness), waves_per_role=1).right


def test_importing_the_executor_does_not_load_numpy() -> None:
    probe = "import sys, rota.execute.executor; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", probe], check=True)


def test_a_trace_reads_as_what_it_is() -> None:
    trace = trace_of(LOOP.lowered, 0, 1, compiler_waits=True)
    assert mentions(worded(str(trace)), 4 * SLOTS, "16", SLOTS)
    assert trace.where(0) == "prologue[0] tag 0 s0 t0 k0"
    assert trace.where(16) == "kernel[0] tag 2 s0 t0 (trip 1)"
