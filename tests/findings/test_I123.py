from __future__ import annotations

import numpy as np
import pytest

from rota.isa.binary.kernel_facts import Argument
from rota.isa.decoded import load_program
from rota.isa.launch.loaded_kernel import LoadedKernel, launch_described
from rota.isa.launch.orders import LaunchResult
from tests.findings.smallest import raised
from tests.isa.single import facts, listing
from tests.wording.golden import mentions, worded

ONES = """s_load_dwordx2 s[4:5], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    v_mov_b32_e32 v2, 1.0
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v2, s[4:5]"""
POINTER = Argument(name="out", offset=0, size=8, kind="global_buffer")


def kernel() -> LoadedKernel:
    told = facts(arguments=(POINTER,), kernarg_bytes=8, user_sgprs=(("kernarg_segment_ptr", 2),))
    return LoadedKernel(program=load_program(told, listing(ONES)))


def launched(**told: object) -> LaunchResult:
    return launch_described(kernel(), {"args": [np.zeros(64, np.float32)], "block": 64, **told}, orders=2)


def test_an_output_that_is_not_as_expected() -> None:
    due = np.ones(64)
    due[3] = 1.25
    (finding,) = launched(expected={0: due}).findings
    assert finding.code == "I123"
    shown = dict(worded(finding).evidence)
    assert mentions(shown["elements"], "1 of 64", "(3,)")
    assert (shown["got"], shown["expected"]) == ("1", "1.25")
    assert not launched(expected={0: due}, rtol=0.19).ok
    assert launched(expected={0: due}, rtol=0.2).ok
    assert launched(expected={0: due}, atol=0.25).ok
    assert launched(expected={0: np.ones(64)}).findings == ()
    assert launched().findings == ()


@pytest.mark.parametrize("told", [None, [], {"args": []}, {"block": 64}, {"args": [], "block": 64, "gird": 1}])
def test_descriptions_that_are_malformed(told: object) -> None:
    raised("I107", lambda: launch_described(kernel(), told, orders=1))


def test_expectations_of_something_else() -> None:
    raised("I107", lambda: launched(expected={1: np.ones(64)}))
    raised("I107", lambda: launched(expected={0: np.ones(65)}))
