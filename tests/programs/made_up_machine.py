"""A machine that doesn't exist: takes nothing, gives one whose counters have other names, widths and orders."""

from __future__ import annotations

from rota.program.kinds import OpKind
from rota.program.machine import Confidence, Counter, Fact, Machine


def _made_up(value: int, unit: str) -> Fact:
    return Fact(value, unit, Confidence.ESTIMATE, "made up")


MADE_UP = Machine(
    name="made up",
    arch="none",
    counters=(
        Counter(name="tiles", holds=_made_up(7, "tokens"), counts=frozenset({OpKind.DMA}), in_order=False),
        Counter(
            name="lds",
            holds=_made_up(31, "tokens"),
            counts=frozenset({OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED, OpKind.LDS_WRITE}),
        ),
        Counter(
            name="global",
            holds=_made_up(5, "tokens"),
            counts=frozenset({OpKind.GLOBAL_LOAD, OpKind.GLOBAL_STORE, OpKind.ATOMIC}),
        ),
    ),
    lds_bytes=_made_up(65536, "bytes"),
    vgprs_per_lane=_made_up(512, "registers per lane"),
    waves_per_workgroup=_made_up(16, "waves"),
    dma_width=_made_up(16, "bytes per lane"),
    split_barrier=True,
)
