"""Small instruction lists for the cycle model: takes instructions, gives `Code` that runs them."""

from __future__ import annotations

from collections.abc import Sequence

from rota import GFX950
from rota.cycles.instructions import (
    CODE,
    EDGE,
    END,
    ENTER,
    NOBODY,
    SCALAR as SCALAR_CODE,
    Code,
    IssuedEntry,
    MeetingPoint,
    ModelInstruction,
    UnitLoad,
    nominal,
)
from rota.program.entry import WORKGROUP, Place, Space
from rota.program.kinds import OpKind, Phase
from rota.program.machine import Counter

PARAMETERS = nominal(GFX950).but(
    loop_edge=0, lds_latency=60, lds_read=256, lds_write=128, dma_latency=800, dma_rate=64, barrier=8
)

VMCNT, LGKMCNT = range(2)  # the order in which the machine has them

MFMA = ModelInstruction(CODE[OpKind.MMA], 0, 16, 36)
VALU = ModelInstruction(CODE[OpKind.VALU], 0, 4, 4)
READ = ModelInstruction(CODE[OpKind.LDS_READ], 0, 4, 60, counter=LGKMCNT)
DMA = ModelInstruction(CODE[OpKind.DMA], 0, 16, 8, counter=VMCNT)
SCALAR = ModelInstruction(SCALAR_CODE, 0)
BARRIER = ModelInstruction(CODE[OpKind.BARRIER], 0, 0, 0)


def wait_vm(count: int) -> ModelInstruction:
    return ModelInstruction(CODE[OpKind.WAIT], 0, count, counter=VMCNT)


def wait_lgkm(count: int) -> ModelInstruction:
    return ModelInstruction(CODE[OpKind.WAIT], 0, count, counter=LGKMCNT)


def priority(level: int) -> ModelInstruction:
    return ModelInstruction(CODE[OpKind.PRIORITY], 0, level)


def arrive(barrier: int = 0) -> ModelInstruction:
    return ModelInstruction(CODE[OpKind.BARRIER], 0, barrier, NOBODY)


def await_all(barrier: int = 0) -> ModelInstruction:
    return ModelInstruction(CODE[OpKind.BARRIER], 0, NOBODY, barrier)


def program(
    *kernels: Sequence[ModelInstruction],
    roles: Sequence[int] = (0,),
    producers: Sequence[int] = (),
    prologues: Sequence[Sequence[ModelInstruction]] = (),
    counters: Sequence[Counter] = GFX950.counters,
    barriers: Sequence[MeetingPoint] | None = None,
) -> Code:
    """One kernel per role; every instruction is an entry of its own, numbered within its kernel.

    `producers` number the counters of what fills each register.
    """
    lists = []
    for role, kernel in enumerate(kernels):
        before = prologues[role] if prologues else ()
        body = [each._replace(key=number) for number, each in enumerate(kernel)]
        edge = len(kernel)
        lists.append(
            (*before, ModelInstruction(ENTER, edge), *body, ModelInstruction(EDGE, edge), ModelInstruction(END, edge))
        )
    longest = max(map(len, kernels))
    everyone = tuple(range(len(roles)))
    return Code(
        name="program",
        roles=tuple(roles),
        instructions=tuple(lists),
        keys=tuple(IssuedEntry(Phase.KERNEL, slot, f"entry {slot}") for slot in range(longest + 1)),
        entries=(None,) * (longest + 1),
        counters=tuple(counters),
        barriers=(MeetingPoint(WORKGROUP, everyone, everyone),) if barriers is None else tuple(barriers),
        registers=tuple(Place(Space.REGISTER, "r", number) for number in range(len(producers))),
        register_counters=tuple(producers),
        tiles_per_trip=1,
        load=UnitLoad(),
    )
