from __future__ import annotations

from tests.isa.single import execute, fresh
from tests.wording.golden import worded


def test_lds_is_read_while_a_load_to_it_is_under_way() -> None:
    wave = fresh({0: 0}, {4: 0, 5: 0, 6: 0, 7: 0, 124: 0})
    execute("buffer_load_dword v0, s[4:7], 0 offen lds\nds_read_b32 v1, v0\ns_waitcnt lgkmcnt(0)", wave)
    (finding,) = wave.faults.findings()
    assert finding.code == "I106"
    worded(finding)
    assert "ds_read_b32" in finding.message


def test_its_wait_makes_it_right() -> None:
    wave = fresh({0: 0}, {4: 0, 5: 0, 6: 0, 7: 0, 124: 0})
    execute("buffer_load_dword v0, s[4:7], 0 offen lds\ns_waitcnt vmcnt(0)\nds_read_b32 v1, v0", wave)
    execute("s_waitcnt lgkmcnt(0)", wave)
    assert wave.faults.findings() == ()
