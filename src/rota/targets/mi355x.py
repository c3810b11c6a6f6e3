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
    start=Fitted(3.9, 3.9, 3.9, "us", _TABLE),
    share=Fitted(0.85, 0.85, 0.85, "of the loop's clocks", _TABLE),
    feed=Fitted(29.6, 29.6, 29.6, "bytes per clock and unit", _TABLE),
    hbm=Fitted(6.4, 6.4, 6.4, "TB per second", _TABLE),
    store=Fitted(4.0, 4.0, 4.0, "TB per second", _TABLE),
    split_start=Fitted(1.3, 1.3, 1.3, "us", _TABLE),
    split_traffic=Fitted(2.0, 2.0, 2.0, "times", _TABLE),
    types=(
        TypeFacts(
            element="bf16",
            f_busy=Fitted(1.97, 1.97, 1.97, "GHz", _TABLE),
            best=Fitted(1597.0, 1597.0, 1597.0, "TFLOP/s", _TABLE),
        ),
        TypeFacts(
            element="fp8",
            f_busy=Fitted(1.92, 1.92, 1.92, "GHz", _TABLE),
            best=Fitted(2997.0, 2997.0, 2997.0, "TFLOP/s", _TABLE),
        ),
        TypeFacts(
            element="fp4",
            f_busy=Fitted(2.02, 2.02, 2.02, "GHz", _TABLE),
            best=Fitted(5851.0, 5851.0, 5851.0, "TFLOP/s", _TABLE),
        ),
        TypeFacts(
            element="int8",
            f_busy=Fitted(1.43, 1.43, 1.43, "GHz", _TABLE),
            best=Fitted(2518.0, 2518.0, 2518.0, "TFLOP/s", _TABLE),
        ),
    ),
    band=Spread(0.875, 1.178),
    wide_band=Spread(0.75, 1.4),
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
