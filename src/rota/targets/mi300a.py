"""MI300A, CDNA3 beside CPU cores, with one memory for both: takes nothing, gives the device."""

from __future__ import annotations

from rota.program.machine import Confidence, Fact
from rota.targets import cdna
from rota.targets.cdna3 import CDNA3, LDS_WRITE_LEAST, RATES
from rota.targets.device import device, problem_facts_of
from rota.targets.mi300x import MI300X
from rota.targets.problem_facts import of_sibling

MI300A = device(
    CDNA3,
    name="MI300A",
    timing=cdna.timing(
        CDNA3,
        RATES,
        clock=Fact(2100, "MHz", Confidence.REPORTED, "report of AMD's launch, 2023; 980.6 TFLOP/s in bf16"),
        compute_units=228,
        lds_write_least=LDS_WRITE_LEAST,
    ),
    dies=cdna.dies(6),
    memory=cdna.memory(128),
    memory_rate=Fact(5300, "GB per second", Confidence.REPORTED, "report of AMD's launch, 2023"),
    problems=of_sibling(problem_facts_of(MI300X), MI300X.name, 5300 / MI300X.memory_rate.value),
)
