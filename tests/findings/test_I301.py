from __future__ import annotations

import numpy as np
import pytest

from rota.isa.memory.memories import Lds
from rota.isa.wave.wave import POISON, Wave
from tests.isa.single import LDS_BYTES, codes, execute, fresh
from tests.wording.golden import worded

LANE = np.arange(64, dtype=np.uint32)
WAIT = "s_waitcnt lgkmcnt(0)"


def unwritten(**vectors: np.ndarray) -> Wave:
    """A wave and LDS as they start; v2 holds byte addresses of words, v3 of bytes."""
    wave = fresh({2: LANE * 4, 3: LANE, **{int(name[1:]): value for name, value in vectors.items()}})
    wave.lds = Lds(LDS_BYTES, wave.faults)
    return wave


def test_lds_is_read_before_anything_was_written() -> None:
    wave = execute(f"ds_read_b32 v8, v2\n{WAIT}", unwritten())
    (finding,) = wave.faults.findings()
    assert finding.code == "I301"
    worded(finding)
    assert "ds_read_b32" in finding.message
    assert dict(finding.evidence) == {"wave": 0, "bytes": "0 to 255"}
    assert (wave.v[8] == POISON).all()


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("ds_write_b8 v3, v2\nds_read_u16 v8, v3 offset:62", "64 to 126"),
        ("ds_write_b16 v2, v2\nds_read_b32 v8, v2", "128 of 2 to 255"),
        ("ds_write_b64 v2, v[2:3]\nds_read_b96 v[8:10], v2", "260 to 263"),
        ("ds_add_u32 v2, v3", "0 to 255"),
        ("ds_write_b32 v2, v2\nds_read2_b32 v[8:9], v2 offset1:64", "256 to 511"),
        ("ds_write_b32 v4, v2\nds_read_b64_tr_b16 v[8:9], v4", "256 of 4 to 511"),
    ],
)
def test_bytes_are_counted_one_by_one(text: str, where: str) -> None:
    wave = execute(f"{text}\n{WAIT}", unwritten(v4=LANE * 8))
    (finding,) = wave.faults.findings()
    assert (finding.code, dict(finding.evidence)["bytes"]) == ("I301", where)


@pytest.mark.parametrize(
    "text",
    [
        "ds_write_b32 v2, v2\nds_read_b32 v8, v2",
        "ds_write_b8 v3, v2\nds_read_u8 v8, v3",
        "ds_write_b32 v2, v2\nds_add_u32 v2, v3\nds_read_b32 v8, v2",
        "ds_write_b16 v2, v2\nds_write_b16 v2, v2 offset:2\nds_read_b32 v8, v2",
        "buffer_load_dword v2, s[4:7], 0 offen lds\ns_waitcnt vmcnt(0)\nds_read_b32 v8, v2",
    ],
)
def test_what_was_written_may_be_read(text: str) -> None:
    wave = unwritten()
    wave.s[4:8], wave.s[124] = [0, 0, 0, 0], 0
    assert codes(execute(f"{text}\n{WAIT}", wave)) == []
