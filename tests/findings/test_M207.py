from __future__ import annotations

from rota.bench.bench_results import BenchResults, Bits, MeasuredCase, MeasuredOn
from tests.wording.golden import mentions, worded


def test_a_candidate_that_left_other_bits() -> None:
    bits = {"before": Bits.FIRST, "same": Bits.SAME, "other": Bits.DIFFER}
    case = MeasuredCase(name="k", bytes=256, launches=dict.fromkeys(bits, "grid 1x1x1"), bits=bits, times={})
    on = MeasuredOn("a device", "gfx950", 2400, 2000, 256, "7", 1 << 29, 5.0)
    (finding,) = BenchResults(file="results.csv", on=on, cases=(case,)).findings
    assert worded(finding).code == "M207"
    assert mentions(finding, "other", "k")
    assert [name for name, _ in finding.evidence] == ["measured on", "launch"]
