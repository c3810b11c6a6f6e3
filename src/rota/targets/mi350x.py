"""MI350X, CDNA4 and air-cooled: takes nothing, gives the device."""

from __future__ import annotations

from rota.program.machine import Confidence, Fact
from rota.targets import cdna
from rota.targets.cdna4 import CDNA4, LDS_WRITE_LEAST, RATES
from rota.targets.device import device, problem_facts_of
from rota.targets.mi355x import MI355X
from rota.targets.problem_facts import of_sibling

MI350X = device(
    CDNA4,
    name="MI350X",
    timing=cdna.timing(
        CDNA4,
        RATES,
        clock=Fact(2200, "MHz", Confidence.REPORTED, "report from Hot Chips 2025"),
        compute_units=256,
        lds_write_least=LDS_WRITE_LEAST,
    ),
    dies=cdna.dies(8),
    memory=cdna.memory(288),
    memory_rate=Fact(8000, "GB per second", Confidence.REPORTED, "report of AMD's launch, 2025"),
    problems=of_sibling(problem_facts_of(MI355X), MI355X.name, 8000 / MI355X.memory_rate.value),
)
