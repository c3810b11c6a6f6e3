from __future__ import annotations

import numpy as np
import pytest

from rota.isa.wave.wave import Wave
from tests.isa.native.both import on_core
from tests.isa.single import execute, fresh, loaded
from tests.wording.golden import mentions, worded

FIRST, SECOND = np.arange(64, dtype=np.uint32), np.arange(100, 164, dtype=np.uint32)
TWICE = "global_load_dword v8, v2, s[4:5]\nglobal_load_dword v8, v2, s[4:5] offset:256"


def reading() -> Wave:
    """Lane addresses in v2, two blocks of 64 words at s[4:5], and zero in v3."""
    wave = fresh({2: FIRST * 4, 3: 0}, buffers=(np.concatenate([FIRST, SECOND]),))
    address = wave.memory.address(0)
    wave.s[4], wave.s[5] = address & 0xFFFF_FFFF, address >> 32
    wave.v[6], wave.v[7] = np.uint32(address & 0xFFFF_FFFF), np.uint32(address >> 32)
    return wave


def codes(wave: Wave) -> list[str]:
    return [finding.code for finding in wave.faults.findings()]


def test_a_register_is_used_before_its_wait() -> None:
    wave = execute("ds_read_b32 v1, v0\nv_mov_b32_e32 v2, v1", fresh({0: 0}))
    (finding,) = wave.faults.findings()
    assert finding.code == "I103"
    worded(finding)
    assert mentions(finding.message, "v_mov_b32_e32", "v1", "ds_read_b32")


def test_its_wait_makes_it_right() -> None:
    wave = execute("ds_read_b32 v1, v0\ns_waitcnt lgkmcnt(0)\nv_mov_b32_e32 v2, v1", fresh({0: 0}))
    assert wave.faults.findings() == ()


def test_accumulators_and_scalars_have_their_names() -> None:
    wave = execute("ds_read_b32 a1, v0\nv_accvgpr_read_b32 v2, a1", fresh({0: 0}))
    assert mentions(worded(wave.faults.findings()[0]).message, "v_accvgpr_read_b32", "a1")


@pytest.mark.parametrize("early", [(), (0,), (1,), (1, 0)])
def test_of_two_loads_on_their_way_to_a_register_the_later_one_stays(early: tuple[int, ...]) -> None:
    """They come back in the order of their issue, whichever the interleaving lands first: LLVM relies on it."""
    wave = execute(TWICE, reading())
    loads = [*wave.ordered["vmcnt"]]
    for number in early:
        wave.land(loads[number])
    execute("s_waitcnt vmcnt(0)\nv_mov_b32_e32 v9, v8", wave)
    assert codes(wave) == []
    assert (wave.v[9] == SECOND).all()


def test_lanes_that_the_later_one_leaves_out_are_the_earlier_one_s() -> None:
    """Both sides of a branch load the same variable, and one wait stands where they meet."""
    one, other = TWICE.splitlines()
    text = f"{one}\ns_mov_b64 exec, 0xff\n{other}\ns_mov_b64 exec, -1\ns_waitcnt vmcnt(0)\nv_mov_b32_e32 v9, v8"
    wave = execute(text, reading())
    assert codes(wave) == []
    assert (wave.v[9] == np.where(FIRST < 8, SECOND, FIRST)).all()


def test_between_the_two_nothing_may_read_it() -> None:
    one, other = TWICE.splitlines()
    assert codes(execute(f"{one}\nv_mov_b32_e32 v9, v8\n{other}", reading())) == ["I103"]
    assert codes(execute(f"{TWICE}\ns_waitcnt vmcnt(1)\nv_mov_b32_e32 v9, v8", reading())) == ["I103"]
    assert codes(execute(f"{TWICE}\ns_waitcnt vmcnt(1)\nv_mov_b32_e32 v8, 0", reading())) == ["I103"]


def test_reads_of_lds_come_back_in_order_too() -> None:
    twice = "ds_read_b32 v8, v3\nds_read2_b32 v[7:8], v3 offset1:1\ns_waitcnt lgkmcnt(0)\nv_mov_b32_e32 v9, v8"
    assert codes(execute(twice, reading())) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ds_read_b32 v8, v3", "global_load_dword v8, v2, s[4:5]"),
        ("global_load_dword v8, v2, s[4:5]", "ds_read_b32 v8, v3"),
        ("flat_load_dword v8, v[6:7]", "flat_load_dword v8, v[6:7]"),
        ("flat_load_dword v8, v[6:7]", "global_load_dword v8, v2, s[4:5]"),
        ("s_load_dword s8, s[4:5], 0x0", "s_load_dword s8, s[4:5], 0x4"),
        ("global_load_dword v8, v2, s[4:5]", "global_load_short_d16 v8, v2, s[4:5]"),
        ("global_load_dword v8, v2, s[4:5]", "global_load_dword v9, v8, s[4:5]"),
    ],
    ids=["LDS, memory", "memory, LDS", "flat", "flat, memory", "scalar", "a half", "as an address"],
)
def test_no_order_no_excuse(one: str, other: str) -> None:
    """Different counters, flat and scalar loads; a load that keeps a half of the register reads it."""
    assert codes(execute(f"{one}\n{other}", reading()))[0] == "I103"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("ds_read_b32 v8, v3\nds_read_b32 v8, v3\ns_waitcnt lgkmcnt(0)", True),
        ("ds_read_b32 v8, v3\nds_read_b32 v8, v3\ns_waitcnt lgkmcnt(1)\nv_mov_b32_e32 v9, v8", False),
        ("ds_read_b32 v8, v3\nds_read_u16_d16 v8, v3\ns_waitcnt lgkmcnt(0)", False),
    ],
)
def test_the_core_says_so_too(text: str, clean: bool) -> None:
    written = "v_mov_b32_e32 v3, 0\nv_mov_b32_e32 v4, 1\nds_write_b32 v3, v4\ns_waitcnt lgkmcnt(0)"
    left = on_core(loaded(f"{written}\n{text}", "gfx950"), fresh())
    assert left is not None
    assert left[-1] is clean
