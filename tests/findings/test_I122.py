from __future__ import annotations

import numpy as np
import pytest

from rota.errors import Severity
from rota.isa.binary.kernel_facts import Argument
from rota.isa.decoded import load_program
from rota.isa.launch.interleaving import LATEST, backwards
from rota.isa.launch.loaded_kernel import LoadedKernel
from rota.isa.launch.orders import LaunchResult, weight_of
from rota.isa.opcodes import opcode_named
from tests.isa.single import facts, listing
from tests.wording.golden import mentions, worded

MOVE = "v_mov_b32_e32 v2, s2"
LAST_WINS = """s_load_dwordx2 s[4:5], s[0:1], 0x0
    v_mov_b32_e32 v1, 0
    v_mov_b32_e32 v2, s2
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v2, s[4:5]"""


def launched(out: np.ndarray, text: str = LAST_WINS) -> LaunchResult:
    """Three workgroups write their number into one word, the first one first and the last one first."""
    told = facts(
        arguments=(Argument(name="out", offset=0, size=8, kind="global_buffer"),),
        kernarg_bytes=8,
        user_sgprs=(("kernarg_segment_ptr", 2),),
        workgroup_ids=(True, False, False),
    )
    kernel = LoadedKernel(program=load_program(told, listing(text)))
    return kernel.launch(out, grid=3, block=64, orders=[LATEST, backwards(1), LATEST], check=False)


def test_the_last_one_wins() -> None:
    out = np.zeros(2, np.int32)
    (finding,) = [each for each in launched(out).findings if each.code == "I122"]
    assert finding.severity is Severity.ERROR
    assert (finding.concerns[0].label, finding.concerns[0].index) == ("out", 0)
    shown = dict(worded(finding).evidence)
    assert mentions(shown["elements"], "1 of 2", "(0,)")
    assert shown["largest difference"] == "2"
    assert mentions(shown["orders"], "1 of 3", "backwards")
    assert out[0] == 2


def test_all_write_the_same() -> None:
    out = np.zeros(2, np.int32)
    assert "I122" not in {each.code for each in launched(out, LAST_WINS.replace("v2, s2", "v2, 7")).findings}
    assert out[0] == 7


@pytest.mark.parametrize(
    ("opcode", "severity"),
    [
        ("global_atomic_add_f32", Severity.NOTE), ("ds_add_f32", Severity.NOTE), ("ds_pk_add_bf16", Severity.NOTE),
        ("flat_atomic_add_f64", Severity.NOTE), ("global_atomic_pk_add_f16", Severity.NOTE),
        ("global_atomic_add", Severity.WARNING), ("ds_add_rtn_u32", Severity.WARNING),
        ("buffer_atomic_cmpswap", Severity.WARNING), ("ds_read_b32", Severity.ERROR),
    ],
)  # fmt: skip
def test_atomics_weigh(opcode: str, severity: Severity) -> None:
    assert weight_of([opcode_named(opcode), opcode_named("s_endpgm")])[0] is severity


def test_a_nan_is_no_difference_of_zero() -> None:
    """The first workgroup's 0x7FC00000 is no number; a largest difference of the others would hide it."""
    text = LAST_WINS.replace("v_mov_b32_e32 v2, s2", "s_cmp_eq_u32 s2, 0\n s_cselect_b32 s2, 0x7fc00000, 0\n" + MOVE)
    (finding,) = [each for each in launched(np.zeros(2, np.float32), text).findings if each.code == "I122"]
    worded(finding)
