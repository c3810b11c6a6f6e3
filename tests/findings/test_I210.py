from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from rota.audit.audit import Audit
from tests.audit import sabotage
from tests.emit.kernels import FP8, Emitted, ping_pong, staggered
from tests.wording.golden import worded

pytestmark = pytest.mark.no_cover  # many cases: what they run is covered where it is tested by itself

CHOSEN = "const int wave_group = wave / 4;"
KERNELS: dict[str, Callable[[], Emitted]] = {"ping-pong": ping_pong, "by values": lambda: staggered(FP8)}


@cache
def audited(name: str, chosen: str) -> Audit:
    compiled, geometry = KERNELS[name]()
    source = sabotage.source_of(compiled, geometry)
    assert source.count(CHOSEN) == 1
    return sabotage.audited(compiled, geometry, source.replace(CHOSEN, chosen))


@pytest.mark.parametrize("name", KERNELS)
def test_the_schedules_own_groups(name: str) -> None:
    assert audited(name, CHOSEN).exact


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    ("chosen", "second"),
    [
        ("const int wave_group = wave & 1;", "waves 1, 3, 5, 7"),
        ("const int wave_group = wave / 4 ^ 1;", "waves 0, 1, 2, 3"),
        ("const int wave_group = wave > 4;", "waves 5, 6, 7"),
        ("const int wave_group = wave == 3;", "waves 3"),
        # Waves, but by a vector register: EXEC decides.
        ("const int wave_group = thread / 64 % 2;", "waves 1, 3, 5, 7"),
    ],
)
def test_other_waves_in_the_group_are_found(name: str, chosen: str, second: str) -> None:
    first, last = (finding for finding in audited(name, chosen).findings if finding.code == "I210")
    worded(first)
    assert first.evidence == (("due", "waves 4, 5, 6, 7"), ("found", second))
    assert dict(last.evidence)["due"] == "waves 0, 1, 2, 3"


def test_a_group_that_an_argument_chooses_is_not_known() -> None:
    report = audited("ping-pong", "const int wave_group = (wave + N) / 4 & 1;")
    findings = [finding for finding in report.findings if finding.code == "I210"]
    assert [dict(finding.evidence)["found"] for finding in findings] == ["not known", "not known"]
    worded(findings[0])
    assert not report.clean
