from __future__ import annotations

from tests.isa.single import execute, fresh


def test_a_register_is_used_before_its_wait() -> None:
    wave = execute("ds_read_b32 v1, v0\nv_mov_b32_e32 v2, v1", fresh({0: 0}))
    (finding,) = wave.faults.findings()
    assert finding.code == "I103"
    assert finding.message == "v_mov_b32_e32 uses v1 while ds_read_b32 still holds it"


def test_its_wait_makes_it_right() -> None:
    wave = execute("ds_read_b32 v1, v0\ns_waitcnt lgkmcnt(0)\nv_mov_b32_e32 v2, v1", fresh({0: 0}))
    assert wave.faults.findings() == ()


def test_accumulators_and_scalars_have_their_names() -> None:
    wave = execute("ds_read_b32 a1, v0\nv_accvgpr_read_b32 v2, a1", fresh({0: 0}))
    assert wave.faults.findings()[0].message.startswith("v_accvgpr_read_b32 uses a1")
