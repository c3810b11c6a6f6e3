"""Loads, stores and LDS, one instruction at a time: where data goes, when it lands, and what must not happen before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rota.isa.memory.memories import BASE
from rota.isa.registers import EXEC, M0
from rota.isa.wave.wave import POISON, Faults, Wave
from tests.isa.single import LDS_BYTES, codes, execute, fresh, written_lds

LANE = np.arange(64, dtype=np.uint32)
WORDS = np.random.default_rng(1).integers(0, 2**32, 1024, dtype=np.uint32)


def at(buffer: int) -> int:
    """The address of a buffer, for buffers smaller than a gap."""
    return BASE + 0x1_0000 * (2 * buffer + 1)


def with_memory(vectors: dict[int, np.ndarray | int] | None = None, scalars: dict[int, int] | None = None) -> Wave:
    """s[4:7] is a resource of all 4096 bytes of buffer 0, s[2:3] its address."""
    low, high = at(0) & 0xFFFF_FFFF, at(0) >> 32
    wave = fresh(vectors, {2: low, 3: high, 4: low, 5: high, 6: 4096, 7: 0x27000, **(scalars or {})}, (WORDS,))
    assert wave.memory.address(0) == at(0)
    return wave


def pointers(offset: np.ndarray) -> dict[int, np.ndarray | int]:
    address = offset.astype(np.uint64) + np.uint64(at(0))
    return {0: address.astype(np.uint32), 1: (address >> np.uint64(32)).astype(np.uint32)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("global_load_dword v8, v[0:1], off", 1),
        ("global_load_dwordx2 v[8:9], v[0:1], off offset:16", 2),
        ("global_load_dwordx3 v[8:10], v[0:1], off offset:-16", 3),
        ("global_load_dwordx4 v[8:11], v[0:1], off nt", 4),
        ("global_load_dwordx4 v[8:11], v2, s[2:3] offset:32", 4),
        ("buffer_load_dwordx4 v[8:11], v2, s[4:7], 0 offen", 4),
        ("buffer_load_dwordx2 v[8:9], v2, s[4:7], s8 offen offset:64", 2),
        ("buffer_load_dword v8, off, s[4:7], 0 offset:64", 1),
    ],
)
def test_loads_land_at_their_wait(text: str, words: int) -> None:
    start = LANE * 32 + 64
    wave = with_memory({**pointers(start), 2: start}, {8: 128})
    execute(text, wave)
    assert (wave.v[8 : 8 + words] == POISON).all()
    execute("s_waitcnt vmcnt(1)", wave)
    assert (wave.v[8 : 8 + words] == POISON).all()
    execute("s_waitcnt 0", wave)
    offset = 0
    for part in text.split():
        offset += int(part.partition(":")[2]) if part.startswith("offset:") else 0
    base = (start if "off, s" not in text else np.zeros(64, np.uint32)).astype(np.int64) + offset + 128 * ("s8" in text)
    assert wave.v[8 : 8 + words].tolist() == [WORDS[base // 4 + word].tolist() for word in range(words)]
    assert codes(wave) == []


@pytest.mark.parametrize(
    ("width", "dtype"), [("ubyte", np.uint8), ("sbyte", np.int8), ("ushort", np.uint16), ("sshort", np.int16)]
)
def test_short_loads_extend(width: str, dtype: type) -> None:
    size = np.dtype(dtype).itemsize
    wave = with_memory({2: LANE * size})
    execute(f"buffer_load_{width} v8, v2, s[4:7], 0 offen\ns_waitcnt vmcnt(0)", wave)
    assert wave.i[8].tolist() == WORDS.view(dtype)[:64].tolist()


def test_a_load_of_half_a_register_loses_the_other_half() -> None:
    """On machines with SRAM-ECC; one that keeps it is told by its table."""
    wave = with_memory({**pointers(LANE * 2), 8: 0x1111_2222})
    keeps = replace(wave.architecture, d16_kept=wave.architecture.d16_kept._replace(value=1))
    execute("global_load_short_d16 v9, v[0:1], off\ns_waitcnt vmcnt(0)", wave)
    assert wave.v[9].tolist() == [0xFFFF_0000 | half for half in WORDS.view(np.uint16)[:64].tolist()]
    assert (wave.other_half(8) == 0xFFFF_FFFF).all()
    wave.architecture = keeps
    assert (wave.other_half(8) == 0x1111_2222).all()


def test_halves_of_a_register_are_loaded_and_stored_alone() -> None:
    wave = with_memory({**pointers(LANE * 2), 2: LANE * 2, 8: 0x1111_2222, 9: 0xABCD_1234})
    execute("global_load_short_d16 v8, v[0:1], off\ns_waitcnt vmcnt(0)", wave)
    assert wave.v[8].tolist() == [0xFFFF_0000 | half for half in WORDS.view(np.uint16)[:64].tolist()]
    wave = with_memory({2: LANE * 2, 8: 0x1111_2222, 9: 0xABCD_1234})
    execute("buffer_load_short_d16_hi v8, v2, s[4:7], 0 offen\ns_waitcnt vmcnt(0)", wave)
    assert wave.v[8].tolist() == [0xFFFF | half << 16 for half in WORDS.view(np.uint16)[:64].tolist()]
    execute("buffer_store_short_d16_hi v9, v2, s[4:7], 0 offen", wave)
    assert (wave.memory.contents()[0].view(np.uint16)[:64] == 0xABCD).all()
    execute("buffer_store_byte v9, v2, s[4:7], 0 offen", wave)
    assert (wave.memory.contents()[0].view(np.uint16)[:64] == 0xAB34).all()


def test_inactive_lanes_neither_load_nor_store() -> None:
    wave = with_memory({2: LANE * 4, 8: 5, 9: 6}, {EXEC: 0xF, EXEC + 1: 0})
    execute("buffer_load_dword v8, v2, s[4:7], 0 offen\nbuffer_store_dword v9, v2, s[4:7], 0 offen offset:256", wave)
    execute("s_waitcnt vmcnt(0)", wave)
    assert wave.v[8].tolist() == WORDS[:4].tolist() + [5] * 60
    assert wave.memory.contents()[0][64:130].tolist() == [6] * 4 + WORDS[68:130].tolist()
    wave = with_memory({2: LANE * 4 + 10**6}, {EXEC: 0, EXEC + 1: 0, 6: 0xFFFF_FFFF})
    assert codes(execute("buffer_load_dword v8, v2, s[4:7], 0 offen", wave)) == []


def test_words_outside_of_num_records_read_zero_and_are_not_written() -> None:
    wave = with_memory({2: LANE * 16, 8: 7, 9: 7, 10: 7, 11: 7}, {6: 40, 8: 8})
    execute("buffer_load_dwordx4 v[12:15], v2, s[4:7], 0 offen\ns_waitcnt vmcnt(0)", wave)
    assert wave.v[12:16, 2].tolist() == [*WORDS[8:10].tolist(), 0, 0]
    assert (wave.v[12:16, 3:] == 0).all()
    execute("buffer_store_dwordx4 v[8:11], v2, s[4:7], s8 offen", wave)
    assert wave.memory.contents()[0][:12].tolist() == [*WORDS[:2].tolist(), *[7] * 8, *WORDS[10:12].tolist()]
    assert codes(wave) == []


@pytest.mark.parametrize("offset", [4096, 4094, -4])
def test_an_access_that_belongs_to_no_buffer_is_a_fault(offset: int) -> None:
    wave = with_memory(pointers(np.full(64, offset, np.int64)))
    execute("global_load_dword v8, v[0:1], off\ns_waitcnt vmcnt(0)\nglobal_store_dword v[0:1], v8, off", wave)
    assert codes(wave) == ["I105", "I105"]
    assert (wave.v[8] == POISON).all()
    assert (wave.memory.contents()[0] == WORDS).all()


def test_scalar_loads_land_at_zero_only() -> None:
    wave = with_memory(scalars={10: 8})
    execute("s_load_dwordx2 s[8:9], s[2:3], 0x10\ns_load_dword s11, s[2:3], 0x0\ns_waitcnt lgkmcnt(1)", wave)
    assert wave.s[8] == wave.s[11] == POISON
    execute("s_waitcnt lgkmcnt(0)", wave)
    assert (wave.s[8], wave.s[9], wave.s[11]) == (WORDS[4], WORDS[5], WORDS[0])
    execute("s_load_dword s8, s[4:5], 0x1000", wave)
    assert codes(wave) == ["I105"]


def test_a_register_under_way_may_not_be_used() -> None:
    for use in ("v_mov_b32_e32 v9, v8", "v_mov_b32_e32 v8, 0", "buffer_load_dword v9, v8, s[4:7], 0 offen"):
        wave = with_memory({2: LANE * 4})
        execute(f"buffer_load_dword v8, v2, s[4:7], 0 offen\n{use}", wave)
        assert codes(wave) == ["I103"]
    wave = execute("s_load_dword s8, s[2:3], 0x0\ns_add_i32 s9, s8, 1", with_memory())
    assert codes(wave) == ["I103"]


def test_a_full_counter_stalls_until_its_oldest_is_back() -> None:
    loads = "\n".join(f"buffer_load_dword v{8 + number}, v2, s[4:7], 0 offen" for number in range(64))
    wave = execute(loads, with_memory({2: LANE * 4}))
    assert (wave.v[8] == WORDS[:64]).all()
    assert (wave.v[9] == POISON).all()
    reads = "\n".join(f"ds_read_b32 v{8 + number}, v2" for number in range(16))
    wave = fresh({2: LANE * 4})
    wave.lds.words[:64] = LANE
    execute(reads, wave)
    assert (wave.v[8] == LANE).all()
    assert (wave.v[9] == POISON).all()


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("ds_read_b32 v8, v2 offset:8", [2]),
        ("ds_read_b64 v[8:9], v2", [0, 1]),
        ("ds_read_b96 v[8:10], v2", [0, 1, 2]),
        ("ds_read_b128 v[8:11], v2 offset:16", [4, 5, 6, 7]),
        ("ds_read2_b32 v[8:9], v2 offset0:1 offset1:3", [1, 3]),
        ("ds_read2_b64 v[8:11], v2 offset1:2", [0, 1, 4, 5]),
        ("ds_read2st64_b32 v[8:9], v2 offset0:1 offset1:2", [64, 128]),
    ],
)
def test_lds_reads(text: str, places: list[int]) -> None:
    wave = fresh({2: LANE * 16})
    wave.lds.words[:] = WORDS
    execute(text, wave)
    assert (wave.v[8 : 8 + len(places)] == POISON).all()
    execute("s_waitcnt lgkmcnt(0)", wave)
    assert wave.v[8 : 8 + len(places)].tolist() == [WORDS[LANE * 4 + place].tolist() for place in places]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("ds_write_b32 v2, v8 offset:4", [1]),
        ("ds_write_b64 v2, v[8:9]", [0, 1]),
        ("ds_write_b128 v2, v[8:11]", [0, 1, 2, 3]),
        ("ds_write2_b32 v2, v8, v9 offset1:2", [0, 2]),
        ("ds_write2st64_b64 v2, v[8:9], v[10:11] offset1:4", [0, 1, 512, 513]),
    ],
)
def test_lds_writes(text: str, places: list[int]) -> None:
    wave = fresh({2: LANE * 16, **{8 + number: LANE + 100 * number for number in range(4)}})
    execute(text, wave)
    execute("s_waitcnt lgkmcnt(0)", wave)
    for number, place in enumerate(places):
        assert wave.lds.words[LANE * 4 + place].tolist() == (LANE + 100 * number).tolist()
    assert codes(wave) == []


def test_bytes_and_halves_of_lds() -> None:
    wave = fresh({2: LANE, 3: LANE * 2, 8: 0x8182_8384, 9: 0x1111_2222, 10: 0x1111_2222})
    execute("ds_write_b16 v3, v8\nds_write_b16_d16_hi v3, v8 offset:128\nds_write_b8 v2, v8 offset:256", wave)
    execute("ds_read_u8 v12, v2\nds_read_i8 v13, v2 offset:256\nds_read_u16 v14, v3\nds_read_i16 v15, v3", wave)
    execute("ds_read_u16_d16 v9, v3\nds_read_u16_d16_hi v10, v3 offset:128\ns_waitcnt lgkmcnt(0)", wave)
    assert wave.v[12].tolist() == [0x84, 0x83] * 32
    assert (wave.i[13] == 0x84 - 256).all()
    assert (wave.v[14] == 0x8384).all()
    assert (wave.i[15] == 0x8384 - 65536).all()
    assert (wave.v[9] == 0xFFFF_8384).all()
    assert (wave.v[10] == 0x8182_FFFF).all()
    assert codes(wave) == []


def test_leaving_lds_is_a_fault() -> None:
    for text in ("ds_read_b64 v[8:9], v2", "ds_write_b32 v2, v3 offset:4", "ds_read_u8 v8, v2 offset:8"):
        wave = fresh({2: LANE * 64 + LDS_BYTES - 64 * 63 - 4, 3: 0})
        execute(f"{text}\ns_waitcnt lgkmcnt(0)", wave)
        assert codes(wave) == ["I105"]


def test_addresses_and_offsets_of_lds_are_added_in_32_bits() -> None:
    """Compilers count down from an offset."""
    wave = fresh({2: (-4 * LANE.astype(np.int64)).astype(np.uint32), 3: LANE})
    execute("ds_write_b32 v2, v3 offset:252\nds_read_b64 v[8:9], v2 offset:252\ns_waitcnt lgkmcnt(0)", wave)
    assert wave.lds.words[:64].tolist() == LANE[::-1].tolist()
    assert wave.v[8].tolist() == LANE.tolist()
    assert codes(wave) == []


@pytest.mark.parametrize("start", [1, 2, 3, 5])
def test_lds_reads_and_writes_may_start_at_any_byte(start: int) -> None:
    octets = np.random.default_rng(start).integers(0, 256, LDS_BYTES, dtype=np.uint8)
    wave = fresh({2: LANE * 16 + start, **{8 + row: LANE * 3 + row for row in range(4)}})
    wave.lds.bytes[:] = octets
    execute("ds_read_b128 v[12:15], v2\nds_read2_b32 v[16:17], v2 offset0:1 offset1:2\ns_waitcnt lgkmcnt(0)", wave)
    for lane in range(64):
        at = 16 * lane + start
        assert wave.v[12:16, lane].tobytes() == octets[at : at + 16].tobytes()
        assert wave.v[16:18, lane].tobytes() == octets[at + 4 : at + 12].tobytes()
    execute("ds_write_b64 v2, v[8:9]\nds_write_b16 v2, v10 offset:8\ns_waitcnt lgkmcnt(0)", wave)
    for lane in range(64):
        at = 16 * lane + start
        octets[at : at + 8] = np.frombuffer(wave.v[8:10, lane].tobytes(), np.uint8)
        octets[at + 8 : at + 10] = np.frombuffer(wave.v[10, lane].tobytes(), np.uint8)[:2]
    assert wave.lds.bytes.tolist() == octets.tolist()
    assert codes(wave) == []


@pytest.mark.parametrize(("width", "words"), [("dword", 1), ("dwordx3", 3), ("dwordx4", 4)])
def test_a_load_to_lds_lays_lanes_side_by_side_whatever_their_addresses(width: str, words: int) -> None:
    scattered = (LANE * 37 % 64 * 16).astype(np.uint32)
    wave = with_memory({2: scattered}, {M0: 1024})
    execute(f"buffer_load_{width} v2, s[4:7], 0 offen offset:32 lds", wave)
    assert (wave.lds.words == POISON).all()
    execute("s_waitcnt vmcnt(0)", wave)
    landed = wave.lds.words[264 : 264 + 64 * words].reshape(64, words)
    assert landed.tolist() == [[int(WORDS[offset // 4 + 8 + word]) for word in range(words)] for offset in scattered]
    assert (wave.lds.words[:264] == POISON).all()


def test_global_loads_to_lds_too() -> None:
    wave = with_memory({**pointers(LANE[::-1] * 4), 2: LANE * 4}, {M0: 0})
    execute("global_load_lds_dword v[0:1], off\nglobal_load_lds_dword v2, s[2:3] offset:256\ns_waitcnt vmcnt(0)", wave)
    assert wave.lds.words[:64].tolist() == WORDS[:64][::-1].tolist()
    assert wave.lds.words[64:128].tolist() == WORDS[64:128].tolist()


def test_a_load_to_lds_past_its_end_or_in_no_lane() -> None:
    wave = with_memory({2: LANE * 4}, {M0: LDS_BYTES - 128})
    execute("buffer_load_dword v2, s[4:7], 0 offen lds\ns_waitcnt vmcnt(0)", wave)
    assert codes(wave) == ["I105"]
    wave = with_memory({2: LANE * 4}, {M0: 0, EXEC: 1, EXEC + 1: 0})
    execute("buffer_load_dword v2, s[4:7], 0 offen lds\ns_waitcnt vmcnt(0)", wave)
    assert wave.lds.words[:2].tolist() == [WORDS[0], POISON]


DMA = "buffer_load_dword v2, s[4:7], 0 offen lds"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{DMA}\ns_waitcnt vmcnt(0)\nds_read_b32 v8, v2\ns_waitcnt lgkmcnt(0)", []),
        (f"{DMA}\nds_read_b32 v8, v2\ns_waitcnt lgkmcnt(0)", ["I106"]),
        # It has landed when the read does, but had not when the read was issued.
        (f"{DMA}\nds_read_b32 v8, v2\ns_waitcnt vmcnt(0)\ns_waitcnt lgkmcnt(0)", ["I106"]),
        (f"ds_read_b32 v8, v2\n{DMA}\ns_waitcnt lgkmcnt(0)", ["I106"]),
        # Begun and landed while the read was in flight: the word changed under it.
        (f"ds_read_b32 v8, v2\n{DMA}\ns_waitcnt vmcnt(0)\ns_waitcnt lgkmcnt(0)", ["I106"]),
        (f"{DMA}\n{DMA}", ["I106"]),
        (f"{DMA}\nds_write_b32 v2, v2", ["I106"]),
        ("ds_write_b32 v2, v2\nds_read_b32 v8, v2\ns_waitcnt lgkmcnt(0)", []),
        ("ds_read_b32 v9, v2\nds_write_b32 v2, v2\ns_waitcnt lgkmcnt(0)", []),
        (f"ds_write_b32 v2, v2\n{DMA}", ["I106"]),
        ("ds_write_b32 v2, v2\nds_write_b32 v2, v2\ns_waitcnt lgkmcnt(1)\n" + DMA, ["I106"]),
        (f"{DMA}\nds_read_u16 v8, v2\ns_waitcnt lgkmcnt(0)", ["I106"]),
    ],
)
def test_lds_is_not_read_or_written_while_a_write_is_under_way(text: str, found: list[str]) -> None:
    wave = execute(text, with_memory({2: LANE * 4}, {M0: 0}))
    assert codes(wave) == found
    if found and "ds_read_b32" in text:
        assert (wave.v[8] == POISON).all()


def test_a_read_brings_what_stood_there_before_a_later_write_of_its_wave() -> None:
    wave = fresh({2: LANE * 4, 3: 7})
    wave.lds.words[:64] = LANE
    execute("ds_read_b32 v9, v2\nds_write_b32 v2, v3\nds_read_b32 v10, v2\ns_waitcnt lgkmcnt(0)", wave)
    assert wave.v[9].tolist() == LANE.tolist()
    assert (wave.v[10] == 7).all()
    assert codes(wave) == []


def test_a_write_under_way_disturbs_the_reads_of_other_waves_only() -> None:
    shared = written_lds(faults := Faults())
    writer = fresh({2: LANE * 4, 3: LANE}, number=0, lds=shared)
    reader = fresh({2: LANE * 4}, number=1, lds=shared)
    execute("ds_write_b32 v2, v3", writer)
    execute("ds_read_b32 v8, v2\ns_waitcnt lgkmcnt(0)", reader)
    assert (reader.v[8] == POISON).all()
    assert [finding.code for finding in faults.findings()] == ["I109"]
    execute("s_waitcnt lgkmcnt(0)", writer)
    execute("ds_read_b32 v9, v2\ns_waitcnt lgkmcnt(0)", reader)
    assert reader.v[9].tolist() == LANE.tolist()


def test_masked_lds_accesses() -> None:
    wave = fresh({2: LANE * 4, 3: LANE + 7, 8: 1}, {EXEC: 0xFF, EXEC + 1: 0})
    execute("ds_write_b32 v2, v3\nds_read_b32 v8, v2\ns_waitcnt lgkmcnt(0)", wave)
    assert wave.v[8].tolist() == [*range(7, 15), *[1] * 56]
    assert (wave.lds.words[8:] == POISON).all()
    execute("ds_bpermute_b32 v9, v2, v3\ns_waitcnt lgkmcnt(0)", wave)
    assert wave.v[9, :8].tolist() == list(range(7, 15))
