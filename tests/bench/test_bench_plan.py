"""A launch as a user describes it becomes the bytes that HIP is given."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rota.bench.bench_plan import BenchPlan, pair_subjects, plan_pair
from rota.errors import DeclarationError, IsaError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.kernel_facts import Argument
from tests.bench.host import read_calls, run_folder, write_folder
from tests.lint.linted import compiled
from tests.wording.golden import worded

BODY = """void k(const float* x, int n, float* y, double scale, float* none) {
  y[__builtin_amdgcn_workitem_id_x()] = n * scale * x[0];
}"""


def planned(**changes: Any) -> BenchPlan:
    x, y = np.arange(64, dtype=np.float32), np.zeros(32, np.float32)
    given = {"args": [x, 7, y[16:], 0.5, None], "grid": (3, 2), "block": 64} | changes
    code = compiled(BODY)
    return plan_pair(code, code, "k", given)


def test_arguments_lie_where_the_metadata_says() -> None:
    (case,) = planned().cases
    (launch,) = case.candidates[0].launches
    assert (launch.grid, launch.block, launch.dynamic_lds) == ((3, 2, 1), (64, 1, 1), 0)
    assert launch.segment == struct.pack("<QiiQdQ", 0, 7, 0, 0, 0.5, 0)  # nothing of the hidden ones
    assert [(each.offset, each.buffer, each.displacement) for each in launch.pointers] == [(0, 0, 0), (16, 1, 0)]
    data, zeros = case.buffers
    assert (data.size, data.data) == (256, np.arange(64, dtype=np.float32).tobytes())
    assert (zeros.size, zeros.data) == (64, None)
    assert [each.launches[0].obj for each in case.candidates] == [0, 1]


def test_views_of_one_array_are_one_buffer() -> None:
    whole = np.ones(64, np.float32)
    (case,) = planned(args=[whole[1:], 7, whole[:32], 0.5, None]).cases
    assert [each.size for each in case.buffers] == [256]
    (launch,) = case.candidates[0].launches
    assert [(each.offset, each.displacement) for each in launch.pointers] == [(0, 4), (16, 0)]
    alone = planned(args=[whole[1:], 7, np.zeros(64, np.float32), 0.5, None]).cases[0].buffers[0]
    assert (alone.size, alone.skew) == (252, 4)


def test_the_launch_of_a_user_reaches_hip(tmp_path: Path) -> None:
    write_folder(tmp_path, replace(planned(dynamic_lds=256), rounds=1, flush_bytes=64))
    assert run_folder(tmp_path, ARCH="gfx950").returncode == 0
    launch = next(call.split() for call in read_calls(tmp_path) if call.startswith("hipModuleLaunch"))
    assert launch[2:9] == ["3", "2", "1", "64", "1", "1", "256"]
    segment = bytes.fromhex(launch[9])
    assert (segment[8:12], segment[24:32]) == (struct.pack("<i", 7), struct.pack("<d", 0.5))


def refused(**changes: Any) -> str:
    with pytest.raises(IsaError) as caught:
        planned(**changes)
    (finding,) = caught.value.findings
    assert worded(finding).code == "I107"
    return str(dict(finding.evidence).get("reason", ""))


def test_a_launch_that_does_not_fit_is_refused() -> None:
    refused(args=[1])
    refused(block=2048)
    refused(grid=0)
    refused(unknown=1)
    assert "array" in refused(args=[None, 7, None, 0.5, None])


def with_arguments(code: CodeObject, *arguments: Argument) -> CodeObject:
    return replace(code, kernels=(replace(code.kernels[0], arguments=arguments),))


def test_what_hip_would_not_pass_is_refused() -> None:
    code, given = compiled(BODY), {"args": [np.zeros(4, np.float32)], "block": 64}
    shared = Argument(name="s", offset=8, size=4, kind="dynamic_shared_pointer")
    pointer = Argument(name="x", offset=0, size=8, kind="global_buffer")
    for arguments, args in (((), given["args"]), ((pointer, shared), [*given["args"], 64])):  # type: ignore[misc]
        other = with_arguments(code, *arguments)
        with pytest.raises(IsaError) as caught:
            plan_pair(other, other, "k", given | {"args": args})
        assert "reason" in dict(worded(caught.value.findings[0]).evidence)


def test_subjects_are_the_objects_and_the_names() -> None:
    code, other = compiled(BODY), compiled(BODY.replace("n *", "n +"))
    plan = planned()
    assert plan.subjects == pair_subjects(code, code, "k")
    assert plan.subjects.digest != pair_subjects(code, other, "k").digest
    assert planned(grid=9).subjects.digest == plan.subjects.digest


def test_a_plan_needs_rounds_and_something_to_flush() -> None:
    with pytest.raises(DeclarationError, match="D102"):
        replace(planned(), rounds=0)
    with pytest.raises(DeclarationError, match="D102"):
        replace(planned(), flush_bytes=0)
