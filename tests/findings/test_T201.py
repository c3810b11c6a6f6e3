from __future__ import annotations

import pytest

from rota.emit.names import identifier
from tests.findings.smallest import raised


@pytest.mark.parametrize("name", ["", "2nd", "a b", "a-b", "größe", "class", "_hidden", "a__b", 'x"; system("'])
def test_what_cpp_cannot_use_as_a_name_is_refused(name: str) -> None:
    raised("T201", lambda: identifier(name))


@pytest.mark.parametrize("name", ["gemm_bf16_128x128x64_4wave", "DeclarativeSchedule", "a", "K_"])
def test_a_plain_name_is_taken_as_it_is(name: str) -> None:
    assert identifier(name) == name
