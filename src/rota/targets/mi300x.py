"""MI300X, CDNA3: takes nothing, gives the device."""

from __future__ import annotations

from rota.program.machine import Confidence, Fact
from rota.targets import cdna
from rota.targets.cdna3 import CDNA3, LDS_WRITE_LEAST, RATES
from rota.targets.device import device
from rota.targets.problem_facts import Fitted, ProblemFacts, Spread, TypeFacts, like, with_types

# fitted by `python -m benchmarks.fit_measured --write`
_TABLE = "AITER's tuned GEMMs up to 2026-08, gfx942 with 304 units"
PROBLEMS = ProblemFacts(
    start=Fitted(4.2, 4.2, 4.2, "us", _TABLE),
    share=Fitted(0.85, 0.85, 0.85, "of the loop's clocks", _TABLE),
    feed=Fitted(24.6, 24.6, 24.6, "bytes per clock and unit", _TABLE),
    hbm=Fitted(3.9, 3.9, 3.9, "TB per second", _TABLE),
    store=Fitted(4.5, 4.5, 4.5, "TB per second", _TABLE),
    split_start=Fitted(4.4, 4.4, 4.4, "us", _TABLE),
    split_traffic=Fitted(1.0, 1.0, 1.0, "times", _TABLE),
    types=(
        TypeFacts(
            element="fp8",
            f_busy=Fitted(1.0, 1.0, 1.0, "GHz", _TABLE),
            best=Fitted(1200.0, 1200.0, 1200.0, "TFLOP/s", _TABLE),
        ),
        TypeFacts(
            element="int8",
            f_busy=Fitted(1.6, 1.6, 1.6, "GHz", _TABLE),
            best=Fitted(1500.0, 1500.0, 1500.0, "TFLOP/s", _TABLE),
        ),
    ),
    band=Spread(0.7, 1.3),
    wide_band=Spread(0.6, 1.5),
    apart=0.1,
    measured=f"{_TABLE}, 1,532 rows",
)
# end of what was fitted

_SUSTAINED = "AMD, blog on the maximum achievable FLOPS, part 2: 708 TFLOP/s in bf16 at 1,207 MHz"
_SIXTEEN_BITS = tuple(
    TypeFacts(
        element=element,
        f_busy=Fitted(1.18, 1.1, 1.3, "GHz", _SUSTAINED),
        best=Fitted(708, 708, 708, "TFLOP/s", _SUSTAINED) if element == "bf16" else None,
        uncalibrated="no run with its tile was available; its clock is a published one",
    )
    for element in ("bf16", "fp16")
)

MI300X = device(
    CDNA3,
    name="MI300X",
    timing=cdna.timing(
        CDNA3,
        RATES,
        clock=Fact(2100, "MHz", Confidence.DOCUMENTED, "AMD, MI300X: 1,307.4 TFLOP/s in bf16 are 304 units at it"),
        compute_units=304,
        lds_write_least=LDS_WRITE_LEAST,
    ),
    dies=cdna.dies(8),
    memory=cdna.memory(192),
    memory_rate=Fact(5300, "GB per second", Confidence.DOCUMENTED, "Chips and Cheese, on MI300X"),
    problems=with_types(PROBLEMS, *_SIXTEEN_BITS, like(PROBLEMS, "fp8", "bf8")),
)
