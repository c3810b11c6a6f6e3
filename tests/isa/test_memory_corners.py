"""Corners of memory: resources with strides and swizzles, addresses that are not ones, hints, clocks, flat counting."""

from __future__ import annotations

import numpy as np
import pytest

from rota.isa.races import GlobalOrder, MemoryUse
from rota.isa.wave.operand import PRIVATE_BASE, SHARED_BASE
from rota.isa.wave.wave import POISON, Faults, Private, Wave
from tests.isa.single import codes, execute, fresh, loaded, written_lds
from tests.wording.golden import worded

LANE = np.arange(64, dtype=np.uint32)
WORDS = np.random.default_rng(3).integers(0, 2**32, 1024, dtype=np.uint32)
BASE = 0x7E00_0001_0000
SWIZZLED = 1 << 31


def with_resource(
    *, stride: int = 0, records: int = 4096, last: int = 0x27000, swizzled: bool = False, **vectors: np.ndarray
) -> Wave:
    """s[4:7] is a resource of buffer 0; v0 and so on are given."""
    high = BASE >> 32 | stride << 16 | (SWIZZLED if swizzled else 0)
    scalars = {2: BASE & 0xFFFF_FFFF, 3: BASE >> 32, 4: BASE & 0xFFFF_FFFF, 5: high, 6: records, 7: last}
    return fresh({int(name[1:]): value for name, value in vectors.items()}, scalars, (WORDS,))


def test_a_swizzled_buffer_weaves_records() -> None:
    """Eight records of 16 bytes: their first words side by side, then their second ones, and so on."""
    wave = with_resource(stride=16, records=40, swizzled=True, v0=LANE, v1=LANE % 4 * 4)
    execute("buffer_load_dword v8, v[0:1], s[4:7], 0 idxen offen\ns_waitcnt vmcnt(0)", wave)
    assert codes(wave) == []
    for lane in range(64):
        group, place, word = lane // 8, lane % 8, lane % 4
        due = WORDS[group * 32 + word * 8 + place] if lane < 40 else 0  # records are counted, not bytes
        assert wave.v[8, lane] == due


def test_records_of_a_plain_buffer_with_stride_are_settled_where_both_readings_agree() -> None:
    execute_text = "buffer_load_dword v8, v0, s[4:7], 0 idxen\ns_waitcnt vmcnt(0)"
    wave = execute(execute_text, with_resource(stride=4, records=256, v0=LANE))
    assert wave.v[8].tolist() == WORDS[:64].tolist()
    assert codes(wave) == []
    wave = execute(execute_text, with_resource(stride=4, records=32, v0=LANE + 32))
    assert (wave.v[8] == 0).all()
    assert codes(wave) == []
    wave = execute(execute_text, with_resource(stride=4, records=32, v0=LANE))  # lanes 8 to 31: bytes or records?
    assert codes(wave) == ["I105"]
    assert wave.v[8, :8].tolist() == WORDS[:8].tolist()
    assert (wave.v[8, 8:] == 0).all()


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("buffer_load_dword v8, v0, s[4:7], 0 offen", {"stride": 16, "swizzled": True}),
        ("buffer_load_dword v8, v0, s[4:7], 0 idxen", {"last": 0x27000 | 1 << 23}),
        ("s_buffer_load_dword s9, s[4:7], 0x0", {"stride": 16}),
    ],
)
def test_resources_that_are_not_modelled_are_faults(text: str, changes: dict[str, int]) -> None:
    wave = with_resource(v0=LANE, **changes)  # type: ignore[arg-type]
    assert codes(execute(f"{text}\ns_waitcnt vmcnt(0) lgkmcnt(0)", wave)) == ["I105"]
    assert wave.s[9] == 0 if text.startswith("s_") else (wave.v[8] == 0).all()


@pytest.mark.parametrize(
    "text",
    [
        "global_atomic_add v0, v1, s[2:3] offset:2",
        "global_atomic_add_x2 v0, v[2:3], s[2:3] offset:4",
        "flat_atomic_add v[4:5], v1",
    ],
)
def test_atomics_of_memory_need_their_alignment(text: str) -> None:
    wave = with_resource(v0=LANE * 8, v1=LANE, v2=LANE, v3=LANE)
    wave.v[4], wave.v[5] = (BASE & 0xFFFF_FFFF) + 1 + LANE * 4, BASE >> 32
    assert codes(execute(f"{text}\ns_waitcnt vmcnt(0)", wave)) == ["I105"]
    assert (wave.memory.contents()[0] == WORDS).all()


def test_leaving_private_memory_and_atomics_in_it() -> None:
    wave = with_resource(v0=LANE, v1=LANE)
    wave.private = Private(16, 64)
    execute("scratch_load_dword v8, off, off offset:16\nscratch_store_dword off, v1, off offset:16", wave)
    assert codes(wave) == ["I105", "I105"]
    execute("s_waitcnt vmcnt(0)", wave)
    assert (wave.v[8] == POISON).all()
    wave.v[4], wave.v[5] = 0, PRIVATE_BASE >> 32
    assert codes(execute("flat_atomic_add v[4:5], v1", wave))[-1] == "I105"


@pytest.mark.parametrize(
    "text", ["s_store_dword s9, s[8:9], 0x0", "s_atomic_add s9, s[8:9], 0x0 glc", "s_load_dword s9, s[8:9], 0x0"]
)
def test_scalar_accesses_that_belong_to_no_buffer(text: str) -> None:
    wave = with_resource()
    wave.s[8], wave.s[9] = 64, 0
    assert codes(execute(f"{text}\ns_waitcnt lgkmcnt(0)", wave)) == ["I105"]


@pytest.mark.parametrize(
    "text", ["ds_nop", "buffer_inv sc1", "buffer_wbl2 sc0 sc1", "buffer_wbinvl1", "s_dcache_inv", "s_dcache_wb"]
)
def test_hints_change_nothing(text: str) -> None:
    wave = with_resource(v0=LANE)
    before = wave.v.copy()
    execute(text, wave)
    assert (wave.v == before).all()
    assert not wave.in_flight


def test_clocks_go_forward() -> None:
    wave = execute("s_memtime s[8:9]\ns_nop 5\ns_memrealtime s[10:11]\ns_waitcnt lgkmcnt(0)", with_resource())
    assert wave.s[8] < wave.s[10]
    assert wave.s[9] == wave.s[11] == 0


@pytest.mark.parametrize("waits", [("vmcnt(0)", "lgkmcnt(0)"), ("lgkmcnt(0)", "vmcnt(0)")])
def test_a_flat_load_lands_when_both_counters_are_zero(waits: tuple[str, str]) -> None:
    wave = with_resource(v0=LANE * 4 + np.uint32(BASE & 0xFFFF_FFFF), v1=np.full(64, BASE >> 32, np.uint32))
    execute(f"flat_load_dword v8, v[0:1]\ns_waitcnt vmcnt(1) lgkmcnt(1)\ns_waitcnt {waits[0]}", wave)
    assert (wave.v[8] == POISON).all()
    assert codes(execute("v_mov_b32_e32 v9, v8", wave)) == ["I103"]
    execute(f"s_waitcnt {waits[1]}", wave)
    assert wave.v[8].tolist() == WORDS[:64].tolist()


def test_a_flat_read_of_lds_meets_a_write_under_way() -> None:
    lds = written_lds(faults := Faults())
    writer = fresh({2: LANE * 4, 3: LANE}, number=0, lds=lds)
    reader = fresh({2: LANE * 4, 3: SHARED_BASE >> 32}, number=1, lds=lds)
    execute("ds_write_b32 v2, v3", writer)
    execute("flat_load_dword v8, v[2:3]\ns_waitcnt vmcnt(0) lgkmcnt(0)", reader)
    assert (reader.v[8] == POISON).all()
    (finding,) = faults.findings()
    worded(finding)


def test_a_read_meets_an_atomic_under_way() -> None:
    lds = written_lds(faults := Faults())
    execute("ds_add_u32 v2, v3", fresh({2: LANE * 4, 3: 1}, number=0, lds=lds))
    reader = execute("ds_read_b32 v8, v2\ns_waitcnt lgkmcnt(0)", fresh({2: LANE * 4}, number=1, lds=lds))
    assert (reader.v[8] == POISON).all()
    (finding,) = faults.findings()
    assert [concern.label.split()[0] for concern in finding.concerns] == ["ds_read_b32", "ds_add_u32"]
    worded(finding)


def test_atomics_don_t_race_with_atomics_but_with_what_is_plain() -> None:
    """In LDS: both in one epoch, in either order."""
    atomic, plain, wait = "ds_add_u32 v2, v3", "ds_write_b32 v2, v3", "s_waitcnt lgkmcnt(0)"
    for first, second, found in (
        (atomic, "ds_or_b32 v2, v3", []),
        (atomic, plain, ["I109"]),
        (plain, atomic, ["I109"]),
        (atomic, "ds_read_b32 v8, v2", ["I109"]),
        ("ds_read_b32 v8, v2", atomic, ["I109"]),
    ):
        lds = written_lds(faults := Faults())
        for number, text in enumerate((first, second)):
            execute(f"{text}\n{wait}", fresh({2: LANE * 4, 3: 1}, number=number, lds=lds))
        assert [finding.code for finding in faults.findings()] == found, (first, second)


def test_a_sum_with_a_nan_is_one() -> None:
    wave = fresh({2: LANE * 4, 3: 0x7FC0_3F80})
    wave.lds.words[:] = 0x3F80_FF81
    execute("ds_pk_add_bf16 v2, v3\ns_waitcnt lgkmcnt(0)", wave)
    low, high = int(wave.lds.words[0]) & 0x7FFF, int(wave.lds.words[0]) >> 16 & 0x7FFF
    assert low > 0x7F80
    assert high > 0x7F80


def test_workgroups_that_nobody_closes_are_judged_at_the_end() -> None:
    order = GlobalOrder((0,), 64, faults := Faults())
    step = execute("s_nop 0", fresh())
    for number in (0, 1):
        step.workgroup = (number, 0, 0)
        access = order.begin(step, loaded("global_store_dword v[0:1], v2, off").steps[0].instruction, MemoryUse.WRITE)
        order.touch(access, np.array([0]), 4, np.zeros((1, 4), np.bool_))
    order.close((7, 0, 0))  # one that used no memory
    assert faults.findings() == ()
    order.finish()
    assert [finding.code for finding in faults.findings()] == ["I303"]
