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
    start=Fitted(4.148, 2.868, 4.906, "us", _TABLE),
    share=Fitted(0.94, 0.8348, 1, "of the loop's clocks", _TABLE),
    feed=Fitted(24.58, 17.42, 25.53, "bytes per clock and unit", _TABLE),
    hbm=Fitted(3.9, 3.9, 3.9, "TB per second", _TABLE),
    store=Fitted(4.677, 3.923, 14.73, "TB per second", _TABLE),
    split_start=Fitted(4.332, 2.359, 5.606, "us", _TABLE),
    split_traffic=Fitted(1.13, 0.2823, 8.757, "times", _TABLE),
    types=(
        TypeFacts(
            element="fp8",
            f_busy=Fitted(0.9679, 0.9616, 1.156, "GHz", _TABLE),
            best=Fitted(1038, 1038, 1038, "TFLOP/s", _TABLE),
        ),
        TypeFacts(
            element="int8",
            f_busy=Fitted(1.472, 1.427, 1.689, "GHz", _TABLE),
            best=Fitted(1268, 1268, 1268, "TFLOP/s", _TABLE),
            uncalibrated="only 32 runs",
        ),
    ),
    band=Spread(0.829, 1.131),
    wide_band=Spread(0.687, 1.278),
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
        uncalibrated="the table has no run of it; its clock is a published one",
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
