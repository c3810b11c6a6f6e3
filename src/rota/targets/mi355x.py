"""MI355X, CDNA4 and liquid-cooled: takes nothing, gives the device."""

from __future__ import annotations

from rota.program.machine import Confidence, Fact
from rota.targets import cdna
from rota.targets.cdna4 import CDNA4, LDS_WRITE_LEAST, RATES
from rota.targets.device import device
from rota.targets.problem_facts import Fitted, ProblemFacts, Spread, TypeFacts, like, with_types

# fitted by `python -m benchmarks.fit_measured --write`
_TABLE = "AITER's tuned GEMMs up to 2026-08, gfx950 with 256 units"
PROBLEMS = ProblemFacts(
    start=Fitted(3.794, 3.661, 4.288, "us", _TABLE),
    share=Fitted(0.8479, 0.8007, 0.9313, "of the loop's clocks", _TABLE),
    feed=Fitted(29.59, 29.44, 30.12, "bytes per clock and unit", _TABLE),
    hbm=Fitted(6.4, 6.4, 6.4, "TB per second", _TABLE),
    store=Fitted(3.965, 3.68, 4.038, "TB per second", _TABLE),
    split_start=Fitted(1.3, 0.9846, 1.979, "us", _TABLE),
    split_traffic=Fitted(2.054, 0.888, 2.636, "times", _TABLE),
    types=(
        TypeFacts(
            element="bf16",
            f_busy=Fitted(1.967, 1.949, 1.977, "GHz", _TABLE),
            best=Fitted(1597, 1597, 1597, "TFLOP/s", _TABLE),
        ),
        TypeFacts(
            element="fp4",
            f_busy=Fitted(2.016, 1.906, 2.023, "GHz", _TABLE),
            best=Fitted(5851, 5851, 5851, "TFLOP/s", _TABLE),
        ),
        TypeFacts(
            element="fp8",
            f_busy=Fitted(1.914, 1.907, 1.927, "GHz", _TABLE),
            best=Fitted(2997, 2997, 2997, "TFLOP/s", _TABLE),
        ),
        TypeFacts(
            element="int8",
            f_busy=Fitted(1.428, 1.401, 1.468, "GHz", _TABLE),
            best=Fitted(2518, 2518, 2518, "TFLOP/s", _TABLE),
        ),
    ),
    band=Spread(0.876, 1.178),
    wide_band=Spread(0.876, 1.300),
    apart=0.1,
    measured=f"{_TABLE}, 10,763 rows",
)
# end of what was fitted

MI355X = device(
    CDNA4,
    name="MI355X",
    timing=cdna.timing(
        CDNA4,
        RATES,
        clock=Fact(2400, "MHz", Confidence.REPORTED, "report from Hot Chips 2025"),
        compute_units=256,
        lds_write_least=LDS_WRITE_LEAST,
    ),
    dies=cdna.dies(8),
    memory=cdna.memory(288),
    memory_rate=Fact(8000, "GB per second", Confidence.REPORTED, "report of AMD's launch, 2025"),
    problems=with_types(
        PROBLEMS, like(PROBLEMS, "bf16", "fp16"), like(PROBLEMS, "fp8", "bf8"), like(PROBLEMS, "fp4", "fp6")
    ),
)
