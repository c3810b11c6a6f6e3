from __future__ import annotations

import numpy as np
import pytest

from rota.isa.memory.memories import BASE
from tests.isa.single import execute, fresh
from tests.wording.golden import mentions, worded


def test_an_address_behind_a_buffer() -> None:
    wave = fresh(buffers=(np.zeros(16, np.uint8),))
    end = wave.memory.address(0) + 16
    for address in (end, end - 2, BASE):
        wave = fresh({0: address & 0xFFFF_FFFF, 1: address >> 32}, buffers=(np.zeros(16, np.uint8),))
        (finding,) = execute("global_load_dword v2, v[0:1], off", wave).faults.findings()
        assert worded(finding).code == "I105"
        assert "where" in dict(finding.evidence)


def test_an_address_behind_lds() -> None:
    (finding,) = execute("ds_read_b32 v1, v0", fresh({0: 4096})).faults.findings()
    assert finding.code == "I105"
    assert dict(finding.evidence) == {"address": "0x1000", "LDS bytes": 4096}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ds_add_u32 v1, v0 offset:1", ("ds_add_u32", 4)),
        ("ds_add_u64 v2, v[4:5] offset:2", ("ds_add_u64", 8)),
        ("ds_read_b64_tr_b16 v[4:5], v2 offset:2", ("ds_read_b64_tr_b16", 8)),
        ("buffer_load_dword v1, s[4:7], 0 offen lds", ("buffer_load_dword", "m0", 4)),
        ("buffer_load_dword v0, v1, s[8:11], 0 idxen", ("buffer_load_dword",)),
    ],
)
def test_an_address_that_is_not_one(text: str, names: tuple[object, ...]) -> None:
    zeros = dict.fromkeys(range(4, 12), 0)
    wave = execute(text, fresh({1: 0, 2: 2}, {**zeros, 9: 0x10000, 11: 1 << 23, 124: 2}))
    (finding,) = wave.faults.findings()
    assert worded(finding).code == "I105"
    assert mentions(finding.message, *names)
