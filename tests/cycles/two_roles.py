"""A producer and a consumer with lists of their own, who meet at the barriers "full" and "empty"."""

from __future__ import annotations

from collections.abc import Iterator

from rota import GFX950, Loop, Machine, Phase
from rota.kernels.gemm import BF16
from rota.program.entry import Effect, Entry, Op, Place, Space, Version, Work, wait_effect, wait_op
from rota.program.kinds import OpKind
from rota.program.lowered import Barrier, LoweredProgram, Role, number_entries

PRODUCER, CONSUMER = (0,), (1,)
COPIES = 2
MFMAS = 24
DMAS = 4


def producer_consumer(
    waves: tuple[int, int] = (1, 1), *, ahead: int = COPIES, leaves: int = 0, machine: Machine = GFX950
) -> LoweredProgram:
    """Two tiles a trip; the consumer says `ahead` times at the start that a buffer is empty.

    The producer says "full" when all but `leaves` of its loads have landed, so with DMAS it is a tile behind.
    """
    loop = Loop("handed_over", waves=sum(waves))
    tile, total = loop.tile("A", size=DMAS * 1024), loop.accumulator("c", registers=4)
    loop.load(tile, instructions=DMAS, moved=DMAS * 1024)
    read = loop.fragment("a", tile, registers=4, instructions=DMAS)
    loop.mma(total, read, instruction=BF16, instructions=MFMAS)
    spec = loop.build()
    vm, lgkm = (machine.counter_of(kind) or "" for kind in (OpKind.DMA, OpKind.LDS_READ))
    does = [frozenset({"load_A"}), frozenset(op.name for op in spec.ops) - {"load_A"}]
    load, fragment, mma = (op.name for op in spec.ops)

    def entry(phase: Phase, op: Op, effect: Effect, roles: tuple[int, ...]) -> Entry:
        return Entry(op=op, effect=effect, time_slot=0, phase=phase, roles=roles)

    def meet(phase: Phase, name: str, roles: tuple[int, ...], *, arrives: bool) -> Entry:
        effect = Effect(kind=OpKind.BARRIER, arrives=name if arrives else None, awaits=None if arrives else name)
        return entry(phase, Op(kind=OpKind.BARRIER, name=f"{'arrive' if arrives else 'await'}_{name}"), effect, roles)

    def tile_of(copy: int) -> Iterator[Entry]:
        buffer, registers = Place(Space.LDS, "A", copy), Place(Space.REGISTER, "a")
        made, wanted = Version("A", copy), Version("a", copy)
        yield meet(Phase.KERNEL, "empty", PRODUCER, arrives=False)
        yield entry(
            Phase.KERNEL,
            Op(kind=OpKind.DMA, name=load, copy=copy, work=Work(DMAS, 1024)),
            Effect(
                kind=OpKind.DMA,
                counter=vm,
                tokens=DMAS,
                writes=(buffer,),
                instance=Version(load, copy),
                makes=((buffer, made),),
            ),
            PRODUCER,
        )
        yield entry(Phase.KERNEL, wait_op(vm, leaves), wait_effect(vm, leaves), PRODUCER)
        yield meet(Phase.KERNEL, "full", PRODUCER, arrives=True)
        yield meet(Phase.KERNEL, "full", CONSUMER, arrives=False)
        yield entry(
            Phase.KERNEL,
            Op(kind=OpKind.LDS_READ, name=fragment, copy=copy, work=Work(DMAS, 1024)),
            Effect(
                kind=OpKind.LDS_READ,
                counter=lgkm,
                tokens=DMAS,
                reads=(buffer,),
                writes=(registers,),
                instance=Version(fragment, copy),
                wants=((buffer, made),),
                makes=((registers, wanted),),
            ),
            CONSUMER,
        )
        yield entry(Phase.KERNEL, wait_op(lgkm, 0), wait_effect(lgkm, 0), CONSUMER)
        yield meet(Phase.KERNEL, "empty", CONSUMER, arrives=True)
        yield entry(
            Phase.KERNEL,
            Op(kind=OpKind.MMA, name=mma, copy=copy, work=Work(MFMAS, 0, BF16)),
            Effect(
                kind=OpKind.MMA,
                reads=(registers,),
                writes=(Place(Space.ACCUMULATOR, "c"),),
                instance=Version(mma, copy),
                wants=((registers, wanted),),
            ),
            CONSUMER,
        )

    return LoweredProgram(
        name="handed_over",
        machine=machine,
        semantics=spec,
        prologue=number_entries([meet(Phase.PROLOGUE, "empty", CONSUMER, arrives=True) for _ in range(ahead)]),
        kernel=number_entries([each for copy in range(COPIES) for each in tile_of(copy)]),
        epilogue=(),
        tiles_per_trip=COPIES,
        tiles_outside=0,
        roles=(Role("producer", waves[0], does[0]), Role("consumer", waves[1], does[1])),
        barriers=(Barrier("full", PRODUCER, CONSUMER), Barrier("empty", CONSUMER, PRODUCER)),
    )
