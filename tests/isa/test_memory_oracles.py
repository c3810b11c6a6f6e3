"""Every memory instruction gives what plain Python gives, for one seed each; a campaign draws more."""

from __future__ import annotations

from zlib import crc32

import pytest

from tests.isa.memory_oracles import CHECKS


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("opcode", sorted(CHECKS))
def test_an_instruction_gives_what_plain_python_gives(opcode: str) -> None:
    CHECKS[opcode](crc32(opcode.encode()) % 100)


def test_the_oracle_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.isa.memory.lds_ops._TEAM", 8)
    with pytest.raises(AssertionError):
        CHECKS["ds_read_b64_tr_b16"](0)
