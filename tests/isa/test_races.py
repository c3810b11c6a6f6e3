"""Small HIP kernels with and without a fault, judged in many orders: what is found, what it rests on, what was seen."""

from __future__ import annotations

import numpy as np
import pytest

from rota.errors import Finding, Severity
from rota.isa.binary.code_object import read_kernels
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.launch.interleaving import interleavings
from rota.isa.launch.run import run_kernel
from rota.isa.races import SEEN_NO_CHANGE, SEEN_NOT, SEEN_VALUE, SEEN_WRITES
from tests.shared import shared

pytestmark = pytest.mark.thorough  # runs for seconds

ORDERS = interleavings(4, 4)
# What is found in every order; I301 comes along in some orders where a read runs ahead of the write it races with.
WRONG = {
    "barrier_only_nowait": "I109", "u16_barrier_only_nowait": "I109", "divergent_barrier": "I109",
    "raw_nosync": "I109", "u16_raw_nosync": "I109", "u8_raw_nosync": "I109", "war_nosync": "I109", "waw": "I109",
    "reduce_missing_last": "I109", "same_value_war": "I109", "uninit_lds": "I301", "oob_lds": "I105",
    "oob_global": "I105", "global_raw_nosync": "I302", "global_ww_workgroups": "I303",
}  # fmt: skip
# The last one was meant to lack a wait, but the compiler puts one after every volatile store.
RIGHT = ("raw_sync_ok", "reduce_own", "war_ok", "u16_ok", "global_raw_barrier_nowait")
RESTS_ON = {
    "barrier_only_nowait": "no wait before the barrier", "u16_barrier_only_nowait": "no wait before the barrier",
    "raw_nosync": "no barrier", "war_nosync": "no barrier", "waw": "no barrier", "reduce_missing_last": "no barrier",
    "same_value_war": "policy: an LDS read is over before the barrier after which its bytes are written",
}  # fmt: skip


def loaded(name: str) -> KernelProgram:
    path = shared(f"kernels/compiled/races/{name}.gfx950.hsaco")
    objdump = find_toolchain().objdump
    assert objdump is not None
    shown = find_toolchain()._run((*objdump, "-d", str(path)), path.parent, "gfx950")
    return load_program(read_kernels(path.read_bytes())[0], shown)


def findings(name: str) -> list[tuple[Finding, ...]]:
    program, two = loaded(name), name == "global_ww_workgroups"
    out = np.zeros(512 if name.startswith("global_raw") else 256, np.int32)
    return [
        run_kernel(program, args=[out], grid=(1 + two, 1, 1), block=(256, 1, 1), interleaving=order).findings
        for order in ORDERS
    ]


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_in_every_order(name: str) -> None:
    for found in findings(name):
        assert WRONG[name] in {finding.code for finding in found}
        assert {finding.code for finding in found} <= {WRONG[name], "I301"}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_right_in_every_order(name: str) -> None:
    assert findings(name) == [()] * len(ORDERS)


@pytest.mark.parametrize("name", RESTS_ON)
def test_what_it_rests_on_is_the_same_in_every_order(name: str) -> None:
    for found in findings(name):
        races = [dict(finding.evidence) for finding in found if finding.code == "I109"]
        assert {race["rests on"] for race in races} == {RESTS_ON[name]}


def test_what_was_seen() -> None:
    """Some orders show it and some don't; where bytes don't change no order can."""

    def seen(name: str) -> set[str]:
        return {
            str(dict(finding.evidence)["seen"])
            for found in findings(name)
            for finding in found
            if finding.code == "I109"
        }

    assert seen("barrier_only_nowait") == {SEEN_VALUE, SEEN_NOT}
    assert seen("waw") == {SEEN_WRITES}
    assert seen("same_value_war") == {SEEN_NO_CHANGE}


def test_both_ends_are_named() -> None:
    (finding,) = findings("waw")[0]
    assert finding.severity is Severity.ERROR
    assert [concern.label.split()[0] for concern in finding.concerns] == ["ds_write_b32", "ds_write_b32"]
    evidence = dict(finding.evidence)
    assert (evidence["wave"], evidence["other wave"], evidence["bytes"]) == (1, 0, "0 to 255")
