"""Small instruction lists for the cycle model: takes instructions, gives `Code` that runs them."""

from __future__ import annotations

from collections.abc import Sequence

from rota import GFX950
from rota.declare.effects import Place, Space
from rota.declare.vocabulary import Phase
from rota.simulate.instructions import Code, Instruction, Key, Kind
from rota.simulate.parameters import nominal
from rota.targets.timing import timing_of

PARAMETERS = nominal(timing_of(GFX950)).but(
    loop_edge=0, lds_latency=60, lds_read=256, lds_write=128, dma_latency=800, dma_rate=64, barrier=8
)

MFMA = Instruction(Kind.MFMA, 0, 16, 36)
VALU = Instruction(Kind.VALU, 0, 4, 4)
READ = Instruction(Kind.LDS_READ, 0, 4, 60)
DMA = Instruction(Kind.DMA, 0, 16, 8)
SCALAR = Instruction(Kind.SCALAR, 0)
BARRIER = Instruction(Kind.BARRIER, 0)


def wait_vm(count: int) -> Instruction:
    return Instruction(Kind.WAIT_VM, 0, count)


def wait_lgkm(count: int) -> Instruction:
    return Instruction(Kind.WAIT_LGKM, 0, count)


def priority(level: int) -> Instruction:
    return Instruction(Kind.PRIORITY, 0, level)


def program(
    *kernels: Sequence[Instruction],
    groups: Sequence[int] = (0,),
    producers: Sequence[Kind] = (),
    prologues: Sequence[Sequence[Instruction]] = (),
) -> Code:
    """One kernel per wave group; every instruction is an entry of its own, numbered within its kernel."""
    lists = []
    for group, kernel in enumerate(kernels):
        before = prologues[group] if prologues else ()
        body = [each._replace(key=number) for number, each in enumerate(kernel)]
        edge = len(kernel)
        lists.append(
            (*before, Instruction(Kind.ENTER, edge), *body, Instruction(Kind.EDGE, edge), Instruction(Kind.END, edge))
        )
    longest = max(map(len, kernels))
    return Code(
        name="program",
        waves=len(groups),
        groups=tuple(groups),
        instructions=tuple(lists),
        keys=tuple(Key(Phase.KERNEL, slot, f"entry {slot}") for slot in range(longest + 1)),
        steps=(None,) * (longest + 1),
        registers=tuple(Place(Space.REGISTER, 0, 0, number) for number in range(len(producers))),
        register_kinds=tuple(producers),
        tiles_per_trip=1,
        flops=0,
        mma_clocks=0,
        math_turns=0,
        lds_clocks=0,
        dma_clocks=0,
    )
