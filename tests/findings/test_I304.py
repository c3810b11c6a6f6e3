from __future__ import annotations

from rota.errors import Finding, Severity
from rota.isa.wave.wave import Faults
from tests.isa.single import execute, fresh, written_lds
from tests.wording.golden import worded


def found(second: str, value: int) -> tuple[Finding, ...]:
    """What is said of two waves that write to LDS; the first one writes 7."""
    lds = written_lds(faults := Faults())
    execute("ds_write_b32 v0, v1\ns_waitcnt lgkmcnt(0)", fresh({0: 0, 1: 7}, number=0, lds=lds))
    execute(second, fresh({0: 0, 1: value}, number=1, lds=lds))
    return tuple(worded(finding) for finding in faults.findings())


def test_two_waves_write_the_same() -> None:
    (finding,) = found("ds_write_b32 v0, v1", 7)
    assert (finding.code, finding.severity) == ("I304", Severity.WARNING)
    assert "ds_write_b32" in finding.message
    assert dict(finding.evidence) == {"wave": 1, "other wave": 0, "bytes": "0 to 3"}


def test_one_byte_that_differs_makes_it_a_race() -> None:
    assert [finding.code for finding in found("ds_write_b32 v0, v1", 7 | 1 << 24)] == ["I109"]
    assert [finding.code for finding in found("ds_write_b8 v0, v1", 7 | 1 << 24)] == ["I304"]


def test_a_wait_and_a_barrier_between_them_leave_nothing_to_say() -> None:
    assert found("s_barrier\nds_write_b32 v0, v1", 7) == ()
