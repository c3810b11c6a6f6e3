"""An architecture that nobody builds, as data alone: waves of 32 lanes, four counters, split barriers.

Each counter has a wait of its own, as `s_wait_loadcnt 0`; a barrier is `s_barrier_signal -1` and `s_barrier_wait -1`.
`registered` makes the architecture known as an installed package would.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata

import pytest

from rota.program.kinds import OpKind
from rota.program.machine import Confidence, Counter, Fact
from rota.targets.architecture import Queue, Traffic
from rota.targets.cdna4 import CDNA4, MI355X
from rota.targets.device import device
from rota.targets.registry import ENTRY_POINT_GROUP


def _fact(value: int, unit: str) -> Fact:
    return Fact(value, unit, Confidence.ESTIMATE, "made up")


def _counter(name: str, holds: int, *counts: OpKind, in_order: bool = True) -> Counter:
    return Counter(name=name, holds=_fact(holds, "tokens"), counts=frozenset(counts), in_order=in_order)


MADE_UP = replace(
    CDNA4,
    name="gfx32",
    arch="gfx32",
    toolchain="gfx32",
    elf_machine=_fact(0x7E, "EF_AMDGPU_MACH"),
    lanes=_fact(32, "lanes per wave"),
    waves_per_workgroup=_fact(32, "waves"),
    counters=(
        _counter("loadcnt", 63, OpKind.DMA, OpKind.GLOBAL_LOAD),
        _counter("storecnt", 63, OpKind.GLOBAL_STORE, OpKind.ATOMIC),
        _counter("dscnt", 31, OpKind.LDS_READ, OpKind.LDS_WRITE),
        _counter("kmcnt", 7, in_order=False),
    ),
    queues=(
        Queue(counter="loadcnt", in_order=frozenset({Traffic.LOAD, Traffic.TO_LDS})),
        Queue(counter="storecnt", in_order=frozenset({Traffic.STORE})),
        Queue(counter="dscnt", in_order=frozenset({Traffic.LDS})),
        Queue(counter="kmcnt", in_order=frozenset(), in_any_order=frozenset({Traffic.SCALAR})),
    ),
    split_barrier=True,
    wait_encoding=None,
    bank_rules=(),
    transposed_reads=(),
    matrix_forms=(),
)

MADE_UP_DEVICE = device(
    MADE_UP, name="MadeUp", timing=MI355X.timing, dies=MI355X.dies, memory=MI355X.memory, memory_rate=MI355X.memory_rate
)


@contextmanager
def registered() -> Iterator[None]:
    """A package registers the device, and with it its architecture."""
    entry = metadata.EntryPoint("madeup", f"{__name__}:MADE_UP_DEVICE", ENTRY_POINT_GROUP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "entry_points", lambda *, group: (entry,) if group == ENTRY_POINT_GROUP else ())
        yield
