"""MI325X, CDNA3 with faster memory: takes nothing, gives the device."""

from __future__ import annotations

from rota.program.machine import Confidence, Fact
from rota.targets import cdna
from rota.targets.cdna3 import CDNA3, LDS_WRITE_LEAST, RATES
from rota.targets.device import device, problem_facts_of
from rota.targets.mi300x import MI300X
from rota.targets.problem_facts import of_sibling

MI325X = device(
    CDNA3,
    name="MI325X",
    timing=cdna.timing(
        CDNA3,
        RATES,
        clock=Fact(2100, "MHz", Confidence.DOCUMENTED, "AMD, MI325X: 1,307.4 TFLOP/s in bf16 are 304 units at it"),
        compute_units=304,
        lds_write_least=LDS_WRITE_LEAST,
    ),
    dies=cdna.dies(8),
    memory=cdna.memory(256),
    memory_rate=Fact(6000, "GB per second", Confidence.REPORTED, "report of AMD's launch, 2024"),
    problems=of_sibling(problem_facts_of(MI300X), MI300X.name, 6000 / MI300X.memory_rate.value),
)
