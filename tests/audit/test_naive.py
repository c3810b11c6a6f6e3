from __future__ import annotations

import pytest

from rota.audit.audit import WaitVerdict
from tests.campaigns.pages.naive import versions
from tests.emit.kernels import SMALL, by_values


@pytest.mark.thorough  # compiles, or starts commands
def test_what_the_usual_way_of_writing_costs() -> None:
    """The reason for the idiom: fences drain every prefetch, and without any the compiler reorders."""
    found = versions(by_values(SMALL))
    assert found["as emitted"].audit.exact
    fenced = found["with __syncthreads() too"].audit
    drains = [match for match in fenced.waits if match.verdict is WaitVerdict.STRONGER]
    assert drains
    assert {match.found for match in drains} == {0}
    assert fenced.clean
    naive = found["naive: builtins, no fences"].audit
    assert not naive.clean
    assert "I202" in {finding.code for finding in naive.findings}
    # Left to itself, the compiler waits for no DMA at all, or for every one of them.
    assert "vmcnt(0)" not in found["as emitted"].waits()
    assert found["naive, no waits"].waits() == "none"
    assert set(found["naive, no waits, __syncthreads()"].waits().split()[2::3]) == {"vmcnt(0)"}
